"""Test support for users: a target in memory, the contract of targets, and the form of SQL fixtures."""
