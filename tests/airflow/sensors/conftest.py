"""The sensor is tried on the same site as the operators."""

from tests.airflow.operators.conftest import deployed, logs, site

__all__ = ["deployed", "logs", "site"]
