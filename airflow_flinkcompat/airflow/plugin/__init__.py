"""The Flink pages in Airflow's UI: a read-only JSON API over the ledgers, and a bundle that shows it."""
