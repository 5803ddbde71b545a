"""Verdicts on the changed options of a table, and the rule matches with these verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.rule import RuleMatch
from airflow_flinkcompat.compat.rule_builders.sink_options import (
    LOOKED_UP_OTHERWISE,
    NOTHING_KEPT,
    effect_by_name,
    judge_lookup_option,
    judge_sink_option,
)
from airflow_flinkcompat.compat.rule_builders.source_options import IN_NO_POSITION, judge_source_option
from airflow_flinkcompat.compat.rule_builders.table_options import (
    OptionChange,
    Options,
    OptionVerdict,
    UsedTable,
    effective_values,
    is_format_option,
    selects_format,
    stateless_verdict,
)
from airflow_flinkcompat.compat.verdict import Verdict, combined, inferred, unknown
from airflow_flinkcompat.connectors import artifacts, registry
from airflow_flinkcompat.connectors.facts import LookupSupport, OptionEffect, OptionFact, SinkState, TableUse
from airflow_flinkcompat.connectors.registry import FORMATS, format_option
from airflow_flinkcompat.model import Outcome

_MECHANISM: Mapping[TableUse, tuple[str, ...]] = {
    TableUse.SOURCE: IN_NO_POSITION,
    TableUse.LOOKUP: LOOKED_UP_OTHERWISE,
    TableUse.SINK: NOTHING_KEPT,
}
_JUDGES: Mapping[TableUse, Callable[[OptionChange, OptionFact, PipelinePair], OptionVerdict]] = {
    TableUse.SOURCE: judge_source_option,
    TableUse.LOOKUP: judge_lookup_option,
    TableUse.SINK: judge_sink_option,
}


def judge_option(change: OptionChange) -> OptionVerdict:
    """The combined verdict on a changed option over all uses of the table."""
    found = [_judge_use(change, used) for used in change.uses]
    if not found:
        return OptionVerdict(
            "only queries that were added or removed use the table",
            unknown("the table's queries were added or removed"),
        )
    verdict = combined(each.verdict for each in found)
    worst = max(found, key=lambda each: each.verdict.outcome.rank)
    return OptionVerdict(worst.sentence, verdict)


def changed_keys(before: Options, after: Options) -> tuple[str, ...]:
    """The keys of the changed options, sorted."""
    return tuple(sorted(key for key in {*before, *after} if before.get(key) != after.get(key)))


def _judge_use(change: OptionChange, used: UsedTable) -> OptionVerdict:
    fact = registry.option(change.connector, used.use, change.key)
    if fact is None and used.use is TableUse.LOOKUP:
        fact = effect_by_name(change)
    found = _judge_effect(change, used, fact)
    if found.verdict.outcome is Outcome.COMPATIBLE and (why := _doubt(change, fact)):
        return OptionVerdict(why, unknown(f"'{change.key}' of {change.connector}: {why}"))
    return found


def _judge_effect(change: OptionChange, used: UsedTable, fact: OptionFact | None) -> OptionVerdict:
    if used.use is TableUse.LOOKUP and change.key == "lookup.async":
        if registry.lookup(change.connector).support is LookupSupport.SYNCHRONOUS:
            sentence = "the connector may not have this option, because it looks up rows one at a time"
            return OptionVerdict(sentence, unknown(sentence))
        return judge_lookup_option(change, OptionFact(change.key, OptionEffect.STATE), used.pair)
    if selects_format(change):
        return _JUDGES[used.use](change, OptionFact(change.key, OptionEffect.DECODING), used.pair)
    read_in_it = fact is None and used.use is TableUse.SOURCE and is_format_option(change)
    if read_in_it and (nothing := stateless.keeps_nothing(used.pair)):
        return stateless_verdict(nothing)
    if (
        fact is not None
        and fact.default is not None
        and len({value and value.lower() for value in effective_values(change, fact)}) == 1
    ):
        sentence = "the value is the connector's default"
        return OptionVerdict(sentence, inferred(Outcome.COMPATIBLE, fact.document, ids=_MECHANISM[used.use]))
    if fact is None or fact.effect is OptionEffect.NOT_KNOWN:
        old_style = change.before.get("connector.type") or change.after.get("connector.type")
        who = change.connector or (f"the old connector.type {old_style}" if old_style else "the table's catalog")
        unknown_sink = used.use is TableUse.SINK and registry.sink(change.connector).state is SinkState.NOT_KNOWN
        sentence = (
            f"the effect of the option on a restore was not measured with {who}, and no document describes it as "
            f"harmless"
        )
        sentence = fact.note if fact is not None else sentence
        return OptionVerdict(
            sinks.only_the_sink(change.connector) if unknown_sink else sentence,
            unknown(f"no restore with different values of such options of {who}"),
        )
    if fact.effect is OptionEffect.IGNORED:
        sentence = f"a table that is {used.use.value} ignores the option"
        return OptionVerdict(sentence, inferred(Outcome.COMPATIBLE, fact.document, ids=_MECHANISM[used.use]))
    return _JUDGES[used.use](change, fact, used.pair)


OnVvr = Callable[[str, Options, Options], Verdict]
"""Function that returns the verdict on VVR from an option's name and all options of both sides."""


def option_matches(
    change: Change, kind: str, table: str, difference: Difference, uses: Sequence[UsedTable], on_vvr: OnVvr
) -> Iterator[RuleMatch]:
    """Matches for changed options of a table; options with the same sentence and verdicts share a match."""
    before, after = difference.before or {}, difference.after or {}
    groups: dict[tuple[str, Verdict, Verdict], list[str]] = {}
    for key in changed_keys(before, after):
        connector = change.tables(table)[0].option("connector")
        found = judge_option(OptionChange(table, connector, key, before, after, uses))
        groups.setdefault((found.sentence, found.verdict, on_vvr(key, before, after)), []).append(key)
    for (sentence, verdict, vvr), keys in groups.items():
        old, new = (format_value({key: side[key] for key in keys if key in side}) for side in (before, after))
        yield difference.match(
            f"{kind} table {table}: {', '.join(keys)} changed",
            old,
            new,
            verdicts={"vvr": vvr, "flink": verdict},
            notes={"flink": f": {sentence}"},
            options=tuple(keys),
        )


def judge_options(
    table: str, connector: str | None, before: Options, after: Options, uses: Iterable[UsedTable]
) -> OptionVerdict | None:
    """The combined verdict on a table's changed options, with the worst sentence; None without a change."""
    used = tuple(uses)
    found = {
        key: judge_option(OptionChange(table, connector, key, before, after, used))
        for key in changed_keys(before, after)
    }
    if not found:
        return None
    worst = max(found, key=lambda key: found[key].verdict.outcome.rank)
    return OptionVerdict(f"{worst}: {found[worst].sentence}", combined(each.verdict for each in found.values()))


_CHOICES: Mapping[str, frozenset[str]] = {
    "sink.delivery-guarantee": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.semantic": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.partitioner": frozenset({"default", "fixed", "round-robin"}),
    "scan.watermark.emit.strategy": frozenset({"on-periodic", "on-event"}),
}
"""Values that the Kafka connector accepts; ``sink.partitioner`` also accepts class names."""
_STARTUP = "scan.startup.mode"
_STARTUP_NEEDS: Mapping[str, str] = {
    "earliest-offset": "",
    "latest-offset": "",
    "group-offsets": "",
    "timestamp": "scan.startup.timestamp-millis",
    "specific-offsets": "scan.startup.specific-offsets",
}
_FILE_SYSTEM = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(?://([^/]*))?")
_NAMED_ALIKE = ("ignore-parse-errors", "fail-on-missing-field")
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})
_WITH_LENGTH = frozenset({"VARCHAR", "STRING", "VARBINARY", "BYTES"})
_DRAWN: Mapping[str, frozenset[str]] = {
    "min": _NUMBERS,
    "max": _NUMBERS,
    "length": _WITH_LENGTH,
    "var-len": _WITH_LENGTH,
    "max-past": frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"}),
    "null-rate": frozenset(),
}
"""Options of datagen for random values, with the column types that support them; empty for any type."""
_TOLERANT = "csv.ignore-parse-errors"
_POSITIVE = re.compile("[1-9][0-9]*")
_PLACES = (OptionEffect.TARGET, OptionEffect.ADDRESS, OptionEffect.READ)
_KEY_PLACES = ("key.fields", "value.fields-include")
_COMES_OR_GOES: Mapping[str, str] = {
    "source.monitor-interval": "a source with this option stores different positions than a source without this option"
}


def _doubt(change: OptionChange, fact: OptionFact | None) -> str:
    """Reason why a compatible verdict on the changed option is doubtful; "" without doubt."""
    key, after = change.key, change.after
    if change.connector == "filesystem" and key == "path" and len({_file_system(each) for each in change.values}) > 1:
        return "unfinished files are in the old file system, and the sink may be unable to complete them there"
    if change.connector == "filesystem" and key == _TOLERANT and after.get(key, "").lower() != "true":
        return "skipped lines may count toward the stored position in a file"
    if change.connector == "datagen" and key.endswith(".end") and not _ends_later(change.values):
        return "the sequence may already be past the new end"
    if None in change.values and key in _COMES_OR_GOES:
        return _COMES_OR_GOES[key]
    if fact is not None and fact.effect in _PLACES and key not in after and not _has_renamed_option(change):
        return "the connector may refuse a table without this option"
    if change.connector == "datagen" and key in after and (why := _generator_fault(change, after)):
        return why
    if key in _CHOICES and key in after and after[key].lower() not in _CHOICES[key]:
        return f"'{after[key]}' may not be a valid value"
    of_connector = fact is not None and "*" in fact.key and format_option(key) is None
    if of_connector and key in after and artifacts.undeclared(change.connector, key):
        return "no measured version of the connector declares this option, and Flink refuses undeclared options"
    if key in _KEY_PLACES and _reads_other_places(change):
        return "a format of the table reads columns by position, and the columns at these positions changed"
    if change.connector == "kafka" and key == "topic" and ";" in after.get(key, "") and _is_written(change):
        return "a sink writes to several topics only through a metadata column that names the topic"
    return (change.connector == "kafka" and _startup_fault(after)) or _conflicting_options(change.connector, after)


def _reads_other_places(change: OptionChange) -> bool:
    """True if the columns of a message's key or value changed while its format reads them by position."""
    sources = [used for used in change.uses if used.use is TableUse.SOURCE]
    tables = [[*used.pair.old_program.tables, *used.pair.new_program.tables] for used in sources]
    columns = next((each.physical for side in tables for each in side if each.name == change.table), ())
    old, new = (_columns_by_place(side, columns) for side in (change.before, change.after))
    return any(old[part] != new[part] for part in old.keys() & new.keys())


def _columns_by_place(options: Options, columns: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The columns of a message's key and value, for each part whose format reads columns by position."""
    key = [each.strip() for each in options.get("key.fields", "").split(";")]
    apart = options.get("value.fields-include", "ALL").upper() == "EXCEPT_KEY"
    value = [each for each in columns if not (apart and each in key)]
    named = {"key": options.get("key.format"), "value": options.get("value.format", options.get("format"))}
    found = {part: FORMATS.get(format or "") for part, format in named.items()}
    parts = {"key": key, "value": value}
    return {part: parts[part] for part, each in found.items() if each and (each.by_place or each.name == "raw")}


def _is_written(change: OptionChange) -> bool:
    return any(used.use is TableUse.SINK for used in change.uses)


def _generator_fault(change: OptionChange, after: Options) -> str:
    """Reason why datagen may refuse the changed option; "" if it accepts the option."""
    if change.key == "rows-per-second":
        return "" if _POSITIVE.fullmatch(after[change.key]) else "the value may not be a valid number of rows"
    field, _, option = change.key.removeprefix("fields.").rpartition(".")
    if option not in _DRAWN:
        return ""
    if after.get(f"fields.{field}.kind", "random").lower() != "random":
        return f"column {field} is a sequence, so its values are not random"
    for used in change.uses:
        table = used.pair.new_program.table(change.table)
        column = next((each for each in (table.stored if table else ()) if each.name == field), None)
        if column is None:
            return f"the table may have no column {field} with random values"
        types = _DRAWN[option]
        if (types and column.type.name not in types) or (option == "null-rate" and not column.type.nullable):
            return f"the type of column {field} may not support '{option}'"
    return ""


def _ends_later(ends: tuple[str | None, str | None]) -> bool:
    """True if the old and the new end of a number sequence are positive, and the new end is greater."""
    old, new = (int(end) if end and _POSITIVE.fullmatch(end) else 0 for end in ends)
    return 0 < old < new


def _file_system(path: str | None) -> tuple[str, str]:
    """Scheme and host or bucket of a path; ``file:`` for a path without a scheme."""
    found = _FILE_SYSTEM.match(path or "")
    return (found[1].lower(), found[2] or "") if found else ("file:", "")


def _has_renamed_option(change: OptionChange) -> bool:
    """True if a different option, such as a topic pattern, replaces the removed option."""
    key, value = change.key, change.before.get(change.key)
    if key in ("topic", "topic-pattern"):
        return bool({"topic", "topic-pattern"} & change.after.keys())
    renamed = (each for each in change.after if each.endswith(f".{key}") or key.endswith(f".{each}"))
    return change.connector not in registry.catalogue() and any(change.after[each] == value for each in renamed)


def _startup_fault(after: Options) -> str:
    if _STARTUP not in after:
        return ""
    mode = after[_STARTUP].lower()
    if mode not in _STARTUP_NEEDS:
        return f"'{mode}' may not be a valid value of '{_STARTUP}'"
    needed = _STARTUP_NEEDS[mode]
    return f"'{_STARTUP}' = '{mode}' requires '{needed}'" if needed and needed not in after else ""


def _conflicting_options(connector: str | None, after: Options) -> str:
    """Description of missing or mutually exclusive new options; "" if there are none."""
    guarantee = after.get("sink.delivery-guarantee", after.get("sink.semantic", "")).lower()
    kafka = connector in ("kafka", "upsert-kafka")
    if kafka and guarantee == "exactly-once" and "sink.transactional-id-prefix" not in after:
        return "exactly-once requires 'sink.transactional-id-prefix'"
    if kafka and guarantee == "exactly-once" and after.get("properties.acks", "all") not in ("all", "-1"):
        return "a transactional producer supports no 'properties.acks' other than all"
    if {"topic", "topic-pattern"} <= after.keys():
        return "'topic' and 'topic-pattern' exclude each other"
    for prefix in {key.rpartition(".")[0] for key in after if key.endswith(_NAMED_ALIKE)}:
        if all(after.get(f"{prefix}.{name}", "").lower() == "true" for name in _NAMED_ALIKE):
            return f"'{prefix}.{_NAMED_ALIKE[0]}' and '{prefix}.{_NAMED_ALIKE[1]}' exclude each other"
        if not _format_of(prefix, after):
            return f"the options of '{prefix}' may not belong to any format of the table"
    return ""


def _format_of(prefix: str, after: Options) -> bool:
    """True if the prefix belongs to a format that the options select."""
    side, dot, name = prefix.rpartition(".")
    return after.get(f"{side}{dot}format", "").lower() == name.lower()
