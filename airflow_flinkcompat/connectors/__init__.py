"""The catalogue of connectors: savepoint state of sources and sinks, and the effect of each option.

It is data, a module for each family in ``definitions``, and judges nothing: :mod:`~airflow_flinkcompat.compat` decides
about restores.
"""
