"""A job that was started by hand on a real Flink, taken over, and replaced by its successor with its state."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger, Options, Start, deploy
from airflow_flinkcompat.deploy.redeploy.adopt import adopt
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import SETTINGS, Files, wait_for

pytestmark = pytest.mark.slow


@pytest.mark.nightly
def test_adopted_job_is_replaced_with_its_state(local_flink: LocalFlink, tmp_path: Path) -> None:
    files, ledger, job_id = Files(tmp_path), Ledger(tmp_path / "ledger", "adopted-orders"), new_id()
    old = Side(files.script(), SETTINGS, engine="flink", source="orders.sql")
    other = files.script(select="customer, SUM(amount) * 100, window_start")
    new = Side(other, SETTINGS, engine="flink", source="orders.sql")
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")])
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        target.start(JobSpec(old.script, {**SETTINGS, "pipeline.name": "by hand"}), Start(), job_id)
        wait_for(lambda: files.rows() == ['ann,3,"2026-01-01 00:00:00"'], "minute 0 is written")
        adoption = adopt(target, ledger, old, job_id, owner="ann")
        assert adoption.warnings == ()
        assert adoption.compared == (
            "tables it reads: the job's orders, the script's orders",
            "tables it writes: could not be compared",  # Flink names the tasks of a folder's sink by no table
        )
        assert adoption.entry.job.engine_version == "2.3.0"
        entry = deploy(
            target, ledger, new, checked_old_sha256=adoption.entry.sha256, start_mode="savepoint",
            options=Options(settle_seconds=2, start_timeout=90), log=print,
        )  # fmt: skip
        try:
            assert (entry.kind, ledger.head()) == ("deployed", entry)
            assert target.running("by hand") == ()
            files.arrive("2.csv", [("ann", 7, "01:20"), ("ann", 1, "02:10")])
            total = 'ann,1200,"2026-01-01 00:01:00"'  # 5 of the 12 were read by the job that was started by hand
            wait_for(lambda: total in files.rows(), "minute 1 is written")
        finally:
            target.cancel(str(entry.job_id))
