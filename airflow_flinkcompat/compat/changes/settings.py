"""Settings as data: how the values of a key compare, and which defaults are known for sure.

A setting left out and the same setting written with its default value are one effective value. What a cluster's own
file sets is not seen here: whoever relies on it passes it as the side's settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.connectors import flink_options

_DIALECT = "table.sql-dialect"
_DIALECTS = {"flink": "default"}
"""Flink's own dialect as tools call it that read scripts, by its name in Flink."""

EARLY_FIRE = "table.exec.emit.early-fire.enabled"
LATE_FIRE = "table.exec.emit.late-fire.enabled"
CHECK: Mapping[str, str] = {
    "table.optimizer.state-compatibility.ignore-filter": "false",
    "table.optimizer.state-compatibility.ignore-sink": "true",
}
"""Switches of the vendor's own check and their defaults (Overview page)."""

KNOWN_DEFAULTS: Mapping[str, Mapping[str, str | None]] = {
    "vvr": {**CHECK, EARLY_FIRE: "false", LATE_FIRE: "false"},
    "flink": dict.fromkeys(
        (
            "execution.runtime-mode",
            "pipeline.object-reuse",
            "pipeline.operator-chaining.enabled",
            "table.dynamic-table-options.enabled",
            "table.exec.async-state.enabled",
            EARLY_FIRE,
            LATE_FIRE,
            "table.exec.mini-batch.enabled",
            "table.exec.sink.not-null-enforcer",
            "table.exec.sink.require-on-conflict",
            "table.exec.sink.type-length-enforcer",
            "table.exec.sink.upsert-materialize",
            "table.exec.source.cdc-events-duplicate",
            "table.exec.source.idle-timeout",
            "table.exec.state.ttl",
            "table.exec.uid.generation",
            "table.optimizer.agg-phase-strategy",
            "table.optimizer.distinct-agg.split.enabled",
            "table.optimizer.multi-join.enabled",
            _DIALECT,
        )
    ),
}
"""By engine, the keys whose defaults hold on every cluster; None where it is the one of Flink's class.

Of VVR's these are the switches of its check and the fires that its page on group windows names.
"""


def name(key: str) -> str:
    """The key as Flink calls it today."""
    return flink_options.current_name(key)


def default(key: str, engine: str) -> str | None:
    """The value in force where a key is left out, spelled as :func:`value` does; None where it is not known."""
    known = KNOWN_DEFAULTS[engine]
    if key not in known:
        return None
    option = flink_options.setting(key)
    text = known[key] or (option.default if option else None)
    return None if text is None else value(key, text)


def value(key: str, text: str) -> str:
    """A value so that two spellings of one value are equal; one that Flink does not parse as it stands."""
    text = text.strip()
    if key == _DIALECT:
        return _DIALECTS.get(text.lower(), text.lower())
    if key in CHECK:
        return text.lower()
    option = flink_options.setting(key)
    return text if option is None else option.spelled(text)


def effective(settings: Mapping[str, str], key: str, engine: str) -> str | None:
    """The value in force, spelled as :func:`value` does; None where it is left out and no default is known."""
    return value(key, settings[key]) if key in settings else default(key, engine)
