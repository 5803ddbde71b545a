"""Verdicts on changed options of source tables, by the effect on a restored source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import stateless
from airflow_flinkcompat.compat.rule_builders.table_options import (
    OptionChange,
    Options,
    OptionVerdict,
    append_only,
    effect_clause,
    effective_values,
    formats,
    harmless,
    members,
    not_measured,
    parallelism,
    selects_format,
    stateless_verdict,
    unmeasured_effect,
)
from airflow_flinkcompat.compat.verdict import Remedy, Verdict, expected, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import OptionEffect, OptionFact, SourceState
from airflow_flinkcompat.connectors.registry import format_option
from airflow_flinkcompat.plan.operators import AggregateKind

IN_NO_POSITION = ("ks-stateless-client-property", "ks-tumble-client-property", "kafka-source-group-fetch")
"""Restores after a change of source options that are not part of stored positions."""
IN_NO_LOG_POSITION = ("cdc-stateless-renamed-heartbeat", "cdc-group-chunk")
_BY_POSITIONS = {
    SourceState.LOG: IN_NO_LOG_POSITION,
    SourceState.TABLE_VERSION: (
        "iceberg-source-stateless-monitor-interval",
        "iceberg-source-group-monitor-interval",
        "paimon-source-group-discovery-interval",
    ),
}
SAME_BYTES = ("ks-group-value-format", "ks-tumble-value-format")
OTHER_BYTES = ("ks-stateless-format-csv",)
_RESTART = "restart this source instead"
_STARTUP, _READS_ALL = "scan.startup.mode", "initial"
_SCHEMA, _TABLE = "schema-name", "table-name"
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_REMEMBERS_NO_PLACE = (SourceState.NOTHING, SourceState.COUNTER)
_ONLY_A_START = "only a start without state uses the option, and this job resumes from the stored positions"
_DEFAULT_NOTES = {
    OptionEffect.READ: (
        "the source reads different data; how it uses its stored positions after a restore was not measured with this "
        "connector"
    ),
    OptionEffect.STARTUP: (
        "it decides where a source starts without state; its effect on a restored source was not measured with this "
        "connector"
    ),
}


def judge_source_option(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    stored = registry.source(change.connector).positions
    match fact.effect:
        case OptionEffect.TUNES | OptionEffect.CREDENTIALS if fact.ids or stored is not SourceState.NOT_KNOWN:
            return harmless(
                fact,
                f"{effect_clause(fact)}; no stored position contains the option",
                IN_NO_POSITION,
                _similar_restores(change),
            )
        case OptionEffect.STARTUP if _read_at_start_only(change, fact):
            return harmless(fact, _ONLY_A_START, IN_NO_POSITION, _similar_restores(change))
        case OptionEffect.ADDRESS:
            return _judge_address(change, fact)
        case OptionEffect.DECODING:
            return _judge_format(change, fact, pair)
        case OptionEffect.READ:
            return _judge_read_option(change, fact, pair)
        case OptionEffect.BOUNDED_END if fact.ids and _windowed(pair):
            return OptionVerdict(fact.note, wrong(*fact.ids))
        case OptionEffect.STATE if change.key == "scan.parallelism":
            return parallelism(change, fact, pair, ("ks-stateless-scan-parallelism-1",))
        case OptionEffect.STATE if fact.default is not None:
            return _restart_verdict(fact.note, expected(fact.document, None), pair)
    return not_measured(change, fact, fact.note or _DEFAULT_NOTES.get(fact.effect, unmeasured_effect(fact)))


def _restart_verdict(sentence: str, verdict: Verdict, pair: PipelinePair) -> OptionVerdict:
    """Verdict on a source that must restart; a migrated savepoint may keep the state of other operators."""
    if not (pair.old.segment.origin and pair.operators):
        return OptionVerdict(f"{sentence}; {_RESTART}, which means a start without state", verdict)
    rest = "`flinkcompat migrate` with --restart-source may keep the rest; a start without state keeps nothing"
    return OptionVerdict(f"{sentence}; {_RESTART}: {rest}", replace(verdict, remedy=Remedy.RESTART_SOURCE))


def _read_at_start_only(change: OptionChange, fact: OptionFact) -> bool:
    """True if a restored source certainly ignores this startup option."""
    return bool(fact.ids) or {(value or "").lower() for value in effective_values(change, fact)} <= {*fact.values}


def _judge_read_option(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    if fact.listed is not None:
        return _judge_places(change, fact, pair)
    stored = registry.source(change.connector).positions
    if stored in _REMEMBERS_NO_PLACE:
        sentence = fact.note or "the source stores nothing: new rows come from the new location"
        return harmless(fact, sentence, IN_NO_POSITION)
    if stored is SourceState.ENDED and fact.note:
        return _restart_verdict(fact.note, expected(fact.document, None), pair)
    if fact.ids:
        if doubt := _reason_not_covered(change, fact):
            return not_measured(change, fact, doubt)
        return _restart_verdict(fact.note, wrong(*fact.ids), pair)
    return (
        _judge_tables(change, fact, pair)
        if fact.expression
        else not_measured(change, fact, fact.note or _DEFAULT_NOTES[fact.effect])
    )


def _similar_restores(change: OptionChange) -> tuple[str, ...]:
    """Restores of sources with the same kind of stored position, on other Flink minor versions."""
    return _BY_POSITIONS.get(registry.source(change.connector).positions, ())


def _reason_not_covered(change: OptionChange, fact: OptionFact) -> str:
    """Reason why restores with the option do not cover this change; "" if they do."""
    if None in effective_values(change, fact):
        return "one script omits the option, and connector versions with different defaults read different data"
    key, value = fact.unless
    if key and change.after.get(key, "").lower() == value:
        return f"reading with '{key}' = '{value}' was not measured"
    return ""


def _judge_tables(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Verdict on captured tables; a restored source never reads the earlier rows of an added table."""
    before, after = (_captured_names(side, change.key) for side in (change.before, change.after))
    come = [new for new in after if not any(_may_be_one(new, old) for old in before)]
    startup = change.after.get(_STARTUP, _READS_ALL).lower()
    added = change.after.get(fact.unless[0], "").lower() == fact.unless[1]
    if not before or not come or startup != _READS_ALL or added:
        return not_measured(change, fact, fact.note)
    sentence = (
        f"a restored source would read at most the changes of {', '.join(come)} since the savepoint, and "
        "never its earlier rows"
    )
    return _restart_verdict(sentence, expected(fact.document, None), pair)


def _captured_names(options: Options, key: str) -> tuple[str, ...]:
    """Names in an option; table names include their schema if a separate option sets the schema."""
    if key not in (_SCHEMA, _TABLE):
        return _expressions(options.get(key))
    tables = _expressions(options.get(_TABLE))
    if _SCHEMA not in options:
        return tables
    return tuple(f"{schema}.{table}" for schema in _expressions(options[_SCHEMA]) for table in tables)


def _expressions(value: str | None) -> tuple[str, ...]:
    """Alternatives of a regular expression if all are plain names, in which a dot matches any letter."""
    parts = tuple(part.strip().lower().replace("\\.", ".") for part in re.split("[,|]", (value or "").strip("()")))
    return parts if all(_NAME.fullmatch(part) for part in parts) else ()


def _may_be_one(one: str, other: str) -> bool:
    """True if two names may mean one table, as regular expressions or because one name omits its schema."""
    if one.count(".") != other.count("."):
        return True
    return len(one) == len(other) and all(a == b or "." in (a, b) for a, b in zip(one, other, strict=True))


def _windowed(pair: PipelinePair) -> bool:
    return any(each.windowed is not None for each in pair.operators)


def _judge_address(change: OptionChange, fact: OptionFact) -> OptionVerdict:
    """Verdict on addresses. Addresses with a common host mean one system; otherwise the system is unknown."""
    old, new = map(members, change.values)
    if old & new:
        return harmless(
            fact,
            "both addresses lead to the same system; no stored position contains the address",
            IN_NO_POSITION,
            _similar_restores(change),
        )
    return OptionVerdict(
        (
            "the stored positions belong to the system at the old address. They are correct only if the new address "
            "leads to the same system. No script shows this"
        ),
        unknown("a different address may be a different system"),
    )


def _judge_format(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Verdict on formats. Positions in partitions do not depend on the format; positions in files may."""
    if fact.ids and fact != format_option(change.key):  # the restores used this connector
        return harmless(fact, f"{effect_clause(fact)}; no stored position contains the option", ())
    if registry.source(change.connector).positions not in (SourceState.PARTITIONS, SourceState.NOTHING):
        return not_measured(change, fact, unmeasured_effect(fact))
    if nothing := stateless.keeps_nothing(pair):
        return stateless_verdict(nothing)
    if not selects_format(change):
        return harmless(fact, f"{effect_clause(fact)}; no stored position contains the option", OTHER_BYTES)
    old, new = formats(change)
    if old == new:
        return OptionVerdict("the same format in a different option", right(*SAME_BYTES))
    if append_only(old, new):
        return OptionVerdict(
            "no stored position contains the format: new rows must have the new format", right(*OTHER_BYTES)
        )
    return not_measured(
        change, fact, "one of the formats may contain updates and deletes, which need different operators"
    )


def _judge_places(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Verdict on a changed topic list: removed topics are still read, added topics from their beginning."""
    listed = fact.listed
    assert listed is not None
    lists = fact.key if fact.key != listed.pattern else "topic"
    old, new = (side.get(lists) for side in (change.before, change.after))
    from_beginning = not listed.from_beginning[0] or (
        change.after.get(listed.from_beginning[0], "").lower() == listed.from_beginning[1]
    )
    if old is None or new is None or change.key == listed.pattern:
        return _judge_pattern(change, fact, old, from_beginning, pair)
    separator = listed.separator
    before, after = ([part.strip() for part in side.split(separator) if part.strip()] for side in (old, new))
    gone, come = [p for p in before if p not in after], [p for p in after if p not in before]
    if not gone and not come:
        return OptionVerdict("the same topics in a different order", right(*listed.reordered))
    read_on = f"keeps reading {', '.join(gone)}" if gone else ""
    begun = f"reads {', '.join(come)} from the beginning" if come else ""
    ends = " and ".join(filter(None, (read_on, begun)))
    sentence = f"a restored {change.connector} source {ends}"
    if not gone and from_beginning:
        if _ignores_late_rows(pair):
            return OptionVerdict(f"{sentence}, as its options say", right(*listed.added))
        return OptionVerdict(
            f"{sentence}: old rows of an added topic may be late if the stored partitions' watermark overtakes them",
            unknown("rows of an added topic were dropped as late in one run and counted in another"),
        )
    startup = listed.from_beginning[0]
    anyhow = f", regardless of {startup}" if come and startup else ""
    return _restart_verdict(f"{sentence}{anyhow}: wrong rows without an error", wrong(*fact.ids), pair)


def _ignores_late_rows(pair: PipelinePair) -> bool:
    """True if late rows do not matter because all operators are group aggregations."""
    sides = (side for each in pair.operators for side in (each.old, each.new))
    return not pair.removed and not pair.added and all(side.kind == AggregateKind.GROUP for side in sides)


def _judge_pattern(
    change: OptionChange, fact: OptionFact, old: str | None, from_beginning: bool, pair: PipelinePair
) -> OptionVerdict:
    """Verdict on a pattern that replaces a topic list: safe if the pattern matches all listed topics."""
    listed = fact.listed
    assert listed is not None
    pattern = change.after.get(listed.pattern)
    if old is None or pattern is None or not _matches(pattern, old.split(listed.separator)):
        sentence = (
            "topics with stored positions resume from these positions, and the source reads all other topics from the "
            "beginning; the other topics are unknown"
        )
        return OptionVerdict(sentence, unknown("a pattern over topics"))
    sentence = (
        "the pattern matches the current topics; the source reads any other matching topic from the beginning, "
        "including old rows"
    )
    if from_beginning and _ignores_late_rows(pair):
        return OptionVerdict(sentence, right(*listed.matched, *listed.added))
    return OptionVerdict(sentence, unknown("the other topics that the pattern matches are unknown"))


def _matches(pattern: str, places: Iterable[str]) -> bool:
    try:
        return all(re.fullmatch(pattern, place.strip()) for place in places)
    except re.error:
        return False
