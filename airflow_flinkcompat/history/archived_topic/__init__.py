"""Topics with an archive of their older records."""
