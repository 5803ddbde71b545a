"""Which old field goes on in a new one, and what may not be computed of it."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.exec_graph.layout import CallPart, StateField
from airflow_flinkcompat.exec_graph.rewriting import key_places, mixing_refusal, source_of, widens


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
    ],
)
def test_a_type_is_wider_where_each_value_is_the_same_value(old: str, new: str, wider: bool) -> None:
    assert widens(old, new) is wider


def test_a_sum_goes_on_whatever_function_it_belongs_to() -> None:
    assert source_of(SUM0, [COUNT, SUM]) == 1
    assert source_of(SUM, [COUNT, SUM, SUM0]) == 1
    assert [source_of(each, [SUM, COUNT]) for each in AVG] == [0, 1]
    assert source_of(COUNT, AVG) == 1


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
