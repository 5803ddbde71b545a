"""Engine ``flink``: measured comparisons and ends of restores."""
