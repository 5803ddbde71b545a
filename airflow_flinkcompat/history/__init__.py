"""State from history: compute the state of a job that has read all rows up to its savepoint.

``known_history`` decides without Spark which state history can supply, and computes that state during a migration.
``warm_start`` computes the state of a job that has never run.
"""
