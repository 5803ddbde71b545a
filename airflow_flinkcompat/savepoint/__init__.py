"""The files of a canonical savepoint, read and written without Flink, independent of SQL."""
