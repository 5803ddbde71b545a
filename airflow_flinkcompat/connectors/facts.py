"""Facts about a connector: state of its source and sink, and the effect of each option.

Nothing here is a verdict. A fact names its evidence: the ids of real restores in the table of evidence, or else the
connector's document or class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

EARLIEST, LATEST, TIMESTAMP = "earliest", "latest", "timestamp"
MILLIS, ISO = "{millis}", "{iso}"
"""Placeholders in an option for a time: milliseconds since 1970, or ISO 8601 in UTC with milliseconds."""


@dataclass(frozen=True)
class Startup:
    """Startup options of one connector.

    Attributes:
        choices: The options for each possible choice; none if it always begins that way.
        option: Its own option for the starting position.
        default: The value of ``option`` if a table does not set it.
        more: Further options that belong to ``option``.
        itself: The starting position if no option decides.
        positions: True if the positions of a job can be read from its savepoint and passed to another job.
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
"""The choices of Kafka's sources; Flink CDC's sources have the same names for them."""


class Known(StrEnum):
    """Yes, no, or unknown."""

    YES = "yes"
    NO = "no"
    NOT_KNOWN = "not known"


class SourceState(StrEnum):
    """A source's positions in a savepoint."""

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
    """A sink's state in a savepoint."""

    NONE = "nothing"
    WRITER = "the state of its writer"
    TRANSACTIONS = "the state of its writer and uncommitted transactions"
    NOT_KNOWN = "not known"


class KeyDemand(StrEnum):
    """Reason why a sink needs a primary key."""

    ALWAYS = "it accepts no table without one"
    FOR_UPDATES = "it accepts changing results only with one"
    NOT_KNOWN = "not known"


class LookupSupport(StrEnum):
    """Lookup mode of a connector: synchronous, or chosen by its option or a hint."""

    SYNCHRONOUS = "one row after the other"
    BY_OPTION = "as set by lookup.async, one after the other unless it is true"
    NOT_KNOWN = "not known"


class TableUse(StrEnum):
    """Use of a table in a query; the same option has a different effect in each use."""

    SOURCE = "read"
    SINK = "written"
    LOOKUP = "looked up"


class OptionEffect(StrEnum):
    """Effect of an option on a job that resumes from its savepoint, as the end of "it decides …"."""

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
    """A source option that lists several places, such as topics, each with its own positions.

    Attributes:
        separator: The characters between them.
        reordered: Restores with the same places in another order.
        added: Restores with more places, which ended right if a start without state reads new places from their
            beginning.
        from_beginning: The option and value with which such a start reads from the beginning; empty if it always does.
        pattern: The option for a regular expression instead of a list; "" if there is none.
        matched: Restores with such an expression that matches the former places.
    """

    separator: str
    reordered: tuple[str, ...]
    added: tuple[str, ...]
    from_beginning: tuple[str, str] = ("", "")
    pattern: str = ""
    matched: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionFact:
    """Effect of one option, or of all options with a common prefix.

    Attributes:
        key: The option, with a ``*`` for any text.
        ids: Restores in which it was changed. All ended right if the effect is harmless, and all in the same failure if
            it is not. Empty if none was run.
        document: The page or class that documents it, if no restore shows it.
        alias_of: The option for which it is another name, according to the document; its restores changed that option.
        note: The effect of a restore, for a reader, as the end of a sentence about the option.
        listed: The list of places in it, if it is one.
        unless: Another option and a value with which the restores prove nothing about this one.
        default: Its value in every version that accepts a table without it; None if unknown.
        values: The values that the document covers; empty if it covers all.
        expression: True if it is a regular expression over tables, and each table is read whole before its changes.
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
        """True if the fact applies to an option."""
        return fnmatchcase(key, self.key)


def facts(effect: OptionEffect, document: str, *keys: str, note: str = "") -> tuple[OptionFact, ...]:
    """Facts about options with one document."""
    return tuple(OptionFact(key, effect, document=document, note=note) for key in keys)


READ_ONCE = (
    "a finished scan is not run again, so nothing is read from the new place; an unfinished one restarts and "
    "repeats rows that were read before"
)
"""Effect of a restore on a scan of :attr:`SourceState.ENDED` that should read something else."""


@dataclass(frozen=True)
class SourceFacts:
    """State of a connector's source, and its abilities that the planner uses.

    Attributes:
        projection: True if it reads only the columns that a query needs, so that no operator drops the others.
        filters: True if it can evaluate conditions instead of an operator.
        watermark: True if it generates watermarks instead of an operator.
        appends: True if it only adds rows, unless their format updates or deletes.
        startup: Its starting position without state; None if unknown.
        table_name_option: The option that names the table to read, instead of its name in the script; "" if that name
            is never used.
    """

    positions: SourceState = SourceState.NOT_KNOWN
    projection: Known = Known.NOT_KNOWN
    filters: Known = Known.NOT_KNOWN
    watermark: Known = Known.NOT_KNOWN
    metadata: Known = Known.NOT_KNOWN
    appends: Known = Known.NOT_KNOWN
    options: tuple[OptionFact, ...] = ()
    startup: Startup | None = None
    table_name_option: str = ""
    document: str = ""


@dataclass(frozen=True)
class SinkFacts:
    """State of a connector's sink.

    Attributes:
        stateful_options: Options and values, one of which must be set for it to have state; empty if it always has.
        operators: Number of its operators in a job; None if unknown.
        upserts: True if it accepts the latest row of a primary key without the row that it replaces.
        upserts_appended: True if it requests upserts even for rows that are only added.
        updates: True if it accepts changing results without a primary key.
        row_before: True if it also requests the row before an update; a sink that accepts upserts never does.
        primary_key: Reason why Flink refuses its table without a primary key.
        ids_use_table_name: True if the ids of its stateful operators contain the table's name.
        state_survives_columns: True if its state remains valid when the columns of the table change.
        ids: Restores of jobs with this sink that ended right.
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
        """YES if the planner keeps the row before an update for it."""
        return Known.NO if self.upserts is Known.YES else self.row_before

    def state_with(self, options: Mapping[str, str]) -> SinkState:
        """State of a sink whose table has these options; NONE if none of its stateful options is set."""
        needless = self.stateful_options and all(
            options.get(key, "").lower() != value for key, value in self.stateful_options
        )
        return SinkState.NONE if needless else self.state


@dataclass(frozen=True)
class LookupFacts:
    """Lookup mode of a connector.

    Attributes:
        support: The mode; rows that wait for an answer of an asynchronous lookup are state.
    """

    support: LookupSupport = LookupSupport.NOT_KNOWN
    options: tuple[OptionFact, ...] = ()
    document: str = ""


BEGINNINGS = {TableUse.SOURCE: ("scan.", "source."), TableUse.SINK: ("sink.",), TableUse.LOOKUP: ("lookup.",)}
"""Option prefixes that only one use reads; any use may read the other options."""


@dataclass(frozen=True)
class ConnectorFacts:
    """One connector of the catalogue.

    Attributes:
        formats: Its options that name the format of its values; the first one that is set counts.
    """

    names: tuple[str, ...]
    source: SourceFacts | None = None
    sink: SinkFacts | None = None
    lookup: LookupFacts | None = None
    formats: tuple[str, ...] = ()

    @property
    def options(self) -> Mapping[TableUse, tuple[OptionFact, ...]]:
        """Effects of the options, by use of the table."""
        sides = {TableUse.SOURCE: self.source, TableUse.SINK: self.sink, TableUse.LOOKUP: self.lookup}
        return {use: side.options for use, side in sides.items() if side is not None}

    def option(self, use: TableUse, key: str) -> OptionFact | None:
        """Effect of an option by its full name or its longest listed prefix; None if neither is listed.

        The fact is "ignored" for an option that is listed for another use and whose prefix belongs only to that use.
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
    """Identity of a source column across declarations of its table."""

    NAME = "its name"
    PLACE = "its place"
    BOTH = "its name and its place"
    """Some columns are identified by name, others by place."""


@dataclass(frozen=True)
class FormatFacts:
    """One format of rows: the effects of its options, and the changes that its rows can express.

    Attributes:
        appends: True if its rows are never updates or deletions.
        by_place: True if only the order of values in a row identifies their columns.
    """

    name: str
    appends: Known
    options: tuple[OptionFact, ...] = ()
    document: str = ""
    by_place: bool = False
