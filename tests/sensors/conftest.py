"""The sensor is tried on the same site as the operators."""

from tests.operators.conftest import deployed, logs, site

__all__ = ["deployed", "logs", "site"]
