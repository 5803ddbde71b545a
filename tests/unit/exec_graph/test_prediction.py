"""What follows from two answers of Flink's planner."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, refuses_statement
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.prediction import predicted
from airflow_flinkcompat.sql import parse_script

TEXT = "CREATE TABLE t (a INT) WITH ('connector' = 'x');\n  INSERT INTO t SELECT b\nFROM t"


def operator(id: str, keeps: str = "yes", **other: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"id": id, "name": f"GroupAggregate[{len(id)}]", "kind": "K", "keeps": keeps}
    made |= {
        "basis": "opened",
        "component": "",
        "max_parallelism": -1,
        "uid": None,
        "states": [{"name": "acc", "options": {}}],
    }
    return made | other


def script(
    *operators: dict[str, Any], restores: dict[str, Any] | None = None, text: str = TEXT, **other: Any
) -> PlannedScript:
    jobs = [{"operators": operators, "plan": None, "restores": restores or {}, "savepoint": ""}]
    return PlannedScript.of({"flink": "2.3.0", "jobs": jobs, **other}, parse_script(text).statements)


def refused(*chain: tuple[str, str]) -> PlannedScript:
    exceptions = [{"class": name, "message": message} for name, message in chain]
    return script(refusal=exceptions, statement=1)


def test_the_same_operators_are_not_refused() -> None:
    said = predicted(script(operator("a")), script(operator("a"), restores={"a": []}))
    assert said.refusal is None
    assert not said.is_uncertain


def test_state_whose_operator_is_gone_is_refused_at_submit() -> None:
    said = predicted(script(operator("a"), operator("s", "no")), script(operator("b")))
    assert said.refusal is not None
    assert (said.refusal.effect, said.refusal.operator) == (RestoreEffect.REFUSED_AT_SUBMIT, "GroupAggregate")


def test_an_operator_without_state_may_go() -> None:
    assert predicted(script(operator("a"), operator("s", "no")), script(operator("a"))).refusal is None


@pytest.mark.parametrize(
    ("kind", "uncertain"),
    [("org.apache.flink.connector.file.table.stream.StreamingFileWriter", False), ("com.example.Operator", True)],
)
def test_the_file_sink_of_flink_keeps_no_columns(kind: str, uncertain: bool) -> None:
    started = operator("a", "may", kind=kind, basis="class")
    del started["states"]
    assert predicted(script(started), script(started)).is_uncertain is uncertain


@pytest.mark.parametrize(
    ("before", "after", "refuses"), [(-1, 128, False), (-1, 4, True), (4, 4, False), (4, -1, False)]
)
def test_the_maximum_parallelism_of_state_is_fixed(before: int, after: int, refuses: bool) -> None:
    old, new = (script(operator("a", max_parallelism=each)) for each in (before, after))
    assert (predicted(old, new).restore.worst_effect is RestoreEffect.REFUSED_AT_SUBMIT) == refuses


def test_what_the_dry_restore_refuses_is_refused_at_restore() -> None:
    chain = [{"class": "org.apache.flink.util.StateMigrationException", "message": "must not be incompatible"}]
    said = predicted(script(operator("a")), script(operator("a"), restores={"a": chain}))
    assert said.refusal is not None
    assert said.refusal.effect is RestoreEffect.REFUSED_AT_RESTORE
    assert (
        said.refusal.message
        == "the stored state of GroupAggregate has a different layout, which Flink does not migrate"
    )


def test_state_that_nobody_reads_and_state_that_begins_empty_leave_equal_plans_uncertain() -> None:
    other = [{"name": "rows", "options": {}}]
    said = predicted(script(operator("a")), script(operator("a", states=other)))
    assert said.refusal is None
    assert [(each.effect, each.message) for each in said.restore.states] == [
        (RestoreEffect.DROPPED, "GroupAggregate: state acc is no longer read"),
        (RestoreEffect.EMPTY, "GroupAggregate: state rows begins empty"),
    ]
    assert said.is_uncertain


def test_uids_of_a_counter_are_a_doubt() -> None:
    assert "counter" in predicted(script(operator("a", uid="12_calc")), script(operator("b"))).doubt


def test_a_lookup_by_a_stand_in_is_named() -> None:
    stand_in: dict[str, Any] = {"stand_ins": {"c.d.t": "redis"}, "lookups": ["c.d.t"]}
    said = predicted(script(operator("a")), script(operator("a"), **stand_in))
    assert (said.doubt, said.lookups, said.stubs, said.stand_ins) == ("", ("c.d.t",), ("c.d.t",), ("redis",))


def test_operators_are_alike_whatever_number_a_generated_class_has() -> None:
    one, other, another = (script(operator("a", kind=each)) for each in ("Calc$3", "Calc$17", "AsyncCalc$3"))
    assert predicted(one, other).alike
    assert not predicted(one, another).alike


@pytest.mark.parametrize(
    ("name", "keeps", "bare"), [("Sink: t", "no", True), ("t: Writer", "yes", False), ("t: Writer", "no", True)]
)
def test_a_sink_is_bare_where_none_of_its_operators_keeps_anything(name: str, keeps: str, bare: bool) -> None:
    made = script(operator("a", keeps, name=name))
    assert predicted(made, made).bare_sinks == (("t",) if bare else ())
    stand_in = script(operator("a", keeps, name=name), stand_ins={"c.d.t": "redis"})
    assert predicted(made, stand_in).bare_sinks == ()


@pytest.mark.parametrize(
    ("statement", "catalogs", "uncertain"),
    [
        ("DROP TABLE t", {}, False),
        ("DROP TABLE t", {"lake": "iceberg"}, True),
        ("SHOW TABLES", {"lake": "iceberg"}, False),
        ("TRUNCATE TABLE t", {}, True),
    ],
)
def test_a_statement_whose_effect_lasts_leaves_equal_plans_uncertain(
    statement: str, catalogs: dict[str, str], uncertain: bool
) -> None:
    lasting = script(operator("a"), text=statement, lasting=[0], catalogs=catalogs)
    assert not predicted(lasting, lasting).is_uncertain
    assert predicted(script(operator("a")), lasting).is_uncertain is uncertain


def test_a_refusal_stands_at_its_place_in_the_script() -> None:
    found = refused(
        ("org.apache.flink.table.api.ValidationException", "SQL validation failed. From line 2, column 6 to line 2"),
        ("org.apache.calcite.runtime.CalciteContextException", "Object gone. Was expecting one of:\n  X"),
    ).refusal
    assert found is not None
    assert (found.message, found.conclusive) == ("Object gone.", True)
    assert found.place is not None
    assert (found.place.line, found.place.column) == (3, 6)
    first = refused(("ValidationException", "At line 1, column 3: bad")).refusal
    assert first is not None
    assert first.place is not None
    assert (first.place.line, first.place.column) == (2, 5)


@pytest.mark.parametrize(
    "exception",
    [
        ("ValidationException", "Object 'x' not found"),
        ("ValidationException", "No match found for function signature MINE(<NUMERIC>)"),
        ("java.lang.ClassNotFoundException", "com.acme.Mine"),
        ("java.net.ConnectException", "Connection refused"),
        ("java.lang.NullPointerException", "null"),
        ("java.lang.NumberFormatException", 'For input string: "${conn.db.port}"'),
    ],
)
def test_what_is_missing_here_is_no_refusal(exception: tuple[str, str]) -> None:
    found = refused(exception).refusal
    assert found is not None
    assert not found.conclusive


def test_ids_from_a_counter_matter_to_operators_that_keep_state_alone() -> None:
    function = operator("f", "no", node=1, uid="11_process")
    for sink, doubted in (("no", False), ("yes", True)):
        job = script(function, operator("s", sink, node=2, inputs=[1]))
        assert bool(predicted(job, job).doubt) is doubted
    assert not predicted(script(operator("a", node=1), function), script(operator("a", node=1), function)).doubt


@pytest.mark.parametrize(("catalogs", "conclusive"), [({}, True), ({"c": "paimon"}, False)])
def test_a_database_that_exists_in_a_catalog_in_memory_is_no_refusal(
    catalogs: dict[str, str], conclusive: bool
) -> None:
    chain = [{"class": "a.DatabaseAlreadyExistException", "message": "Database d already exists in Catalog c."}]
    found = script(refusal=chain, statement=1, catalogs=catalogs).refusal
    assert found is not None
    assert found.conclusive is conclusive


def chained(*after: dict[str, Any]) -> tuple[str, ...]:
    """What is unproven where the old job has a task of a bounded source and a sink, and one of an unbounded source."""
    running = (operator("s", node=1, chain=0, bounded=False), operator("g", node=2, chain=1, inputs=[1]))
    ending = (operator("b", node=3, chain=2, bounded=True), operator("p", "no", node=4, chain=2, inputs=[3]))
    return predicted(script(*running, *ending), script(*running, *after)).unproven


def test_a_task_that_may_have_finished_takes_no_other_operator() -> None:
    bounded = operator("b", node=3, chain=2, bounded=True)
    enforcer, sink = operator("e", "no", node=4, chain=2, inputs=[3]), operator("q", "no", node=5, chain=2, inputs=[4])
    (why,) = chained(bounded, enforcer, sink)  # Flink: "which contain mixed operator finished state"
    assert "may have finished" in why
    (why,) = chained(bounded, operator("p", "no", node=4, chain=3, inputs=[3, 1]))
    assert "may have finished" in why  # it reads an operator that has not
    assert chained(bounded, operator("p", "no", node=4, chain=2, inputs=[3])) == ()
    assert chained(bounded, operator("p", "no", node=4, chain=3, inputs=[3])) == ()


def test_a_job_with_one_source_finishes_with_it() -> None:
    source = operator("b", node=1, chain=0, bounded=True)
    more = operator("e", "no", node=2, chain=0, inputs=[1])
    assert predicted(script(source), script(source, more)).unproven == ()


CONFLICT = {"class": "TableException", "message": "specify an ON CONFLICT clause"}
PARSER = {"class": "org.apache.flink.sql.parser.SqlParserException", "message": 'Encountered "value"'}
ABSENT = {"class": "ValidationException", "message": "Object 't' not found"}


@pytest.mark.parametrize(
    ("before", "after", "stand_ins", "refuses"),
    [
        ([], [CONFLICT], {}, True),
        ([], [CONFLICT], {"t": "kafka"}, True),
        ([], [PARSER], {}, True),
        ([], [ABSENT], {}, False),
        ([ABSENT], [PARSER], {}, True),
        ([ABSENT], [CONFLICT], {"t": "kafka"}, False),
        ([PARSER], [PARSER], {}, False),
        ([CONFLICT], [], {}, False),
    ],
)
def test_the_new_version_refuses_a_script_that_the_old_version_accepts(
    before: list[dict[str, str]], after: list[dict[str, str]], stand_ins: dict[str, str], refuses: bool
) -> None:
    old, new = (
        script(refusal=each, stand_ins=stand_ins) if each else script(operator("a")) for each in (before, after)
    )
    said = predicted(old, new, upgrade=True)
    assert (said.refuses_script, bool(said.doubt)) == (refuses, not refuses)
    if refuses:
        assert said.restore.worst_effect is RestoreEffect.REFUSED_AT_SUBMIT
        assert predicted(old, new).doubt, "a changed script may have a fault of its own"


def test_each_operator_has_its_worst_effect_also_next_to_a_refused_one() -> None:
    chain = [{"class": "org.apache.flink.util.StateMigrationException", "message": "must not be incompatible"}]
    other = operator("d", states=[{"name": "seen", "options": {}}])
    old = script(operator("a"), operator("gone"), operator("c"), operator("d"))
    new = script(operator("a"), operator("c"), other, operator("e"), restores={"c": chain})
    effects = {each.id: each.effect for each in predicted(old, new).operators}
    assert effects == {
        "a": RestoreEffect.RIGHT,
        "gone": RestoreEffect.REFUSED_AT_SUBMIT,
        "c": RestoreEffect.REFUSED_AT_RESTORE,
        "d": RestoreEffect.DROPPED,
        "e": RestoreEffect.EMPTY,
    }


@pytest.mark.parametrize(
    ("name", "message", "whatever"),
    [
        ("o.a.f.table.api.SqlParserException", "SQL parse failed.", True),
        ("o.a.f.table.api.SqlParserException", "SQL parse failed. Encountered ${name}", False),
        ("o.a.f.table.api.TableException", "FETCH is missed, which on streaming table is not supported", True),
        ("o.a.c.sql.SqlValidatorException", "No match found for function signature DEFAULT", True),
        ("o.a.c.sql.SqlValidatorException", "No match found for function signature DEFAULTS", False),
        ("o.a.c.sql.SqlValidatorException", "Column 'a' not found in any table", False),
    ],
)
def test_some_statements_are_refused_for_any_declarations(name: str, message: str, whatever: bool) -> None:
    assert refuses_statement([{"class": name, "message": message}]) is whatever
