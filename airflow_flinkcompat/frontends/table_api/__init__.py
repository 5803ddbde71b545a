"""The Table API of PyFlink: calls on tables as their equivalent in SQL."""
