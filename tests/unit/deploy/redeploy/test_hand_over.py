"""A deployment goes on from a backfill only where it is the same script, starts empty, and misses no row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat.hand_over import BoundaryError, HandOver, SourceStart
from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, deploy
from airflow_flinkcompat.deploy.redeploy.preconditions import read_hand_over
from dev.services.csv_job import Side
from tests.unit.deploy.redeploy.test_redeploy import SCRIPT, FakeCluster

SIDE = Side(SCRIPT)
START = SourceStart("s", "ts", 0, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
RECORD = HandOver("2026-01-02 00:00:00", (START,), (), SIDE.part_digests(), "2026-01-03")


def started(tmp_path: Path, record: HandOver, side: Side = SIDE, mode: str = "stateless") -> Ledger:
    ledger = Ledger(tmp_path, "orders")
    said: list[str] = []
    options = Options(settle_seconds=0)
    deploy(FakeCluster(), ledger, side, start_mode=mode, checked_old_sha256=None, hand_over=record, options=options,
           log=said.append)  # fmt: skip
    assert any("start s so that it reads every row with ts >= 2026-01-01T00:00:00Z" in line for line in said)
    return ledger


@pytest.mark.parametrize("mode", ["stateless", "auto-first"])
def test_the_ledger_keeps_the_record(tmp_path: Path, mode: str) -> None:
    entry = started(tmp_path, RECORD, mode=mode).head()
    assert entry is not None
    assert HandOver.from_dict(entry.hand_over) == RECORD


@pytest.mark.parametrize(
    ("record", "side", "mode", "words"),
    [
        (RECORD, replace(SIDE, script=SCRIPT + "-- edited"), "stateless", "different values of script than"),
        (RECORD, replace(SIDE, settings={"a": "b"}), "stateless", "different values of settings than"),
        (RECORD, SIDE, "savepoint", "starts without state"),
    ],
)
def test_another_script_or_a_resume_is_refused(
    tmp_path: Path, record: HandOver, side: Side, mode: str, words: str
) -> None:
    with pytest.raises(DeployRefused, match=words):
        started(tmp_path, record, side, mode)
    assert Ledger(tmp_path, "orders").entries() == ()


@pytest.mark.parametrize(
    ("startup", "words"),
    [
        ({"scan.startup.mode": "latest-offset"}, "at latest-offset, so only with rows that arrive later"),
        (
            {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "1767225600001"},
            "at 2026-01-01T00:00:00.0",
        ),
        ({"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "1767225600000"}, ""),
        ({"scan.startup.mode": "earliest-offset"}, ""),
    ],
)
def test_a_source_that_starts_too_late_is_refused(tmp_path: Path, startup: dict[str, str], words: str) -> None:
    record = replace(RECORD, sources=(replace(START, startup=startup),))
    if words:
        with pytest.raises(DeployRefused, match=words):
            started(tmp_path, record)
    else:
        assert started(tmp_path, record).head() is not None


def test_a_record_is_read_from_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "handover.json"
    path.write_text(RECORD.to_json(), encoding="utf-8")
    for given in (RECORD.to_dict(), RECORD.to_json(), str(path), path.as_uri()):
        assert read_hand_over(given) == RECORD
    with pytest.raises(BoundaryError, match=r"cannot be read .*--hand-over FILE"):
        read_hand_over(str(tmp_path / "none.json"))
