"""The table of facets against the measured restores that its rows name, and what its rows do to a comparison."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.evidence import RIGHT, lines_restored_right, restores
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.facets import FacetRow, facet_rows
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK, PlanFacts
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateEffect
from dev.measure.measured import diff_plans, pairs, planned, written

ROWS = [row for rows in facet_rows().values() for row in rows]
WRONG = "restored_WRONG"
SINK = f"`default_catalog`.`default_database`.`{QUERY_SINK}`"


def named(row: FacetRow) -> str:
    return f"{row.operator} {row.facet} {row.effect.name}"


@cache
def differences(name: str) -> tuple[StateEffect, ...]:
    old, new = pairs()[name].sides()
    compared = ComparedPlans(Change(old, new), planned()[name])
    return tuple(each for each in compared.restore.states if each.facets)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_row_rests_on_restores_that_ended_as_it_says(row: FacetRow) -> None:
    ends = {name: set(restores()[name].values()) for name in row.evidence}
    assert ends or row.effect is RestoreEffect.UNKNOWN
    if row.effect is RestoreEffect.RIGHT:
        assert {"2.3", "1.20 to 2.3"} & {*lines_restored_right(row.evidence)}
    if row.effect is RestoreEffect.SILENTLY_WRONG:
        assert all(WRONG in found for found in ends.values())
    assert not any(WRONG in found and RIGHT in found for found in ends.values())


@pytest.mark.parametrize("row", [each for each in ROWS if each.compared], ids=named)
def test_the_plans_of_its_restores_differ_in_its_facet(row: FacetRow) -> None:
    """Plans of restores over connectors of the measurement's own are not stored."""
    stored = [name for name in row.evidence if name in planned()]
    for name in stored:
        assert any(row.facet in each.facets for each in differences(name)), name


def test_most_rows_are_held_against_stored_plans() -> None:
    held = [row for row in ROWS if any(name in planned() for name in row.evidence)]
    assert len(held) >= 0.8 * len([row for row in ROWS if row.operator not in ("sink", "lookup-join")])


@pytest.mark.parametrize(
    ("name", "operator", "facet"),
    [
        ("wj-semi-to-anti", "window-join", "joinType"),
        ("tj-left-to-inner", "temporal-join", "joinType"),
        ("rj-noneq-add", "join", "nonEquiCondition"),
        ("ij-left-to-inner", "interval-join", "joinType"),
        ("so-key-dir", "temporal-sort", "orderBy"),
        ("ga-ttl-set", "group-aggregate", "state"),
    ],
)
def test_a_right_facet_leaves_nothing_open(name: str, operator: str, facet: str) -> None:
    (seen,) = differences(name)
    assert (seen.operator, seen.facets) == (operator, (facet,))
    assert seen.evidence


@pytest.mark.parametrize(
    "name", ["ij-inner-to-left", "ij-left-to-full", "li-n-6-to-8", "li-offset-add", "dd-ra-col-swap", "t-n"]
)
def test_a_facet_that_is_right_by_data_alone_stays_open(name: str) -> None:
    assert any(not each.evidence for each in differences(name))


def test_a_retracting_sum_beside_the_count_that_it_keeps_anyway_holds_the_same_numbers() -> None:
    assert differences("cd-add-count") == ()


def test_a_sum_that_begins_with_null_is_not_the_sum_of_an_average() -> None:
    assert any(each.effect is RestoreEffect.SILENTLY_WRONG for each in differences("ga-avg-to-sum-count"))


@pytest.mark.parametrize(("held", "open_"), [(False, False), (True, True)])
def test_another_key_of_a_sink_matters_where_rows_are_held_by_it(*, held: bool, open_: bool) -> None:
    def keyed(column: str) -> Any:
        ((plan, *_), _) = written("wh-agg-change")
        sink = next(node for node in plan["nodes"] if "stream-exec-sink" in node["type"])
        sink["requireUpsertMaterialize"] = held
        schema = sink["dynamicTableSink"]["table"].setdefault("resolvedTable", {}).setdefault("schema", {})
        schema["primaryKey"] = {"name": "PK", "type": "PRIMARY_KEY", "columns": [column]}
        return [read_plan(json.dumps(plan))]

    found = diff_plans(keyed("a"), keyed("b"), PlanFacts({SINK}), restored=True)
    assert any(not each.evidence for each in found.differences) is open_


# --- spellings that are compiled in two ways --------------------------------------------------------------------------

TEXT, WHOLE = {"kind": "INPUT_REF", "inputIndex": 0, "type": "VARCHAR(2147483647)"}, "BIGINT"
AMOUNT = {"kind": "INPUT_REF", "inputIndex": 1, "type": WHOLE}


def literal(value: Any, kind: str) -> dict[str, Any]:
    return {"kind": "LITERAL", "value": value, "type": f"{kind} NOT NULL"}


def call(name: str, *operands: Any, kind: str = "BOOLEAN") -> dict[str, Any]:
    return {"kind": "CALL", "internalName": f"${name}$1", "operands": list(operands), "type": kind}


def with_condition(condition: Any) -> Any:
    """The plan of a filtered aggregation, with another condition in its Calc."""
    ((old,), _) = written("wh-agg-change")
    calc = next(node for node in old["nodes"] if "calc" in node["type"])
    calc["condition"] = condition
    return old


def compared(one: Any, other: Any) -> tuple[RestoreEffect, ...]:
    old, new = ([read_plan(json.dumps(with_condition(each)))] for each in (one, other))
    return tuple(each.effect for each in diff_plans(old, new, PlanFacts({SINK})).differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call(">", AMOUNT, literal(5, "INT")), call(">", AMOUNT, literal(5, WHOLE))),
        (call("=", TEXT, literal("a", "CHAR(1)")), call("=", literal("a", "VARCHAR(2147483647)"), TEXT)),
        (
            call(">", call("IF", call("=", AMOUNT, literal(1, "INT")), AMOUNT, literal(0, "INT"), kind=WHOLE), AMOUNT),
            call(
                ">", call("CASE", call("=", AMOUNT, literal(1, "INT")), AMOUNT, literal(0, WHOLE), kind=WHOLE), AMOUNT
            ),
        ),
        (
            call(">", call("IFNULL", AMOUNT, literal(0, WHOLE), kind=WHOLE), AMOUNT),
            call(">", call("COALESCE", AMOUNT, literal(0, WHOLE), kind=WHOLE), AMOUNT),
        ),
        (call(">", call("REINTERPRET", AMOUNT, kind=WHOLE), AMOUNT), call(">", AMOUNT, AMOUNT)),
    ],
    ids=["whole numbers", "texts", "IF", "IFNULL", "REINTERPRET"],
)
def test_two_ways_to_compile_one_condition_are_one(one: Any, other: Any) -> None:
    assert compared(one, other) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call(">", AMOUNT, literal(5, "INT")), call(">", AMOUNT, literal(6, WHOLE))),
        (call("=", TEXT, literal("a ", "CHAR(2)")), call("=", TEXT, literal("a ", "VARCHAR(2147483647)"))),
        (call(">", AMOUNT, literal(2**60, "BIGINT")), call(">", AMOUNT, literal(2**60, "DECIMAL(19, 0)"))),
        (
            call("=", call("CAST", literal(1, "INT"), kind="VARCHAR(5)"), TEXT),
            call("=", call("CAST", literal(1, "DECIMAL(2, 1)"), kind="VARCHAR(5)"), TEXT),
        ),
    ],
    ids=["values", "blanks", "wide numbers", "casts"],
)
def test_conditions_that_may_differ_stay_apart(one: Any, other: Any) -> None:
    assert RestoreEffect.SILENTLY_WRONG in compared(one, other)


def on_keys(*, added: bool, column: dict[str, Any]) -> tuple[RestoreEffect, ...]:
    amounts = call(">", AMOUNT, literal(5, WHOLE))
    both = call("AND", amounts, call("<>", column, literal("x", "VARCHAR(2147483647)")))
    return compared(amounts, both) if added else compared(both, amounts)


def test_a_condition_on_keys_leaves_the_other_keys_as_they_are() -> None:
    assert on_keys(added=True, column=TEXT) == ()
    assert RestoreEffect.SILENTLY_WRONG in on_keys(added=False, column=TEXT), "the keys that come begin with nothing"
    assert RestoreEffect.SILENTLY_WRONG in on_keys(added=True, column=AMOUNT)


# --- lookups, of which rows may wait for an answer --------------------------------------------------------------------

DIM = "`default_catalog`.`default_database`.`dim`"
BY_KEY = {"0": {"type": "FieldRef", "index": 0}}


def looked_up(table: str = DIM, **config: Any) -> Any:
    """The plan of an aggregation over a lookup, with a Calc below it."""
    plan = with_condition(None)
    calc = next(node for node in plan["nodes"] if "calc" in node["type"])
    columns = "`a` VARCHAR(2147483647), `b` BIGINT"
    asked = {
        "lookupTableSource": {"table": {"identifier": table}},
        "outputType": "ROW<`k` BIGINT, `n` BIGINT> NOT NULL",
    }
    lookup = {
        "id": calc["id"] + 1000, "type": "stream-exec-lookup-join_1", "description": "LookupJoin", "joinType": "INNER",
        "lookupKeys": BY_KEY, "projectionOnTemporalTable": [{"kind": "INPUT_REF", "inputIndex": 1, "type": "BIGINT"}],
        "temporalTable": asked, "outputType": f"ROW<{columns}, `n` BIGINT>", **config,
    }  # fmt: skip
    plan["nodes"].insert(plan["nodes"].index(calc) + 1, lookup)
    for edge in plan["edges"]:
        if edge["source"] == calc["id"]:
            edge["source"] = lookup["id"]
    plan["edges"].append({**plan["edges"][0], "source": calc["id"], "target": lookup["id"]})
    return plan


def over_lookups(one: Any, other: Any, *, waits: bool = True) -> list[StateEffect]:
    old, new = ([read_plan(json.dumps(each))] for each in (one, other))
    found = diff_plans(old, new, PlanFacts({SINK}, waiting={DIM} if waits else set()), restored=True)
    return [each for each in found.differences if not each.evidence]


RETRIES: dict[str, Any] = {"retryOptions": {"retry-predicate": "lookup_miss", "max-attempts": 2}}


@pytest.mark.parametrize("waits", [True, False])
def test_how_a_lookup_is_asked_is_right_whether_or_not_it_waits(*, waits: bool) -> None:
    assert over_lookups(looked_up(), looked_up(**RETRIES), waits=waits) == []
    (seen,) = diff_plans(
        [read_plan(json.dumps(looked_up()))],
        [read_plan(json.dumps(looked_up(**RETRIES)))],
        PlanFacts({SINK}, waiting={DIM}),
    ).differences
    assert (seen.operator, seen.facets) == ("lookup-join", ("retryOptions",))


def test_a_lookup_under_another_name_is_judged_where_its_table_is_declared() -> None:
    assert over_lookups(looked_up(), looked_up(DIM.replace("dim", "other")), waits=False) == []


def test_a_default_that_one_line_leaves_out_is_no_difference() -> None:
    assert over_lookups(looked_up(), looked_up(preferCustomShuffle=False)) == []
    assert over_lookups(looked_up(), looked_up(preferCustomShuffle=True)) != []


def test_rows_that_may_wait_leave_a_doubt_where_they_say_something_else() -> None:
    swapped = looked_up()
    calc = next(node for node in swapped["nodes"] if "calc" in node["type"])
    calc["projection"] = [calc["projection"][0], {**call("+", AMOUNT, AMOUNT, kind=WHOLE)}]
    found = over_lookups(looked_up(), swapped)
    assert found[0].operator == "lookup-join"
    assert (found[0].effect, found[0].facets) == (RestoreEffect.UNKNOWN, ("stored columns",))


def test_what_a_lookup_finds_decides_above_it() -> None:
    other = looked_up(projectionOnTemporalTable=[{"kind": "INPUT_REF", "inputIndex": 0, "type": "BIGINT"}])
    plans = [looked_up(), other]
    for plan in plans:
        aggregate = next(node for node in plan["nodes"] if "group-aggregate" in node["type"])
        aggregate["aggCalls"][0]["argList"] = [2]
    assert RestoreEffect.SILENTLY_WRONG in {each.effect for each in over_lookups(*plans)}
