"""Differences between the rows of two scripts, from files as Flink's filesystem sink writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference, compare_rows, worst
from airflow_flinkcompat.deploy.target import SinkTable
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns

COLUMNS = {"who": "VARCHAR(2147483647)", "total": "BIGINT", "mean": "DOUBLE"}
KEYED = SinkTable(("c", "d", "totals"), COLUMNS, ("who",))
KEYLESS = SinkTable(("c", "d", "totals"), COLUMNS)
Change = tuple[str, tuple[Any, ...]]


def stored(folder: Path, lines: Sequence[str], part: str = "0-0") -> str:
    """Write changes as Flink's sink does, and a file that is still open."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"part-6f1c5d66-0f0d-4a3f-b2b9-{part}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / ".part-0-0.inprogress").write_text("not a change")
    return folder.as_uri()


def written(folder: Path, changes: Sequence[Change], names: Sequence[str] = tuple(COLUMNS), part: str = "0-0") -> str:
    """Write changes: ``c`` for a new row, ``d`` for a deleted row."""
    lines = []
    for op, values in changes:
        row = dict(zip(names, values, strict=True))
        before, after = (None, row) if op == "c" else (row, None)
        lines.append(json.dumps({"before": before, "after": after, "op": op}))
    return stored(folder, lines, part)


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
    assert pq.read_table(tmp_path / "c.d.totals.differing.parquet").num_rows == 3


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
    _, only = compare_rows([(other, (tmp_path / "nothing").as_uri())], [(KEYED, folder)], store=tmp_path)
    assert rows(only) == [{"only in": "new", "times": 1, "who": "ann", "total": "1", "mean": "1.0"}]
    assert pq.read_table(tmp_path / "c.d.totals.differing.parquet").num_rows == 1


def test_values_of_partitions_are_in_paths(tmp_path: Path) -> None:
    sink = SinkTable(("c", "d", "t"), {"who": "VARCHAR", "day": "VARCHAR"}, ("day",), ("day",))
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


TRICKY = r'"a\":1.50,\"v\":2.50, \\"'
"""A JSON text with text that looks like numbers of other columns."""


def of_values(tmp_path: Path, kinds: Sequence[str], values: Sequence[str], key: Sequence[str] = ()) -> SinkDifference:
    """The difference of two values, as Flink writes them as JSON."""
    sides = []
    for side, kind, value in zip(("old", "new"), kinds, values, strict=True):
        line = f'{{"before":null,"after":{{"who":{TRICKY},"v":{value},"n":1.0E10}},"op":"c"}}'
        sink = SinkTable(TOTALS, {"who": "STRING", "v": kind, "n": "DOUBLE"}, tuple(key))
        sides.append([(sink, stored(tmp_path / f"{side}{'-'.join(key)}", [line]))])
    (found,) = compare_rows(*sides)
    return found


LONG, LONGER = "DECIMAL(38, 18)", "DECIMAL(38, 20)"


@pytest.mark.parametrize(
    ("kinds", "values", "finding"),
    [
        ((LONG, LONG), ("1234.567890123456789012", "1234.567890123456789999"), "differs"),
        (("DECIMAL(19, 2)",) * 2, ("12345678901234567.12", "12345678901234567.13"), "differs"),
        (("DECIMAL(38, 0)",) * 2, (f"{10**37 + 1}", f"{10**37 + 2}"), "differs"),
        ((LONGER, LONG), ("1.00000000000000000010", "1.000000000000000000"), "differs"),
        ((LONGER, LONG), ("100.50000000000000000000", "100.500000000000000000"), "equal"),
        (("DECIMAL(20, 2)", "BIGINT"), ("-100.00", "-100"), "equal"),
        (("STRING", "STRING"), ('"1.50"', '"1.5"'), "differs"),
        ((f"ROW<a {LONG}>",) * 2, ('{"a":1234.567890123456789012}', '{"a":1234.567890123456789999}'), "differs"),
        ((f"ROW<a {LONG}, b STRING>",) * 2, ('{"a":1.0,"b":"1.50"}', '{"a":1.0,"b":"1.5"}'), "differs"),
        ((f"ROW<a {LONGER}>", f"ROW<a {LONG}>"), ('{"a":7.5000000000000000}', '{"a":7.50000000000000}'), "equal"),
        ((f"ARRAY<{LONG}>",) * 2, ("[0.10,1234.567890123456789012]", "[0.10,1234.567890123456789999]"), "differs"),
        ((f"ARRAY<{LONGER}>", "ARRAY<INT>"), ("[100.00000000000000000000]", "[100]"), "equal"),
        ((f"MAP<STRING, {LONG}>",) * 2, ('{"x":1234.567890123456789012}', '{"x":1234.567890123456789999}'), "differs"),
        ((LONG, "DOUBLE"), ("10000000000.000000000000000000", "1.0E10"), "equal"),
        (("DOUBLE", "DOUBLE"), ('"Infinity"', "5.0"), "differs"),
        (("DOUBLE", "DOUBLE"), ("5.0", '"NaN"'), "differs"),
        (("DOUBLE", "DOUBLE"), ('"-Infinity"', '"Infinity"'), "differs"),
        (("DOUBLE", "DOUBLE"), ('"NaN"', '"NaN"'), "equal"),
        (("DOUBLE", "DOUBLE"), ("0.6", "0.6000001"), "differs"),
        (("FLOAT", "FLOAT"), ("0.6", "0.6000001"), "equal"),
        (("FLOAT", "DOUBLE"), ("0.6", "0.6000001"), "equal"),
        (("FLOAT", "FLOAT"), ("0.6", "0.6001"), "differs"),
    ],
)  # fmt: skip
def test_numbers(kinds: Sequence[str], values: Sequence[str], finding: str, tmp_path: Path) -> None:
    """Decimals are compared exactly, whatever their scale, and floating-point numbers with a tolerance."""
    for key in ((), ("who",)):
        assert of_values(tmp_path, kinds, values, key).finding == finding, key


def test_shown_decimals_have_all_digits(tmp_path: Path) -> None:
    found = of_values(tmp_path, (LONG, LONG), ("1234.567890123456789012", "7.000000000000000000"), ("who",))
    (row,) = rows(found)
    assert (row["who"], row["v (old)"], row["v (new)"]) == (json.loads(TRICKY), "1234.567890123456789012", "7")


@pytest.mark.parametrize("key", [(), ("k",)], ids=["all rows", "by key"])
@pytest.mark.parametrize(
    "name", ["state", "State", "number", "deleted", "times", "rank", "change", "only in", "K", 'a"b', "a/b~", "0", "c0"]
)
def test_columns_may_have_any_name(name: str, key: tuple[str, ...], tmp_path: Path) -> None:
    names = ("k", name, "z")
    sink = SinkTable(TOTALS, {"k": "STRING", name: "STRING", "z": "DOUBLE"}, key)
    old, new = (written(tmp_path / value, [("c", ("a", value, 1.0))], names) for value in ("open", "closed"))
    (found,) = compare_rows([(sink, old)], [(sink, old)])
    assert found.finding is ShadowFinding.EQUAL
    (found,) = compare_rows([(sink, old)], [(sink, new)], store=tmp_path)
    assert (found.finding, found.columns) == (ShadowFinding.DIFFERS, {name: 1} if key else {})
    values = {value for row in rows(found) for label, value in row.items() if label.startswith(name)}
    assert {"open", "closed"} <= values
    assert rows(found) == pq.read_table(tmp_path / "c.d.totals.differing.parquet").to_pylist()


def test_a_key_with_the_name_of_a_column_of_the_result(tmp_path: Path) -> None:
    sink = SinkTable(TOTALS, {"change": "STRING", "v": "INT"}, ("change",))
    sides = ([(sink, written(tmp_path / str(v), [("c", ("a", v))], ("change", "v")))] for v in (1, 2))
    (found,) = compare_rows(*sides)
    assert rows(found) == [{"change (2)": "a", "change": "changed", "v (old)": "1", "v (new)": "2"}]


@pytest.mark.parametrize(
    ("key", "names", "finding", "note"),
    [
        (("k",), ("v", "w"), "could not tell", "only one script writes each column outside the key"),
        ((), ("v", "w"), "equal", ""),
        (("k",), ("k", "w"), "could not tell", "only one script writes each column outside the key"),
        (("k",), ("k", "k"), "equal", ""),
    ],
)
def test_keys_alone_are_no_compared_values(
    key: tuple[str, ...], names: tuple[str, str], finding: str, note: str, tmp_path: Path
) -> None:
    sides = []
    for side, name in zip(("old", "new"), names, strict=True):
        columns = {"k": "STRING", name: "STRING"}
        folder = written(tmp_path / side, [("c", ("a",) * len(columns))], tuple(columns))
        sides.append([(SinkTable(TOTALS, columns, key), folder)])
    (found,) = compare_rows(*sides)
    assert (found.finding, found.note.partition(",")[0]) == (finding, note)


def test_without_a_common_column_nothing_is_known(tmp_path: Path) -> None:
    sides = (
        [(SinkTable(TOTALS, {name: "INT"}), written(tmp_path / name, [("c", (1,))], (name,)))] for name in ("v", "w")
    )
    (found,) = compare_rows(*sides)
    assert (found.finding, found.not_compared) == (ShadowFinding.INCONCLUSIVE, ("v", "w"))
    assert found.note.startswith("no column is written by both scripts")


def test_without_rows_no_value_is_missing(tmp_path: Path) -> None:
    old, new = (SinkTable(TOTALS, {"k": "STRING", name: "INT"}, ("k",)) for name in ("v", "w"))
    (found,) = compare_rows([(old, str(tmp_path))], [(new, str(tmp_path))])
    assert found.finding is ShadowFinding.EQUAL


def test_a_difference_is_worse_than_no_result() -> None:
    sinks = [SinkDifference("t", each, (1, 1), False) for each in (ShadowFinding.DIFFERS, ShadowFinding.INCONCLUSIVE)]
    assert worst(sinks) is ShadowFinding.DIFFERS


@pytest.mark.parametrize(
    "places", [("part 0", "part 1"), ("day=1/part 0", "day=2/part 0")], ids=["subtask", "partition"]
)
def test_the_latest_row_of_a_key_is_unknown_if_several_files_grow_at_once(
    places: tuple[str, str], tmp_path: Path
) -> None:
    """The last row of the highest subtask would be equal."""
    sides = []
    for side, first in (("old", 1), ("new", 2)):
        for place, total in zip(places, (first, 9), strict=True):
            folder, _, subtask = place.rpartition("part ")
            written(tmp_path / side / folder, [("c", ("ann", total, 1.0))], part=f"{subtask}-0")
        sides.append([(KEYED, (tmp_path / side).as_uri())])
    (found,) = compare_rows(*sides)
    assert (found.finding, found.by_key, found.differing) == (ShadowFinding.DIFFERS, False, 2)
    assert found.note.startswith("several subtasks or partitions wrote rows of the same key")


def test_keys_of_several_subtasks_are_compared_by_key(tmp_path: Path) -> None:
    for part, who in (("0-0", "ann"), ("0-1", "ann"), ("1-0", "ben")):
        written(tmp_path, [("c", (who, 1, 1.0))], part=part)
    (found,) = compare_rows([(KEYED, tmp_path.as_uri())], [(KEYED, tmp_path.as_uri())])
    assert (found.by_key, found.note) == (True, "")


def test_each_sink_has_its_own_file_of_rows(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for kept in ("mine.parquet", "c.d.gone.differing.parquet"):
        (store / kept).touch()
    paths = [("c", "d1", "t"), ("c", "d2", "t"), ("c", "d.1", "x/y")]
    sides = [
        [(replace(KEYED, path=path), written(tmp_path / side / path[1], [("c", ("ann", n, 1.0))])) for path in paths]
        for n, side in enumerate(("old", "new"))
    ]
    compare_rows(*sides, store=store)
    differing = {f"c.{name}.differing.parquet" for name in ("d1.t", "d2.t", "d%2E1.x%2Fy")}
    assert {file.name for file in store.iterdir()} == {"mine.parquet", *differing}
    compare_rows(sides[0], sides[0], store=store)
    assert [file.name for file in store.iterdir()] == ["mine.parquet"]


@pytest.mark.parametrize("line", ["no JSON", '{"before":null,"after":{"who":"ann"},"op"'])
def test_unreadable_rows_have_no_result(line: str, tmp_path: Path) -> None:
    folder = stored(tmp_path, [line])
    with pytest.raises(DeployError, match=r"the rows of totals cannot be compared or stored \(\w+\): "):
        compare_rows([(KEYED, folder)], [(KEYED, folder)])


def test_rows_that_cannot_be_stored_have_no_result(tmp_path: Path) -> None:
    folder = written(tmp_path, [("c", ("ann", 1, 1.0))])
    with pytest.raises(DeployError, match="the rows of totals cannot be compared or stored"):
        compare_rows([(KEYED, folder)], [], store=tmp_path / "missing")


def test_a_name_of_a_partition_is_escaped_in_paths(tmp_path: Path) -> None:
    sink = SinkTable(TOTALS, {"who": "STRING", "a=b": "STRING"}, partitions=("a=b",))
    sides = []
    for day in ("1", "2"):
        written(tmp_path / day / f"a%3Db={day}", [("c", ("ann",))], ("who",))
        sides.append([(sink, (tmp_path / day).as_uri())])
    (found,) = compare_rows(*sides)
    assert found.finding is ShadowFinding.DIFFERS


@pytest.mark.parametrize(("above", "name"), [("", "json"), ("", "filename"), ("json=1", "day"), ("day=0", "day")])
def test_a_value_of_a_partition_is_below_the_folder_of_the_sink(above: str, name: str, tmp_path: Path) -> None:
    sink = SinkTable(TOTALS, {"who": "STRING", name: "STRING"}, partitions=(name,))
    sides = []
    for value in ("1", "2"):
        folder = tmp_path / above / value
        written(folder / f"{name}={value}", [("c", ("ann",))], ("who",))
        sides.append([(sink, str(folder))])
    assert compare_rows(sides[0], sides[0])[0].finding is ShadowFinding.EQUAL
    (found,) = compare_rows(*sides)
    assert (found.finding, found.differing) == (ShadowFinding.DIFFERS, 2)


def test_a_folder_with_the_name_of_a_column_is_no_value(tmp_path: Path) -> None:
    sink = SinkTable(TOTALS, {"who": "STRING", "region": "STRING"}, ("who",))
    sides = []
    for side, region in (("old", None), ("new", "eu")):
        folder = tmp_path / "region=eu" / side
        written(folder, [("c", ("ann", region))], ("who", "region"))
        sides.append([(sink, str(folder))])
    (found,) = compare_rows(*sides)
    assert (found.finding, found.columns) == (ShadowFinding.DIFFERS, {"region": 1})


def test_a_field_may_have_the_name_of_a_decimal(tmp_path: Path) -> None:
    sink = SinkTable(TOTALS, {"total": "DECIMAL(10, 2)", "all": "ROW<total DOUBLE>"})
    line = '{"before":null,"after":{"total":7.00,"all":{"total":1.0E10}},"op":"c"}'
    old, new = ([(sink, stored(tmp_path / total, [line.replace("7.00", total)]))] for total in ("7.00", "7"))
    assert compare_rows(old, new)[0].finding is ShadowFinding.EQUAL


def test_a_sink_without_rows_is_named() -> None:
    sinks = [SinkDifference(name, ShadowFinding.EQUAL, rows, False) for name, rows in (("t", (1, 1)), ("u", (0, 0)))]
    first, *_ = ShadowReport(ShadowFinding.EQUAL, sinks=tuple(sinks)).lines()
    assert first == "SHADOW: equal: both scripts write the same rows. Neither script wrote a row to u"
