"""Options that a connector refuses, or that mean something else where they come or go than where they change."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.compat.rule_builders.options.option_verdict import OptionChange, Options
from airflow_flinkcompat.connectors import OptionEffect, OptionFact, TableUse, catalogue

_CHOICES: Mapping[str, frozenset[str]] = {
    "sink.delivery-guarantee": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.semantic": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.partitioner": frozenset({"default", "fixed", "round-robin"}),
    "scan.watermark.emit.strategy": frozenset({"on-periodic", "on-event"}),
}
"""Values that the Kafka connector takes; ``sink.partitioner`` takes classes too, of which no script tells anything."""
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
"""Options of datagen for values that are drawn, and the types of column that take them; any where none is listed."""
_TOLERANT = "csv.ignore-parse-errors"
_POSITIVE = re.compile("[1-9][0-9]*")
_PLACES = (OptionEffect.TARGET, OptionEffect.ADDRESS, OptionEffect.READ)
_COMES_OR_GOES: Mapping[str, str] = {
    "source.monitor-interval": "a source that looks for new files and one that reads a list once store other positions",
}


def doubt(change: OptionChange, fact: OptionFact | None) -> str:
    """Why restores across which an option changed do not speak of this change.

    Args:
        change: The option.
        fact: What the catalogue says of it, None where it does not list it.

    Returns:
        The reason; "" where there is none.
    """
    key, after = change.key, change.after
    if change.connector == "filesystem" and key == "path" and len({_file_system(each) for each in change.values}) > 1:
        return "files that are being written were begun in another file system, which may not take them over"
    if change.connector == "filesystem" and key == _TOLERANT and after.get(key, "").lower() != "true":
        return "lines that were passed over may count in how far a file was read"
    if change.connector == "datagen" and key.endswith(".end") and not _longer(change.values):
        return "the sequence may have gone further already"
    if None in change.values and key in _COMES_OR_GOES:
        return _COMES_OR_GOES[key]
    if fact is not None and fact.effect in _PLACES and key not in after and not _another_way(change):
        return "the connector may refuse a table without it"
    if change.connector == "datagen" and key in after and (why := _of_generator(change, after)):
        return why
    if key in _CHOICES and key in after and after[key].lower() not in _CHOICES[key]:
        return f"'{after[key]}' may be no value of it"
    if change.connector == "kafka" and key == "topic" and ";" in after.get(key, "") and _written(change):
        return "a sink writes into several topics only by a metadata column that names the topic"
    return (change.connector == "kafka" and _startup(after)) or _together(change.connector, after)


def _written(change: OptionChange) -> bool:
    return any(used.use is TableUse.SINK for used in change.uses)


def _of_generator(change: OptionChange, after: Options) -> str:
    """Why datagen may refuse an option: each is one of certain types, and of values that are drawn."""
    if change.key == "rows-per-second":
        return "" if _POSITIVE.fullmatch(after[change.key]) else "it may be no number of rows"
    field, _, option = change.key.removeprefix("fields.").rpartition(".")
    if option not in _DRAWN:
        return ""
    if after.get(f"fields.{field}.kind", "random").lower() != "random":
        return f"column {field} is a sequence, whose values are not drawn"
    for used in change.uses:
        table = next((each for each in used.pair.new_program.tables if each.name == change.table), None)
        column = next((each for each in (table.stored if table else ()) if each.name == field), None)
        if column is None:
            return f"the table may have no column {field} whose values are drawn"
        types = _DRAWN[option]
        if (types and column.type.name not in types) or (option == "null-rate" and not column.type.nullable):
            return f"column {field} may take no '{option}' by its type"
    return ""


def _longer(ends: tuple[str | None, str | None]) -> bool:
    """Whether a sequence of numbers ends later than it did."""
    old, new = (int(end) if end and _POSITIVE.fullmatch(end) else 0 for end in ends)
    return 0 < old < new


def _file_system(path: str | None) -> tuple[str, str]:
    """The scheme of a path, and the bucket or host; one that names none is taken for Flink's default."""
    found = _FILE_SYSTEM.match(path or "")
    return (found[1].lower(), found[2] or "") if found else ("file:", "")


def _another_way(change: OptionChange) -> bool:
    """Whether the place is given by another option: a pattern of topics, or one with a word more or less in front."""
    key, value = change.key, change.before.get(change.key)
    if key in ("topic", "topic-pattern"):
        return bool({"topic", "topic-pattern"} & change.after.keys())
    renamed = (each for each in change.after if each.endswith(f".{key}") or key.endswith(f".{each}"))
    return change.connector not in catalogue() and any(change.after[each] == value for each in renamed)


def _startup(after: Options) -> str:
    if _STARTUP not in after:
        return ""
    mode = after[_STARTUP].lower()
    if mode not in _STARTUP_NEEDS:
        return f"'{mode}' may be no value of '{_STARTUP}'"
    needed = _STARTUP_NEEDS[mode]
    return f"'{_STARTUP}' = '{mode}' asks for '{needed}'" if needed and needed not in after else ""


def _together(connector: str | None, after: Options) -> str:
    """What the new options lack, or what of them excludes each other."""
    guarantee = after.get("sink.delivery-guarantee", after.get("sink.semantic", "")).lower()
    kafka = connector in ("kafka", "upsert-kafka")
    if kafka and guarantee == "exactly-once" and "sink.transactional-id-prefix" not in after:
        return "exactly-once asks for 'sink.transactional-id-prefix'"
    if kafka and guarantee == "exactly-once" and after.get("properties.acks", "all") not in ("all", "-1"):
        return "a producer of transactions takes no other 'properties.acks' than all"
    if {"topic", "topic-pattern"} <= after.keys():
        return "'topic' and 'topic-pattern' exclude each other"
    for prefix in {key.rpartition(".")[0] for key in after if key.endswith(_NAMED_ALIKE)}:
        if all(after.get(f"{prefix}.{name}", "").lower() == "true" for name in _NAMED_ALIKE):
            return f"'{prefix}.{_NAMED_ALIKE[0]}' and '{prefix}.{_NAMED_ALIKE[1]}' exclude each other"
        if not _format_of(prefix, after):
            return f"the options of '{prefix}' may belong to no format of the table"
    return ""


def _format_of(prefix: str, after: Options) -> bool:
    """Whether a format is given under which options of this beginning are looked for."""
    side, dot, name = prefix.rpartition(".")
    return after.get(f"{side}{dot}format", "").lower() == name.lower()
