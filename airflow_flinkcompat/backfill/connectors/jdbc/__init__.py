"""The jdbc connector, on PostgreSQL."""
