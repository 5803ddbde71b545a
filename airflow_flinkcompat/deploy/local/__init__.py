"""A Flink of one's own on this machine: its jars and its processes."""
