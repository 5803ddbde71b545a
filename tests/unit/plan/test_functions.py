"""The function catalogue: result types as Flink's planner gives them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import InputRef, Literal
from airflow_flinkcompat.plan.functions import FunctionKind, call_type, lookup
from airflow_flinkcompat.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL_DAY_TIME,
    NULL,
    SMALLINT,
    STRING,
    SYMBOL,
    TINYINT,
    UNKNOWN,
    DataType,
    decimal,
    timestamp,
)

NOT_NULL_INT = DataType("INT", nullable=False)


def varchar(length: int) -> DataType:
    return DataType("VARCHAR", (length,))


def char(length: int) -> DataType:
    return DataType("CHAR", (length,))


# Each line was read off a Flink 2.3 planner.
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("+", (INT, INT), "INT"),
        ("+", (TINYINT, SMALLINT), "SMALLINT"),
        ("+", (NOT_NULL_INT, NOT_NULL_INT), "INT NOT NULL"),
        ("/", (INT, INT), "INT"),
        ("*", (INT, BIGINT), "BIGINT"),
        ("+", (decimal(10, 2), decimal(12, 4)), "DECIMAL(13, 4)"),
        ("*", (decimal(10, 2), INT), "DECIMAL(21, 2)"),
        ("*", (decimal(38, 10), decimal(38, 10)), "DECIMAL(38, 6)"),
        ("/", (decimal(10, 2), INT), "DECIMAL(21, 13)"),
        ("+", (decimal(38, 10), decimal(38, 10)), "DECIMAL(38, 9)"),
        ("%", (decimal(5, 0), INT), "INT"),
        ("+", (INT, DOUBLE), "DOUBLE"),
        ("+", (FLOAT, decimal(10, 2)), "DOUBLE"),
        ("+", (FLOAT, INT), "FLOAT"),
        ("+", (timestamp(3), INTERVAL_DAY_TIME), "TIMESTAMP(3)"),
        ("+", (STRING, INT), "UNKNOWN"),
        ("=", (INT, NOT_NULL_INT), "BOOLEAN"),
        ("IS NULL", (INT,), "BOOLEAN NOT NULL"),
        ("||", (varchar(5), char(3)), "VARCHAR(8)"),
        ("UPPER", (varchar(5),), "VARCHAR(5)"),
        ("SUBSTR", (char(3), NOT_NULL_INT), "VARCHAR(3)"),
        ("COALESCE", (INT, NOT_NULL_INT), "INT NOT NULL"),
        ("COALESCE", (decimal(10, 2), decimal(12, 4)), "DECIMAL(12, 4)"),
        ("CASE", (BOOLEAN, INT, BOOLEAN, BIGINT, NULL), "BIGINT"),
        ("IF", (BOOLEAN, NOT_NULL_INT, NOT_NULL_INT), "INT"),
        ("IF", (BOOLEAN, timestamp(3), timestamp(6)), "UNKNOWN"),
        ("FLOOR", (decimal(10, 2),), "DECIMAL(10, 0)"),
        ("CHAR_LENGTH", (STRING,), "INT"),
        ("YEAR", (DATE,), "BIGINT"),
        ("MD5", (STRING,), "CHAR(32)"),
        ("SUM", (INT,), "INT"),
        ("SUM", (decimal(10, 2),), "DECIMAL(38, 2)"),
        ("AVG", (INT,), "INT"),
        ("AVG", (decimal(10, 2),), "DECIMAL(38, 6)"),
        ("AVG", (decimal(38, 10),), "DECIMAL(38, 10)"),
        ("COUNT", (), "BIGINT NOT NULL"),
        ("MAX", (STRING,), "STRING"),
        ("COLLECT", (INT,), "MULTISET<INT> NOT NULL"),
        ("CAST", (INT,), "UNKNOWN"),
    ],
)
def test_result_types(name: str, arguments: tuple[DataType, ...], expected: str) -> None:
    spec = lookup(name)
    assert spec is not None
    assert str(spec.result_type(arguments)) == expected


@pytest.mark.parametrize("name", functions.names())
def test_no_combination_of_arguments_raises(name: str) -> None:
    spec = lookup(name)
    assert spec is not None
    types = (INT, STRING, decimal(10, 2), timestamp(3), NULL, UNKNOWN, DataType("ARRAY", elements=(INT,)))
    for count in range(4):
        for first in types:
            assert isinstance(spec.result_type((first, *types[: max(0, count - 1)])[:count]), DataType)


def test_names_in_any_case_and_none_for_others() -> None:
    assert lookup("count") is lookup("COUNT")
    assert lookup("my_function") is None
    kinds = {name: lookup(name).kind for name in ("SUM", "UPPER", "UNNEST")}  # type: ignore[union-attr]
    assert kinds == {"SUM": FunctionKind.AGGREGATE, "UPPER": FunctionKind.SCALAR, "UNNEST": FunctionKind.TABLE}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ROUND", (InputRef(0, decimal(10, 2)), Literal(1, NOT_NULL_INT)), "DECIMAL(10, 1)"),
        ("ROUND", (InputRef(0, decimal(10, 2)), Literal(-1, NOT_NULL_INT)), "DECIMAL(9, 0)"),
        ("ROUND", (InputRef(0, decimal(10, 2)), InputRef(1, INT)), "UNKNOWN"),
        ("TRIM", (Literal("BOTH", SYMBOL), InputRef(0, STRING), Literal("FROM", SYMBOL)), "STRING"),
        ("+", (Literal(Decimal("1.5"), decimal(2, 1)), InputRef(0, INT)), "DECIMAL(12, 1)"),
        ("my_function", (), "UNKNOWN"),
    ],
)
def test_constants_may_decide_a_type(name: str, arguments: tuple[InputRef | Literal, ...], expected: str) -> None:
    assert str(call_type(name, arguments)) == expected
