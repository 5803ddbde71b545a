"""Connectors and formats: the place and form of a table's rows, from its declaration."""
