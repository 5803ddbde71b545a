"""Judgement of a table's changed options, and the matches that rules make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.table_use import UsedTable
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.rule import RuleMatch, Verdict, combined, inferred, unknown
from airflow_flinkcompat.compat.rule_builders.option_changes import (
    OptionChange,
    Options,
    OptionVerdict,
    doubt,
    given,
    names_a_format,
    nothing_stored,
    of_its_format,
)
from airflow_flinkcompat.compat.rule_builders.sink_options import (
    LOOKED_UP_OTHERWISE,
    NOTHING_KEPT,
    on_lookup,
    on_sink,
    unlisted,
)
from airflow_flinkcompat.compat.rule_builders.source_options import IN_NO_POSITION, on_source
from airflow_flinkcompat.connectors import LookupSupport, OptionEffect, OptionFact, SinkState, TableUse
from airflow_flinkcompat.model import Outcome

_MECHANISM: Mapping[TableUse, tuple[str, ...]] = {
    TableUse.SOURCE: IN_NO_POSITION,
    TableUse.LOOKUP: LOOKED_UP_OTHERWISE,
    TableUse.SINK: NOTHING_KEPT,
}
_JUDGES: Mapping[TableUse, Callable[[OptionChange, OptionFact, PipelinePair], OptionVerdict]] = {
    TableUse.SOURCE: on_source,
    TableUse.LOOKUP: on_lookup,
    TableUse.SINK: on_sink,
}


def judged(change: OptionChange) -> OptionVerdict:
    """Verdict on another value of an option, over all uses of the table."""
    found = [_judged_use(change, used) for used in change.uses]
    if not found:
        return OptionVerdict(
            "only added or removed queries use the table", unknown("the table's queries were added or removed")
        )
    verdict = combined(each.verdict for each in found)
    worst = max(found, key=lambda each: each.verdict.outcome.rank)
    return OptionVerdict(worst.says, verdict)


def changed_keys(before: Options, after: Options) -> tuple[str, ...]:
    """The options that differ, in the order of their names."""
    return tuple(sorted(key for key in {*before, *after} if before.get(key) != after.get(key)))


def _judged_use(change: OptionChange, used: UsedTable) -> OptionVerdict:
    fact = connectors.option(change.connector, used.use, change.key)
    if fact is None and used.use is TableUse.LOOKUP:
        fact = unlisted(change)
    found = _by_effect(change, used, fact)
    if found.verdict.outcome is Outcome.COMPATIBLE and (why := doubt(change, fact)):
        return OptionVerdict(why, unknown(f"'{change.key}' of {change.connector}: {why}"))
    return found


def _by_effect(change: OptionChange, used: UsedTable, fact: OptionFact | None) -> OptionVerdict:
    if used.use is TableUse.LOOKUP and change.key == "lookup.async":
        if connectors.lookup(change.connector).support is LookupSupport.SYNCHRONOUS:
            says = "the connector may not have this option: it looks up one row after the other"
            return OptionVerdict(says, unknown(says))
        return on_lookup(change, OptionFact(change.key, OptionEffect.STATE), used.pair)
    if names_a_format(change):
        return _JUDGES[used.use](change, OptionFact(change.key, OptionEffect.DECODING), used.pair)
    read_in_it = fact is None and used.use is TableUse.SOURCE and of_its_format(change)
    if read_in_it and (nothing := stateless.keeps_nothing(used.pair)):
        return nothing_stored(nothing)
    if (
        fact is not None
        and fact.default is not None
        and len({value and value.lower() for value in given(change, fact)}) == 1
    ):
        says = "it is the connector's default"
        return OptionVerdict(says, inferred(Outcome.COMPATIBLE, fact.document, ids=_MECHANISM[used.use]))
    if fact is None or fact.effect is OptionEffect.NOT_KNOWN:
        old_style = change.before.get("connector.type") or change.after.get("connector.type")
        who = change.connector or (f"the old connector.type {old_style}" if old_style else "the table's catalog")
        unknown_sink = used.use is TableUse.SINK and connectors.sink(change.connector).state is SinkState.NOT_KNOWN
        says = f"its effect on a restore was not measured with {who}, and no document describes it as harmless"
        says = fact.says if fact is not None else says
        return OptionVerdict(
            sinks.only_the_sink(change.connector) if unknown_sink else says,
            unknown(f"no restore with different values of such options of {who}"),
        )
    if fact.effect is OptionEffect.IGNORED:
        says = f"a table that is {used.use.value} ignores it"
        return OptionVerdict(says, inferred(Outcome.COMPATIBLE, fact.document, ids=_MECHANISM[used.use]))
    return _JUDGES[used.use](change, fact, used.pair)


OnVvr = Callable[[str, Options, Options], Verdict]
"""The vendor's row about one option, from its name and all options of both sides."""


def option_matches(
    table: str, what: str, connector: str | None, difference: Difference, uses: Sequence[UsedTable], on_vvr: OnVvr
) -> Iterator[RuleMatch]:
    """One match for each remark about a table's changed options."""
    before, after = difference.before or {}, difference.after or {}
    groups: dict[tuple[str, Verdict, Verdict], list[str]] = {}
    for key in changed_keys(before, after):
        found = judged(OptionChange(table, connector, key, before, after, uses))
        groups.setdefault((found.says, found.verdict, on_vvr(key, before, after)), []).append(key)
    for (says, verdict, vvr), keys in groups.items():
        old, new = (format_value({key: side[key] for key in keys if key in side}) for side in (before, after))
        yield RuleMatch(
            f"{what}: {', '.join(keys)} changed",
            (difference.key,),
            old,
            new,
            difference.before_span,
            difference.after_span,
            verdicts={"vvr": vvr, "flink": verdict},
            notes={"flink": f": {says}"},
            options=tuple(keys),
        )


def options_judged(
    table: str, connector: str | None, before: Options, after: Options, uses: Iterable[UsedTable]
) -> OptionVerdict | None:
    """Worst verdict on a table's changed options; None if none differs."""
    used = tuple(uses)
    found = {
        key: judged(OptionChange(table, connector, key, before, after, used)) for key in changed_keys(before, after)
    }
    if not found:
        return None
    worst = max(found, key=lambda key: found[key].verdict.outcome.rank)
    return OptionVerdict(f"{worst}: {found[worst].says}", combined(each.verdict for each in found.values()))
