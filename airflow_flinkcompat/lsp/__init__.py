"""A language server that compares a script with its deployed version while you type."""
