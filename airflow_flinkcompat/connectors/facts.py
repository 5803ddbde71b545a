"""Types for facts about a connector: state of sources and sinks, and effects of options.

Facts are not verdicts. Each fact cites its evidence: the ids of real restores in the evidence table, or else the
connector's documentation or a class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

EARLIEST, LATEST, TIMESTAMP = "earliest", "latest", "timestamp"
PART_OF_FLINK = "part of Flink"
"""The release of a connector that Flink's distribution contains."""
MILLIS, ISO = "{millis}", "{iso}"
"""Placeholders for a time in an option: milliseconds since 1970, or ISO 8601 in UTC with milliseconds."""


@dataclass(frozen=True)
class Startup:
    """Options that select the starting position of a connector's source.

    Attributes:
        choices: The options for each starting position; empty options if the connector always starts there.
        option: The connector's option for the starting position.
        default: The default value of ``option``.
        more: Other options that only have an effect together with ``option``.
        itself: The starting position of the source if no option is set.
        positions: True if the positions can be read from a job's savepoint and passed to another job.
    """

    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    option: str = ""
    default: str = ""
    more: tuple[str, ...] = ()
    itself: str = ""
    positions: bool = False


BY_OFFSET: Mapping[str, Mapping[str, str]] = {
    EARLIEST: {"scan.startup.mode": "earliest-offset"},
    LATEST: {"scan.startup.mode": "latest-offset"},
    TIMESTAMP: {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": MILLIS},
}
"""The options for each starting position of Kafka's sources, and of Flink CDC's sources."""


class Known(StrEnum):
    """An answer: yes, no or unknown."""

    YES = "yes"
    NO = "no"
    NOT_KNOWN = "not known"


class SourceState(StrEnum):
    """The positions of a source in a savepoint."""

    PARTITIONS = "partitions and their offsets"
    FILES = "files and how far each was read"
    SHARDS = "shards and their sequence numbers"
    LOG = "the position in the database's log, and unread parts of the snapshot"
    TABLE_VERSION = "the version of the table that was read, and its unread files"
    COUNTER = "the number of rows it generated"
    ENDED = "only a mark that it has read everything"
    NOTHING = "nothing"
    NOT_KNOWN = "not known"


class SinkState(StrEnum):
    """The state of a sink in a savepoint."""

    NONE = "nothing"
    WRITER = "the state of its writer"
    TRANSACTIONS = "the state of its writer and uncommitted transactions"
    NOT_KNOWN = "not known"


class KeyDemand(StrEnum):
    """The condition under which a sink requires a primary key."""

    ALWAYS = "it accepts no table without one"
    FOR_UPDATES = "it accepts changing results only with one"
    NOT_KNOWN = "not known"


class LookupSupport(StrEnum):
    """The mode of lookups: always synchronous, or chosen by an option or a hint."""

    SYNCHRONOUS = "one row after the other"
    BY_OPTION = "as set by lookup.async, one after the other unless it is true"
    NOT_KNOWN = "not known"


class TableUse(StrEnum):
    """The use of a table in a query; the effect of an option depends on this use."""

    SOURCE = "read"
    SINK = "written"
    LOOKUP = "looked up"


class OptionEffect(StrEnum):
    """The effect of an option on a restored job, as the end of a sentence that starts with "it decides"."""

    TUNES = "how the same rows are read or written, such as how fast"
    STARTUP = "where a start without state begins"
    CREDENTIALS = "who connects, and how the connection is secured"
    ADDRESS = "where the system is reached"
    READ = "what is read"
    TARGET = "where it is written"
    DECODING = "how rows are read from bytes, and written as bytes"
    KEY = "the key under which a result is written"
    DELIVERY_GUARANTEE = "whether each row counts exactly once, at least once, or perhaps never"
    BOUNDED_END = "where reading ends"
    STATE = "what is stored in savepoints, or which operators Flink plans"
    IGNORED = "nothing here, because only another use of the table reads it"
    NOT_KNOWN = "something that nobody has described"


@dataclass(frozen=True)
class ListedPlaces:
    """A source option that lists several places, such as topics. Each place has separate positions.

    Attributes:
        separator: The separator between the places.
        reordered: Restores with the same places in a different order.
        added: Restores with added places. Such restores return the right rows if a start without state reads new
            places from the beginning.
        from_beginning: The option and value that make a start without state read from the beginning; empty if every
            such start reads from the beginning.
        pattern: The option for a regular expression instead of a list; "" if there is no such option.
        matched: Restores with a regular expression that matches the former places.
    """

    separator: str
    reordered: tuple[str, ...]
    added: tuple[str, ...]
    from_beginning: tuple[str, str] = ("", "")
    pattern: str = ""
    matched: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionFact:
    """The effect of one option, or of all options that match a pattern.

    Attributes:
        key: The name of the option; ``*`` matches any text.
        ids: Restores in which the option was changed. If the effect is harmless, all restores returned the right
            rows; else all failed in the same way. Empty if no restore was run.
        document: The page or class that documents the option, if no restore shows the effect.
        alias_of: The current name, if ``key`` is an older name of the option. The restores in ``ids`` changed the
            option under its current name.
        note: The effect on a restore, as the end of a sentence about the option.
        listed: The list of places in the option's value; None if the value is not a list.
        unless: A second option and its value, with which the restores prove nothing about this option.
        default: The default value in every version in which the option is optional; None if unknown.
        values: The values that the document describes; empty if it describes all values.
        expression: True if the value is a regular expression for table names, and each table is read whole before
            its changes.
    """

    key: str
    effect: OptionEffect
    ids: tuple[str, ...] = ()
    document: str = ""
    alias_of: str = ""
    note: str = ""
    listed: ListedPlaces | None = None
    unless: tuple[str, str] = ("", "")
    default: str | None = None
    values: tuple[str, ...] = ()
    expression: bool = False

    def covers(self, key: str) -> bool:
        """True if this fact applies to an option."""
        return fnmatchcase(key, self.key)


def facts(effect: OptionEffect, document: str, *keys: str, note: str = "") -> tuple[OptionFact, ...]:
    """Facts about several options from one document."""
    return tuple(OptionFact(key, effect, document=document, note=note) for key in keys)


READ_ONCE = (
    "a finished scan is not run again, so nothing is read from the new place; an unfinished one restarts and "
    "repeats rows that were read before"
)
"""The effect of a restore on a scan of :attr:`SourceState.ENDED` if the option selects different rows."""


@dataclass(frozen=True)
class SourceFacts:
    """The state of a connector's source, and the abilities that affect Flink's plan.

    Attributes:
        projection: YES if the source reads only the columns that a query needs, so that no operator drops
            columns.
        filters: YES if the source can evaluate conditions, so that no operator filters the rows.
        watermark: YES if the source generates watermarks, so that no operator does.
        appends: YES if the source only adds rows, unless its format updates or deletes rows.
        upserts: YES if the source declares updates without the row before and whole deletions, but no inserts.
        startup: The options for the starting position of a job without state; None if unknown.
        table_name_option: The option that replaces the script's table name as the name of the external table; ""
            if the source never uses the script's name.
    """

    positions: SourceState = SourceState.NOT_KNOWN
    projection: Known = Known.NOT_KNOWN
    filters: Known = Known.NOT_KNOWN
    watermark: Known = Known.NOT_KNOWN
    metadata: Known = Known.NOT_KNOWN
    appends: Known = Known.NOT_KNOWN
    upserts: Known = Known.NOT_KNOWN
    options: tuple[OptionFact, ...] = ()
    startup: Startup | None = None
    table_name_option: str = ""
    document: str = ""


@dataclass(frozen=True)
class SinkFacts:
    """The state of a connector's sink.

    Attributes:
        stateful_options: Options with values; the sink has state if one of them is set. Empty if the sink always
            has state.
        operators: The number of operators of the sink in a job; None if unknown.
        upserts: YES if the sink accepts the latest row of a primary key without the row before it.
        upserts_appended: YES if the sink requests upserts even for rows that are only added.
        updates: YES if the sink accepts changing results without a primary key.
        row_before: YES if the sink also requests the row before an update. A sink that accepts upserts never requests
            this row.
        primary_key: The condition under which Flink refuses the table without a primary key.
        ids_use_table_name: True if the ids of the sink's stateful operators contain the table's name.
        state_survives_columns: True if the sink's state remains valid after the columns of the table change.
        ids: Restores of jobs with this sink that returned the right rows.
    """

    state: SinkState = SinkState.NOT_KNOWN
    stateful_options: tuple[tuple[str, str], ...] = ()
    operators: int | None = None
    upserts: Known = Known.NOT_KNOWN
    upserts_appended: Known = Known.NOT_KNOWN
    updates: Known = Known.NOT_KNOWN
    row_before: Known = Known.NOT_KNOWN
    primary_key: KeyDemand = KeyDemand.NOT_KNOWN
    ids_use_table_name: bool = False
    state_survives_columns: bool = False
    options: tuple[OptionFact, ...] = ()
    ids: tuple[str, ...] = ()
    document: str = ""

    @property
    def takes_row_before(self) -> Known:
        """YES if the planner keeps the row before an update for this sink."""
        return Known.NO if self.upserts is Known.YES else self.row_before

    def state_with(self, options: Mapping[str, str]) -> SinkState:
        """The state of a sink with these table options; NONE if none of the stateful options is set."""
        needless = self.stateful_options and all(
            options.get(key, "").lower() != value for key, value in self.stateful_options
        )
        return SinkState.NONE if needless else self.state


@dataclass(frozen=True)
class LookupFacts:
    """The lookup mode of a connector.

    Attributes:
        support: The lookup mode. In an asynchronous lookup, the rows that wait for an answer are state.
    """

    support: LookupSupport = LookupSupport.NOT_KNOWN
    options: tuple[OptionFact, ...] = ()
    document: str = ""


BEGINNINGS = {TableUse.SOURCE: ("scan.", "source."), TableUse.SINK: ("sink.",), TableUse.LOOKUP: ("lookup.",)}
"""Prefixes of the options of only one use of a table. Any use may read all other options."""


@dataclass(frozen=True)
class ConnectorFacts:
    """Facts about one connector.

    Attributes:
        formats: The options for the format of values; the first option that is set applies.
        not_on_flink_2: Uses of a table for which no release of the connector runs on Flink 2.
        releases: The release for Flink 2, or the document that lists none; "" if neither is known.
        reads_older_state: The classes or measured restores that show that a release for a later Flink reads the state
            that an earlier release stored; "" if unknown.
    """

    names: tuple[str, ...]
    source: SourceFacts | None = None
    sink: SinkFacts | None = None
    lookup: LookupFacts | None = None
    formats: tuple[str, ...] = ()
    not_on_flink_2: tuple[TableUse, ...] = ()
    releases: str = ""
    reads_older_state: str = ""

    @property
    def options(self) -> Mapping[TableUse, tuple[OptionFact, ...]]:
        """The facts about options, by use of the table."""
        sides = {TableUse.SOURCE: self.source, TableUse.SINK: self.sink, TableUse.LOOKUP: self.lookup}
        return {use: side.options for use, side in sides.items() if side is not None}

    def option(self, use: TableUse, key: str) -> OptionFact | None:
        """The fact about an option, by its full name or the longest matching pattern; None if nothing matches.

        The effect is ``IGNORED`` if the option is only listed for a different use of the table, and its prefix
        belongs to that use.
        """
        found = _longest(self.options.get(use, ()), key)
        if found is not None:
            return found
        elsewhere = (
            other
            for other, begins in BEGINNINGS.items()
            if other is not use and key.startswith(begins) and _longest(self.options.get(other, ()), key)
        )
        other = next(elsewhere, None)
        if other is None:
            return None
        return OptionFact(key, OptionEffect.IGNORED, document=f"an option of tables that are {other.value}")


def _longest(options: tuple[OptionFact, ...], key: str) -> OptionFact | None:
    return max((each for each in options if each.covers(key)), key=lambda each: len(each.key), default=None)


class ColumnIdentity(StrEnum):
    """The identity of a source column across two declarations of a table."""

    NAME = "its name"
    PLACE = "its place"
    BOTH = "its name and its place"
    """Some columns are identified by name, others by position."""


@dataclass(frozen=True)
class FormatFacts:
    """A format of rows, with its options and the changes that its rows can express.

    Attributes:
        appends: YES if rows in this format are never updates or deletions.
        by_place: True if only the position of a value in a row identifies its column.
    """

    name: str
    appends: Known
    options: tuple[OptionFact, ...] = ()
    document: str = ""
    by_place: bool = False
