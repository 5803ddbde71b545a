"""Which old field goes on in a new one, and what may not be computed of it."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, Stored
from airflow_flinkcompat.exec_graph.rewriting import (
    StateRewrite,
    key_places,
    mixing_refusal,
    source_of,
    spread_places,
    widens,
)
from airflow_flinkcompat.savepoint.binary import KeyedStateKind


def part(function: str, part: str, over: str = "b", type: str = "BIGINT") -> StateField:
    return StateField(type, CallPart(function, over, part), f"{function}({over})")


SUM, SUM0, COUNT = part("SUM", "sum"), part("SUM0", "sum"), part("COUNT", "count")
AVG = part("AVG", "sum"), part("AVG", "count")


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("INT NOT NULL", "BIGINT", True),
        ("INT", "INT NOT NULL", False),
        ("VARCHAR(3)", "VARCHAR(2147483647)", True),
        ("VARCHAR(3)", "VARCHAR(2)", False),
        ("CHAR(3)", "CHAR(4)", False),
        ("DECIMAL(10, 2)", "DECIMAL(20, 2)", True),
        ("DECIMAL(10, 2)", "DECIMAL(20, 3)", False),
        ("FLOAT", "DOUBLE", False),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", False),
        ("INT", "DECIMAL(10, 0)", False),
        ("ROW<`a` INT>", "ROW<`a` BIGINT>", False),
        ("TIME(0)", "TIME(3)", True),
        ("TIME(3)", "TIME(0)", False),
    ],
)
def test_a_type_is_wider_where_each_value_is_the_same_value(old: str, new: str, wider: bool) -> None:
    assert widens(old, new) is wider


def test_a_sum_goes_on_whatever_function_it_belongs_to() -> None:
    assert source_of(SUM0, [COUNT, SUM]) == 1
    assert source_of(SUM, [COUNT, SUM, SUM0]) == 1
    assert [source_of(each, [SUM, COUNT]) for each in AVG] == [0, 1]
    assert source_of(COUNT, AVG) == 1


def squares(of: str = "b", type: str = "BIGINT") -> StateField:
    return StateField(type, CallPart("SUM", f"{of} * {of}", "sum", square_of=of), f"SUM({of} * {of})")


SPREAD = part("WELFORD_M2", "spread", type="ROW<…>")


def test_a_spread_is_computed_from_a_sum_of_squares_a_sum_and_a_count() -> None:
    old = (COUNT, squares(), SUM)
    assert spread_places(SPREAD, old) == (1, 2, 0)
    assert source_of(SPREAD, old) == 1
    state, stored = (NamedState("accState", KeyedStateKind.VALUE, Stored("row", row)) for row in ((SPREAD,), old))
    made = StateRewrite(state, stored, (1,))
    assert (made.used, [*made.dropped_fields]) == ({*old}, [])


@pytest.mark.parametrize(
    "old",
    [
        (squares(), SUM),
        (squares("d"), SUM, COUNT),
        (squares(type="INT"), part("SUM", "sum", type="INT"), COUNT),
        (squares(type="DOUBLE"), SUM, COUNT),
    ],
)
def test_a_spread_of_other_or_inexact_sums_begins_anew(old: tuple[StateField, ...]) -> None:
    assert source_of(SPREAD, old) is None


def test_a_constant_is_known_for_rows_that_are_stored_whole() -> None:
    one, other = (StateField("BIGINT NOT NULL", number, "n", constant=number) for number in (1, 2))
    rows = [
        NamedState("data-state", KeyedStateKind.MAP, Stored("List<row>", row))
        for row in ((SUM,), (SUM, one), (SUM, other))
    ]
    assert [*StateRewrite(rows[1], rows[0], (0, None)).new_fields] == []
    assert [*StateRewrite(rows[2], rows[1], (0, None)).new_fields] == [other], "a constant that changed"


def test_a_sum_that_another_field_stores_too_is_not_dropped() -> None:
    state, stored = (NamedState("accState", KeyedStateKind.VALUE, Stored("row", row)) for row in ((SUM0,), (SUM0, SUM)))
    assert [*StateRewrite(state, stored, (0,)).dropped_fields] == []


def test_a_sum_of_zero_may_be_one_of_no_values() -> None:
    assert source_of(SUM, [SUM0]) is None
    assert source_of(SUM, [SUM0, COUNT]) == 0
    assert source_of(SUM, [SUM0, part("COUNT", "count", over="d")]) is None
    assert source_of(SUM, AVG) == 0


def test_sums_of_other_types_or_values_are_others() -> None:
    assert source_of(SUM0, [part("SUM", "sum", type="INT")]) is None
    assert source_of(SUM0, [part("SUM", "sum", over="d")]) is None
    assert source_of(part("SUM", "sum"), [part("SUM", "sum", type="INT")]) == 0


def test_keys_are_found_by_what_they_say() -> None:
    a, c, wide = StateField("VARCHAR(9)", "a", "a"), StateField("INT", "c", "c"), StateField("BIGINT", "c", "c")
    assert key_places([a, c], [wide, a]) == (1, 0)
    assert key_places([a, c], [c]) == (1,)
    assert key_places([a, wide], [c]) == "the old values of c do not fit the new type"


@pytest.mark.parametrize(
    ("together", "deciding", "reason"),
    [
        ([{SUM, COUNT}], {}, "a metric combines SUM(b), which would resume, and COUNT(b), which would start empty"),
        ([{SUM}, {COUNT}], {}, ""),
        ([], {COUNT}, "COUNT(b), which would start empty, decides which results are emitted"),
        ([], {SUM}, ""),
    ],
)
def test_nothing_is_computed_of_what_goes_on_and_what_begins(
    together: list[set[StateField]], deciding: set[StateField], reason: str
) -> None:
    def calls(fields: set[StateField]) -> frozenset[object]:
        return frozenset(each.meaning.call for each in fields if isinstance(each.meaning, CallPart))

    assert mixing_refusal([SUM], [COUNT], frozenset(map(calls, together)), calls(set(deciding))) == reason  # type: ignore[arg-type]


def test_half_an_average_is_none() -> None:
    assert "AVG(b), which would start empty" in mixing_refusal(AVG[:1], AVG[1:], frozenset(), frozenset())
