"""Shared parts of operators and sensor: base classes, files, assets, telemetry, typed arguments."""
