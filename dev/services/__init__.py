"""Kafka, PostgreSQL, object stores, Flink and a job over CSV files, for programs and tests."""
