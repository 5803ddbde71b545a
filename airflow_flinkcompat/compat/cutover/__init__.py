"""How windows are divided between a backfill and a live job, and the record of it."""
