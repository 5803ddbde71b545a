"""The Flink pages in Airflow's UI: a JSON API over the ledgers, and the bundle that shows it. Nothing here writes."""
