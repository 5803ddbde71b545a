"""What expressions over a source's columns mean, and the rows that operators hand on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.nodes.accumulators import call_over
from airflow_flinkcompat.exec_graph.nodes.source import scanned
from airflow_flinkcompat.exec_graph.streams import stateless_output
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbol, Symbols, expression
from dev.measure.measured import written
from dev.measure.savepoint_fixtures import migration_of

READ = ColumnMeanings((7,), ("b",), ("INT",), 1)


def as_text(type: str, symbols: Symbols) -> Symbol:
    operand = {"kind": "INPUT_REF", "inputIndex": 0, "type": type}
    cast = {"kind": "CALL", "internalName": "$CAST$1", "operands": [operand], "type": "VARCHAR(10)"}
    return expression(cast, READ, symbols)


def test_a_call_over_another_type_is_another_one() -> None:
    """A CAST of 1 and of 1.0 to a text are two keys."""
    symbols = Symbols()
    assert as_text("INT", symbols) == as_text("INT", symbols) != as_text("DOUBLE", symbols)


def scan(columns: list[Mapping[str, Any]], names: tuple[str, ...], *projected: int) -> ExecNode:
    table = {"identifier": "`t`", "resolvedTable": {"schema": {"columns": columns}}}
    abilities = [{"type": "ProjectPushDown", "projectedFields": [[place] for place in projected]}] if projected else []
    config = {"scanTableSource": {"table": table, "abilities": abilities}}
    return ExecNode(0, ExecKind.TABLE_SOURCE_SCAN, "", config, names, ("STRING",) * len(names), ())


def stored(name: str) -> Mapping[str, Any]:
    return {"name": name, "kind": "PHYSICAL"}


def metadata(name: str, key: str) -> Mapping[str, Any]:
    return {"name": name, "kind": "METADATA", "metadataKey": key}


def meanings(node: ExecNode, symbols: Symbols, identity: ColumnIdentity = ColumnIdentity.NAME) -> dict[str, Symbol]:
    return dict(zip(node.names, scanned(node, symbols, {}, {"`t`": identity}).symbols, strict=True))


@pytest.mark.parametrize("identity", ColumnIdentity)
@pytest.mark.parametrize("holds", ["{}", "ARRAY<{}>", "ROW<`s` {}>"])
def test_fields_of_a_row_without_names_are_known_by_their_places(identity: ColumnIdentity, holds: str) -> None:
    """JSON says the name of each field, csv says none: r.p is another value where p and q change places."""
    symbols = Symbols()
    before, after = (
        meanings(scan([{**stored("r"), "dataType": holds.format(type)}], ("r",)), symbols, identity)
        for type in ("ROW<`p` INT, `q` INT>", "ROW<`q` INT, `p` INT>")
    )
    assert (before == after) is (identity is ColumnIdentity.NAME)


@pytest.mark.parametrize(("function", "same"), [("AVG", False), ("STDDEV_POP", False), ("COUNT", True)])
def test_a_float_that_becomes_a_double_is_another_value_to_add_up(function: str, same: bool) -> None:
    """AVG adds up both as DOUBLE, a FLOAT rounded before."""
    symbols, call = Symbols(), {"internalName": f"${function}$1", "argList": [0], "distinct": False, "filterArg": -1}
    one, other = (call_over(call, replace(READ, types=(type,)), symbols) for type in ("FLOAT", "DOUBLE NOT NULL"))
    assert (one == other) is same
    assert one == call_over(call, replace(READ, types=("FLOAT NOT NULL",)), symbols)


def test_metadata_is_known_by_what_the_connector_calls_it() -> None:
    symbols = Symbols()
    path, again, name = (
        meanings(scan([stored("a"), metadata(column, key)], ("a", column)), symbols)
        for column, key in (("f", "file.path"), ("g", "file.path"), ("f", "file.name"))
    )
    assert path["f"] == again["g"] != name["f"]
    assert path["a"] == name["a"]


def test_a_projection_counts_stored_columns_alone() -> None:
    symbols = Symbols()
    plain = meanings(scan([stored("a"), stored("b"), stored("d")], ("a", "d"), 0, 2), symbols)
    beside = meanings(
        scan([stored("a"), metadata("f", "key"), stored("b"), stored("d")], ("a", "d", "f"), 0, 2), symbols
    )
    assert (plain["a"], plain["d"]) == (beside["a"], beside["d"])


UNION = ExecNode(2, ExecKind.UNION, "", {}, ("a", "b"), ("STRING", "BIGINT"), (0, 1))
LEFT, RIGHT = (
    ColumnMeanings(columns, ("a", "b"), ("STRING", "BIGINT"), rows) for columns, rows in (((3, 4), 1), ((5, 6), 2))
)


def union(*inputs: ColumnMeanings) -> ColumnMeanings:
    return stateless_output(UNION, inputs, SYMBOLS)


SYMBOLS = Symbols()


def test_another_column_of_a_union_leaves_its_rows_and_other_columns() -> None:
    one, other = union(LEFT, RIGHT), union(RIGHT, replace(LEFT, symbols=(3, 7)))
    assert (one.rows, one.symbols[0]) == (other.rows, other.symbols[0])
    assert one.symbols[1] != other.symbols[1]


def test_columns_of_equal_rows_are_told_apart_by_all_of_them() -> None:
    """Of ``(a, b), (b, a)`` and ``(a, a), (b, b)`` each column alone is the same."""
    crossed = union(LEFT, replace(LEFT, symbols=(4, 3)))
    straight = union(replace(LEFT, symbols=(3, 3)), replace(LEFT, symbols=(4, 4)))
    assert crossed.rows != straight.rows


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"joinType": "LEFT"}, {"joinType": "FULL"}),
        ({"nonEquiCondition": None}, {"nonEquiCondition": {"kind": "LITERAL", "value": 0}}),
    ],
)
def test_above_a_join_that_hands_on_other_rows_nothing_is_carried(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    def plan(join: Mapping[str, Any]) -> str:
        ((found,), _) = written("rj-agg-above-mod")
        next(node for node in found["nodes"] if "joinSpec" in node)["joinSpec"] |= join
        return json.dumps(found)

    kept = {line.new.name: line.effect for line in migration_of(plan(before), plan(after)).operators if line.new}
    assert kept["group-aggregate"] is RestoreEffect.NOT_MIGRATABLE


@pytest.mark.parametrize(
    ("name", "operands", "decided"),
    [
        ("$<>$1", ("key", "literal"), True),
        ("$<>$1", ("key", "other"), False),
        ("$>$1", ("key", "random"), False),  # RAND(7) is another value for each row of a key
        ("$>$1", ("random", "literal"), False),
        ("$RAND_INTEGER$1", ("key",), False),
        ("", ("key", "literal"), False),  # a function of the user's own may be another value too
    ],
)
def test_a_condition_is_decided_by_keys(name: str, operands: tuple[str, ...], decided: bool) -> None:
    symbols = Symbols()
    literal = symbols.of("literal", "7", "INT", "")
    known = {
        "key": symbols.of("column", "t", "k"),
        "other": symbols.of("column", "t", "b"),
        "literal": literal,
        "random": symbols.of("call", "$RAND$1", ((literal, "INT"),), "DOUBLE", ()),
    }
    condition = symbols.of("call", name, tuple((known[each], "INT") for each in operands), "BOOLEAN", ())
    assert symbols.is_decided_by(condition, frozenset({known["key"]})) is decided
