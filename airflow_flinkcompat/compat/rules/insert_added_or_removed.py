from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.rule import (
    UNCHANGED,
    Example,
    Hit,
    Rule,
    Scope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rules.sink_changed import sink_state_checked
from airflow_flinkcompat.plan.operators import Output, operators

TABLES_TOO = Verdict(
    Outcome.UNKNOWN,
    Basis.DOCUMENT,
    "Overview: a sink deleted and a temporary table changed in one edit",
    Reason.SEVERAL_CHANGES,
)


STATEFUL = documented(Outcome.INCOMPATIBLE, "Overview; Sink table page (read in part): a query that brings new state")
SEVERAL_SETS = inferred(Outcome.UNKNOWN, "measured within one statement set that holds every query")
REPLACED = inferred(Outcome.UNKNOWN, "jobs came and went: one of them may be meant to go on from the other's state")
OWN_JOB = inferred(Outcome.COMPATIBLE, "each INSERT outside of a statement set is a job of its own", ids=UNCHANGED)


def _in_a_set(change: Change) -> bool:
    """Whether every query stands in one statement set, which is one job."""
    return all(
        program.pipelines and {pipeline.statement_set for pipeline in program.pipelines} == {0}
        for program in change.programs
    )


def _on_flink(output: Output, change: Change) -> Mapping[str, Verdict]:
    """What comes or goes as a job of its own leaves the other jobs alone; a query of a set is refused as measured."""
    if any(id(output) in side for side in change.own_jobs) and change.pipelines:
        return {"flink": REPLACED if change.removed and change.added else OWN_JOB}
    return {} if _in_a_set(change) else {"flink": SEVERAL_SETS}


def find(change: Change) -> Iterable[Hit]:
    names = {output.sink for output in (*change.removed, *change.added)}
    names -= frozenset.intersection(*change.tables_of_sides)
    declared = [d for d in change.script_differences if d.key.startswith("table/")]
    claims = change.claim("inserts") + tuple(
        d.key for d in declared if d.part == "declared" and d.key.split("/")[1] in names
    )
    # Where sinks are checked too, one that comes or goes is an operator with state.
    checked = sink_state_checked(change)
    on_vvr = {} if checked is None else {"vvr": checked}
    for output in change.removed:
        on_flink = _on_flink(output, change)
        note = ": its job is started no more, and what it stored is left behind" if _own(on_flink) else ""
        verdicts = {**on_vvr, **({"vvr": TABLES_TOO} if declared else {}), **on_flink}
        yield Hit(
            f"the query into {output.sink} is gone{note if change.engine == 'flink' else ''}",
            claims,
            output.sink,
            "",
            output.span,
            verdicts=verdicts,
        )
    for output in change.added:
        stateful = bool(operators(output))
        on_flink = _on_flink(output, change)
        note = ": it is a new job, which starts without state" if _own(on_flink) else ""
        yield Hit(
            f"a query into {output.sink} with{'' if stateful else 'out'} state is new"
            f"{note if change.engine == 'flink' else ''}",
            claims,
            "",
            output.sink,
            after_span=output.span,
            verdicts={**on_vvr, **({"vvr": STATEFUL} if stateful else {}), **on_flink},
        )


def _own(verdicts: Mapping[str, Verdict]) -> bool:
    return verdicts.get("flink") is OWN_JOB


SINKS = (
    "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
    "CREATE TABLE big (customer STRING) WITH ('connector' = 'print');\n"
)
BOTH = (
    "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\n"
    "INSERT INTO big SELECT customer FROM orders WHERE amount > 9;\nEND;"
)
ONE = "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\nEND;"
RULE = Rule(
    code="insert-added-or-removed",
    title="A query was added to or deleted from the script",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Sink table page (read in part): a deleted sink, an added stateless one"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "x-stmtset-add-unrelated-last",
            "x-stmtset-remove",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    why="One more query changes the topology of the whole job. Outside of a statement set each query is a job of its "
    "own: one that comes starts without state, one that goes leaves the others alone.",
    example=Example(SINKS + BOTH, SINKS + ONE),
    find=find,
    by_case=("vvr",),
)
