"""What holds for every test of the acceleration by DuckDB."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill.duckdb import eligibility


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little data is worth it here."""
    monkeypatch.setattr(eligibility, "ROWS", 1)
    monkeypatch.setattr(eligibility, "DENSE", 0.0)
