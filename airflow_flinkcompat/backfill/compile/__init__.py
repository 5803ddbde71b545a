"""A plan becomes a tree of steps that hold Spark SQL; nothing here needs Spark."""
