"""A job as Flink executes it: its operators, their ids, and the layout and meaning of their state."""
