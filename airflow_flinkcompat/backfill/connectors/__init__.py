"""Connectors and formats: where a table's rows are and how they are written, from its declaration."""
