"""The sensor is tried on the same site as the operators."""

from tests.unit.airflow.operators.conftest import deployed, logs, site

__all__ = ["deployed", "logs", "site"]
