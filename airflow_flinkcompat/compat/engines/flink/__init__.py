"""Engine ``flink``: what a restore compares and how it ends, as it was measured."""
