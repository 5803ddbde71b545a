"""The whole road once, with real parts: a local Flink, an Airflow and Spark."""
