"""Division of windows between a backfill and a live job, and its record."""
