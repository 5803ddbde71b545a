"""The complete workflow once, with a real Flink, Airflow and Spark."""
