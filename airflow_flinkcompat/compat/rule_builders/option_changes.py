"""One changed option of a table: facts for every use of it, and values that a connector refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.table_use import UsedTable
from airflow_flinkcompat.compat.rule import Verdict, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.connectors import FORMATS, Known, OptionEffect, OptionFact, TableUse, catalogue, format_option
from airflow_flinkcompat.model import Outcome

Options = Mapping[str, str]
_PARALLELISM = "parallelism.default"
_LOOPBACK = re.compile(r"(?<![\w.-])(?:localhost|127\.0\.0\.1|\[::1\])(?![\w-])")


@dataclass(frozen=True)
class OptionChange:
    """One differing option, with all options of the table on both sides, and its uses in the queries."""

    table: str
    connector: str | None
    key: str
    before: Options = field(repr=False)
    after: Options = field(repr=False)
    uses: Sequence[UsedTable] = field(default=())

    @property
    def values(self) -> tuple[str | None, str | None]:
        return self.before.get(self.key), self.after.get(self.key)


@dataclass(frozen=True)
class OptionVerdict:
    """A sentence about one option, and the verdict."""

    says: str
    verdict: Verdict


def harmless(
    fact: OptionFact, says: str, mechanism: tuple[str, ...], other_evidence: tuple[str, ...] = ()
) -> OptionVerdict:
    """Compatible by its own restores, or by those of the same mechanism if a document describes it."""
    if fact.ids:
        return OptionVerdict(fact.says or says, right(*fact.ids))
    return OptionVerdict(
        fact.says or says, inferred(Outcome.COMPATIBLE, fact.document, ids=mechanism, other_evidence=other_evidence)
    )


def decides(fact: OptionFact) -> str:
    """The option's effect, as the beginning of a sentence."""
    return f"it decides {fact.effect.value}"


def not_with_this_connector(fact: OptionFact) -> str:
    """The option's effect, without a restore."""
    return f"{decides(fact)}; the effect of another value on a restored job was not measured with this connector"


def not_measured(change: OptionChange, fact: OptionFact, says: str) -> OptionVerdict:
    """Unknown, with the known facts about the option."""
    grounds = f" ({fact.document})" if fact.document else ""
    return OptionVerdict(says, unknown(f"'{change.key}' of {change.connector}{grounds}: no restore confirms it"))


def nothing_stored(verdict: Verdict) -> OptionVerdict:
    """A sentence for any option of a job without state."""
    return OptionVerdict("its source, its query and its sink store nothing", verdict)


def given(change: OptionChange, fact: OptionFact) -> tuple[str | None, str | None]:
    """The values of both sides, with the connector's default for an omitted one if every version has it."""
    old, new = (fact.default if value is None else value for value in change.values)
    return old, new


def names_a_format(change: OptionChange) -> bool:
    """True if the option names the connector's format."""
    facts = connectors.catalogue().get(change.connector or "")
    return facts is not None and change.key in facts.formats


def formats(change: OptionChange) -> tuple[str, str]:
    """Format of the values before and after, "" if none is set."""
    keys = connectors.catalogue()[change.connector or ""].formats
    old, new = (next((side[key] for key in keys if key in side), "") for side in (change.before, change.after))
    return old, new


def of_its_format(change: OptionChange) -> bool:
    """True if each side with the option reads it in the format whose name it begins with."""
    sides = zip((change.before, change.after), formats(change), strict=True) if _has_formats(change) else ()
    found = [change.key.startswith(f"{format}.") for side, format in sides if change.key in side]
    return bool(found) and all(found)


def _has_formats(change: OptionChange) -> bool:
    return (change.connector or "") in connectors.catalogue()


def append_only(*names: str) -> bool:
    """True if rows of all these formats are certainly only added."""
    return all(name in FORMATS and FORMATS[name].appends is Known.YES for name in names)


def members(address: str | None) -> set[str]:
    """The hosts of an address, this machine's by one name: a common one means the same system."""
    return {_LOOPBACK.sub("localhost", part.strip().lower()) for part in (address or "").split(",") if part.strip()}


def parallelism(change: OptionChange, fact: OptionFact, pair: PipelinePair, equal: tuple[str, ...]) -> OptionVerdict:
    """A parallelism of its own unchains an operator; one that is the job's changes nothing."""
    jobs = [
        settings.effective(dict(pipeline.settings), _PARALLELISM, "flink")
        for pipeline in (pair.old_pipeline, pair.new_pipeline)
    ]
    own = [None if value == job else value for value, job in zip(change.values, jobs, strict=True)]
    if own[0] == own[1]:
        return OptionVerdict("it is the job's parallelism anyway", right(*equal))
    if None in jobs:
        return OptionVerdict(f"{fact.says}, unless it equals the job's", unknown(f"{_PARALLELISM} is not set"))
    if not fact.ids:
        return not_measured(change, fact, fact.says)
    return OptionVerdict(fact.says, refused_at_submit(*fact.ids))


_CHOICES: Mapping[str, frozenset[str]] = {
    "sink.delivery-guarantee": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.semantic": frozenset({"none", "at-least-once", "exactly-once"}),
    "sink.partitioner": frozenset({"default", "fixed", "round-robin"}),
    "scan.watermark.emit.strategy": frozenset({"on-periodic", "on-event"}),
}
"""Values that the Kafka connector accepts; ``sink.partitioner`` also accepts unknown classes."""
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
"""Options of datagen for drawn values, and the column types that accept them; any if not listed."""
_TOLERANT = "csv.ignore-parse-errors"
_POSITIVE = re.compile("[1-9][0-9]*")
_PLACES = (OptionEffect.TARGET, OptionEffect.ADDRESS, OptionEffect.READ)
_KEY_PLACES = ("key.fields", "value.fields-include")
_COMES_OR_GOES: Mapping[str, str] = {
    "source.monitor-interval": "a source with this option and one without it store different positions"
}


def doubt(change: OptionChange, fact: OptionFact | None) -> str:
    """Reason why restores with another value of an option do not cover this change."""
    key, after = change.key, change.after
    if change.connector == "filesystem" and key == "path" and len({_file_system(each) for each in change.values}) > 1:
        return "unfinished files were started in another file system, and the new one may be unable to complete them"
    if change.connector == "filesystem" and key == _TOLERANT and after.get(key, "").lower() != "true":
        return "skipped lines may count toward the stored position in a file"
    if change.connector == "datagen" and key.endswith(".end") and not _longer(change.values):
        return "the sequence may already be past the new end"
    if None in change.values and key in _COMES_OR_GOES:
        return _COMES_OR_GOES[key]
    if fact is not None and fact.effect in _PLACES and key not in after and not _another_way(change):
        return "the connector may refuse a table without it"
    if change.connector == "datagen" and key in after and (why := _of_generator(change, after)):
        return why
    if key in _CHOICES and key in after and after[key].lower() not in _CHOICES[key]:
        return f"'{after[key]}' may not be a valid value"
    of_connector = fact is not None and "*" in fact.key and format_option(key) is None
    if of_connector and key in after and connectors.undeclared(change.connector, key):
        return "no measured version of the connector declares it, and Flink refuses undeclared options"
    if key in _KEY_PLACES and _reads_other_places(change):
        return "one of its formats reads columns by position, and the positions now hold different columns"
    if change.connector == "kafka" and key == "topic" and ";" in after.get(key, "") and _written(change):
        return "a sink writes to several topics only through a metadata column that names the topic"
    return (change.connector == "kafka" and _startup(after)) or _together(change.connector, after)


def _reads_other_places(change: OptionChange) -> bool:
    """True if a message that is read by position has other columns in its key or its value."""
    sources = [used for used in change.uses if used.use is TableUse.SOURCE]
    tables = [[*used.pair.old_program.tables, *used.pair.new_program.tables] for used in sources]
    columns = next((each.physical for side in tables for each in side if each.name == change.table), ())
    old, new = (_by_place(side, columns) for side in (change.before, change.after))
    return any(old[part] != new[part] for part in old.keys() & new.keys())


def _by_place(options: Options, columns: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The columns of a message's key and value, where they are found by their place alone."""
    key = [each.strip() for each in options.get("key.fields", "").split(";")]
    apart = options.get("value.fields-include", "ALL").upper() == "EXCEPT_KEY"
    value = [each for each in columns if not (apart and each in key)]
    named = {"key": options.get("key.format"), "value": options.get("value.format", options.get("format"))}
    found = {part: FORMATS.get(format or "") for part, format in named.items()}
    parts = {"key": key, "value": value}
    return {part: parts[part] for part, each in found.items() if each and (each.by_place or each.name == "raw")}


def _written(change: OptionChange) -> bool:
    return any(used.use is TableUse.SINK for used in change.uses)


def _of_generator(change: OptionChange, after: Options) -> str:
    """Reason why datagen may refuse an option: each applies to certain types, and to drawn values."""
    if change.key == "rows-per-second":
        return "" if _POSITIVE.fullmatch(after[change.key]) else "it may not be a valid number of rows"
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


def _longer(ends: tuple[str | None, str | None]) -> bool:
    """True if a sequence of numbers ends later than before."""
    old, new = (int(end) if end and _POSITIVE.fullmatch(end) else 0 for end in ends)
    return 0 < old < new


def _file_system(path: str | None) -> tuple[str, str]:
    """The scheme of a path, and the bucket or host; one that names none is taken for Flink's default."""
    found = _FILE_SYSTEM.match(path or "")
    return (found[1].lower(), found[2] or "") if found else ("file:", "")


def _another_way(change: OptionChange) -> bool:
    """True if the place is in another option: a topic pattern, or a key with one word more or less."""
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
        return f"'{mode}' may not be a valid value of '{_STARTUP}'"
    needed = _STARTUP_NEEDS[mode]
    return f"'{_STARTUP}' = '{mode}' requires '{needed}'" if needed and needed not in after else ""


def _together(connector: str | None, after: Options) -> str:
    """Missing or mutually exclusive parts of the new options."""
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
    """True if a format is set whose options have this prefix."""
    side, dot, name = prefix.rpartition(".")
    return after.get(f"{side}{dot}format", "").lower() == name.lower()
