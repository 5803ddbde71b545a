"""Putting a run's rows in place: idempotent, and all or nothing."""
