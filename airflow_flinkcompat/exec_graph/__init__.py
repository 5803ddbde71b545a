"""A job as Flink executes it: operators, ids, and the layout and meaning of their state."""
