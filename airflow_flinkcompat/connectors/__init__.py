"""The catalogue of connectors: savepoint state of sources and sinks, and the effect of each option.

It contains data only, with one module for each family in ``definitions``. :mod:`~airflow_flinkcompat.compat` decides
about restores.
"""
