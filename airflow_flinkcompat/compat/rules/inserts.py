"""Rules about the INSERT statements of a script and their statement sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import format_query
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, TableApiCover, windowed
from airflow_flinkcompat.compat.rules.sinks import sink_state_checked
from airflow_flinkcompat.compat.verdict import (
    UNCHANGED,
    Verdict,
    documented,
    expected,
    inferred,
    refused_at_submit,
    right,
    unknown,
    wrong,
)
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, operators, segments

TABLES_TOO = documented(
    Outcome.UNKNOWN, "Overview: a sink deleted and a temporary table changed in one edit", Reason.SEVERAL_CHANGES
)
STATEFUL = documented(Outcome.INCOMPATIBLE, "Overview; Sink table page (read in part): a query with new state")
SEVERAL_SETS = unknown("measured only within one statement set that contains all queries")
REPLACED = unknown("jobs were added and removed: a new job may be intended to resume from the state of a removed job")
OWN_JOB = inferred(Outcome.COMPATIBLE, "each INSERT outside a statement set is a separate job", ids=UNCHANGED)


def _is_one_statement_set(change: Change) -> bool:
    """True if on each side one statement set contains all queries."""
    return all(
        program.pipelines and {pipeline.statement_set for pipeline in program.pipelines} == {0}
        for program in change.programs
    )


def _judge_insert(own: bool, change: Change) -> Verdict | None:
    """Verdict on an added or removed query; None if both sides are one statement set."""
    if own:
        return REPLACED if change.removed and change.added else OWN_JOB
    return None if _is_one_statement_set(change) else SEVERAL_SETS


RAW_AND_BIG = (
    "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
    "CREATE TABLE big (customer STRING) WITH ('connector' = 'print');\n"
)
BOTH = (
    "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\n"
    "INSERT INTO big SELECT customer FROM orders WHERE amount > 9;\nEND;"
)
ONE = "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\nEND;"


@Rule(
    code="insert-added-or-removed",
    title="A query was added to or deleted from the script",
    vvr=documented(Outcome.COMPATIBLE, "Sink table page (read in part): a deleted sink, an added stateless sink"),
    flink=refused_at_submit("x-stmtset-add-unrelated-last", "x-stmtset-remove"),
    rationale=(
        "An added query changes the topology of the whole job. Outside a statement set, each query is a separate job. "
        "An added query then starts without state, and a removed query does not affect the other jobs."
    ),
    example=Example(RAW_AND_BIG + BOTH, RAW_AND_BIG + ONE),
    parts=("inserts",),
    case_dependent=("vvr",),
)
def insert_added_or_removed(change: Change) -> Iterable[RuleMatch]:
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
        """Create the match; ``note`` is shown for a separate job that certainly replaces no other job."""
        own = own and bool(change.pipelines)
        return RuleMatch(
            message,
            claims,
            gone.sink if gone else "",
            come.sink if come else "",
            before_span=gone.span if gone else None,
            after_span=come.span if come else None,
            verdicts={"vvr": on_vvr, "flink": _judge_insert(own, change)},
            notes={"flink": note} if own and not (change.removed and change.added) else {},
        )

    # If VVR also checks sinks, an added or removed sink is a stateful operator.
    checked = sink_state_checked(change)
    for output, own in zip(change.removed, change.own_jobs[0], strict=True):
        note = ": the job is not restarted, and its state stays unused"
        on_vvr = TABLES_TOO if declared else checked
        yield match(f"{format_query(output.sink)} was removed", note, on_vvr, own, gone=output)
    for output, own in zip(change.added, change.own_jobs[1], strict=True):
        stateful = bool(operators(output))
        said = f"{format_query(output.sink, 'a')} with{'' if stateful else 'out'} state is new"
        note = ": the query is a new job that starts without state"
        yield match(said, note, STATEFUL if stateful else checked, own, come=output)


APART = {"flink": unknown("each INSERT outside a statement set is a separate job")}
STATELESS = {"flink": unknown("reordering was measured across a restore only for queries that keep state")}
SWAPPED = {"flink": wrong("ms-two-sources-reorder", "inserts-reordered-equal-shape")}
SHARED = {"flink": right("inserts-view-readers-reordered", note="all queries read one operator")}
UNSURE = {"flink": unknown("for queries that read one operator, the order was measured only with print sinks")}


def _shape(output: Output) -> tuple[object, ...]:
    """The kinds of a query's operators, with the types and functions that determine their state layout."""
    kept = [
        (each.kind, each.windowed, each.key_types, each.argument_types, [call.function for call in each.aggregates])
        if isinstance(each, AggregateOperator)
        else each.kind
        for each in operators(output)
    ]
    return (*kept, *(bool(segment.filters) for segment in segments(output)))


def judge_order(change: Change) -> Mapping[str, Verdict]:
    """Verdict on reordered queries; operators with equal layouts silently restore each other's state."""
    sets = {pair.new_pipeline.statement_set for pair in change.pipelines}
    if None in sets or len(sets) > 1:
        return APART
    first = change.pipelines[0]
    if not any(pair.stateful for pair in change.pipelines):
        return STATELESS
    if all(pair.old.segment.origin == pair.new.segment.origin == first.new.segment.origin for pair in change.pipelines):
        return SHARED if not any(sinks.stays(pair) for pair in change.pipelines) else UNSURE
    return SWAPPED if all(_shape(pair.new) == _shape(first.new) for pair in change.pipelines) else {}


RAW_AND_TOTALS = (
    "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
    "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
)
ORDERED_SET = RAW_AND_TOTALS + "EXECUTE STATEMENT SET BEGIN\n{0}\n{1}\nEND;"
RAW = "INSERT INTO raw SELECT customer FROM orders;"
TOTALS = "INSERT INTO totals\n" + windowed("customer, SUM(amount)")


@Rule(
    code="insert-order-changed",
    title="Queries were reordered in the script",
    vvr=inferred(Outcome.COMPATIBLE, "the order of statements in a set does not matter, by reading the documentation"),
    flink=refused_at_submit("ms-reorder-stateless", "inserts-reordered-stateless"),
    rationale=(
        "Open-source Flink numbers operators in the order of the script. If their operators have equal layouts, "
        "reordered queries restore each other's state and source positions. Otherwise, they find no state."
    ),
    example=Example(ORDERED_SET.format(RAW, TOTALS), ORDERED_SET.format(TOTALS, RAW)),
    parts=("insert order",),
)
def insert_order_changed(change: Change) -> Iterable[RuleMatch]:
    claims = change.claim("insert order")
    if claims:
        old, new = (
            ", ".join(pair.sink or "a bare SELECT" for pair in pairs)
            for pairs in (change.pipelines, sorted(change.pipelines, key=change.position))
        )
        yield RuleMatch("the queries are in a different order", claims, old, new, verdicts=judge_order(change))


SEVERAL = dict.fromkeys(("vvr", "flink"), unknown("only a set around a single INSERT was measured"))
ONE_SINK = "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"


@Rule(
    code="statement-set-changed",
    title="A STATEMENT SET around the queries",
    vvr=inferred(Outcome.COMPATIBLE, "the queries stay the same"),
    flink=right("x-stmtset-wrap"),
    rationale="A statement set around one query plans the same job.",
    example=Example(
        ONE_SINK + "INSERT INTO raw SELECT customer FROM orders;",
        ONE_SINK + "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\nEND;",
    ),
    parts=("statement set",),
    case_dependent=("vvr", "flink"),
    table_api_cover=TableApiCover.ONE_QUERY,
)
def statement_set_changed(change: Change) -> Iterable[RuleMatch]:
    claims = change.claim("statement set")
    if claims:
        single = all(len(program.pipelines) == 1 for program in change.programs)
        yield RuleMatch(
            "a STATEMENT SET was added around the queries or removed", claims, verdicts={} if single else SEVERAL
        )


SHARED_SINKS = (
    "CREATE TABLE raw (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
    "CREATE TABLE big (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
)
SHARED_SET = "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw\n{0}\nINSERT INTO big\n{1}\nEND;"
TOTAL = windowed("customer, SUM(amount)")


@Rule(
    code="shared-operator-changed",
    title="A shared operator was split, or several were merged",
    vvr=unknown("no page documents which query takes over shared state"),
    flink=expected("equal aggregations are planned once; Flink refused every measured change of topology"),
    rationale=(
        "Queries in one statement set share one operator for an equal computation. If one query changes, the job has "
        "an additional operator. It is unknown which operator then gets the state."
    ),
    example=Example(
        SHARED_SINKS + SHARED_SET.format(TOTAL, TOTAL),
        SHARED_SINKS + SHARED_SET.format(TOTAL, windowed("customer, SUM(amount) + COUNT(item)")),
    ),
    parts=("sharing",),
)
def shared_operator_changed(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("sharing"):
        yield difference.match(
            "an operator that several queries of the job share was split, or several operators were merged into one",
            difference.before,
            difference.after,
        )
