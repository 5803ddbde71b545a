"""Flink's arithmetic in Spark SQL: expressions, local time, regular expressions, window bounds."""
