"""Where the pages are, as a task links to them."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.airflow.links import change_page, path_of_airflow


@pytest.mark.parametrize(
    ("base_url", "path"),
    [("", ""), ("http://localhost:8080", ""), ("https://example.org/airflow/", "/airflow")],
)
def test_links_begin_with_the_path_of_airflow(base_url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert path_of_airflow() == path
    assert change_page("0a1b", "orders", 7) == f"{path}/plugin/flink?ledger=0a1b&deployment=orders&change=7"
