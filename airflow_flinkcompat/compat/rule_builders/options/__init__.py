"""What another option of a table does to a restore of open-source Flink, by the catalogue of connectors."""
