"""The delta connector: Delta Lake tables by path."""
