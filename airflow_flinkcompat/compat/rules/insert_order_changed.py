from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    Output,
    operators,
    segments,
)
from airflow_flinkcompat.plan.program import Program

APART = {"flink": inferred(Outcome.UNKNOWN, "each INSERT outside of a statement set is a job of its own")}
STATELESS = {"flink": inferred(Outcome.UNKNOWN, "only queries that keep state were reordered across a restore")}
SWAPPED = {
    "flink": measured(
        Outcome.INCOMPATIBLE,
        "ms-two-sources-reorder",
        "inserts-reordered-equal-shape",
        consequence=Consequence.SILENTLY_WRONG,
    )
}
SHARED = {"flink": measured(Outcome.COMPATIBLE, "inserts-view-readers-reordered", note="all read one operator")}
UNSURE = {"flink": inferred(Outcome.UNKNOWN, "readers of one operator changed places only in front of print sinks")}


def _shape(output: Output, program: Program) -> tuple[object, ...]:
    """What a restore compares of the operators of a query: their topology and their layout."""
    kept = [
        (flink.chain(o, program), flink.layout(o)) if isinstance(o, AggregateOperator) else o.kind
        for o in operators(output)
    ]
    return (*kept, *(bool(segment.filters) for segment in segments(output)))


def on_flink(change: Change) -> Mapping[str, Verdict]:
    """Operators of the same shape take each other's state and positions without a word; others do not fit."""
    sets = {pair.new_pipeline.statement_set for pair in change.pipelines}
    if None in sets or len(sets) > 1:
        return APART
    first = change.pipelines[0]
    if not any(pair.stateful for pair in change.pipelines):
        return STATELESS
    if all(pair.old.segment.origin == pair.new.segment.origin == first.new.segment.origin for pair in change.pipelines):
        return SHARED if not any(sinks.stays(pair) for pair in change.pipelines) else UNSURE
    return SWAPPED if len({_shape(pair.new, change.programs[1]) for pair in change.pipelines}) == 1 else {}


def find(change: Change) -> Iterable[RuleMatch]:
    claims = change.claim("insert order")
    if claims:
        old, new = (
            ", ".join(pair.sink or "a bare SELECT" for pair in pairs)
            for pairs in (change.pipelines, sorted(change.pipelines, key=change.position))
        )
        yield RuleMatch("the queries stand in another order", claims, old, new, verdicts=on_flink(change))


SINKS = (
    "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
    "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
)
SET = SINKS + "EXECUTE STATEMENT SET BEGIN\n{0}\n{1}\nEND;"
RAW = "INSERT INTO raw SELECT customer FROM orders;"
TOTALS = "INSERT INTO totals\n" + windowed("customer, SUM(amount)")
RULE = Rule(
    code="insert-order-changed",
    title="Queries changed places in the script",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "statement order inside a set (readings)"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "ms-reorder-stateless",
            "inserts-reordered-stateless",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="Open-source Flink numbers operators as it meets them: reordered queries take each other's state and "
    "source positions where they look alike, and find no state where they do not.",
    example=Example(SET.format(RAW, TOTALS), SET.format(TOTALS, RAW)),
    find=find,
)
