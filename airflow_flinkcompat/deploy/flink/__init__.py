"""Clients of Flink's JobManager and SQL Gateway, with access settings, script statements and tables."""
