"""Expressions evaluated on rows of boundary values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat.changes.boundary_rows import Variable, equal_conditions, equal_values
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Leaf, Literal
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.types import BIGINT, DOUBLE, INT, STRING, UNKNOWN, DataType

TYPES = {"a": STRING, "b": BIGINT, "d": BIGINT, "f": DOUBLE, "k": DataType("BOOLEAN"), "x": DataType("ROW")}


def column(name: str) -> SourceColumn:
    return SourceColumn(0, name, type=UNKNOWN)


def call(function: str, *args: Expression) -> FunctionCall:
    return FunctionCall(function, args, UNKNOWN)


def number(value: int) -> Literal:
    return Literal(value, INT)


def resolved(leaf: Leaf) -> Variable | None:
    assert isinstance(leaf, SourceColumn)
    return Variable(leaf.column, TYPES[leaf.column], nullable=True) if leaf.column in TYPES else None


def alike(old: Expression, new: Expression) -> bool:
    return equal_conditions(([old], resolved), ([new], resolved))


NUMBERS = st.one_of(st.integers(-9, 9).map(number), st.sampled_from([column("b"), column("d")]))
COMPARISONS = st.builds(call, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS, NUMBERS)
CONDITIONS = st.recursive(
    st.one_of(COMPARISONS, st.builds(call, st.sampled_from(["IS NULL", "IS NOT NULL"]), NUMBERS)),
    lambda inner: st.one_of(
        st.builds(call, st.sampled_from(["AND", "OR"]), inner, inner), inner.map(lambda c: call("NOT", c))
    ),
    max_leaves=4,
)


@given(CONDITIONS, CONDITIONS)
def test_identities_of_three_valued_logic_show_no_difference(one: Expression, other: Expression) -> None:
    assert alike(call("NOT", call("NOT", one)), one)
    assert alike(call("NOT", call("AND", one, other)), call("OR", call("NOT", one), call("NOT", other)))
    assert alike(call("OR", one, call("AND", one, other)), one)
    assert alike(call("CASE", one, other, Literal(False, DataType("BOOLEAN"))), call("AND", one, other))


@given(st.integers(-1_000, 1_000), st.integers(-1_000, 1_000))
def test_another_bound_is_a_difference(one: int, other: int) -> None:
    assert alike(call(">", column("b"), number(one)), call(">", column("b"), number(other))) == (one == other)


def test_bounds_of_whole_numbers_are_none_of_a_double() -> None:
    for name, same in (("b", True), ("f", False)):
        old = call(">", column(name), number(2))
        assert alike(old, call(">=", column(name), number(3))) == same


@pytest.mark.parametrize(
    "condition",
    [
        call("OWN_FUNCTION", column("a")),
        call("=", column("x"), column("x")),
        call("=", column("not_declared"), number(1)),
        call("=", column("a"), number(1)),
        call("=", call("/", number(1), column("b")), number(1)),
    ],
    ids=["function", "type", "column", "mixed types", "division"],
)
def test_what_is_not_evaluated_is_not_called_equal(condition: Expression) -> None:
    assert not alike(condition, condition)


def test_another_type_is_another_value() -> None:
    cast = call("CAST", column("b"), Literal("DOUBLE", STRING))
    assert not equal_values(([column("b")], resolved), ([cast], resolved))
    assert equal_values(([call("+", column("b"), number(0))], resolved), ([column("b")], resolved))
