"""Computed entries beside stored ones: what is taken from which, and what differs, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.exec_graph.layout import NamedState, Stored
from airflow_flinkcompat.exec_graph.migration import OperatorMigration, with_history
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.migration.computed import Differences, EntryJoin, HistoryDiffers
from airflow_flinkcompat.migration.entries import entry_union, scattered_entries
from airflow_flinkcompat.migration.uniting import COMPUTED
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_int
from airflow_flinkcompat.savepoint.binary_row import field_writer, write_row
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, open_keyed
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.measure.savepoint_fixtures import FOLDER, change
from dev.stored_rows import pack_entry

ADDED = "a-metric-is-added-to-a-tumbling-window"


def line() -> OperatorMigration:
    (found,) = (each for each in change(ADDED).operators if each.new and each.new.kind is StateKind.OPERATOR)
    return replace(found, from_history=True)


def header() -> KeyedHeader:
    folder = str(FOLDER / ADDED / "template")
    for operator in read_metadata(folder).operators:
        for subtask in operator.subtasks or ():
            if subtask.keyed is not None:
                with open_keyed(subtask.keyed, folder) as file:
                    return file.header
    raise AssertionError(folder)


def join() -> EntryJoin:
    return EntryJoin(line(), header(), 1)


def joined(join: EntryJoin, stored: list[Entry], computed: list[Entry]) -> list[Entry]:
    """The entries that are written."""
    return list(scattered_entries(join(packed(stored, computed))))


def packed(stored: list[Entry], computed: list[Entry]) -> bytes:
    marked = [each._replace(state=each.state | COMPUTED) for each in computed]
    return b"".join(map(pack_entry, [*stored, *marked]))


def aggregates() -> int:
    return [state.name for state in header().states].index("window-aggs")


def state(name: str) -> NamedState:
    (found,) = (each.new for each in line().states if each.new.name == name)
    return found


def entry(key: str, *values: int | None, end: int = 60_000) -> Entry:
    row = write_row([field_writer("VARCHAR(10)")(key)])
    stored = write_row([field_writer("BIGINT")(value) for value in values])
    number = aggregates()
    place = b"\x07" + write_int(len(row)) + row + end.to_bytes(8, "big")
    return Entry(number, place, write_int(len(stored)) + stored)


def test_what_begins_is_taken_from_history_and_the_rest_as_it_is_stored() -> None:
    both = join()
    assert joined(both, [entry("x", 23, 5, None)], [entry("x", 23, 5, 8)]) == [entry("x", 23, 5, 8)]
    assert not both.differences
    assert both.differences.compared == 1


@pytest.mark.parametrize(
    ("stored", "computed", "told"),
    [
        (
            [entry("x", 23, 5, None)],
            [],
            "1 missing in history (of 1): a='x', window or slice",
        ),
        (
            [],
            [entry("y", 1, 1, 1)],
            "1 missing in the savepoint (of 0): a='y', window or slice",
        ),
        (
            [entry("x", 23, 5, None)],
            [entry("x", 20, 5, 8)],
            "1 with a different value in history (of 1): a='x', window",
        ),
    ],
)
def test_what_differs_is_told_by_key(stored: list[Entry], computed: list[Entry], told: str) -> None:
    both = join()
    joined(both, stored, computed)
    assert both.differences
    assert str(both.differences).startswith(told)
    error = both.differences.to_error("global-window-aggregate")
    assert isinstance(error, HistoryDiffers)
    assert told in str(error)


@pytest.mark.parametrize(("count", "unknown"), [(0, 0), (1, 1)])
def test_a_key_whose_rows_were_all_taken_back_is_not_missed_in_history(count: int, unknown: int) -> None:
    """A Top-N over rows that are taken back keeps an empty map for it."""
    sorted_map = NamedState("window-aggs", KeyedStateKind.VALUE, Stored("SortedMap<row, Long>"))
    old = replace(line(), states=(StateRewrite(sorted_map, sorted_map, ()),))
    both, kept = EntryJoin(old, header(), 1), entry("x", 1)._replace(value=write_int(count))
    assert joined(both, [kept], []) == [kept]
    assert both.differences.unknown == unknown


def test_what_history_alone_has_of_a_key_is_not_written_beside_it() -> None:
    """Where the difference is accepted, an entry of a state that begins would stand there without its aggregates."""
    view = replace(state("window-aggs"), name="distinct", kind=KeyedStateKind.MAP)
    made = replace(line(), states=(*line().states, StateRewrite(view, None, ())))
    named = replace(header().states[aggregates()], name="distinct")
    head = replace(header(), states=(*header().states, named))
    both = EntryJoin(made, head, 1)
    distinct = [Entry(len(head.states) - 1, each.key + b"\0\0\0\0", b"1") for each in (entry("x", 1), entry("y", 1))]
    stored, of_both = entry("x", 23, 5, None), entry("x", 23, 5, 8)
    assert joined(both, [stored], [of_both, entry("y", 1, 1, 1), *distinct]) == [of_both, distinct[0]]
    assert both.differences.added == 1


def test_older_windows_that_history_alone_has_were_sent_before() -> None:
    """Their operator stores no watermark, and takes away what it has sent."""
    made = line()
    assert made.new is not None
    older = replace(made, new=replace(made.new, name="group-window-aggregate"))
    both = EntryJoin(older, header(), 1)
    stored, of_both = entry("x", 23, 5, None), entry("x", 23, 5, 8)
    assert joined(both, [stored], [of_both, entry("x", 1, 1, 1, end=30_000)]) == [of_both]
    assert not both.differences
    joined(both, [stored, entry("y", 4, 1, None)], [of_both])
    assert both.differences.unknown == 1


def test_parts_of_one_window_are_put_together() -> None:
    whole = EntryJoin(replace(line(), effect=RestoreEffect.COMPUTED), header(), 1)
    union = entry_union(line(), header())
    assert union is not None
    content = union(packed([], [entry("x", 20, 4, 3), entry("x", 3, 1, 8)]))
    assert list(scattered_entries(whole(content))) == [entry("x", 23, 5, 8)]


def test_differences_of_several_parts_are_added_and_few_are_shown() -> None:
    total = Differences()
    for number in range(4):
        part = Differences(compared=2, other=2, shown=[f"{number}a", f"{number}b"])
        total += part
    assert (total.compared, total.other, total.shown) == (8, 8, ["0a", "0b", "1a", "1b", "2a"])


def test_history_takes_the_place_of_what_begins_and_of_what_cannot_be_kept() -> None:
    found = change(ADDED)
    told = with_history(found, lambda spec: True)
    (new,) = (each for each in told.operators if each.from_history)
    assert (new.effect, new.new_fields, new.computed) == (RestoreEffect.REWRITTEN, (), ("MAX(d)",))
    assert with_history(found, lambda spec: False) == found
    impossible = replace(
        found,
        operators=tuple(
            OperatorMigration(RestoreEffect.NOT_MIGRATABLE, each.old, each.new, "its windows are longer")
            if each.new and each.new.kind is StateKind.OPERATOR
            else each
            for each in found.operators
        ),
    )
    (whole,) = (each for each in with_history(impossible, lambda spec: True).operators if each.from_history)
    assert (whole.effect, whole.computed) == (RestoreEffect.COMPUTED, ("SUM(b)", "COUNT(*)", "MAX(d)"))
    assert with_history(impossible, lambda spec: True).kept == "whole"
    assert impossible.kept == "none"
