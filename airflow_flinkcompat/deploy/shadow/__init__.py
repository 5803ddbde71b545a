"""Shadow run: both versions of a script read the same rows, and their output is compared."""
