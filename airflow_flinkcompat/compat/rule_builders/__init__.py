"""Shared parts of several rules."""
