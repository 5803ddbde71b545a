"""The Flink pages in Airflow's UI: a read-only JSON API for the ledgers, and a React bundle."""
