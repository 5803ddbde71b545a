"""Differences between the rows of two scripts, from files as Flink's filesystem sink writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference, compare_rows
from airflow_flinkcompat.deploy.target import SinkTable
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns

COLUMNS = {"who": "VARCHAR(2147483647)", "total": "BIGINT", "mean": "DOUBLE"}
KEYED = SinkTable(("c", "d", "totals"), COLUMNS, ("who",))
KEYLESS = SinkTable(("c", "d", "totals"), COLUMNS)
Change = tuple[str, tuple[Any, ...]]


def written(folder: Path, changes: Sequence[Change], names: Sequence[str] = tuple(COLUMNS), part: str = "0-0") -> str:
    """Write changes: ``c`` for a new row, ``d`` for a deleted row."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for op, values in changes:
        row = dict(zip(names, values, strict=True))
        before, after = (None, row) if op == "c" else (row, None)
        lines.append(json.dumps({"before": before, "after": after, "op": op}))
    (folder / f"part-6f1c5d66-0f0d-4a3f-b2b9-{part}").write_text("\n".join(lines) + "\n")
    (folder / ".part-0-0.inprogress").write_text("not a change")
    return folder.as_uri()


def compared(
    tmp_path: Path, old: Sequence[Change], new: Sequence[Change], sink: SinkTable = KEYED, **more: Any
) -> SinkDifference:
    sides = ([(sink, written(tmp_path / side, rows))] for side, rows in (("old", old), ("new", new)))
    (found,) = compare_rows(*sides, **more)
    return found


def rows(found: SinkDifference) -> list[Mapping[str, Any]]:
    return [] if found.rows is None else found.rows.to_pylist()


def test_the_latest_row_of_each_key_counts(tmp_path: Path) -> None:
    old = [("c", ("ann", 1, 1.0)), ("d", ("ann", 1, 1.0)), ("c", ("ann", 3, 1.5)), ("c", ("ben", 2, 2.0))]
    new = [("c", ("ben", 2, 2.0)), ("c", ("ann", 3, 1.5))]
    found = compared(tmp_path, old, new)
    assert (found.finding, found.compared, found.differing) == (ShadowFinding.EQUAL, (4, 2), 0)


def test_a_later_file_of_a_subtask_is_newer(tmp_path: Path) -> None:
    first = written(tmp_path / "old", [("c", ("ann", 1, 1.0))], part="0-9")
    written(tmp_path / "old", [("c", ("ann", 2, 1.0))], part="0-10")
    second = written(tmp_path / "new", [("c", ("ann", 2, 1.0))])
    (found,) = compare_rows([(KEYED, first)], [(KEYED, second)])
    assert found.finding is ShadowFinding.EQUAL


def test_differences_by_key_and_column(tmp_path: Path) -> None:
    old = [("c", ("ann", 1, 1.0)), ("c", ("ben", 2, None)), ("d", ("cid", 3, 1.0)), ("c", ("dan", 4, 1.0))]
    new = [("c", ("ann", 9, 1.0)), ("c", ("ben", 2, 2.0)), ("c", ("cid", 3, 1.0)), ("c", ("dan", 4, 1.0))]
    found = compared(tmp_path, old, new, store=tmp_path)
    assert (found.finding, found.differing) == (ShadowFinding.DIFFERS, 3)
    assert found.columns == {"total": 2, "mean": 2}
    names = ("who", "change", "total (old)", "total (new)", "mean (old)", "mean (new)")
    assert rows(found) == [
        dict(zip(names, values, strict=True))
        for values in (
            ("ann", "changed", "1", "9", "1.0", "1.0"),
            ("ben", "changed", "2", "2", None, "2.0"),
            ("cid", "deleted → written", None, "3", None, "1.0"),
        )
    ]
    assert pq.read_table(tmp_path / "totals.parquet").num_rows == 3


def test_floating_point_numbers_are_equal_within_a_tolerance(tmp_path: Path) -> None:
    old, near, far = ([("c", ("ann", 1, mean)), ("c", ("ben", 1, mean))] for mean in (0.3, 0.1 + 0.2, 0.3001))
    for sink in (KEYED, KEYLESS):
        assert compared(tmp_path, old, near, sink).finding is ShadowFinding.EQUAL
        assert compared(tmp_path, old, far, sink).finding is ShadowFinding.DIFFERS


def test_without_a_key_deleted_rows_cancel_added_rows(tmp_path: Path) -> None:
    old = [("c", ("ann", 1, 1.0)), ("d", ("ann", 1, 1.0)), ("c", ("ann", 2, 1.0)), ("c", ("ann", 2, 1.0))]
    equal = [("c", ("ann", 2, 1.0)), ("c", ("ann", 2, 1.0))]
    assert compared(tmp_path, old, equal, KEYLESS).finding is ShadowFinding.EQUAL
    found = compared(tmp_path, old, [("c", ("ann", 2, 1.0)), ("c", ("ann", 3, 1.0))], KEYLESS)
    assert (found.finding, found.by_key, found.columns) == (ShadowFinding.DIFFERS, False, {})
    assert rows(found) == [
        {"only in": "new", "times": 1, "who": "ann", "total": "3", "mean": "1.0"},
        {"only in": "old", "times": 1, "who": "ann", "total": "2", "mean": "1.0"},
    ]


def test_only_expected_columns_may_differ(tmp_path: Path) -> None:
    old, new = [("c", ("ann", 1, 1.0))], [("c", ("ann", 2, 1.0))]
    for sink in (KEYED, KEYLESS):
        assert compared(tmp_path, old, new, sink, expected=["totals.total"]).finding is ShadowFinding.EXPECTED
        assert compared(tmp_path, old, new, sink, expected=["mean"]).finding is ShadowFinding.DIFFERS
        assert compared(tmp_path, old, old, sink, expected=["total"]).finding is ShadowFinding.EQUAL
    found = compared(tmp_path, old, [("c", ("ben", 1, 1.0))], expected=["total", "mean"])
    assert found.finding is ShadowFinding.DIFFERS, "a key is missing"


def test_a_column_of_only_one_script_is_not_compared(tmp_path: Path) -> None:
    wider = SinkTable(KEYED.path, {**COLUMNS, "extra": "BIGINT"}, KEYED.key)
    old = written(tmp_path / "old", [("c", ("ann", 1, 1.0))])
    new = written(tmp_path / "new", [("c", ("ann", 1, 1.0, 7))], (*COLUMNS, "extra"))
    (found,) = compare_rows([(KEYED, old)], [(wider, new)])
    assert (found.finding, found.not_compared) == (ShadowFinding.EQUAL, ("extra",))


def test_a_sink_of_only_one_script_differs_if_it_has_rows(tmp_path: Path) -> None:
    other = SinkTable(("c", "d", "others"), COLUMNS)
    folder = written(tmp_path / "old", [("c", ("ann", 1, 1.0))])
    found = compare_rows([(KEYED, folder)], [(other, (tmp_path / "nothing").as_uri())])
    assert [(each.sink, each.finding) for each in found] == [("totals", "differs"), ("others", "equal")]


def test_values_of_partitions_are_in_paths(tmp_path: Path) -> None:
    sink = SinkTable(("c", "d", "t"), {"who": "VARCHAR", "day": "VARCHAR"}, ("day",))
    for side, name in (("old", "ann"), ("new", "ben")):
        written(tmp_path / side / "day=2026-01-01", [("c", (name,))], ("who",))
    (found,) = compare_rows([(sink, (tmp_path / "old").as_uri())], [(sink, (tmp_path / "new").as_uri())])
    assert rows(found) == [{"day": "2026-01-01", "change": "changed", "who (old)": "ann", "who (new)": "ben"}]


TOTALS = ("c", "d", "totals")
OTHER_TOTAL = ([("c", ("ann", 1, 1.0))], [("c", ("ann", 3, 1.0))])
OTHER_KEY = ([("c", ("ann", 1, 1.0))], [("c", ("ben", 1, 1.0))])


@pytest.mark.parametrize("sink", [KEYED, KEYLESS], ids=["by key", "all rows"])
@pytest.mark.parametrize(
    ("sides", "changed", "expected", "finding"),
    [
        (OTHER_TOTAL, None, (), ShadowFinding.DIFFERS),
        (OTHER_TOTAL, ChangedColumns(), (), ShadowFinding.DIFFERS),
        (OTHER_TOTAL, ChangedColumns(frozenset({"mean"})), (), ShadowFinding.DIFFERS),
        (OTHER_TOTAL, ChangedColumns(frozenset({"total"})), (), ShadowFinding.CHANGED),
        (OTHER_TOTAL, ChangedColumns(frozenset({"total"})), ("totals.total",), ShadowFinding.EXPECTED),
        (OTHER_TOTAL, ChangedColumns(frozenset({"total"})), ("changed",), ShadowFinding.EXPECTED),
        (OTHER_TOTAL, None, ("changed",), ShadowFinding.DIFFERS),
        (OTHER_KEY, ChangedColumns(frozenset({"total"})), ("changed",), ShadowFinding.DIFFERS),
        (OTHER_KEY, ChangedColumns(frozenset(COLUMNS), rows=True), (), ShadowFinding.CHANGED),
        (OTHER_KEY, ChangedColumns(frozenset(COLUMNS), rows=True), ("changed",), ShadowFinding.EXPECTED),
        (OTHER_KEY, None, tuple(COLUMNS), ShadowFinding.EXPECTED),
    ],
)
def test_columns_that_the_change_names(
    tmp_path: Path,
    sink: SinkTable,
    sides: tuple[Sequence[Change], Sequence[Change]],
    changed: ChangedColumns | None,
    expected: Sequence[str],
    finding: ShadowFinding,
) -> None:
    """A difference that only the change explains is no expected difference."""
    of = None if changed is None else {TOTALS: changed}
    found = compared(tmp_path, *sides, sink, changed=of, expected=expected)
    assert (found.finding, found.changed, found.rows is None) == (finding, changed, False)


def test_a_column_with_the_name_changed_is_meant_first(tmp_path: Path) -> None:
    columns = {"who": "STRING", "changed": "BIGINT", "total": "BIGINT"}
    sink = SinkTable(TOTALS, columns, ("who",))
    sides = (
        [(sink, written(tmp_path / side, [("c", ("ann", 1, total))], tuple(columns)))]
        for side, total in (("old", 1), ("new", 2))
    )
    (found,) = compare_rows(*sides, expected=["changed"], changed={TOTALS: ChangedColumns(frozenset({"total"}))})
    assert (found.finding, found.expected) == (ShadowFinding.CHANGED, ("changed",))


def test_labels_name_both_sides(tmp_path: Path) -> None:
    sides = [("c", ("ann", 1, 1.0))], [("c", ("ann", 2, 1.0))]
    (row,) = rows(compared(tmp_path / "keyed", *sides, labels=("stored", "all")))
    assert (row["total (stored)"], row["total (all)"]) == ("1", "2")
    found = compared(tmp_path / "keyless", *sides, KEYLESS, labels=("stored", "all"))
    assert [row["only in"] for row in rows(found)] == ["all", "stored"]


@pytest.mark.parametrize(("new", "finding"), [("4000000001", "equal"), ("4000000002", "differs")])
def test_exact_numbers_of_two_types_have_no_tolerance(new: str, finding: str, tmp_path: Path) -> None:
    names = ("who", "total")
    sinks = [SinkTable(KEYED.path, {"who": "STRING", "total": kind}, ("who",)) for kind in ("BIGINT", "DECIMAL(20, 0)")]
    folders = [
        written(tmp_path / side, [("c", ("ann", total))], names)
        for side, total in (("old", "4000000001"), ("new", new))
    ]
    (found,) = compare_rows([(sinks[0], folders[0])], [(sinks[1], folders[1])])
    assert found.finding == finding
