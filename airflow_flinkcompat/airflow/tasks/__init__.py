"""Shared parts of the operators and the sensor: a deployment's script, its texts, and typed arguments."""
