"""Rules about lookup joins and query hints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import OPTIONS, hint_options
from airflow_flinkcompat.compat.engines.flink import lookups, sinks, stateless
from airflow_flinkcompat.compat.engines.flink.lookups import MAY_WAIT, LookupMode
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import ON_CONFLICT, REQUIRED, Materializer, strategy
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch
from airflow_flinkcompat.compat.rule_builders.option_matches import judge_options
from airflow_flinkcompat.compat.rule_builders.part_rules import has_state_above, same_row_types
from airflow_flinkcompat.compat.rule_builders.projections import ABOVE_WINDOWS, own_functions
from airflow_flinkcompat.compat.rule_builders.table_options import OptionVerdict, uses_of_query
from airflow_flinkcompat.compat.verdict import Verdict, combined, documented, inferred, refused, right, unknown, wrong
from airflow_flinkcompat.connectors.facts import TableUse
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import Expression, Leaf
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    Source,
    operators,
    sources,
)

RESOLVED = documented(Outcome.UNKNOWN, f"Lookup join page: {lookups.STRATEGY} = TRY_RESOLVE may add state")
ELSEWHERE = ("source", "source hints", "query hints", "table functions")
"""Parts that separate rules judge: the table, hints and table functions."""
SHOWN = {"row of input 1": "the columns that the lookup passes on", "row of input 2": "the columns that are looked up"}
WAITING_ROW = {**SHOWN, "row of input 1": "the columns that wait for an answer"}


def lookup_join_on_vvr(pair: OperatorPair) -> Verdict:
    if dict(pair.pipeline.new_pipeline.settings).get(lookups.STRATEGY, "").upper() == "TRY_RESOLVE":
        return RESOLVED
    if has_state_above(pair):
        return documented(
            Outcome.UNKNOWN, ("Lookup join page: the output rows of a changed lookup may break downstream operators")
        )
    return documented(Outcome.COMPATIBLE, "Lookup join page: any change")


IN_ORDER = ("al-stateless-idle-inner", "al-stateless-idle-where", "al-stateless-idle-lookup-column")
"""Restores of an asynchronous lookup after a change of a part that its queue does not contain."""
SYNCHRONOUS = ("lj-key-othercol", "lj-where-add", "lj-dim-renamed")
NOT_QUEUED = frozenset({"join", "keys", "filters of input 1", "row of input 2"})
"""Parts that are not in the queue of an asynchronous lookup, which stores unchanged input rows."""


def lookup_join_on_flink(pair: OperatorPair, difference: Difference) -> Verdict:
    return stateless.settled(pair.pipeline, _judge_modes(pair, difference), *stateless.LOOKUP)


def _judge_modes(pair: OperatorPair, difference: Difference) -> Verdict:
    possible = lookups.possible_modes(pair) or (lookups.modes(pair),)
    found = [_judge_in_modes(pair, difference, modes) for modes in possible]
    if len({each.outcome for each in found}) != 1:
        return unknown(MAY_WAIT)
    return combined(found)


def _judge_in_modes(pair: OperatorPair, difference: Difference, modes: tuple[LookupMode, LookupMode]) -> Verdict:
    both_asynchronous = set(modes) == {LookupMode.ASYNCHRONOUS}
    if both_asynchronous and difference.part == "row of input 1" and not same_row_types(pair, difference):
        return refused("al-stateless-idle-source-column", "al-stateless-pending-key", "al-group-idle-source-column")
    if has_state_above(pair):
        return wrong("lj-agg-key-lookup", "lj-agg-cond-add", "lj-agg-inner-to-left-miss", consequence=None)
    if set(modes) == {LookupMode.SYNCHRONOUS} and all(map(lookups.from_windows, (pair.old, pair.new))):
        return _judge_above_windows(pair)
    if not all(isinstance(side.segments[0].origin, Source) for side in (pair.old, pair.new)):
        return unknown("only lookups after a source or a windowed aggregation were measured")
    if set(modes) != {LookupMode.SYNCHRONOUS} and not both_asynchronous:
        return unknown(MAY_WAIT)
    if both_asynchronous and any(
        sum(map(lookups.is_lookup, operators(side))) > 1 for side in (pair.pipeline.old, pair.pipeline.new)
    ):
        return unknown("rows that wait for one lookup may contain columns of the other lookup")
    queued = difference.part not in NOT_QUEUED or _computes_keys(pair) or not lookups.computes_alike(pair)
    if both_asynchronous and queued:
        return unknown("the restored job would read rows that wait for an asynchronous lookup differently")
    moved = sinks.stays(pair.pipeline) if pair.pipeline.old.sink or pair.pipeline.new.sink else ""
    if moved:
        return unknown(moved)
    return right(*(IN_ORDER if both_asynchronous else SYNCHRONOUS))


def _judge_above_windows(pair: OperatorPair) -> Verdict:
    """Verdict on a stateless lookup between a windowed aggregation and a sink.

    The id of an operator depends only on the upstream operators and on the next operator in the same task.
    """
    if moved := sinks.stays(pair.pipeline):
        return unknown(moved)
    if own := own_functions(part for side in (pair.old, pair.new) for part in _expressions(side)):
        return unknown(f"a lookup by {', '.join(own)} was not measured")
    return ABOVE_WINDOWS


def _expressions(operator: Operator) -> Iterator[Expression]:
    """Expressions of a lookup and of its input rows."""
    if isinstance(operator, JoinOperator):
        yield from (*operator.rows[0], *operator.conditions, *(side for key in operator.keys for side in key))
        yield from (part for segment in operator.segments for part in segment.filters)


def _computes_keys(pair: OperatorPair) -> bool:
    """True if a lookup key is a computed value, which adds a column to the waiting rows."""
    sides = (side for side in (pair.old, pair.new) if isinstance(side, JoinOperator))
    return any(not isinstance(key, Leaf) for side in sides for key, _ in side.keys)


LOOKUP_JOIN = (
    "CREATE TABLE names (customer STRING, name STRING) WITH ('connector' = 'jdbc');\n"
    "CREATE TABLE named (customer STRING, name STRING) WITH ('connector' = 'print');\nINSERT INTO named\n"
    "SELECT orders.customer, names.name\nFROM orders {0} names FOR SYSTEM_TIME AS OF orders.arrived\n"
    "ON orders.customer = names.customer;"
)


@Rule(
    code="lookup-join-changed",
    title="A lookup join changed",
    vvr=documented(Outcome.COMPATIBLE, "Lookup join page: any change"),
    flink=right(*SYNCHRONOUS),
    rationale=(
        "A synchronous lookup queries an external system and stores nothing. Downstream operators may have state: an "
        "aggregation continues from values that the old lookup returned. An asynchronous lookup stores its input rows "
        "until it gets their answers. Flink refuses to restore these rows if their columns or types differ, even if "
        "no row is waiting. The option lookup.async, the LOOKUP hint or the connector makes a lookup asynchronous."
    ),
    example=Example(LOOKUP_JOIN.format("JOIN"), LOOKUP_JOIN.format("LEFT JOIN")),
    operators=(JoinOperator,),
    case_dependent=("vvr", "flink"),
)
def lookup_join_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(isinstance(s, JoinOperator) and s.form is JoinForm.LOOKUP for s in (pair.old, pair.new)):
        return
    synchronous = set(lookups.modes(pair)) == {LookupMode.SYNCHRONOUS}
    stored = "; downstream operators have stored results of the old lookup" if has_state_above(pair) else ""
    shown = SHOWN if synchronous else WAITING_ROW
    for difference in pair.differences:
        if difference.part.partition(" of input ")[0] not in ELSEWHERE:
            yield RuleMatch(
                f"lookup join: {shown.get(difference.part, f'its {difference.part}')} changed"
                f"{stored if synchronous else ''}",
                (difference.key,),
                *map(format_value, (difference.before, difference.after)),
                verdicts={"vvr": lookup_join_on_vvr(pair), "flink": lookup_join_on_flink(pair, difference)},
            )


TWO_LOOKUPS = (
    "CREATE TABLE names (customer STRING, name STRING)\n"
    "WITH ('connector' = 'hbase-2.2', 'table-name' = 'names', 'lookup.async' = '{0}');\n"
    "CREATE TABLE named (customer STRING, name STRING) WITH ('connector' = 'print');\n"
    "INSERT INTO named\nSELECT orders.customer, names.name\n"
    "FROM orders JOIN names FOR SYSTEM_TIME AS OF orders.arrived ON orders.customer = names.customer;"
)


@Rule(
    code="lookup-mode-changed",
    title="An asynchronous lookup became synchronous",
    vvr=unknown("no page covers a change of the lookup mode"),
    flink=wrong("al-stateless-pending-hint-sync", "al-group-pending-hint-sync"),
    rationale=(
        "The state of the asynchronous operator contains the rows without an answer at the time of the savepoint. "
        "A synchronous lookup ignores these rows, so they are lost without an error. If no row was waiting, "
        "nothing is lost."
    ),
    example=Example(TWO_LOOKUPS.format("true"), TWO_LOOKUPS.format("false")),
    operators=(JoinOperator,),
    not_applicable=("vvr",),
)
def lookup_mode_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(map(lookups.is_lookup, (pair.old, pair.new))):
        return
    old, new = lookups.modes(pair)
    if (old, new) == (LookupMode.ASYNCHRONOUS, LookupMode.SYNCHRONOUS):
        yield RuleMatch(
            "lookup join: the lookup is no longer asynchronous", (), f"{old.value} lookup", f"{new.value} lookup"
        )


PLACES = ("query hints", "source hints", "sink hints")
UNMEASURED = unknown("this hint was not measured")
TTL = right("rj-ttl-hint", note="STATE_TTL added to a regular join")
GROUPED = ("ps-group-hint-ttl-add", "ps-group-hint-ttl-change")
GROUPED_TTL = right(*GROUPED, note="STATE_TTL added to a group aggregation, or changed")
GROUPED_TTL_GONE = inferred(
    Outcome.COMPATIBLE,
    "removing the STATE_TTL hint of a group aggregation has the same effect as removing the setting",
    ids=(*GROUPED, "ga-ttl-unset"),
)
RETRIED = right(
    "lj-agg-retry-hint",
    "sk-group-lookup-hint-retry",
    "sk-group-lookup-hint-async",
    note="a synchronous lookup stores nothing",
)
ASKED_AGAIN = right("lj-agg-retry-hint", "al-group-pending-hint-retry")
"""Verdict on changed retries of a synchronous or asynchronous lookup."""
WAITED = right(
    "al-stateless-pending-hint-retry",
    "al-stateless-pending-hint-capacity",
    "al-group-pending-hint-retry",
    "al-group-pending-hint-capacity",
    note="rows that wait for an answer are looked up again",
)
BECAME_ASYNCHRONOUS = right(
    "al-stateless-pending-hint-async", "al-group-pending-hint-async", note="a synchronous lookup had stored nothing"
)
SHUFFLED = right("sk-stateless-lookup-hint-shuffle", note="no other operator keeps state")
RETRY = {"table", "retry-predicate", "retry-strategy", "fixed-delay", "max-attempts"}
WAITING_OPTIONS = {"async", "capacity", "timeout"}
OPTION = re.compile(r"([\w-]+)='")
DURATION = re.compile(
    r"\d+ *(d|days?|h|hours?|m|min|minutes?|s|sec|seconds?|ms|milli|millis|milliseconds?)?", re.IGNORECASE
)
LOOKUP_VALUES: Mapping[str, re.Pattern[str]] = {
    "retry-predicate": re.compile("lookup_miss"),
    "retry-strategy": re.compile("fixed_delay"),
    "fixed-delay": DURATION,
    "max-attempts": re.compile("[1-9][0-9]*"),
    "async": re.compile("true|false"),
    "output-mode": re.compile("ordered|allow_unordered"),
    "capacity": re.compile("[1-9][0-9]*"),
    "timeout": DURATION,
    "shuffle": re.compile("true|false"),
}
"""Patterns of the values that Flink accepts in a LOOKUP hint."""
READ_APART = OptionVerdict(
    "the hint splits or merges the sources of a table that several queries read, which changes the operators",
    UNMEASURED,
)
_SIDES: tuple[Callable[[PipelinePair], Output], ...] = (lambda pair: pair.old, lambda pair: pair.new)


def _removed_and_added(difference: Difference) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The removed hints and the added hints."""
    old, new = set(difference.before or ()), set(difference.after or ())
    return old - new, new - old


@dataclass(frozen=True)
class _Place:
    """A difference of hints, with the query and the operator that it belongs to."""

    difference: Difference
    pipeline: PipelinePair
    operator: OperatorPair | None = None

    @property
    def tables(self) -> tuple[Table | None, Table | None]:
        """The table with the changed hints, on both sides."""
        old, new = (self._named(output, side) or "" for output, side in self._sides)
        return self.pipeline.old_program.table(old), self.pipeline.new_program.table(new)

    @property
    def _sides(self) -> tuple[tuple[Output, Operator | None], tuple[Output, Operator | None]]:
        pair = self.operator
        old, new = (None, None) if pair is None else (pair.old, pair.new)
        return (self.pipeline.old, old), (self.pipeline.new, new)

    def _named(self, output: Output, operator: Operator | None) -> str | None:
        if self.difference.part == "sink hints":
            return output.sink
        place = self.difference.part.rpartition(" of input ")[2]
        below = (output.segment,) if operator is None else operator.segments
        number = int(place) - 1 if place.isdecimal() else 0
        origin = below[number].origin if number < len(below) else None
        return origin.table if isinstance(origin, Source) else None


def hint_on_flink(place: _Place, kinds: set[str], kept_once_more: bool) -> Verdict:
    """Verdict on ``flink`` on changed hints; only STATE_TTL and LOOKUP were measured.

    ``kinds`` are the kinds of the query's operators. ``kept_once_more`` is True if a materializer before the sink also
    stores the results.
    """
    gone, come = _removed_and_added(place.difference)
    names = {name for name, _ in (*gone, *come)}
    if reason := _hint_fault(come):
        return unknown(reason)
    if names == {"STATE_TTL"} and kinds == {JoinForm.REGULAR} and not gone:
        return TTL
    if names == {"STATE_TTL"} and kinds == {AggregateKind.GROUP} and not kept_once_more:
        return GROUPED_TTL if come else GROUPED_TTL_GONE
    if names == {"LOOKUP"}:
        return _lookup(place, {key for _, text in (*gone, *come) for key in OPTION.findall(text)}, bool(gone))
    return UNMEASURED


def _hint_fault(come: set[tuple[str, str]]) -> str:
    """Reason why Flink may refuse a STATE_TTL or LOOKUP hint; "" if Flink certainly accepts the hint."""
    for name, text in come:
        given = dict(hint_options(((name, text),), name))
        if name == "STATE_TTL" and not all(map(DURATION.fullmatch, given.values())):
            return "the state TTL may not be a valid duration"
        if name == "LOOKUP" and not _is_valid_lookup_hint(given):
            return "the hint may lack a required option or have an invalid value"
    return ""


def _is_valid_lookup_hint(given: Mapping[str, str]) -> bool:
    retries = {key for key in given if key in RETRY} - {"table"}
    if retries and retries != RETRY - {"table"}:
        return False
    return all(LOOKUP_VALUES[key].fullmatch(value.lower()) for key, value in given.items() if key in LOOKUP_VALUES)


def _hint_options(place: _Place) -> OptionVerdict | None:
    """Verdict on options in an OPTIONS hint, which override the options of the table."""
    old, new = place.tables
    if old is None or new is None or old.option("connector") != new.option("connector"):
        return None
    difference = place.difference
    before, after = (
        {**dict(table.options), **dict(hint_options(hints or (), OPTIONS))}
        for table, hints in ((old, difference.before), (new, difference.after))
    )
    written = difference.part == "sink hints"
    found = uses_of_query(place.pipeline, old.name)
    used = [each for each in found if (each.use is TableUse.SINK) == written]
    return judge_options(old.name, old.option("connector"), before, after, used)


def _splits_source(place: _Place, change: Change) -> bool:
    """True if a source that several queries or inputs share is split, or if several sources are merged.

    Flink uses one source for all equal scans of a table. Scans with different hints are not equal.
    """
    job = [place.pipeline, *change.companions(place.pipeline)]
    old, new = ([(s.table, s.hints) for pair in job for s in sources(side(pair))] for side in _SIDES)
    return [old.index(each) for each in old] != [new.index(each) for each in new]


def _lookup(place: _Place, keys: set[str], goes: bool) -> Verdict:
    """Verdict on a changed LOOKUP hint.

    ``goes`` is True if a hint was removed. Removed hints were not measured for asynchronous lookups.
    """
    found = [pair for pair in place.pipeline.operators if lookups.is_lookup(pair.new)]
    if len(found) != 1:
        return UNMEASURED
    modes = lookups.modes(found[0])
    synchronous = set(modes) == {LookupMode.SYNCHRONOUS}
    if not keys <= RETRY | WAITING_OPTIONS:
        keeps_nothing = all(map(sinks.keeps_nothing, sinks.connectors(place.pipeline)))
        alone = len(place.pipeline.operators) == 1 and synchronous and keeps_nothing and not goes
        return SHUFFLED if keys <= {"table", "shuffle"} and alone else UNMEASURED
    if synchronous:
        return RETRIED
    match modes:
        case (LookupMode.ASYNCHRONOUS, LookupMode.ASYNCHRONOUS) if not goes:
            return WAITED
        case (LookupMode.SYNCHRONOUS, LookupMode.ASYNCHRONOUS):
            return BECAME_ASYNCHRONOUS
    return ASKED_AGAIN if keys <= RETRY and not goes else UNMEASURED


def _places(change: Change) -> Iterator[tuple[_Place, set[str], bool]]:
    for pipeline in change.pipelines:
        own = [_Place(difference, pipeline) for difference in pipeline.differences]
        below = [_Place(each, pipeline, pair) for pair in pipeline.operators for each in pair.differences]
        found = [each for each in (*own, *below) if each.difference.part.startswith(PLACES)]
        if not found:
            continue
        kept = Materializer.UPSERT in sinks.materializers(pipeline)
        sides = [side for pair in pipeline.operators for side in (pair.old, pair.new)]
        kinds = {str(side.kind) for side in sides}
        if any(call.distinct for side in sides if isinstance(side, AggregateOperator) for call in side.aggregates):
            kinds.add("DISTINCT")  # no measured restore covers the state of DISTINCT after a changed hint
        yield from ((each, kinds, kept) for each in found)


def _conflict_clause_match(place: _Place) -> RuleMatch:
    """The match of an added, removed or changed ON CONFLICT clause."""
    old, new = strategy(place.pipeline.old), strategy(place.pipeline.new)
    said = f"{ON_CONFLICT} DO {new or old}"
    words = f"{said} {'was added' if old is None else 'was removed' if new is None else f'replaced DO {old}'}"
    does, verdict = sinks.materializer_verdict(place.pipeline)
    if sinks.lack_clause(place.pipeline)[0]:
        does += (
            f"; on this Flink version, no job can run from the old script unless {REQUIRED} = false is set elsewhere"
        )
    difference = place.difference
    return difference.match(
        words,
        f"{ON_CONFLICT} DO {old}" if old else "none",
        f"{ON_CONFLICT} DO {new}" if new else "none",
        verdicts={"flink": verdict},
        notes={"flink": f": {does}"},
    )


@Rule(
    code="hint-changed",
    title="A hint changed",
    vvr=unknown("no page covers hints and dynamic table options"),
    flink=unknown("few hints were measured"),
    rationale="A hint can set the state TTL, change the data that a source reads, or change the planned operators.",
    example=Example(
        "SELECT customer, COUNT(DISTINCT item) FROM orders GROUP BY customer;",
        "SELECT /*+ STATE_TTL('orders' = '1d') */ customer, COUNT(DISTINCT item) FROM orders GROUP BY customer;",
    ),
    parts=PLACES,
)
def hint_changed(change: Change) -> Iterable[RuleMatch]:
    for place, kinds, kept in _places(change):
        difference = place.difference
        gone, come = _removed_and_added(difference)
        if {name for name, _ in (*gone, *come)} == {ON_CONFLICT}:
            yield _conflict_clause_match(place)
            continue
        judged = _hint_options(place) if {name for name, _ in (*gone, *come)} == {OPTIONS} else None
        if judged and difference.part.startswith("source hints") and _splits_source(place, change):
            judged = READ_APART
        yield difference.match(
            f"the {difference.part} changed",
            *map(format_value, (difference.before, difference.after)),
            verdicts={"flink": judged.verdict if judged else hint_on_flink(place, kinds, kept)},
            notes={"flink": f": {judged.sentence}" if judged else ""},
        )
