"""A language server: the verdict on a script against what is deployed, while one types."""
