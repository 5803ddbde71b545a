"""Connectors and formats: what a table's declaration says about where its rows lie and how they are written."""
