"""Test support for users: a target in memory, and the contract of every target."""
