"""Facts about connectors: the savepoint state of sources and sinks, and the effect of each option.

The package only contains data, in one module of ``definitions`` per family of connectors. Verdicts about restores are
in :mod:`~airflow_flinkcompat.compat`.
"""
