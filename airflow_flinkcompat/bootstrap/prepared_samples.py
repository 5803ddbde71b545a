"""What Python computes of some keys while the old job still runs, kept beside what was aggregated of all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.compile.ranges import push_down_ranges
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem
from airflow_flinkcompat.backfill.steps import with_sources
from airflow_flinkcompat.bootstrap.prepared import (
    PreparedExecution,
    PreparedFolder,
    PreparedHistory,
    PreparedPart,
    behind,
    by_value,
    digest_of,
    positions,
    settled,
)
from airflow_flinkcompat.bootstrap.recomputing import KeySample, PlainKey, identity
from airflow_flinkcompat.bootstrap.sampling import drawn
from airflow_flinkcompat.bootstrap.state_rows import PlainRows, StateRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_sample(
    folder: PreparedFolder, rows: PlainRows, states: Sequence[StateRows], watermark: int | None, count: int
) -> None:
    """Compute some keys in plain Python, of the rows that were aggregated too."""
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
    sample = drawn(folder.session, replace(rows, steps=with_sources(rows.steps, settled)), watermark, count, keys)
    with suppress(TypeError):  # of types that JSON has not; the run that goes on says that there is no sample
        folder.write_part(digest, PreparedPart(reads, watermark), to_json(sample))


def sample_of(
    session: SparkSession, prepared: PreparedHistory, rows: PlainRows, watermark: int | None
) -> tuple[PlainRows, KeySample] | None:
    """What was computed of some keys before."""
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
        raise BackfillError(
            f"{prepared.folder}/{digest} is not what migrate --prepare writes: prepare once more"
        ) from None
    return replace(rows, steps=with_sources(rows.steps, behind(found.reads))), sample


def _digest(rows: PlainRows) -> str:
    return sha256(f"{digest_of(rows.steps)} {by_value(rows.made)}".encode()).hexdigest()[:32]


def to_json(sample: KeySample) -> bytes:
    """A sample as it is kept."""
    keys = [
        [hashed, _plain(key.key), key.rows, [[_plain(place), _plain(calls)] for place, calls in key.found.items()]]
        for (hashed, _), key in sample.held.items()
    ]
    return json.dumps({"below": sample.below, "keys": keys}).encode()


def from_json(content: bytes) -> KeySample:
    """The sample that was kept."""
    told = json.loads(content)
    sample = KeySample(told["below"])
    for hashed, of_key, rows, entries in told["keys"]:
        key = _value(of_key)
        found = {_value(place): list(_value(calls)) for place, calls in entries}
        sample.held[hashed, identity(key)] = PlainKey(key, rows, found)
    return sample


def _plain(value: Any) -> Any:
    """A value in what JSON has; sequences come back as tuples."""
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


def _value(told: Any) -> Any:
    match told:
        case {"decimal": digits}:
            return Decimal(digits)
        case {"bytes": digits}:
            return bytes.fromhex(digits)
        case {"items": items}:
            return {_value(key): _value(each) for key, each in items}
        case list():
            return tuple(_value(each) for each in told)
    return told
