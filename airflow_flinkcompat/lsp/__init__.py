"""A language server: the verdict on a script compared with the deployed one, while you type."""
