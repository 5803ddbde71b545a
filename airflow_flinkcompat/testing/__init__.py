"""Test support for users: an in-memory target, contract tests for targets, and SQL fixtures."""
