from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.naming import within
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason


def _target(difference: Difference, change: Change) -> str | None:
    """The sink whose target a difference changes, if it does: name, connector or WITH."""
    if difference.part == "sink":
        return str(difference.after)
    place, _, rest = difference.key.partition("/")
    table, _, part = rest.rpartition("/")
    target = place == "table" and part in ("connector", "options") and change.pipelines_into(table)
    return table if target else None


def items(change: Change) -> list[str]:
    """What counts as one item each.

    An item is a changed metric set, a changed sink target, or a changed filter that reaches state.
    """
    # Two operators of one query may be called alike, and are two items all the same.
    found: dict[tuple[str, str], str] = {}
    for pair in change.operators:
        if pair.fates is not None and pair.fates.changed:
            found["metrics", pair.path] = f"the metrics of {within(pair)}"
        if pair.parts & {"filters", "window filters"}:
            found["condition", pair.path] = f"a condition below {within(pair)}"
    for difference in change.differences:
        target = _target(difference, change)
        if target is not None:
            found["sink", target] = f"sink {target}"
    return list(found.values())


def find(change: Change) -> Iterable[RuleMatch]:
    found = items(change)
    if len(found) > 1:
        yield RuleMatch(f"{len(found)} things changed at once: {', '.join(found)}")


SINK = "CREATE TABLE {0} (customer STRING, total BIGINT) WITH ('connector' = 'print');\nINSERT INTO {0}\n"
RULE = Rule(
    code="several-changes",
    title="Several changes at once",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(
            Outcome.UNKNOWN, Basis.DOCUMENT, "Overview: more than one item changed at once", Reason.SEVERAL_CHANGES
        ),
        # Open-source Flink judges each difference by itself; several add nothing.
        "flink": inferred(Outcome.COMPATIBLE, "each change is judged by itself"),
    },
    rationale="The vendor's check gives up where metrics, sinks and filters change together, unless one of them is "
    "incompatible.",
    example=Example(
        SINK.format("totals") + windowed("customer, SUM(amount), MAX(item)"),
        SINK.format("sums") + windowed("customer, SUM(amount), MIN(item)"),
    ),
    find=find,
    not_applicable=("flink",),
)
