"""The operators that Flink plans of a script, part by part: sources, lookups, aggregations, sinks."""
