"""Flink's arithmetic in Spark SQL: expressions, local time, regular expressions, the bounds of windows."""
