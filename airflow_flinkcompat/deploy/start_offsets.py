"""Starting positions of sources. A start without state can still resume from stored offsets.

A job with state (savepoint, checkpoint) resumes every source from its stored offset and ignores startup options
(measured on Flink 2.3). Without state, each source begins at the requested position, or as its own options specify. A
requested position is translated to connector options that override the table's options in the session of the start
(``tables.overlay``). So the reviewed script and its hash stay unchanged.

The positions of a stopped job's Kafka sources are read from its savepoint, because all other records are inexact. All
statements here were measured on Flink 2.3 with version 5.0 of the Kafka connector. The offset that REST shows before a
stop (``currentOffset``) lacks the rows read since its last update, and so does the consumer group. Kafka's offset
commits are asynchronous, and a job's first commit may fail. In 4 of 4 stops, the consumer group did not receive the
final offset. For example, one group's offset was 3 instead of 503.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_flinkcompat.compat.hand_over import HandOver, SourceStart
from airflow_flinkcompat.compat.rule_builders.table_options import start_clause, startup_options
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import BY_OFFSET, ISO, MILLIS
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.offset_choices import Choice, Offset, SourceOffsets, iso
from airflow_flinkcompat.deploy.target import SourceTable, TablePath
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTEAD = f"Choose earliest, latest, a time or {Offset.SCRIPT} for this table"


@dataclass(frozen=True)
class StartupOffset:
    """Starting position of one source, with its options; ``words`` is a line for people."""

    path: TablePath
    connector: str
    choice: str
    options: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    topic: str = field(default="", compare=False)
    # True if the new job uses the former job's consumer group. The group's offset then applies to partitions that the
    # savepoint lacks.
    group_counts: bool = field(default=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        row = {"path": list(self.path), "connector": self.connector, "choice": self.choice}
        return {**row, "options": dict(self.options), "words": self.words}

    @property
    def stored(self) -> bool:
        return self.choice == Offset.AS_STORED


def with_state(path: str | None) -> tuple[dict[str, Any], ...]:
    words = (
        f"every source resumes from its offset in {path}; a source without a stored offset starts as its options "
        "specify"
    )
    return ({"choice": str(Offset.AS_STORED), "words": words},)


def unknown_startup_offsets(reason: str) -> tuple[StartupOffset, ...]:
    """Record of a job whose sources are unknown, so that they start as the script's options specify."""
    words = f"every source starts as the script's options specify; the list of sources is unknown: {reason}"
    return (StartupOffset(("", "", ""), "", str(Offset.SCRIPT), words=words),)


def check_startup_offsets(record: HandOver, offsets: SourceOffsets, startup_offsets: Sequence[StartupOffset]) -> None:
    """Check that sources begin early enough for the live job of a hand-over. Raises DeployRefused."""
    for source in record.sources:
        begun = next((each for each in startup_offsets if source.table in _names(each.path)), None)
        choice = Choice.of(begun.choice) if begun else offsets.of_table(source.table.split("."))
        if choice is not None and choice.kind is Offset.AS_STORED:
            raise DeployRefused(
                f"table {source.table}: the offset of the former job differs from the start that the hand-over needs "
                f"({source.time_column} = {source.live_from}). Choose an earlier time, or earliest"
            )
        if missed := replace(source, startup=_startup(choice, source.startup)).misses():
            raise DeployRefused(missed)


def decide(
    sources: Sequence[SourceTable],
    offsets: SourceOffsets,
    record: HandOver | None = None,
    former: Sequence[SourceTable] = (),
) -> tuple[StartupOffset, ...]:
    """Starting positions of a stateless start; ``former``: the former job's sources. Raises DeployRefused."""
    known = {name for source in sources for name in _names(source.path)}
    if strangers := [name for name in offsets.tables if name not in known]:
        reads = ", ".join(source.name for source in sources) or "no known table"
        raise DeployRefused(f"source offsets name {', '.join(strangers)}, but the job reads {reads}")
    starts = {start.table: start for start in record.sources} if record else {}
    found = []
    for source in sources:
        choice = offsets.of_table(source.path)
        start = next((starts[name] for name in _names(source.path) if name in starts), None)
        found.append(
            _start_position(source, choice, former) if choice or not start else _hand_over_position(source, start)
        )
    return tuple(found)


def settle(startup_offsets: Sequence[StartupOffset], location: str | None) -> tuple[StartupOffset, ...]:
    """Fill in as-stored positions from the savepoint at ``location``. Raises PositionsUnknown."""
    if not any(offset.stored for offset in startup_offsets):
        return tuple(startup_offsets)
    if location is None:
        raise PositionsUnknown("the former job left no savepoint with its offsets")
    positions = read_positions(location)
    return tuple(_with_stored_position(each, positions) if each.stored else each for each in startup_offsets)


def trial(startup_offsets: Sequence[StartupOffset]) -> dict[TablePath, Mapping[str, str]]:
    """Options by table for validation before the stop, while the former job's positions are unknown."""
    return {each.path: options for each in startup_offsets if (options := _at({0: 0}) if each.stored else each.options)}


def tables(rows: Sequence[Mapping[str, Any]]) -> dict[TablePath, Mapping[str, str]]:
    """The options by table in the ``offsets`` of a ledger entry."""
    return {(row["path"][0], row["path"][1], row["path"][2]): row["options"] for row in rows if row.get("options")}


def _start_position(source: SourceTable, choice: Choice | None, former: Sequence[SourceTable]) -> StartupOffset:
    if choice is None or choice.kind is Offset.SCRIPT:
        words = f"table {source.name} {start_clause(source.connector, source.options)}"
        return StartupOffset(source.path, source.connector, str(Offset.SCRIPT), words=words)
    _require_no_hint(source, choice)
    if choice.kind is Offset.AS_STORED:
        return _as_stored(source, former)
    connector = registry.source(source.connector).startup
    templates = connector.choices.get(choice.kind) if connector else None
    if templates is None:
        raise DeployRefused(_cannot_message(source, f"start at {choice}"))
    options = _filled(templates, choice)
    by = ", ".join(f"{key} = {value}" for key, value in options.items()) or "by default"
    words = f"table {source.name} starts at {choice}: {by}"
    return StartupOffset(source.path, source.connector, str(choice), options, words)


def _hand_over_position(source: SourceTable, start: SourceStart) -> StartupOffset:
    """Start at the time from which the live job needs rows, if the source can start at a record time."""
    connector = registry.source(source.connector).startup
    timed = connector is not None and Offset.TIMESTAMP in connector.choices and start.live_from.endswith("Z")
    if timed and start.time_column in source.record_time and not {*startup_options(source.connector)} & source.hinted:
        begun = _start_position(source, Choice(Offset.TIMESTAMP, datetime.fromisoformat(start.live_from)), ())
        return replace(begun, words=f"{begun.words} (from the hand-over)")
    return _start_position(source, None, ())


def _as_stored(source: SourceTable, former: Sequence[SourceTable]) -> StartupOffset:
    connector = registry.source(source.connector).startup
    if connector is None or not connector.positions:
        raise DeployRefused(_cannot_message(source, "resume from the former job's offsets without its state"))
    topic = source.options.get("topic", "")
    if not topic or ";" in topic:
        raise DeployRefused(
            f"table {source.name} reads several topics, but Flink's Kafka connector accepts start offsets of only one "
            f"topic. Without state, the table cannot resume from the former job's offsets. {_INSTEAD}"
        )
    same = [each for each in former if each.options.get("topic") == topic]
    if not same:
        raise DeployRefused(f"table {source.name}: the former job did not read topic {topic}. {_INSTEAD}")
    brokers = "properties.bootstrap.servers"
    if {each.options.get(brokers) for each in same} != {source.options.get(brokers)}:
        raise DeployRefused(
            f"table {source.name}: {brokers} has changed, and offsets are valid only in their own Kafka cluster. "
            f"{_INSTEAD}"
        )
    group = "properties.group.id"
    kept = {each.options.get(group) for each in same} == {source.options.get(group)}
    reset = source.options.get("properties.auto.offset.reset", "none")
    words = f"table {source.name} resumes from the offsets of the former job"
    return StartupOffset(
        source.path, source.connector, str(Offset.AS_STORED), {}, words, topic, kept and reset in ("none", "earliest")
    )


def _with_stored_position(offset: StartupOffset, positions: Mapping[str, Mapping[int, int]]) -> StartupOffset:
    places = positions.get(offset.topic)
    table = f"table {offset.path[2]}"
    if not places:
        raise PositionsUnknown(f"{table}: the savepoint contains no offset of topic {offset.topic}")
    lost = [part for part, at in places.items() if at == -1 or (at == COMMITTED and not offset.group_counts)]
    if lost:
        raise PositionsUnknown(
            f"{table}: the former job had not yet read partition {', '.join(map(str, sorted(lost)))} of "
            f"topic {offset.topic}, and the savepoint does not contain its start offset"
        )
    options = _at(places)
    words = f"{offset.words}: {options['scan.startup.specific-offsets']}"
    return replace(offset, options=options, words=words)


def _at(places: Mapping[int, int]) -> dict[str, str]:
    mode = {"scan.startup.mode": "specific-offsets"}
    return {**mode, "scan.startup.specific-offsets": specific_offsets(places)}


def _require_no_hint(source: SourceTable, choice: Choice) -> None:
    counts = set(startup_options(source.connector))
    if timed := sorted(counts & source.hinted):
        raise DeployRefused(
            f"table {source.name}: a hint in the script sets {', '.join(timed)} and overrides the table's options, so "
            f"the table cannot start at {choice}. Remove the hint, or choose {Offset.SCRIPT}"
        )


def _cannot_message(source: SourceTable, what: str) -> str:
    connector = source.connector or "the connector of its catalog"
    own = start_clause(source.connector, source.options)
    return f"table {source.name} ({connector}) cannot {what}. Choose {Offset.SCRIPT} for this table, which then {own}"


def _startup(choice: Choice | None, own: Mapping[str, str]) -> Mapping[str, str]:
    """The effective startup options, written as options of the Kafka connector."""
    if choice is None or choice.kind is Offset.SCRIPT:
        return own
    return _filled(BY_OFFSET[choice.kind], choice)


def _filled(templates: Mapping[str, str], choice: Choice) -> dict[str, str]:
    if choice.at is None:
        return dict(templates)
    values = {MILLIS: str((choice.at - _EPOCH) // timedelta(milliseconds=1)), ISO: iso(choice.at, "milliseconds")}
    return {key: values.get(value, value) for key, value in templates.items()}


def _names(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(".".join(path[i:]) for i in range(len(path)))


EARLIEST, COMMITTED = -2, -3
"""The Kafka connector's offsets of unread partitions. -1 (latest) is rejected, because the end moves."""
_READERS = "SourceReaderState"
_LENGTH = struct.Struct(">i")
_PARTITION = struct.Struct(">iqq")


@dataclass(frozen=True)
class StoredList:
    """A list of operator state with its bytes and the offset of each element."""

    name: str
    begins: tuple[int, ...]
    content: bytes


def read_lists(path: str, name: str) -> tuple[StoredList, ...]:
    """The operator list states named ``name`` in the savepoint at ``path``. Raises SavepointUnreadable."""
    return tuple(
        StoredList(name, state.begins, read_handle(lists.handle, path))
        for operator in read_metadata(path).operators
        for lists in operator.lists
        for state in lists.lists
        if state.name == name
    )


class PositionsUnknown(Exception):
    """The source positions are not in a savepoint or cannot be read. The error message names the reason."""


def read_positions(savepoint: str) -> dict[str, dict[int, int]]:
    """The next offset to read, by topic and partition. Raises PositionsUnknown."""
    try:
        return positions_of(read_lists(savepoint, _READERS))
    except SavepointUnreadable as error:
        raise PositionsUnknown(f"cannot read the job's offsets in the savepoint {savepoint}: {error}") from None


def positions_of(states: Iterable[StoredList]) -> dict[str, dict[int, int]]:
    """Kafka positions in the states of source readers. Raises PositionsUnknown."""
    found: dict[str, dict[int, int]] = {}
    for state in states:
        for begin in state.begins:
            split = _split(state.content, begin)
            if split is None:
                continue
            topic, partition, offset = split
            before = found.setdefault(topic, {}).setdefault(partition, offset)
            if before != offset:
                raise PositionsUnknown(
                    f"two sources of the job are at different offsets of topic {topic}, partition {partition} "
                    f"({before} and {offset}), so resuming from one position would lose or repeat rows"
                )
    return found


def specific_offsets(partitions: Mapping[int, int]) -> str:
    """Offsets formatted for Flink's Kafka option, as in ``partition:0,offset:42;partition:1,offset:300``."""
    return ";".join(f"partition:{number},offset:{offset}" for number, offset in sorted(partitions.items()))


def _split(content: bytes, begin: int) -> tuple[str, int, int] | None:
    """Topic, partition and position in a Kafka reader's state, or None for any other content."""
    try:
        (whole,) = _LENGTH.unpack_from(content, begin)
        version, length = struct.unpack_from(">ii", content, begin + 4)
        (name,) = struct.unpack_from(">H", content, begin + 12)
        if version != 0 or whole != length + 8 or length != 2 + name + _PARTITION.size:
            return None
        topic = content[begin + 14 : begin + 14 + name].decode("ascii")
        partition, offset, _stop = _PARTITION.unpack_from(content, begin + 14 + name)
    except (struct.error, UnicodeDecodeError):
        return None
    return (topic, partition, offset) if partition >= 0 and offset >= COMMITTED else None
