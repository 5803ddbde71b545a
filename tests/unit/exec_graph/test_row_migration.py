"""Operators that hold rows: which columns a rewriting carries, and what it refuses."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.layout import Begins, CallPart, NamedState, StateField, StateLayout, Stored, Unknown
from airflow_flinkcompat.exec_graph.migration import MigrationExtent, OperatorMigration, migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes.accumulators import PlannedCall, accumulated
from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph, StreamNode
from airflow_flinkcompat.exec_graph.rewriting import key_places
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from dev.measure.measured import planned
from tests.support.savepoint.savepoints import FOLDER

A, B, C = (StateField("BIGINT", name, name, begins=Begins.NULL) for name in "abc")


def operator(
    *fields: StateField, form: str = "row", retracting: bool = False, unmeasured_properties: str = ""
) -> StateSpec:
    sort_key = Stored("row", (A,)) if form != "row" else None
    kind = KeyedStateKind.VALUE if form == "row" else KeyedStateKind.MAP
    layout = StateLayout((A,), (NamedState("rows", kind, Stored(form, fields), sort_key, retracting=retracting),))
    return StateSpec(StateKind.OPERATOR, "rank", "1" * 32, layout, "of these rows", unmeasured_properties)


def made(old: StateSpec, new: StateSpec) -> OperatorMigration:
    (line,) = migration(ExecGraph((), (old,)), ExecGraph((), (new,))).operators
    return line


@pytest.mark.parametrize("form", ["row", "List<row>"])
@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ((A, B, C), (A, C), (0, 2)),
        ((A, B), (B, A), (1, 0)),
        ((A, B), (A, C, B), (0, None, 1)),
    ],
)
def test_columns_are_carried_by_what_they_mean(
    form: str, old: tuple[StateField, ...], new: tuple[StateField, ...], places: tuple[int | None, ...]
) -> None:
    line = made(operator(*old, form=form), operator(*new, form=form))
    assert line.effect is RestoreEffect.REWRITTEN
    assert [state.fields for state in line.states] == [places]
    assert line.new_fields == tuple(each.words for each, place in zip(new, places, strict=True) if place is None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (operator(A, B), operator(A, replace(B, type="INT")), "b has a different type"),
        (operator(A), operator(A, replace(B, begins=None)), "b cannot be NULL"),
        (operator(A, retracting=True), operator(A, B, retracting=True), "retracted rows contain b"),
        (operator(A, B), operator(A, B, form="List<row>"), "its stored layout differs"),
        (operator(A, B), operator(A, unmeasured_properties="another N"), "its stored layout differs"),
    ],
)
def test_what_would_be_read_wrong_is_refused(old: StateSpec, new: StateSpec, reason: str) -> None:
    line = made(old, new)
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert reason in line.reason


def test_a_column_may_go_where_rows_are_taken_back() -> None:
    line = made(operator(A, B, retracting=True), operator(A, retracting=True))
    assert (line.effect, line.dropped_fields) == (RestoreEffect.REWRITTEN, ("b",))


# --- joins: rows of both sides, by a unique key or counted ------------------------------------------------------------


def side(
    *fields: StateField, form: str = "Int", unique: tuple[StateField, ...] = (), retracting: bool = False
) -> NamedState:
    rows = Stored("row", fields)
    key, value = (
        (rows, Stored(form))
        if form in ("Int", "Tuple<Int, Int>")
        else (Stored("row", unique), replace(rows, form=form))
    )
    return NamedState("left-records", KeyedStateKind.MAP, value, key, retracting=retracting)


def join(left: NamedState) -> StateSpec:
    other = NamedState("right-records", KeyedStateKind.MAP, Stored("Int"), Stored("row", (A,)), retracting=True)
    return StateSpec(StateKind.OPERATOR, "join", "1" * 32, StateLayout((A,), (left, other)), "these conditions")


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        (side(A, B, C), side(A, C), (0, 2)),
        (side(A, B, retracting=True), side(A, retracting=True), (0,)),
        (side(A, form="Tuple<Int, Int>"), side(A, B, form="Tuple<Int, Int>"), (0, None)),
        (side(A, B, C, form="row", unique=(B,)), side(A, B, form="row", unique=(B,)), (0, 1)),
        (side(A, B, form="row", unique=(B,), retracting=True), side(A, retracting=True), (0,)),
        (side(A, B, form="Tuple<row, Int>", unique=(B,)), side(A, form="Tuple<Int, Int>"), (0,)),
    ],
)  # fmt: skip
def test_rows_of_a_side_are_carried_by_their_columns(
    old: NamedState, new: NamedState, places: tuple[int | None, ...]
) -> None:
    line = made(join(old), join(new))
    assert line.effect is RestoreEffect.REWRITTEN
    assert [state.fields for state in line.states] == [places, (0,)]
    assert line.dropped_fields == tuple(field.words for field in old.row if field not in new.row)


LONG_DECIMAL, NANOS = (
    StateField(type, "wide", "wide", begins=Begins.NULL) for type in ("DECIMAL(38, 2)", "TIMESTAMP(9)")
)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (side(A, retracting=True), side(A, B, retracting=True), "retracted rows contain b"),
        (side(A), side(A, B, form="row", unique=(B,)), "its stored layout differs"),
        (side(A), side(A, form="Tuple<Int, Int>"), "its stored layout differs"),
        (side(A, B, form="row", unique=(B,)), side(A, B, form="row", unique=(A,)), "its stored layout differs"),
        (side(A), side(A, replace(B, begins=None)), "b cannot be NULL"),
        (side(A, B), side(A, replace(B, type="INT")), "b has a different type"),
        *(
            (side(A, wide, retracting=True), side(wide, retracting=True), "a NULL in wide may have different bytes")
            for wide in (LONG_DECIMAL, NANOS)
        ),
    ],
)
def test_sides_that_would_be_read_wrong_are_refused(old: NamedState, new: NamedState, reason: str) -> None:
    line = made(join(old), join(new))
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert reason in line.reason


# --- OVER: accumulators and the rows of the frame ---------------------------------------------------------------------


def over(calls: tuple[StateField, ...], rows: tuple[StateField, ...], bounded: bool = True) -> StateSpec:
    stored = tuple(replace(field, sources=frozenset({field.meaning})) for field in rows)
    states = (
        NamedState("accState", KeyedStateKind.VALUE, Stored("row", calls)),
        NamedState("inputState", KeyedStateKind.MAP, Stored("List<row>", stored), Stored("Long")),
    )
    layout = StateLayout((A,), states if rows else states[:1], "user-timers", retracting=bounded)
    return StateSpec(StateKind.OPERATOR, "over-aggregate", "1" * 32, layout, "this frame")


def call(words: str, *sources: str, begins: Begins | None = Begins.ZERO) -> StateField:
    return StateField("BIGINT", words, words, begins, sources=frozenset(sources))


ALL = call("COUNT(*)")


@pytest.mark.parametrize(
    ("old", "new", "begun", "lost"),
    [
        (over((call("COUNT(b)", "b"), ALL), (A, B)), over((ALL,), (A,)), (), ("COUNT(b)", "b")),
        (
            over((call("SUM0(b)", "b"), ALL), (A, B)),
            over((call("SUM0(c)", "c"), call("SUM0(b)", "b"), ALL), (A, B, C)),
            ("SUM0(c)", "c"),
            (),
        ),
        (
            over((ALL,), (A, B), bounded=False),
            over((ALL, call("COUNT(b)", "b")), (A, B), bounded=False),
            ("COUNT(b)",),
            (),
        ),
        (
            over((call("MAX(b)", "b"),), ()),
            over((call("SUM0(c)", "c"), call("MAX(b)", "b")), ()),
            ("SUM0(c)",),
            (),
        ),
    ],
)
def test_calls_of_a_frame_are_carried_by_what_they_compute(
    old: StateSpec, new: StateSpec, begun: tuple[str, ...], lost: tuple[str, ...]
) -> None:
    line = made(old, new)
    assert (line.effect, line.new_fields, line.dropped_fields) == (RestoreEffect.REWRITTEN, begun, lost)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            over((ALL,), (A, B)),
            over((ALL, call("COUNT(b)", "b")), (A, B)),
            "never counted the rows that will leave the frame",
        ),
        (
            over((call("COUNT(b)", "b"),), (A, B)),
            over((call("COUNT(b)", "b"), ALL), (A, B)),
            "never counted the rows that will leave the frame",
        ),
        (over((ALL,), (A,)), over((ALL, call("MAX(c)", "c", begins=None)), (A, C)), "the initial value of "),
        (over((ALL,), (A,)), over((ALL,), (A, replace(C, begins=None))), "c cannot be NULL"),
    ],
)
def test_a_call_that_would_be_computed_wrong_is_refused(old: StateSpec, new: StateSpec, reason: str) -> None:
    line = made(old, new)
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert reason in line.reason


def test_calls_of_which_one_output_is_computed_go_on_or_begin_together() -> None:
    count, total = (
        StateField("BIGINT", CallPart(function, "b", "value"), f"{function}(b)", Begins.ZERO, sources=frozenset("b"))
        for function in ("COUNT", "SUM0")
    )
    old, new = over((count,), (A, B), bounded=False), over((count, total), (A, B), bounded=False)
    assert made(old, new).effect is RestoreEffect.REWRITTEN
    line = made(old, replace(new, co_dependent_calls=frozenset({frozenset({("COUNT", "b"), ("SUM0", "b")})})))
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert "would resume" in line.reason


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"filtering_calls": frozenset("b")}, "b, which would start empty, decides which results are emitted"),
        ({"co_dependent_calls": frozenset({frozenset("ab")})}, "a metric combines a, which would resume, and b"),
        ({"co_dependent_calls": frozenset({frozenset("a"), frozenset("b")})}, ""),
    ],
)
def test_a_column_that_begins_with_null_decides_nothing(told: dict[str, frozenset[object]], reason: str) -> None:
    """Rows stored before have NULL there, which a condition or a computed output would take for a value."""
    line = made(operator(A), replace(operator(A, B), **told))  # type: ignore[arg-type]
    assert (line.effect is RestoreEffect.NOT_MIGRATABLE) == bool(reason)
    assert reason in line.reason


def test_an_operator_above_one_that_begins_empty_would_gather_its_rows_twice() -> None:
    def job(lower_too: bool) -> ExecGraph:
        kinds = ("table-source-scan", "group-aggregate", "rank")
        graph = StreamGraph(tuple(StreamNode(kind, (n - 1,) if n else (), False) for n, kind in enumerate(kinds)))
        upper = replace(operator(A, B), id=graph.ids[2])
        lower = replace(operator(A, B), name="group-aggregate", id=graph.ids[1])
        return ExecGraph((graph,), (lower, upper) if lower_too else (upper,))

    assert {line.effect for line in migration(job(True), job(True)).operators} == {RestoreEffect.RIGHT}
    begins, above = migration(job(False), job(True)).operators
    assert (begins.effect, above.effect) == (RestoreEffect.EMPTY, RestoreEffect.NOT_MIGRATABLE)
    assert above.reason == "it stores results of the upstream operator group-aggregate, which begins empty"


@pytest.mark.parametrize(
    ("pair", "name", "told"),
    [
        ("ij-input-add-col", "interval-join", "rows stored earlier have NULL in left.lc (output columns: lc)"),
        ("dd-pd-col-expr", "deduplicate", "rows stored earlier have NULL in $2 (output columns: c)"),
        ("oa-passthrough-add", "over-aggregate", "rows stored earlier have NULL in d (output columns: d)"),
        ("oa-add-count", "over-aggregate", ""),
    ],
)
def test_output_columns_of_what_is_null_in_stored_rows_are_named(pair: str, name: str, told: str) -> None:
    """Such a migration is none of the whole state, so that a person is asked."""
    symbols = Symbols()
    found = migration(
        *(job_state(compiled_state(plan, symbols, {}, frozenset()), symbols) for (plan,) in planned()[pair])
    )
    report = MigrationReport.of(found)
    (line,) = (each for each in report.operators if each.operator == name)
    assert line.null == told
    assert line.state.endswith(told)
    assert (report.kept is MigrationExtent.PARTIAL) or not told
    assert MigrationReport.from_dict(report.to_dict()) == report


def test_a_metric_that_is_never_null_cannot_begin_without_a_value() -> None:
    begins = {}
    for result in ("BIGINT", "BIGINT NOT NULL"):
        made = accumulated([PlannedCall("MAX", "d", "MAX(d)", result, "BIGINT", retracts=False)])
        assert not isinstance(made, Unknown)
        ((field,), _) = made
        begins[result] = field.begins
    assert begins == {"BIGINT": Begins.NULL, "BIGINT NOT NULL": None}


def test_what_an_over_computes_is_told_by_its_plan() -> None:
    _, new = planned()["oa-add-count"]
    symbols = Symbols()
    specs = job_state(compiled_state(new[0], symbols, {}, frozenset()), symbols).specs
    (spec,) = (each for each in specs if each.name == "over-aggregate")
    functions = {frozenset(function for function, _ in calls) for calls in spec.co_dependent_calls}
    assert functions >= {frozenset({"COUNT", "SUM0"})}


def test_a_constant_of_an_over_is_what_it_is_and_not_where_it_stands() -> None:
    plan = read_plan((FOLDER / "2.3" / "over" / "plan.json").read_text("utf-8"))

    def with_sum_of(value: int) -> ExecGraph:
        nodes = [deepcopy(node) for node in plan.nodes]
        (over,) = (node for node in nodes if node.kind == "over-aggregate")
        spec = over.config["overSpec"]
        spec["constants"] = [*spec["constants"], {"kind": "LITERAL", "value": value, "type": "INT NOT NULL"}]
        calls = spec["groups"][0]["aggCalls"]
        place = spec["originalInputFields"] + len(spec["constants"]) - 1
        calls.append({**calls[0], "internalName": "$$SUM0$1", "argList": [place], "type": "INT NOT NULL"})
        return job_state(compiled_state(replace(plan, nodes=tuple(nodes)), symbols, {}, frozenset()), symbols)

    symbols = Symbols()
    assert {line.effect for line in migration(with_sum_of(2), with_sum_of(2)).operators} == {RestoreEffect.RIGHT}
    (line,) = (each for each in migration(with_sum_of(2), with_sum_of(3)).operators if each.new and each.new.layout)
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert line.reason == "SUM(3) never counted the rows that will leave the frame, but would subtract them"


def of_sinks(*told: tuple[tuple[StateField, ...], str, str]) -> ExecGraph:
    """A job with such an operator for each sink; the last word is a property that nobody verified."""
    specs = (
        replace(operator(*fields, unmeasured_properties=more), sinks=frozenset({sink})) for fields, sink, more in told
    )
    return ExecGraph((), tuple(replace(spec, id=f"{place:032}") for place, spec in enumerate(specs)))


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        # The sink that comes never had what the other one had.
        ([((A,), "s1", "")], [((A, B), "s1", ""), ((A,), "s2", "")], ["s1", None]),
        # The second shares more with what the first asks for now.
        (
            [((A,), "s1", ""), ((A, B), "s2", "")],
            [((A, B), "s1", ""), ((A, B, C), "s2", "")],
            ["s1", "s2"],
        ),
        ([((A,), "s1", ""), ((A,), "s2", "")], [((A,), "s2", ""), ((A,), "s1", "")], ["s2", "s1"]),
        # A sink in place of another one.
        ([((A,), "s1", "")], [((A,), "s3", "")], ["s1"]),
        ([((A,), "s1", ""), ((A, B), "s2", "")], [((A,), "s1", ""), ((A, B), "s3", "")], ["s1", "s2"]),
        # Both reach one sink: that of the same property goes on.
        ([((A,), "s1", "1 h"), ((A,), "s1", "30 d")], [((A,), "s1", "30 d"), ((A,), "s1", "1 h")], ["30 d", "1 h"]),
    ],
)
def test_an_operator_goes_on_from_what_its_own_sinks_have_had(
    old: list[tuple[tuple[StateField, ...], str, str]],
    new: list[tuple[tuple[StateField, ...], str, str]],
    taken: list[str | None],
) -> None:
    found = [line for line in migration(of_sinks(*old), of_sinks(*new)).operators if line.new is not None]
    told = [line.old and {*line.old.sinks, line.old.unmeasured_properties} for line in found]
    assert all(each is None if name is None else name in (each or ()) for each, name in zip(told, taken, strict=True))


def test_sources_of_one_table_go_on_by_their_ids_alone() -> None:
    def sources(*ids: str) -> ExecGraph:
        return ExecGraph((), tuple(StateSpec(StateKind.POSITIONS, "t", id, meaning="t") for id in ids))

    same = migration(sources("a", "b"), sources("b", "a"))
    assert [(line.effect, line.old and line.old.id) for line in same.operators] == [
        (RestoreEffect.RIGHT, "b"),
        (RestoreEffect.RIGHT, "a"),
    ]
    for old, new in (
        (sources("a"), sources("a", "b")),
        (sources("a", "b"), sources("a")),
        (sources("a", "b"), sources("a", "c")),
    ):
        assert migration(old, new).refused


def test_a_key_that_may_be_null_gets_no_more_digits_than_a_word_has() -> None:
    def key(type: str) -> list[StateField]:
        return [StateField(type, "d", "d")]

    assert key_places(key("DECIMAL(10, 2) NOT NULL"), key("DECIMAL(20, 2) NOT NULL")) == (0,)
    assert "may be NULL" in str(key_places(key("DECIMAL(10, 2)"), key("DECIMAL(20, 2)")))
    assert key_places(key("DECIMAL(10, 2)"), key("DECIMAL(12, 2)")) == (0,)
