"""Settings as data: how the values of a key compare, and which defaults are known for sure.

A setting left out and the same setting written with its default value are one effective value. What a cluster's own
file sets is not seen here: whoever relies on it passes it as the side's settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_UNITS: Mapping[str, int] = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_LENGTH = re.compile(r"(\d+)\s*([a-z]*)")


def _length(text: str) -> str:
    """A duration in milliseconds; another text as it stands."""
    match = _LENGTH.fullmatch(text.lower())
    if match is None or match[2] not in _UNITS:
        return text
    return str(int(match[1]) * _UNITS[match[2]])


_DIALECTS = {"flink": "default"}
"""Flink's own dialect as tools call it that read scripts, by its name in Flink."""


def _dialect(text: str) -> str:
    """The SQL dialect by Flink's name for it."""
    return _DIALECTS.get(text.lower(), text.lower())


EARLY_FIRE = "table.exec.emit.early-fire.enabled"
LATE_FIRE = "table.exec.emit.late-fire.enabled"
Value = Callable[[str], str]
KINDS: Mapping[Value, Mapping[str, str]] = {
    str.lower: {
        "pipeline.object-reuse": "false",
        "pipeline.operator-chaining.enabled": "true",
        EARLY_FIRE: "false",
        LATE_FIRE: "false",
        "table.exec.async-state.enabled": "false",
        "table.exec.mini-batch.enabled": "false",
        "table.exec.sink.require-on-conflict": "true",
        "table.dynamic-table-options.enabled": "true",
        "table.exec.source.cdc-events-duplicate": "false",
        "table.optimizer.distinct-agg.split.enabled": "false",
        "table.optimizer.multi-join.enabled": "false",
    },
    _dialect: {"table.sql-dialect": "default"},
    str.upper: {
        "execution.runtime-mode": "STREAMING",
        "table.exec.sink.not-null-enforcer": "ERROR",
        "table.exec.sink.type-length-enforcer": "IGNORE",
        "table.exec.sink.upsert-materialize": "AUTO",
        "table.exec.uid.generation": "PLAN_ONLY",
        "table.optimizer.agg-phase-strategy": "AUTO",
    },
    _length: {
        "table.exec.source.idle-timeout": "0 ms",
        "table.exec.state.ttl": "0 ms",
    },
}
"""How the values of a key compare, and its default on open-source Flink 2.3 and 1.20."""

CHECK: Mapping[str, str] = {
    "table.optimizer.state-compatibility.ignore-filter": "false",
    "table.optimizer.state-compatibility.ignore-sink": "true",
}
"""Switches of the vendor's own check and their defaults (Overview page)."""

_VALUES: Mapping[str, Value] = {
    **{key: value for value, keys in KINDS.items() for key in keys},
    # Read only beside a fire, so leaving them out is no value of its own.
    "table.exec.emit.early-fire.delay": _length,
    "table.exec.emit.late-fire.delay": _length,
    "table.exec.emit.allow-lateness": _length,
    **dict.fromkeys(CHECK, str.lower),
}
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "vvr": {**CHECK, EARLY_FIRE: "false", LATE_FIRE: "false"},
    "flink": {key: default for keys in KINDS.values() for key, default in keys.items()},
}
"""Defaults by engine; of VVR's only the switches of its check and the fires its page on group windows names."""

RENAMED: Mapping[str, str] = {
    "pipeline.operator-chaining": "pipeline.operator-chaining.enabled",
    "state.backend": "state.backend.type",
    "state.backend.incremental": "execution.checkpointing.incremental",
    "state.checkpoint-storage": "execution.checkpointing.storage",
    "state.checkpoints.dir": "execution.checkpointing.dir",
    "state.checkpoints.num-retained": "execution.checkpointing.num-retained",
    "state.savepoints.dir": "execution.checkpointing.savepoint-dir",
}
"""Older names of keys that Flink still reads."""


def name(key: str) -> str:
    """The key as Flink calls it today."""
    return RENAMED.get(key, key)


def value(key: str, text: str) -> str:
    """A value so that two spellings of one value are equal."""
    return _VALUES.get(key, str)(text.strip())


def effective(settings: Mapping[str, str], key: str, engine: str) -> str | None:
    """The value in force, spelled as :func:`value` does; None where it is left out and no default is known."""
    given = settings.get(key, DEFAULTS[engine].get(key))
    return None if given is None else value(key, given)
