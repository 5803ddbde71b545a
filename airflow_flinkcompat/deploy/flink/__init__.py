"""Clients of Flink: REST of JobManager and SQL Gateway, access to them, scripts and savepoint files."""
