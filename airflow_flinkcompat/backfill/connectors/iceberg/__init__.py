"""The iceberg connector: tables of a hadoop, hive or rest catalog."""
