"""What runs in Spark's driver for every backfill: the session, how it starts, files."""
