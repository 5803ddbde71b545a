"""The files of a canonical savepoint, read and written without Flink. Knows nothing of SQL."""
