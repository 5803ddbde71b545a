"""The Table API of PyFlink: calls on tables, and the SQL that says the same."""
