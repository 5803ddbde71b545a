from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink import lookups, sinks, stateless
from airflow_flinkcompat.compat.engines.flink.lookups import MAY_WAIT, LookupMode
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    combined,
    documented,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import gathered_above, refused, row_types
from airflow_flinkcompat.compat.rule_builders.projections import ABOVE_WINDOWS
from airflow_flinkcompat.compat.rules.output_changed import own_functions
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.plan.expressions import Expression, Leaf
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Operator, Output, Source, operators

RESOLVED = Verdict(
    Outcome.UNKNOWN,
    Basis.DOCUMENT,
    f"Lookup join page: {lookups.STRATEGY} = TRY_RESOLVE may give it state",
    Reason.DOCUMENTED,
)
ELSEWHERE = ("source", "source hints", "query hints", "table functions")
"""Parts that rules of their own speak of: another table, hints, functions."""


SHOWN = {
    "row of input 1": "the columns that it passes on",
    "row of input 2": "the columns that are looked up",
}
WAITING = {**SHOWN, "row of input 1": "the columns that wait for an answer"}


def on_vvr(pair: OperatorPair) -> Verdict:
    if dict(pair.pipeline.new_pipeline.settings).get(lookups.STRATEGY, "").upper() == "TRY_RESOLVE":
        return RESOLVED
    if gathered_above(pair):
        return documented(Outcome.UNKNOWN, "Lookup join page: the rows that it emits may break operators after it")
    return documented(Outcome.COMPATIBLE, "Lookup join page: any change")


IN_ORDER = ("al-stateless-idle-inner", "al-stateless-idle-where", "al-stateless-idle-lookup-column")
"""Parts an asynchronous lookup was restored right with when they changed."""
SYNCHRONOUS = ("lj-key-othercol", "lj-where-add", "lj-dim-renamed")
NOT_QUEUED = frozenset({"join", "keys", "filters of input 1", "row of input 2"})
"""Parts that the queue of an asynchronous lookup does not hold: the rows that wait, as they came in."""


def on_flink(pair: OperatorPair, difference: Difference) -> Verdict:
    return stateless.settled(pair.pipeline, _on_flink(pair, difference), *stateless.LOOKUP)


def _on_flink(pair: OperatorPair, difference: Difference) -> Verdict:
    possible = lookups.possible_modes(pair) or (lookups.modes(pair),)
    found = [_in_modes(pair, difference, modes) for modes in possible]
    if len({each.outcome for each in found}) != 1:
        return unmeasured(MAY_WAIT)
    return combined(found)


def _in_modes(pair: OperatorPair, difference: Difference, modes: tuple[LookupMode, LookupMode]) -> Verdict:
    both_asynchronous = set(modes) == {LookupMode.ASYNCHRONOUS}
    if both_asynchronous and difference.part == "row of input 1" and not _same_types(pair, difference):
        return refused("al-stateless-idle-source-column", "al-stateless-pending-key", "al-group-idle-source-column")
    if gathered_above(pair):
        return wrong("lj-agg-key-lookup", "lj-agg-cond-add", "lj-agg-inner-to-left-miss", consequence=None)
    if set(modes) == {LookupMode.SYNCHRONOUS} and all(map(lookups.from_windows, (pair.old, pair.new))):
        return _above_windows(pair)
    if not all(isinstance(side.segments[0].origin, Source) for side in (pair.old, pair.new)):
        return unmeasured("only lookups from a source or a windowed aggregation are known")
    if set(modes) != {LookupMode.SYNCHRONOUS} and not both_asynchronous:
        return unmeasured(MAY_WAIT)
    if both_asynchronous and any(sum(map(lookups.is_lookup, operators(side))) > 1 for side in _queries(pair)):
        return unmeasured("rows that wait for another lookup may hold columns of this one")
    queued = difference.part not in NOT_QUEUED or _computes_keys(pair) or not lookups.computes_alike(pair)
    if both_asynchronous and queued:
        return unmeasured("rows that wait for an answer of an asynchronous lookup would be read otherwise")
    moved = sinks.stays(pair.pipeline) if pair.pipeline.old.sink or pair.pipeline.new.sink else ""
    if moved:
        return unmeasured(moved)
    return right(*(IN_ORDER if both_asynchronous else SYNCHRONOUS))


def _above_windows(pair: OperatorPair) -> Verdict:
    """A lookup that keeps nothing between an aggregation, the last operator with state, and a sink that keeps nothing.

    The ids of what stands below follow from nothing above but that one operator reads it in the same task.
    """
    if moved := sinks.stays(pair.pipeline):
        return unmeasured(moved)
    if own := own_functions(part for side in (pair.old, pair.new) for part in _asked(side)):
        return unmeasured(f"a lookup by {', '.join(own)} was not measured")
    return ABOVE_WINDOWS


def _asked(operator: Operator) -> Iterator[Expression]:
    """What is computed in front of a lookup, and in it."""
    if isinstance(operator, JoinOperator):
        yield from (*operator.rows[0], *operator.conditions, *(side for key in operator.keys for side in key))
        yield from (part for segment in operator.segments for part in segment.filters)


def _queries(pair: OperatorPair) -> tuple[Output, Output]:
    return pair.pipeline.old, pair.pipeline.new


def _computes_keys(pair: OperatorPair) -> bool:
    """Whether a key is computed of the rows that come in: it is then one more column of what waits."""
    sides = (side for side in (pair.old, pair.new) if isinstance(side, JoinOperator))
    return any(not isinstance(key, Leaf) for side in sides for key, _ in side.keys)


def _same_types(pair: OperatorPair, difference: Difference) -> bool:
    old, new = row_types(pair, difference)
    return old == new


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(isinstance(s, JoinOperator) and s.form is JoinForm.LOOKUP for s in (pair.old, pair.new)):
        return
    synchronous = set(lookups.modes(pair)) == {LookupMode.SYNCHRONOUS}
    stored = "; operators above it have stored results of the old lookup" if gathered_above(pair) else ""
    shown = SHOWN if synchronous else WAITING
    for difference in pair.differences:
        if difference.part.partition(" of input ")[0] not in ELSEWHERE:
            yield RuleMatch(
                f"lookup join: {shown.get(difference.part, f'its {difference.part}')} changed"
                f"{stored if synchronous else ''}",
                (difference.key,),
                format_value(difference.before),
                format_value(difference.after),
                verdicts={"vvr": on_vvr(pair), "flink": on_flink(pair, difference)},
            )


TABLE = "CREATE TABLE names (customer STRING, name STRING) WITH ('connector' = 'jdbc');\n"
SINK = "CREATE TABLE named (customer STRING, name STRING) WITH ('connector' = 'print');\nINSERT INTO named\n"
JOIN = (
    TABLE
    + SINK
    + (
        "SELECT orders.customer, names.name\nFROM orders {0} names FOR SYSTEM_TIME AS OF orders.arrived\n"
        "ON orders.customer = names.customer;"
    )
)
RULE = Rule(
    code="lookup-join-changed",
    title="A lookup join changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Lookup join page: any change"),
        "flink": measured(Outcome.COMPATIBLE, *SYNCHRONOUS),
    },
    rationale="A synchronous lookup asks another system and keeps nothing. What reads it may: an aggregation above "
    "continues from values that were looked up in the old way. An asynchronous lookup keeps the rows that wait for an "
    "answer, as they come in: Flink refuses to restore them into rows of other columns or types, also when none waits. "
    "It is asynchronous by the option lookup.async, by the LOOKUP hint, or as its connector decides.",
    example=Example(JOIN.format("JOIN"), JOIN.format("LEFT JOIN")),
    find=find,
    case_dependent=("vvr", "flink"),
)
