"""What Flink is asked and told: REST of JobManager and SQL Gateway, access to them, scripts and savepoint files."""
