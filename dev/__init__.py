"""Tools of the developers: benchmarks, measurements on a real Flink, and the demo."""
