"""Formats of files and records: which values are exact, and how Spark reads them."""
