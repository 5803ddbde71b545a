from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.naming import into
from airflow_flinkcompat.compat.rule import (
    UNCHANGED,
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rules.sink_changed import sink_state_checked
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.plan.operators import Output, operators

TABLES_TOO = Verdict(
    Outcome.UNKNOWN,
    Basis.DOCUMENT,
    "Overview: a sink deleted and a temporary table changed in one edit",
    Reason.SEVERAL_CHANGES,
)


STATEFUL = documented(Outcome.INCOMPATIBLE, "Overview; Sink table page (read in part): a query that brings new state")
SEVERAL_SETS = inferred(Outcome.UNKNOWN, "measured within one statement set that holds every query")
REPLACED = inferred(Outcome.UNKNOWN, "jobs came and went: one of them may be meant to resume from the other's state")
OWN_JOB = inferred(Outcome.COMPATIBLE, "each INSERT outside of a statement set is a job of its own", ids=UNCHANGED)


def _in_a_set(change: Change) -> bool:
    """Whether every query stands in one statement set, which is one job."""
    return all(
        program.pipelines and {pipeline.statement_set for pipeline in program.pipelines} == {0}
        for program in change.programs
    )


def _on_flink(own: bool, change: Change) -> Verdict | None:
    """What comes or goes as a job of its own leaves the other jobs alone; a query of a set is refused as measured."""
    if own:
        return REPLACED if change.removed and change.added else OWN_JOB
    return None if _in_a_set(change) else SEVERAL_SETS


def find(change: Change) -> Iterable[RuleMatch]:
    if not (change.removed or change.added):
        return
    names = {output.sink for output in (*change.removed, *change.added)}
    names -= frozenset.intersection(*change.tables_of_sides)
    declared = [d for d in change.script_differences if d.key.startswith("table/")]
    claims = change.claim("inserts") + tuple(
        d.key for d in declared if d.part == "declared" and d.key.split("/")[1] in names
    )

    def match(
        message: str,
        note: str,
        on_vvr: Verdict | None,
        own: bool,
        *,
        gone: Output | None = None,
        come: Output | None = None,
    ) -> RuleMatch:
        """``note`` is what becomes of a job of its own that is surely no other one under a new sink."""
        own = own and bool(change.pipelines)
        verdicts = {"vvr": on_vvr, "flink": _on_flink(own, change)}
        return RuleMatch(
            message,
            claims,
            "" if gone is None else gone.sink,
            "" if come is None else come.sink,
            None if gone is None else gone.span,
            None if come is None else come.span,
            verdicts={engine: verdict for engine, verdict in verdicts.items() if verdict is not None},
            notes={"flink": note} if own and not (change.removed and change.added) else {},
        )

    # Where sinks are checked too, one that comes or goes is an operator with state.
    checked = sink_state_checked(change)
    for output, own in zip(change.removed, change.own_jobs[0], strict=True):
        note = ": its job is not started again, and its state is left unused"
        on_vvr = TABLES_TOO if declared else checked
        yield match(f"{into(output.sink)} is gone", note, on_vvr, own, gone=output)
    for output, own in zip(change.added, change.own_jobs[1], strict=True):
        stateful = bool(operators(output))
        said = f"{into(output.sink, 'a')} with{'' if stateful else 'out'} state is new"
        note = ": it is a new job, which starts without state"
        yield match(said, note, STATEFUL if stateful else checked, own, come=output)


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
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Sink table page (read in part): a deleted sink, an added stateless one"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "x-stmtset-add-unrelated-last",
            "x-stmtset-remove",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="One more query changes the topology of the whole job. Outside of a statement set each query is a job of "
    "its own: one that comes starts without state, one that goes leaves the others alone.",
    example=Example(SINKS + BOTH, SINKS + ONE),
    find=find,
    case_dependent=("vvr",),
)
