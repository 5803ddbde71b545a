"""What the rules call measured, measured again: each change is called compatible, then restored on a real Flink.

Minute 1 is open when the savepoint is taken and its later rows arrive after the restore: its row shows whether the
state was kept, and minute 0 standing there once shows that no file was read again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

OPTIONS = Options(settle_seconds=1, start_timeout=90)
FIRST = [("ann", 1, "00:10"), ("ann", 5, "01:10")]
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:30")]
MINUTE_0 = '"2026-01-01 00:00:00",ann,1,1'
MINUTE_1 = '"2026-01-01 00:01:00",ann,12,2'
SELECT = "window_start, customer, SUM(amount), COUNT(*)"
COLUMNS = "since TIMESTAMP(3), customer STRING, total BIGINT, orders BIGINT"

# rule that must speak of the change → (what is replaced in the script, by what, minute 1 after the restore)
CHANGES = {
    "unused-declaration": (
        "INSERT INTO",
        "CREATE TABLE spare (a INT) WITH ('connector' = 'blackhole');\nINSERT INTO",
        MINUTE_1,
    ),
    "view-rewritten": (
        "INSERT INTO",
        "CREATE TEMPORARY VIEW spare AS SELECT customer FROM orders;\nINSERT INTO",
        MINUTE_1,
    ),
    "output-changed": ("SUM(amount), COUNT(*)", "SUM(amount) * 100, COUNT(*)", MINUTE_1.replace("12", "1200")),
    "output-changed (a column more)": (
        None,  # of the sink, with the projection that fills it
        None,
        MINUTE_1 + ",6",
    ),
    "window-field-output": (
        "window_start, customer, SUM(amount), COUNT(*)",
        "window_end, customer, SUM(amount), COUNT(*)",
        MINUTE_1.replace("00:01:00", "00:02:00"),
    ),
    "filter-above-state": ("window_end;", "window_end\nHAVING SUM(amount) > 2;", MINUTE_1),
    "source-table-changed": ("'150 ms'", "'250 ms'", MINUTE_1),
    "source-table-changed (watermark delay)": ("FOR ts AS ts", "FOR ts AS ts - INTERVAL '5' SECOND", MINUTE_1),
    "source-table-changed (computed column)": (
        "ts TIMESTAMP(3), W",
        "ts TIMESTAMP(3), twice AS amount * 2, W",
        MINUTE_1,
    ),
    "source-renamed": ("orders", "purchases", MINUTE_1),
    "window-key-reordered": ("customer, window_start, window_end;", "window_end, customer, window_start;", MINUTE_1),
    "setting-changed": ("INSERT INTO", "SET 'pipeline.object-reuse' = 'true';\nINSERT INTO", MINUTE_1),
}


def changed(script: str, name: str) -> str:
    old, new, _ = CHANGES[name]
    if old is None or new is None:
        return script.replace("COUNT(*)", "COUNT(*), SUM(amount) / COUNT(*)").replace(
            "orders BIGINT", "orders BIGINT, average BIGINT"
        )
    assert old in script
    # The folders keep their names: only the table is renamed.
    return new.join(part for part in script.split(old)) if name != "source-renamed" else renamed(script, old, new)


def renamed(script: str, old: str, new: str) -> str:
    return script.replace(f"TABLE {old} ", f"TABLE {new} ").replace(f"TABLE {old},", f"TABLE {new},")


@pytest.mark.parametrize("name", mostly_nightly(list(CHANGES)))
def test_compatible_changes_are_restored_right(name: str, local_flink: LocalFlink, tmp_path: Path) -> None:
    files = Files(tmp_path)
    old_text = files.script(select=SELECT, columns=COLUMNS)
    old, new = (
        Side(text, dict(SETTINGS), engine="flink", engine_version="2.3.0")
        for text in (old_text, changed(old_text, name))
    )
    report = check(old, new)
    assert report.outcome is Outcome.COMPATIBLE
    assert name.partition(" ")[0] in {finding.rule for finding in report.findings}

    deployment = "restore-" + name.replace(" ", "-").strip("()").replace("(", "")
    ledger = Ledger(tmp_path / "ledger", deployment)
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        try:
            files.arrive("1.csv", FIRST)
            deploy(target, ledger, old, start_mode="stateless", checked_old_sha256=None, options=OPTIONS, log=print)
            wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
            deploy(
                target, ledger, new, start_mode="savepoint", checked_old_sha256=old.sha256, options=OPTIONS, log=print
            )
            files.arrive("2.csv", SECOND)
            expected = sorted([MINUTE_0, CHANGES[name][2]])
            wait_for(lambda: len(files.rows()) >= len(expected), "minute 1 is written")
            assert files.rows() == expected
        finally:
            for job_id in target.running(deployment):
                target.cancel(job_id)
