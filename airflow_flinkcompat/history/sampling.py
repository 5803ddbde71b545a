"""Comparison of computed state with a recomputation in plain Python, for a sample of keys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.compile.compiler import push_down_ranges
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem
from airflow_flinkcompat.backfill.steps import with_sources
from airflow_flinkcompat.exec_graph.layout import Begins, StateField, Stored
from airflow_flinkcompat.history.entries import LocalClock
from airflow_flinkcompat.history.prepared import (
    PreparedExecution,
    PreparedFolder,
    PreparedHistory,
    PreparedPart,
    after_prepared,
    by_value,
    digest_of,
    positions,
    settled,
)
from airflow_flinkcompat.history.recomputing import (
    KeySample,
    KeySampling,
    Place,
    PlainAggregation,
    PlainKey,
    PlainState,
    identity,
)
from airflow_flinkcompat.history.state_rows import PlainRows, StateRows
from airflow_flinkcompat.history.table_rows import LONG_AGO
from airflow_flinkcompat.migration.computed import SampleDiffers, key_words
from airflow_flinkcompat.migration.entries import StoredKey
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.migration.joining import ROUNDING
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import (
    PlainValue,
    field_form,
    field_reader,
    field_writer,
    read_row,
    value_reader,
    write_row,
)
from airflow_flinkcompat.savepoint.keyed_state import key_group, open_keyed, prefix_length, read_entries
from airflow_flinkcompat.savepoint.metadata import KeyGroups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SHOWN = 5
"""Maximum number of differing keys in an error message."""
_WORD = 8
_DAY = 86_400_000_000
_LEAST_HASH, _HASHES = -(1 << 63), 1 << 64
_DRAWN = 2
"""Factor by which more keys are drawn than requested, because the number of keys is an estimate."""


@dataclass(frozen=True)
class WrittenKeys:
    """Written keyed state of one operator: the file of each subtask, and their folder."""

    name: str
    folder: str
    files: Sequence[KeyGroups]
    key: tuple[StateField, ...]
    groups: int

    def keys(self, states: Sequence[PlainState], least: int) -> tuple[int, bool]:
        """Number of keys, and True if it is exact. Counting stops early when enough keys are found."""
        found: set[bytes] = set()
        looked = 0
        for file in self.files:
            for at in range(file.first, file.first + len(file.begins)):
                if len(found) >= least:
                    return -(-len(found) * self.groups // looked), False
                found.update(key for _, key, _, _ in self._entries(states, None, (file, range(at, at + 1))))
                looked += 1
        return len(found), True

    def of_keys(
        self, states: Sequence[PlainState], keys: Sequence[bytes], workers: Workers
    ) -> Mapping[bytes, Mapping[Place, Sequence[PlainValue]]]:
        """Read the entries of some keys from the key groups in which Flink looks for them."""
        wanted = frozenset(keys)
        groups = sorted({key_group(key, self.groups) for key in wanted})
        parts = [
            (file, range(group, group + 1))
            for group in groups
            for file in self.files
            if file.first <= group < file.first + len(file.begins)
        ]
        size = sum(file.handle.size for file in self.files if file.handle is not None) * len(groups) // self.groups
        step = -(-len(parts) // workers.parts(size, len(parts))) or 1
        tasks = [parts[at : at + step] for at in range(0, len(parts), step)]
        found: dict[bytes, dict[Place, Sequence[PlainValue]]] = {key: {} for key in keys}
        for entries in workers.each(partial(_listed, partial(self._entries, states, wanted)), tasks):
            for number, key, rest, value in entries:
                try:
                    place, values = _read(number, states[number], rest, value)
                except SavepointUnreadable as error:
                    raise SampleDiffers(
                        f"an entry of {states[number].state.name} cannot be read back: {error}"
                    ) from None
                found[key][place] = values
        return found

    def _entries(
        self, states: Sequence[PlainState], keys: frozenset[bytes] | None, part: tuple[KeyGroups, range]
    ) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        """Yield each entry of the given states: index of the state, key, rest of the stored key, value."""
        file, groups = part
        prefix = prefix_length(self.groups)
        with open_keyed(file, self.folder) as content:
            names = {state.state.name: number for number, state in enumerate(states)}
            numbers = [names.get(state.name) for state in content.header.states]
            for _, group in content.groups(groups):
                for state, key, value in read_entries(group):
                    if (number := numbers[state]) is not None:
                        parts = StoredKey.read(key[prefix:], timer=False)
                        if keys is None or parts.row in keys:
                            yield number, parts.row, parts.rest, value


def _listed(entries: Callable[[Any], Iterator[Any]], parts: Sequence[Any]) -> list[Any]:
    return [entry for part in parts for entry in entries(part)]


def _read(number: int, state: PlainState, rest: bytes, value: bytes) -> tuple[Place, Sequence[PlainValue]]:
    kept = state.state
    length = kept.namespace.size
    words = range(0, length - length % _WORD, _WORD)
    bounds = tuple(int.from_bytes(rest[at : at + _WORD], "big", signed=True) for at in words)
    in_map = kept.kind is KeyedStateKind.MAP
    by = _stored(kept.map_key, rest[length:]) if kept.map_key is not None else ()
    return (number, bounds, identity(by)), _stored(kept.value, value[in_map:])


def _stored(stored: Stored, content: bytes) -> Sequence[PlainValue]:
    if stored.form == "Int":
        return [int.from_bytes(content, "big", signed=True)]
    if stored.form == "value":
        return [value_reader(field.type)(content) for field in stored.fields]
    return _fields(stored.fields, content[4:])


def _fields(fields: Sequence[StateField], row: bytes) -> Sequence[PlainValue]:
    found = zip(fields, read_row(row, [field_form(field.type) for field in fields]), strict=True)
    return [field_reader(field.type)(value) for field, value in found if field.begins is not Begins.EMPTY_VIEW]


def check_sample(
    session: SparkSession,
    rows: PlainRows,
    watermark: int | None,
    written: WrittenKeys,
    workers: Workers,
    count: int,
    before: KeySample | None = None,
) -> int:
    """Check the written state of some keys with a recomputation in Python; return the number of keys."""
    keys, exact = written.keys(rows.made.states, count)
    sample = draw_sample(session, rows, watermark, count, keys, before)
    stored = {place: _key_row(written.key, key.key) for place, key in sample.held.items()}
    found = written.of_keys(rows.made.states, list(stored.values()), workers)
    differences = []
    for place, key in sorted(sample.held.items(), key=lambda each: each[0][0]):
        row = stored[place]
        if identity(_fields(written.key, row)) != place[1]:
            differences.append(f"{key.key} was written as {_fields(written.key, row)}")
        differences += list(key_differences(rows.made, key, key_words(written.key, row), found[row]))
    if exact and sample.below is None and keys != len(sample.held) and not differences:
        differences.append(f"{keys} keys were written, but the rows contain {len(sample.held)} keys")
    if differences:
        shown = "; ".join(
            [*differences[:_SHOWN], *([f"and {len(differences) - _SHOWN} more"] if len(differences) > _SHOWN else [])]
        )
        raise SampleDiffers(
            f"{written.name}: the written state differs from the state that Python computes from the same rows. "
            f"Differences among {len(sample.held)} keys: {shown}. Nothing was published. Rows may have changed "
            "during the run: run again. If the error persists, report a bug, or skip the comparison with a "
            "sample of 0"
        )
    return len(sample.held)


def _key_row(fields: Sequence[StateField], values: Sequence[PlainValue]) -> bytes:
    found = zip(fields, values, strict=True)
    return write_row(
        [
            begin(field) if value is None and field.begins is not None else field_writer(field.type)(value)
            for field, value in found
        ]
    )


def draw_sample(
    session: SparkSession,
    rows: PlainRows,
    watermark: int | None,
    count: int,
    keys: int,
    before: KeySample | None = None,
) -> KeySample:
    """Sample the keys with the lowest hashes in a single pass over all rows."""
    from pyspark.sql import functions as F

    reached = 0 if watermark is None else LocalClock(rows.made.zone).reached(watermark)
    frame = Execution(session).frame(rows.steps)
    if rows.made.time is not None and rows.made.windows is not None and reached > LONG_AGO:
        least = (reached - rows.made.windows.size) * 1000 - (0 if rows.made.zone == "UTC" else _DAY)
        frame = frame.where(F.col(f"c{rows.made.time}") > least)
    columns = [F.col(f"c{i}") for i in range(rows.made.key)]
    # Spark's hash ignores NULL columns.
    hashed = F.xxhash64(*columns, *(column.isNull() for column in columns)) if columns else F.lit(0)
    wanted = _DRAWN * count
    left_out = KeySample(_LEAST_HASH + _HASHES * wanted // keys if wanted < keys else None)
    samples = [left_out] if before is None else [left_out, before.later(rows.made, reached)]
    limits = [each.below for each in samples if each.below is not None]
    if limits:
        frame = frame.where(hashed < min(limits))
    sampling = KeySampling(rows.made, count, reached)
    hashes = frame.select(hashed, *frame.columns)
    return sampling.merge([*samples, *hashes.rdd.mapPartitions(sampling.of_partition).collect()])


def key_differences(
    made: PlainAggregation, key: PlainKey, words: str, written: Mapping[Place, Sequence[PlainValue]]
) -> Iterator[str]:
    """Describe the differences between the written and the recomputed entries of a key."""
    expected = key.results(made)
    for place in [*expected, *(each for each in written if each not in expected)]:
        state = made.states[place[0]]
        of = ", ".join([words, *_place_text(state, place)])
        if place not in written:
            yield f"{of} was not written, but the rows contain it"
        elif place not in expected:
            yield f"{of} was written, but the rows do not contain it"
        else:
            yield from (f"{of} {text}" for text in _unequal(state, expected[place], written[place]))


def _unequal(state: PlainState, expected: Sequence[tuple[Any, Any]], written: Sequence[PlainValue]) -> Iterator[str]:
    fields = [each for each in state.state.value.fields if each.begins is not Begins.EMPTY_VIEW]
    for number, ((value, size), stored) in enumerate(zip(expected, written, strict=True)):
        of = fields[number] if fields else state.state.row[0]
        if value is None and of.begins is Begins.ZERO:
            value = 0
        if not _same(value, stored, size):
            yield f"{of.words} was written as {stored!r}, but the rows result in {value!r}"


def _same(value: Any, stored: PlainValue, size: Any) -> bool:
    if not isinstance(value, float) or not isinstance(stored, float):
        return bool(value == stored)
    # Spark and Python added the parts of a sum in different orders.
    rounded = math.isclose(value, stored, rel_tol=0, abs_tol=ROUNDING * size) if math.isfinite(size) else False
    return value == stored or rounded or (math.isnan(value) and math.isnan(stored))


def _place_text(state: PlainState, place: Place) -> Iterator[str]:
    _, bounds, by = place
    if bounds:
        yield f"window or slice that ends at {bounds[-1]} ms"
    if state.by:
        yield f"{', '.join(each.words for each in state.state.row)} {', '.join(map(repr, by))}"


def write_sample(
    folder: PreparedFolder, rows: PlainRows, states: Sequence[StateRows], watermark: int | None, count: int
) -> None:
    """Recompute sampled keys in plain Python from the prepared rows, and store the results."""
    reads, digest = positions(rows.steps), _digest(rows)
    if reads is None or digest in folder.written.parts:
        return
    execution = PreparedExecution(folder.session, folder.written, watermark)
    (same,) = (each for each in states if each.state == rows.made.states[0].state)
    with execution.planning():
        keys = (
            execution.frame(push_down_ranges(same.steps))
            .select([f"c{i}" for i in range(rows.made.key)])
            .distinct()
            .count()
        )
    sample = draw_sample(folder.session, replace(rows, steps=with_sources(rows.steps, settled)), watermark, count, keys)
    with suppress(TypeError):  # JSON lacks this type. The later run reports that there is no sample.
        folder.write_part(digest, PreparedPart(reads, watermark), to_json(sample))


def sample_of(
    session: SparkSession, prepared: PreparedHistory, rows: PlainRows, watermark: int | None
) -> tuple[PlainRows, KeySample] | None:
    """Read Python's results for sampled keys that were prepared earlier; None if there are none."""
    digest = _digest(rows)
    found = prepared.part(digest, rows.steps, watermark)
    if found is None:
        return None
    content = FileSystem(session, prepared.folder).read(f"{prepared.folder}/{digest}")
    if content is None:
        return None
    try:
        sample = from_json(content)
    except (KeyError, TypeError, ValueError):
        raise BackfillError(f"{prepared.folder}/{digest} was not written by migrate prepare: prepare again") from None
    return replace(rows, steps=with_sources(rows.steps, after_prepared(found.reads))), sample


def _digest(rows: PlainRows) -> str:
    return sha256(f"{digest_of(rows.steps)} {by_value(rows.made)}".encode()).hexdigest()[:32]


def to_json(sample: KeySample) -> bytes:
    keys = [
        [hashed, _plain(key.key), key.rows, [[_plain(place), _plain(calls)] for place, calls in key.found.items()]]
        for (hashed, _), key in sample.held.items()
    ]
    return json.dumps({"below": sample.below, "keys": keys}).encode()


def from_json(content: bytes) -> KeySample:
    stored = json.loads(content)
    sample = KeySample(stored["below"])
    for hashed, of_key, rows, entries in stored["keys"]:
        key = _value(of_key)
        found = {_value(place): list(_value(calls)) for place, calls in entries}
        sample.held[hashed, identity(key)] = PlainKey(key, rows, found)
    return sample


def _plain(value: Any) -> Any:
    """Convert a value to JSON types. Sequences are read back as tuples."""
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case bytes() | bytearray():
            return {"bytes": value.hex()}
        case dict():
            return {"items": [[_plain(key), _plain(each)] for key, each in value.items()]}
        case tuple() | list():
            return [_plain(each) for each in value]
    return value


def _value(value: Any) -> Any:
    match value:
        case {"decimal": digits}:
            return Decimal(digits)
        case {"bytes": digits}:
            return bytes.fromhex(digits)
        case {"items": items}:
            return {_value(key): _value(each) for key, each in items}
        case list():
            return tuple(_value(each) for each in value)
    return value
