"""The backfill beside its peers: ``make bench-backfill``."""
