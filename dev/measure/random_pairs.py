"""Random pairs of jobs over many operators and connectors, with a change of a random kind.

A change makes one or two choices of a job differently; :mod:`measure.random_scripts` says what a job is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dev.measure.pairs import Pair, Side
from dev.measure.random_scripts import (
    COLUMNS,
    OPERATORS,
    SINKS,
    SOURCES,
    SPELLINGS,
    Choices,
    database,
    generates,
    key_of,
    queries_of,
    read,
    script,
    session,
    spelled,
    updates,
)
from dev.measure.stacked_pairs import UPPERS, fits

PARAMETERS = {
    "x": "metric", "f": "metric", "m": "metric", "w": "metric", "key": "key", "where": "filter", "more": "filter",
    "window": "window", "n": "bound", "frame": "bound", "within": "bound", "order": "order", "join": "join",
    "and": "join condition", "exists": "join", "skip": "pattern",
}  # fmt: skip
"""Names for changes of parameters."""

_SOURCE_OPTIONS = {
    "filesystem": ("'csv.ignore-parse-errors' = 'true'", "'csv.null-literal' = 'none'"),
    "kafka": (
        "'json.ignore-parse-errors' = 'true'", "'scan.topic-partition-discovery.interval' = '30 s'",
        "'properties.fetch.min.bytes' = '2'", "'scan.watermark.idle-timeout' = '10 min'",
    ),
    "upsert-kafka": ("'value.json.ignore-parse-errors' = 'true'", "'properties.fetch.min.bytes' = '2'"),
    "datagen": ("'fields.id.end' = '250'",),
    "postgres-cdc": ("'changelog-mode' = 'upsert'", "'scan.incremental.snapshot.enabled' = 'true'"),
}  # fmt: skip
_SINK_OPTIONS = {
    "print": ("'standard-error' = 'false'", "'sink.parallelism' = '2'"),
    "blackhole": (),
    "filesystem": ("'sink.rolling-policy.rollover-interval' = '1 h'", "'sink.parallelism' = '2'"),
    "kafka": (
        "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'shop'",
        "'sink.delivery-guarantee' = 'none'", "'sink.parallelism' = '2'",
    ),
    "upsert-kafka": ("'sink.buffer-flush.max-rows' = '7', 'sink.buffer-flush.interval' = '200 ms'",),
    "jdbc": ("'sink.buffer-flush.max-rows' = '2', 'sink.buffer-flush.interval' = '200 ms'", "'sink.max-retries' = '5'"),
}  # fmt: skip
_MINI_BATCH = (
    "table.exec.mini-batch.enabled=true, table.exec.mini-batch.allow-latency=100 ms, table.exec.mini-batch.size="
)
SETTINGS = (
    "", f"{_MINI_BATCH}100", f"{_MINI_BATCH}5", f"{_MINI_BATCH}100, table.optimizer.agg-phase-strategy=TWO_PHASE",
    f"{_MINI_BATCH}100, table.optimizer.distinct-agg.split.enabled=true", "table.exec.state.ttl=1 h",
    "table.exec.state.ttl=2 h", "pipeline.max-parallelism=256", "pipeline.operator-chaining.enabled=false",
    "table.exec.sink.upsert-materialize=FORCE", "table.exec.sink.not-null-enforcer=DROP",
    "table.optimizer.agg-phase-strategy=ONE_PHASE", "table.optimizer.reuse-source-enabled=false",
    "table.optimizer.reuse-sub-plan-enabled=false", "table.optimizer.source.predicate-pushdown-enabled=false",
    "table.exec.simplify-operator-name-enabled=false", "execution.checkpointing.timeout=20 min",
    "table.local-time-zone=Asia/Tokyo", "pipeline.object-reuse=true", "state.backend.type=rocksdb",
    "table.exec.async-state.enabled=true", "table.optimizer.multi-join.enabled=true",
    "table.exec.window-agg.buffer-size-limit=500", "table.exec.source.cdc-events-duplicate=true",
)  # fmt: skip
OTHERS: Mapping[str, str] = {
    "source": "source connector", "sink": "sink connector", "upper": "operator", "columns": "columns", "type": "type",
    "watermark": "watermark", "settings": "setting", "parallelism": "parallelism", "source option": "option",
    "sink option": "option", "sink name": "sink renamed", "sink type": "sink column", "statement": "statement",
    "hint": "hint", "spelling": "spelling",
}  # fmt: skip
"""Choices other than operators' parameters, and names for their changes."""
KINDS = tuple(dict.fromkeys((*PARAMETERS.values(), *OTHERS.values())))
_ANYWHERE: Mapping[str, Sequence[str]] = {
    "columns": ("", "computed", "comment", "b and d exchanged", "metadata", "unread", "primary key"),
    "type": (
        "", "BIGINT → INT", "BIGINT → BIGINT NOT NULL", "STRING → VARCHAR(20)", "STRING → STRING NOT NULL",
        "BIGINT → DECIMAL(10, 0)",
    ),
    "watermark": ("", " - INTERVAL '1' SECOND", " - INTERVAL '5' SECOND"),
    "settings": SETTINGS,
    "parallelism": ("1", "2"),
    "sink name": ("kept", "written"),
    "sink type": ("BIGINT", "DECIMAL(38, 0)", "DOUBLE"),
    "statement": ("", "of the view", "of the view, first", "of a table"),
    "hint": ("", "'1 d'", "'2 d'"),
}  # fmt: skip
"""Values that may be chosen regardless of the rest of a job."""


@dataclass(frozen=True)
class RandomPair:
    """A drawn pair, and what it is made of.

    Attributes:
        pair: Both sides; the area is the kind of change.
        operators: The operators of the old side.
        connectors: The connectors of both sides.
        runs: Whether the bench can run it and compare its rows. It cannot where postgres-cdc is read, where a watermark
            is waited for of a table without one or of a subtask without rows, where sessions of generated rows end with
            the job, where a sink keeps the last of the rows that were generated by the time of the savepoint, and where
            a table of the database would need two keys.
    """

    pair: Pair
    operators: tuple[str, ...]
    connectors: tuple[str, ...]
    runs: bool


def random_pairs(count: int, seed: int, line: str) -> Iterator[RandomPair]:
    """Draw pairs through all operators and kinds of change; a greater count only adds to those of a seed."""
    draw = random.Random(seed)
    lowers: list[str] = []
    kinds: list[str] = []
    for number in range(count):
        lowers = lowers or draw.sample(sorted(OPERATORS), len(OPERATORS))
        old = _drawn(draw, lowers.pop())
        changes: list[tuple[str, str]] = []
        new = old
        for _ in range(draw.choice((1, 1, 1, 2))):
            kinds = kinds or draw.sample(KINDS, len(KINDS))
            waiting = [kind for kind in kinds if _changed(old, kind)]
            kind = draw.choice(waiting or [kind for kind in KINDS if _changed(old, kind)])
            if waiting:
                kinds.remove(kind)
            name, value = draw.choice(_changed(old, kind))
            changes.append((kind, name))
            new = {**new, name: value}
        if not _holds(new):  # the second change does not go with the first
            changes = changes[-1:]
            new = {**old, name: value}
        if draw.random() < 0.5:
            old, new = new, old
        tables = database(old, new)
        before, after = (
            Side(script(each, line), session(each), _rows_before(each), database=tables) for each in (old, new)
        )
        operators = tuple(name for name in (old["lower"], old["upper"]) if name)
        id = f"{seed}-{number:03d} {' / '.join(operators)}: {' and '.join(kind for kind, _ in changes)}"
        about = "; ".join(f"{name}: {old[name] or 'none'} → {new[name] or 'none'}" for _, name in changes)
        used = sorted({f"{role} {each[role]}" for each in (old, new) for role in ("source", "sink")})
        rekeyed = old["sink"] == new["sink"] == "jdbc" and key_of(old) != key_of(new)
        runs = _runs(old) and _runs(new) and not rekeyed
        yield RandomPair(Pair(id, changes[0][0], about, before, after), operators, tuple(used), runs)


def _drawn(draw: random.Random, lower: str) -> Choices:
    """A job over a lower operator."""
    uppers = ["", "", *(upper for upper in UPPERS if _stacks(lower, upper))]
    upper = draw.choice(uppers)
    values = {"lower": lower, "upper": upper}
    for part, kinds in (("below", OPERATORS[lower]), ("above", UPPERS.get(upper))):
        values |= {f"{part}.{name}": draw.choice(some) for name, some in (kinds.choices if kinds else {}).items()}
    values |= dict.fromkeys(OTHERS.keys() - {"upper"}, "")
    values |= {"source": "filesystem", "sink": "print", "sink name": "kept", "sink type": "BIGINT", "parallelism": "1"}
    for name in ("source", "sink"):
        values[name] = draw.choice(_options(values, name))
    if values["sink"] == "blackhole" and draw.random() < 0.7:  # no rows can be compared
        values["sink"] = "print"
    for name in ("columns", "type", "watermark", "settings", "source option", "sink option", "statement"):
        value = draw.choice(_options(values, name))
        if draw.random() < 0.15 and _holds({**values, name: value}):
            values[name] = value
    return values


def _stacks(lower: str, upper: str) -> bool:
    return lower not in ("sort", "limit") and fits(lower, upper, OPERATORS)


def _changed(values: Choices, kind: str) -> list[tuple[str, str]]:
    """The choices that a change of a kind may make differently."""
    parameters = [name for name in values if PARAMETERS.get(name.partition(".")[2]) == kind]
    names = [*parameters, *(name for name, each in OTHERS.items() if each == kind)]
    found = [(name, each) for name in names for each in dict.fromkeys(_options(values, name)) if each != values[name]]
    return [(name, each) for name, each in found if _holds({**values, name: each})]


def _options(values: Choices, name: str) -> Sequence[str]:
    """Possible values for a name, if all other choices stay."""
    part, _, parameter = name.partition(".")
    if parameter:
        kind = OPERATORS[values["lower"]] if part == "below" else UPPERS[values["upper"]]
        return tuple(kind.choices[parameter])
    match name:
        case "source":
            return [each for each in SOURCES if _feeds(values, each)]
        case "sink":
            return [each for each in SINKS if not (updates(values) and each in ("filesystem", "kafka"))]
        case "upper":
            return ["", values["upper"]]
        case "source option":
            return ["", *_SOURCE_OPTIONS[values["source"]]]
        case "sink option":
            return ["", *_SINK_OPTIONS[values["sink"]]]
        case "spelling":
            below, above = queries_of(values)
            return ["", *(each for each in SPELLINGS if spelled(each, f"{below}\n{above}") != f"{below}\n{above}")]
    return _ANYWHERE[name]


def _holds(values: Choices) -> bool:
    """True if the choices are compatible with each other."""
    tables = read(values)
    source, first = values["source"], COLUMNS[tables[0]]
    columns = values["columns"]
    return (
        _feeds(values, source)
        and values["sink"] in _options(values, "sink")
        and values["source option"] in _options(values, "source option")
        and values["sink option"] in _options(values, "sink option")
        and not (columns == "metadata" and source not in ("filesystem", "kafka"))
        and not (columns == "unread" and source not in ("kafka", "upsert-kafka"))
        and not (columns == "primary key" and (source != "filesystem" or "PRIMARY KEY" in first))
        and not (columns == "b and d exchanged" and (not first.startswith("a ") or generates(values)))
        and not ((values["type"] or columns == "comment") and generates(values))
        and not ("DECIMAL" in values["type"] and values["sink type"] == "BIGINT")
        and not (values["watermark"] and "WATERMARK" not in "".join(COLUMNS[table] for table in tables))
        and not (values["hint"] and values["lower"] not in ("group", "join"))
        and not (values["spelling"] and values["spelling"] not in _options(values, "spelling"))
    )


def _feeds(values: Choices, source: str) -> bool:
    """True if a connector can be the source of a job."""
    tables = read(values)
    untimed = all(table.startswith("untimed") for table in tables)
    match source:
        case "upsert-kafka" | "postgres-cdc":
            return untimed and "untimed_clocked" not in tables and _sends(tables)
        case "datagen":
            return tables in (["orders"], ["untimed"]) and values["lower"] not in ("match", "limit")
        case "kafka":
            return _sends(tables) and "versions" not in tables
    return True


def _sends(tables: Sequence[str]) -> bool:
    """True if the rows of tables can come by topics: their names are those of the declared columns."""
    return not any(table.endswith("_clicks") for table in tables)


def _rows_before(values: Choices) -> int:
    """Number of rows printed before the savepoint, for rows that arrive over time."""
    return 3 if generates(values) and values["sink"] == "print" else 0


def _runs(values: Choices) -> bool:
    """True if the bench can run a side and compare its rows."""
    timed = ["WATERMARK" in COLUMNS[table] for table in read(values)]
    starves = any(timed) and (values["parallelism"] != "1" or not all(timed))
    if generates(values):
        starves = values["lower"] == "session" or (updates(values) and values["sink"] in ("upsert-kafka", "jdbc"))
    return values["source"] != "postgres-cdc" and not starves
