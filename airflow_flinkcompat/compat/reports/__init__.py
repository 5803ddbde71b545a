"""Rendering of reports and of the rule catalogue for people."""
