"""The filesystem connector: folders of csv, json, parquet or orc files."""
