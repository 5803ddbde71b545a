"""Numbers of stored state for the person who decides about a change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.compat.migration_report import MigratedOperator, MigrationReport
from airflow_flinkcompat.deploy.stored_numbers import StoredNumbers, StoredState, stored_state, with_numbers
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from dev.benchmarks.generated_savepoints import generate
from dev.measure.savepoint_fixtures import FOLDER

HOP = FOLDER / "hopping-windows-become-tumbling-ones" / "old"
WINDOWS = "c27dcf7b54ef6bfd6cff02ca8870b681"
CHECKPOINT = FOLDER.parent / "checkpoints" / "2.3" / "rocksdb-incremental"


def test_keys_bytes_and_the_oldest_window() -> None:
    found = stored_state(str(HOP))
    assert found.operators == {WINDOWS: StoredNumbers("GlobalWindowAggregate", 848, 5, "2024-01-01 00:01:20")}
    assert str(found) == "GlobalWindowAggregate: 5 keys, 848 bytes, oldest window 2024-01-01 00:01:20."


def test_a_checkpoint_of_rocksdb_has_a_size() -> None:
    assert str(stored_state(str(CHECKPOINT))) == (
        "GroupAggregate: 78,561 bytes. Keys are not counted, because only a canonical savepoint shows them."
    )


def test_a_savepoint_out_of_reach() -> None:
    assert str(stored_state("nowhere")) == (
        "The stored state cannot be read: nowhere/_metadata cannot be read from here (FileNotFoundError)."
    )


def test_a_deleted_checkpoint_is_replaced_once_by_the_latest_one(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"damaged")
    assert stored_state("nowhere", latest=lambda: str(HOP)) == stored_state(str(HOP))
    assert stored_state("nowhere", latest=lambda: None) == stored_state("nowhere")
    assert stored_state("nowhere", latest=lambda: "gone") == stored_state("gone")
    assert stored_state(str(tmp_path), latest=lambda: str(HOP)).operators == {}


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow_flinkcompat.state", None)
    (size, doubt) = str(stored_state(str(HOP))).split(". ", 1)
    assert size == "GlobalWindowAggregate: 5,313 bytes"
    assert doubt.startswith("Keys are not counted, because an extra is missing: pip install")


def test_large_state_is_not_read(tmp_path: Path) -> None:
    folder = generate(HOP, 3000, tmp_path / "large")
    assert str(stored_state(str(folder), most_bytes=1 << 19)).endswith(
        "Keys are not counted, because the state has more than 524,288 bytes."
    )


def test_damaged_rows_leave_the_size(tmp_path: Path) -> None:
    folder = generate(HOP, 3000, tmp_path / "large")
    (file,) = (path for path in folder.iterdir() if path.name != "_metadata")
    file.write_bytes(file.read_bytes()[:5000] + b"\xff" * (file.stat().st_size - 5000))
    assert " bytes. Keys are not counted: " in str(stored_state(str(folder))).replace(" MB.", " bytes.")


def test_only_the_largest_operators_are_named() -> None:
    operators = {str(size): StoredNumbers(f"Join {size}", size << 20) for size in range(1, 6)}
    assert str(StoredState(operators)) == "Join 5: 5.0 MB; Join 4: 4.0 MB; Join 3: 3.0 MB; 2 further operators: 3.0 MB."


def test_numbers_stand_at_each_operator_that_loses_state() -> None:
    lost = MigratedOperator("window", RestoreEffect.DROPPED, "no operator uses it", id=WINDOWS, key=("customer",))
    kept = MigratedOperator("window", RestoreEffect.RIGHT, "", id=WINDOWS)
    report = with_numbers(MigrationReport(MigrationExtent.PARTIAL, (lost, kept)), str(HOP))
    words = "5 keys (customer), 848 bytes, oldest window 2024-01-01 00:01:20"
    assert [each.stored for each in report.operators] == [words, ""]
    assert f"  window: dropped: no operator uses it; stored: {words}" in report.lines()
    assert MigrationReport.from_dict(report.to_dict()) == report


def test_no_savepoint_is_read_if_no_state_is_lost() -> None:
    report = MigrationReport(MigrationExtent.WHOLE, (MigratedOperator("window", RestoreEffect.RIGHT, "", id="1"),))
    assert with_numbers(report, "nowhere") is report
