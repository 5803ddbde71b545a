"""A Kubernetes API server on this machine with Flink's operator: the README describes it."""
