"""Code in Spark's driver for every backfill: the session, its start, files."""
