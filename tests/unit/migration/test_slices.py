"""Savepoints whose windows are others now, on files: beside what Flink makes of the same rows from scratch."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.migration import NotMigratable, migrate_savepoint
from airflow_flinkcompat.migration.slices import TIMERS
from airflow_flinkcompat.savepoint.binary import write_int, write_long
from airflow_flinkcompat.savepoint.binary_row import field_form, read_row, write_row
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedFileWriter, key_group, open_keyed
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, OperatorState, SavepointMetadata, SubtaskState
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from dev.benchmarks.generated_savepoints import entries_of
from dev.measure.savepoint_fixtures import FOLDER, NOW, migration_of
from dev.stored_rows import StoredRow, stored_rows, write_entries, write_rows
from tests.support.nightly import mostly_slow
from tests.support.savepoint.savepoints import FOLDER as SAVEPOINTS
from tests.unit.exec_graph.slices import Operator
from tests.unit.migration.test_fields import long_field, text_field

GIVEN = FOLDER / "a-metric-is-added-to-a-tumbling-window"
"""SUM(b) and COUNT(*) by a of tumbling windows, whose files are those of hopping and cumulating ones too."""
PLAN = (GIVEN / "old.json").read_text("utf-8")
KINDS = {
    "TUMBLE": ("TumblingWindow", "size", ""),
    "HOP": ("HoppingWindow", "size", "slide"),
    "CUMULATE": ("CumulativeWindow", "maxSize", "step"),
}
HOP = Operator("HOP", 12, 3, 0)
STATE = "window-aggs"


def plan(window: Operator) -> str:
    """The compiled plan with other windows."""
    told = json.loads(PLAN)
    kind, size, step = KINDS[window.kind]
    lengths = {size: window.size, "offset": window.offset, **({step: window.step} if step else {})}
    for node in told["nodes"]:
        if "windowing" in node:
            written = {name: f"PT0.{length:03}S" for name, length in lengths.items()}
            node["windowing"]["window"] = {"type": kind, **written}
    return json.dumps(told)


def change(old: Operator, new: Operator) -> Migration:
    return migration_of(plan(old), plan(new))


@cache
def given_savepoint() -> tuple[SavepointMetadata, OperatorState, SubtaskState]:
    metadata = read_metadata(str(GIVEN / "old"))
    ((operator, subtask),) = (
        (each, subtask) for each in metadata.operators for subtask in each.subtasks or () if subtask.keyed
    )
    return metadata, operator, subtask


def layout() -> StateLayout:
    (line,) = (each for each in change(HOP, replace(HOP, size=6)).operators if each.effect is RestoreEffect.REWRITTEN)
    assert line.old is not None
    assert isinstance(line.old.layout, StateLayout)
    return line.old.layout


def entries(keys: Mapping[str, Operator]) -> dict[int, list[Entry]]:
    """What is stored, by key group."""
    _, operator, subtask = given_savepoint()
    assert subtask.keyed is not None
    with open_keyed(subtask.keyed, str(GIVEN / "old")) as file:
        names = [state.name for state in file.header.states]
    (state,) = layout().states
    found: dict[int, list[Entry]] = {}
    for key, kept in keys.items():
        row = write_row([text_field(key)])
        group = key_group(row, operator.max_parallelism)
        stored, head = write_int(len(row)) + row, bytes([group])
        of_group = found.setdefault(group, [])
        for end, counted in kept.slices.items():
            value = write_row([long_field(counted["sum"]), long_field(counted["count"])])
            key_of = head + stored + write_long(end)
            of_group.append(Entry(names.index(STATE), key_of, write_rows([StoredRow(value)], state)))
        for end in kept.timers:
            moment = struct.pack(">Q", end - 1 + 2**63)
            of_group.append(Entry(names.index(TIMERS), head + moment + stored + write_long(end), b""))
    return found


def savepoint(folder: Path, keys: Mapping[str, Operator], *watermarks: int) -> Path:
    """A savepoint of a job with these windows; several watermarks are of one subtask each."""
    metadata, operator, subtask = given_savepoint()
    assert subtask.keyed is not None
    assert subtask.managed is not None
    folder.mkdir()
    with open_keyed(subtask.keyed, str(GIVEN / "old")) as file:
        header = file.header
    (list_of_one,) = subtask.managed.lists
    (begin,) = list_of_one.begins
    content = read_handle(subtask.managed.handle, str(GIVEN / "old"))[:begin]
    found = entries(keys)

    def keyed(groups: range) -> KeyGroups:
        with KeyedFileWriter(UPath(folder), header, groups) as writer:
            for group in sorted(set(groups) & set(found)):
                writer.group(group, [write_entries(sorted(found[group]))] if found[group] else [])
            return writer.finish()

    bounds = [index * operator.max_parallelism // len(watermarks) for index in range(len(watermarks) + 1)]
    subtasks = tuple(
        replace(
            subtask,
            index=index,
            keyed=keyed(range(*bounds[index : index + 2])),
            managed=replace(subtask.managed, handle=Inline("lists", content + write_long(watermark))),
        )
        for index, watermark in enumerate(watermarks)
    )
    written = replace(operator, parallelism=len(subtasks), subtasks=subtasks)
    operators = tuple(written if each is operator else each for each in metadata.operators)
    (folder / "_metadata").write_bytes(replace(metadata, operators=operators).to_bytes())
    return folder


def migrated(folder: Path, old: Path, made: Migration) -> Path:
    migrate_savepoint(str(old), str(GIVEN / "old"), str(folder / "new"), made, NOW)
    return folder / "new"


def read_back(folder: Path, window: Operator, watermark: int) -> dict[str, Operator]:
    """What the files hold, decoded by itself."""
    found: dict[str, Operator] = {}
    (state,) = layout().states
    forms = [field_form(field.type) for field in state.value.fields]
    for (_, name, key, value), times in entries_of(folder).items():
        assert times == 1
        begin = 13 if name == TIMERS else 5
        length = int.from_bytes(key[begin - 4 : begin], "big")
        row, end = key[begin : begin + length], int.from_bytes(key[begin + length :], "big", signed=True)
        assert key_group(row, 128) == key[0]
        (text,) = read_row(row, [field_form("VARCHAR(2147483647)")])
        kept = found.setdefault(
            text.word[: text.word[-1] & 0x7F].decode(),
            replace(window, watermark=watermark, slices={}, timers=set(), put_out=[]),
        )
        if name == TIMERS:
            assert value == b""
            assert struct.unpack(">Q", key[1:9])[0] - 2**63 == end - 1
            kept.timers.add(end)
        else:
            ((stored, _),) = stored_rows(value, state)
            total, count = (struct.unpack("<q", field.word)[0] for field in read_row(stored, forms))
            kept.slices[end] = Counter(sum=total, count=count)
    return found


Event = tuple[str, int, int]
"""A row of a key, by its time and value; of no key a watermark."""
EVENTS = st.lists(st.tuples(st.sampled_from(["x", "y", "z", "w", ""]), st.integers(0, 24), st.integers(1, 9)),
                  min_size=5, max_size=40)  # fmt: skip


def run(keys: dict[str, Operator], window: Operator, events: list[Event]) -> None:
    for key, time, value in events:
        if key:
            known = next(iter(keys.values()), window)
            fresh = replace(window, watermark=known.watermark, slices={}, timers=set(), put_out=[])
            keys.setdefault(key, fresh).row(time, Counter(sum=value, count=1))
        else:
            for each in keys.values():
                each.advance(time)


CHANGES = [
    (HOP, Operator("HOP", 6, 3, 0)),
    (HOP, Operator("HOP", 12, 6, 3)),
    (HOP, Operator("TUMBLE", 3, 3, 0)),
    (HOP, Operator("TUMBLE", 12, 12, 6)),
    (HOP, Operator("CUMULATE", 12, 3, 0)),
    (HOP, Operator("CUMULATE", 6, 6, 3)),
    (Operator("CUMULATE", 12, 2, 4), Operator("CUMULATE", 12, 4, 4)),
    (Operator("CUMULATE", 12, 2, 4), Operator("TUMBLE", 12, 12, 4)),
]


@pytest.mark.parametrize(
    ("old", "new"), mostly_slow(CHANGES, 3), ids=lambda each: f"{each.kind} {each.size} {each.step}"
)
@settings(max_examples=10)
@given(before=EVENTS, after=EVENTS)
def test_what_is_written_puts_out_what_it_would_from_scratch(
    old: Operator, new: Operator, before: list[Event], after: list[Event]
) -> None:
    all_keys = [(key, 0, 1) for key in "wxyz"]  # so that each knows every watermark
    former: dict[str, Operator] = {}
    scratch: dict[str, Operator] = {}
    run(former, old, [*all_keys, *before])
    run(scratch, new, [*all_keys, *before])
    told = {key: len(each.put_out) for key, each in scratch.items()}
    watermark = former["x"].watermark
    made = change(old, new)
    assert made.kept is MigrationExtent.WHOLE
    with TemporaryDirectory() as place:
        folder = Path(place)
        target = migrated(folder, savepoint(folder / "old", former, watermark), made)
        going_on = read_back(target, new, watermark)
        if new.kind != "CUMULATE":
            kept = {key: each.slices for key, each in scratch.items() if each.slices}
            assert {key: each.slices for key, each in going_on.items()} == kept
    gone = {key: replace(new, watermark=watermark, slices={}, timers=set(), put_out=[]) for key in "wxyz"}
    going_on = {**gone, **going_on}
    for each in (going_on, scratch):
        run(each, new, [*after, ("", 100, 0)])
    for key in "wxyz":
        assert going_on[key].put_out == scratch[key].put_out[told[key] :]
        assert not going_on[key].slices
        assert not going_on[key].timers


SHORTER = replace(HOP, size=6)


@pytest.mark.parametrize(
    ("timers", "watermarks", "reason"),
    [
        ({6}, (4,), ""),
        ({3, 6}, (4,), "has not fired yet"),
        (set(), (4,), "a slice belongs to no window that will still fire"),
        ({9}, (4,), "a slice belongs to no window that will still fire"),
        ({6}, (4, 4), ""),
        ({6}, (4, 3), "have different watermarks"),
        ({6}, (2**63 - 1,), "has reached the final watermark, as after a stop with drain"),
    ],
)
def test_what_is_not_understood_is_refused(
    timers: set[int], watermarks: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    kept = replace(HOP, slices={3: Counter(sum=2, count=1)}, timers=timers)
    old = savepoint(tmp_path / "old", {"x": kept}, *watermarks)
    if not reason:
        found = read_back(migrated(tmp_path, old, change(HOP, SHORTER)), SHORTER, 4)
        assert (found["x"].slices, found["x"].timers) == ({3: {"sum": 2, "count": 1}}, {6})
        return
    with pytest.raises(NotMigratable, match=reason):
        migrated(tmp_path, old, change(HOP, SHORTER))
    assert not (tmp_path / "new" / "_metadata").exists()


DISTINCT = SAVEPOINTS / "2.3" / "hop-distinct"
"""SUM(b) and COUNT(DISTINCT c) by a of windows of a minute that hop by half of one, 00:01:40 after midnight."""


def with_windows(**lengths: str) -> Migration:
    text = (DISTINCT / "plan.json").read_text("utf-8")
    told = json.loads(text)
    for node in told["nodes"]:
        if "windowing" in node:
            node["windowing"]["window"].update(lengths)
    return migration_of(text, json.dumps(told))


def test_what_is_distinct_goes_with_its_slice(tmp_path: Path) -> None:
    made = with_windows(size="PT30S")
    assert made.kept is MigrationExtent.WHOLE
    migrate_savepoint(str(DISTINCT), str(DISTINCT), str(tmp_path / "new"), made, NOW)
    later = [entry for entry in entries_of(DISTINCT) if entry[2].find(write_long(1_704_067_320_000)) > 0]
    in_slices = {key[0] for _, name, key, _ in later if name != TIMERS}
    kept = Counter(entry for entry in later if entry[2][0] in in_slices)  # each key has its own group
    assert entries_of(tmp_path / "new") == kept
    assert {name for _, name, _, _ in kept} == {STATE, TIMERS, "distinctAcc_0"}
    assert len(kept) < len(later)


def test_what_is_distinct_in_several_slices_cannot_be_put_together() -> None:
    (line,) = (each for each in with_windows(slide="PT60S").operators if each.effect is RestoreEffect.NOT_MIGRATABLE)
    assert line.reason == "COUNT(DISTINCT c) of several slices cannot be derived from the COUNT(DISTINCT c) of each"
