"""Options of tables that are read, with their effects on a restored source."""

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
    decides,
    formats,
    harmless,
    members,
    names_a_format,
    not_measured,
    not_with_this_connector,
    nothing_stored,
    parallelism,
    with_defaults,
)
from airflow_flinkcompat.compat.verdict import Remedy, Verdict, expected, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import OptionEffect, OptionFact, SourceState
from airflow_flinkcompat.connectors.registry import format_option
from airflow_flinkcompat.plan.operators import AggregateKind

IN_NO_POSITION = ("ks-stateless-client-property", "ks-tumble-client-property", "kafka-source-group-fetch")
"""Options of a source that no stored position holds, in front of every kind of pipeline."""
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
_ANEW = "restart this source instead"
_STARTUP, _READS_ALL = "scan.startup.mode", "initial"
_SCHEMA, _TABLE = "schema-name", "table-name"
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_REMEMBERS_NO_PLACE = (SourceState.NOTHING, SourceState.COUNTER)
_ONLY_A_START = "only a start without state reads it; this job resumes from the stored positions"
_DEFAULT_NOTES = {
    OptionEffect.READ: (
        "different data is read from now on; how a restored source uses its stored positions was not "
        "measured with this connector"
    ),
    OptionEffect.STARTUP: (
        "it sets where a start without state begins; whether a restored source reads it was not measured "
        "with this connector"
    ),
}


def on_source(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    stored = registry.source(change.connector).positions
    match fact.effect:
        case OptionEffect.TUNES | OptionEffect.CREDENTIALS if fact.ids or stored is not SourceState.NOT_KNOWN:
            return harmless(fact, f"{decides(fact)}; no stored position contains it", IN_NO_POSITION, _alike(change))
        case OptionEffect.STARTUP if _read_at_start_only(change, fact):
            return harmless(fact, _ONLY_A_START, IN_NO_POSITION, _alike(change))
        case OptionEffect.ADDRESS:
            return _address(change, fact)
        case OptionEffect.DECODING:
            return _format_of_source(change, fact, pair)
        case OptionEffect.READ:
            return _read_elsewhere(change, fact, pair)
        case OptionEffect.BOUNDED_END if fact.ids and _windowed(pair):
            return OptionVerdict(fact.note, wrong(*fact.ids))
        case OptionEffect.STATE if change.key == "scan.parallelism":
            return parallelism(change, fact, pair, ("ks-stateless-scan-parallelism-1",))
        case OptionEffect.STATE if fact.default is not None:
            return _restarted(fact.note, expected(fact.document, None), pair)
    return not_measured(change, fact, fact.note or _DEFAULT_NOTES.get(fact.effect, not_with_this_connector(fact)))


def _restarted(says: str, verdict: Verdict, pair: PipelinePair) -> OptionVerdict:
    """Verdict on a source that must begin again: a rewritten savepoint may keep other keyed state."""
    if not (pair.old.segment.origin and pair.operators):
        return OptionVerdict(f"{says}; {_ANEW}, which means a start without state", verdict)
    rest = "`flinkcompat migrate` with --restart-source may keep the rest; a start without state keeps nothing"
    return OptionVerdict(f"{says}; {_ANEW}: {rest}", replace(verdict, remedy=Remedy.RESTART_SOURCE))


def _read_at_start_only(change: OptionChange, fact: OptionFact) -> bool:
    """True if a restored source certainly ignores its starting options."""
    return bool(fact.ids) or {(value or "").lower() for value in with_defaults(change, fact)} <= {*fact.values}


def _read_elsewhere(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    if fact.listed is not None:
        return _places(change, fact, pair)
    stored = registry.source(change.connector).positions
    if stored in _REMEMBERS_NO_PLACE:
        says = fact.note or "the source stores nothing: new rows come from the new location"
        return harmless(fact, says, IN_NO_POSITION)
    if stored is SourceState.ENDED and fact.note:
        return _restarted(fact.note, expected(fact.document, None), pair)
    if fact.ids:
        if doubt := _not_as_measured(change, fact):
            return not_measured(change, fact, doubt)
        return _restarted(fact.note, wrong(*fact.ids), pair)
    return (
        _tables(change, fact, pair)
        if fact.expression
        else not_measured(change, fact, fact.note or _DEFAULT_NOTES[fact.effect])
    )


def _alike(change: OptionChange) -> tuple[str, ...]:
    """Restores of sources that store positions of the same kind, on other lines of Flink."""
    return _BY_POSITIONS.get(registry.source(change.connector).positions, ())


def _not_as_measured(change: OptionChange, fact: OptionFact) -> str:
    """Reason why restores with other rows do not cover this change; "" if they do."""
    if None in with_defaults(change, fact):
        return "one script leaves it to the connector, whose versions may then read different data"
    key, value = fact.unless
    if key and change.after.get(key, "").lower() == value:
        return f"reading with '{key}' = '{value}' was not measured"
    return ""


def _tables(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Tables that come are read from the stored position on: their rows of before are not."""
    before, after = (_captured(side, change.key) for side in (change.before, change.after))
    come = [new for new in after if not any(_may_be_one(new, old) for old in before)]
    startup = change.after.get(_STARTUP, _READS_ALL).lower()
    added = change.after.get(fact.unless[0], "").lower() == fact.unless[1]
    if not before or not come or startup != _READS_ALL or added:
        return not_measured(change, fact, fact.note)
    says = (
        f"a restored source would read at most the changes of {', '.join(come)} since the savepoint, and "
        "never its earlier rows"
    )
    return _restarted(says, expected(fact.document, None), pair)


def _captured(options: Options, key: str) -> tuple[str, ...]:
    """Names that an option contains; those of tables with their schema, if another option sets that."""
    if key not in (_SCHEMA, _TABLE):
        return _expressions(options.get(key))
    tables = _expressions(options.get(_TABLE))
    if _SCHEMA not in options:
        return tables
    return tuple(f"{schema}.{table}" for schema in _expressions(options[_SCHEMA]) for table in tables)


def _expressions(value: str | None) -> tuple[str, ...]:
    """Alternatives of an expression if each is a name, in which a dot matches any letter."""
    parts = tuple(part.strip().lower().replace("\\.", ".") for part in re.split("[,|]", (value or "").strip("()")))
    return parts if all(_NAME.fullmatch(part) for part in parts) else ()


def _may_be_one(one: str, other: str) -> bool:
    """True if two names may be one table: as expressions, or if one of them omits its schema."""
    if one.count(".") != other.count("."):
        return True
    return len(one) == len(other) and all(a == b or "." in (a, b) for a, b in zip(one, other, strict=True))


def _windowed(pair: PipelinePair) -> bool:
    return any(each.windowed is not None for each in pair.operators)


def _address(change: OptionChange, fact: OptionFact) -> OptionVerdict:
    """Verdict on addresses: a common member means one system; otherwise it is unknown."""
    old, new = map(members, change.values)
    if old & new:
        return harmless(
            fact,
            "both lead to the same system; no stored position contains the address",
            IN_NO_POSITION,
            _alike(change),
        )
    return OptionVerdict(
        (
            "the stored positions belong to the system at the old address: they are correct if the new address "
            "leads to the same system, which no script shows, and wrong otherwise"
        ),
        unknown("a different address may be a different system"),
    )


def _format_of_source(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Verdict on formats: positions of partitions hold no format; read positions in a file may differ."""
    if fact.ids and fact != format_option(change.key):  # restores with this very connector
        return harmless(fact, f"{decides(fact)}; no stored position contains it", ())
    if registry.source(change.connector).positions not in (SourceState.PARTITIONS, SourceState.NOTHING):
        return not_measured(change, fact, not_with_this_connector(fact))
    if nothing := stateless.keeps_nothing(pair):
        return nothing_stored(nothing)
    if not names_a_format(change):
        return harmless(fact, f"{decides(fact)}; no stored position contains it", OTHER_BYTES)
    old, new = formats(change)
    if old == new:
        return OptionVerdict("the same format in a different option", right(*SAME_BYTES))
    if append_only(old, new):
        return OptionVerdict(
            "no stored position contains the format: new rows must have the new format", right(*OTHER_BYTES)
        )
    return not_measured(
        change, fact, "rows of one of the formats may be updates and deletes, which need different operators"
    )


def _places(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    """Verdict on places: positions of removed ones stay in force, new ones are read from their beginning."""
    listed = fact.listed
    assert listed is not None
    lists = fact.key if fact.key != listed.pattern else "topic"
    old, new = (side.get(lists) for side in (change.before, change.after))
    from_beginning = not listed.from_beginning[0] or (
        change.after.get(listed.from_beginning[0], "").lower() == listed.from_beginning[1]
    )
    if old is None or new is None or change.key == listed.pattern:
        return _pattern(change, fact, old, from_beginning, pair)
    separator = listed.separator
    before, after = ([part.strip() for part in side.split(separator) if part.strip()] for side in (old, new))
    gone, come = [p for p in before if p not in after], [p for p in after if p not in before]
    if not gone and not come:
        return OptionVerdict("the same topics in a different order", right(*listed.reordered))
    read_on = f"keeps reading {', '.join(gone)}" if gone else ""
    begun = f"reads {', '.join(come)} from the beginning" if come else ""
    ends = " and ".join(filter(None, (read_on, begun)))
    says = f"a restored {change.connector} source {ends}"
    if not gone and from_beginning:
        if _orderly(pair):
            return OptionVerdict(f"{says}, as its options say", right(*listed.added))
        return OptionVerdict(
            f"{says}: its old rows race the watermark of the stored partitions, and may arrive too late",
            unknown("rows of an added topic were dropped as late in one run and counted in another"),
        )
    startup = listed.from_beginning[0]
    anyhow = f", regardless of {startup}" if come and startup else ""
    return _restarted(f"{says}{anyhow}: wrong rows without an error", wrong(*fact.ids), pair)


def _orderly(pair: PipelinePair) -> bool:
    """True if no operator depends on late rows: only aggregations over all rows."""
    sides = (side for each in pair.operators for side in (each.old, each.new))
    return not pair.removed and not pair.added and all(side.kind == AggregateKind.GROUP for side in sides)


def _pattern(
    change: OptionChange, fact: OptionFact, old: str | None, from_beginning: bool, pair: PipelinePair
) -> OptionVerdict:
    """Verdict from a list to a pattern: right if it matches the read places; others may be read whole."""
    listed = fact.listed
    assert listed is not None
    pattern = change.after.get(listed.pattern)
    if old is None or pattern is None or not _matches(pattern, old.split(listed.separator)):
        says = (
            "topics with stored positions resume from them, and all others are read from the beginning; the "
            "other topics are unknown"
        )
        return OptionVerdict(says, unknown("a pattern over topics"))
    says = (
        "the pattern matches the current topics; any other topic that it matches is read from the "
        "beginning, including old rows"
    )
    if from_beginning and _orderly(pair):
        return OptionVerdict(says, right(*listed.matched, *listed.added))
    return OptionVerdict(says, unknown("the other topics that the pattern matches are unknown"))


def _matches(pattern: str, places: Iterable[str]) -> bool:
    try:
        return all(re.fullmatch(pattern, place.strip()) for place in places)
    except re.error:
        return False
