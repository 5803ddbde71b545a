import re
from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.engines.flink.sinks import Materialized, materialized
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, JoinForm

PLACES = ("query hints", "source hints", "sink hints")
UNMEASURED = inferred(Outcome.UNKNOWN, "this hint was not measured here")
TTL = measured(Outcome.COMPATIBLE, "rj-ttl-hint", note="STATE_TTL put on a regular join")
GROUPED = ("ps-group-hint-ttl-add", "ps-group-hint-ttl-change")
GROUPED_TTL = measured(Outcome.COMPATIBLE, *GROUPED, note="STATE_TTL put on a group aggregation, or of another length")
GROUPED_TTL_GONE = inferred(
    Outcome.COMPATIBLE,
    "a time to live is taken from a group aggregation, as by its setting",
    ids=(*GROUPED, "ga-ttl-unset"),
)
RETRIED = measured(Outcome.COMPATIBLE, "lj-agg-retry-hint")
RETRY = {"table", "retry-predicate", "retry-strategy", "fixed-delay", "max-attempts"}
OPTION = re.compile(r"([\w-]+)='")
CONFLICT = "ON CONFLICT"
DROPPED = measured(Outcome.COMPATIBLE, "sm-clause-dropped", note="rows are deduplicated without the clause")
OTHER_STRATEGY = measured(
    Outcome.INCOMPATIBLE,
    "sm-conflict-error-uniq",
    note="the stored rows are ignored",
    consequence=Consequence.SILENTLY_WRONG,
)


def _hints(value: tuple[tuple[str, str], ...] | None) -> set[tuple[str, str]]:
    return set(value or ())


def _changed(difference: Difference) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The hints that go and those that come."""
    old, new = _hints(difference.before), _hints(difference.after)
    return old - new, new - old


def on_flink(difference: Difference, kinds: set[str], kept_once_more: bool) -> Verdict:
    """A time to live on a join or aggregation, retries of a lookup, and a sink's conflict clause were measured.

    ``kinds`` are those of the query's operators; ``kept_once_more``: its results are, in front of the sink.
    """
    gone, come = _changed(difference)
    names = {name for name, _ in (*gone, *come)}
    if names == {"STATE_TTL"} and kinds == {JoinForm.REGULAR} and not gone:
        return TTL
    if names == {"STATE_TTL"} and kinds == {AggregateKind.GROUP} and not kept_once_more:
        return GROUPED_TTL if come else GROUPED_TTL_GONE
    if names == {"LOOKUP"} and not gone and {key for _, text in come for key in OPTION.findall(text)} <= RETRY:
        return RETRIED
    if names == {CONFLICT}:
        if not come and {strategy.upper() for _, strategy in gone} == {"DEDUPLICATE"}:
            return DROPPED
        return OTHER_STRATEGY if kept_once_more else UNMEASURED
    return UNMEASURED


def _places(change: Change) -> Iterator[tuple[Difference, set[str], bool]]:
    for pipeline in change.pipelines:
        kept = Materialized.YES in materialized(pipeline)
        sides = [side for pair in pipeline.operators for side in (pair.old, pair.new)]
        kinds = {str(side.kind) for side in sides}
        if any(call.distinct for side in sides if isinstance(side, AggregateOperator) for call in side.aggregates):
            kinds.add("DISTINCT")  # what they keep besides was not restored across a hint
        below = (difference for pair in pipeline.operators for difference in pair.differences)
        yield from ((difference, kinds, kept) for difference in (*pipeline.differences, *below))


def find(change: Change) -> Iterable[RuleMatch]:
    for difference, kinds, kept in _places(change):
        if difference.part.startswith(PLACES):
            yield RuleMatch(
                f"the {difference.part} changed",
                (difference.key,),
                format_value(difference.before),
                format_value(difference.after),
                difference.before_span,
                difference.after_span,
                verdicts={"flink": on_flink(difference, kinds, kept)},
            )


RULE = Rule(
    code="hint-changed",
    title="A hint changed",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "hints and dynamic table options are on no page"),
        "flink": inferred(Outcome.UNKNOWN, "few hints were measured"),
    },
    rationale="A hint may set how long state lives, what a source reads, or which operators are planned.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("/*+ STATE_TTL('orders' = '1d') */ customer, SUM(amount)"),
    ),
    find=find,
)
