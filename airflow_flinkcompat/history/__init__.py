"""State computed from history: the accumulators of a job that has read all rows up to its savepoint.

``known_history`` decides without Spark which state it can supply, and computes it next to a migration; ``warm_start``
does so for a job that has never run.
"""
