"""The benchmark of downtimes really redeploys: with state, ours and the raw calls, each its own job."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.local_flink import LocalFlink
from dev.benchmarks.downtime import measure


@pytest.mark.slow
@pytest.mark.nightly
def test_both_redeploy_with_state(local_flink: LocalFlink, tmp_path: Path) -> None:
    ((ours, raw),) = measure(local_flink, tmp_path, 1)
    for each in (ours, raw):
        assert 0 < each.ended < each.created < each.proven < 60_000, "its last row, its end, the new one, the proof"
    head = Ledger(tmp_path / "ledger", "ours").head()
    assert head is not None
    assert (head.kind, head.start.start_mode) == ("deployed", "savepoint")
