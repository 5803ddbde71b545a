"""Topics whose older records lie in an archive."""
