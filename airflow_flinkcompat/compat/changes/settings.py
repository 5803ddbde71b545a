"""Settings as data: comparison of a key's values, known defaults, and the emit settings of a query.

An omitted setting and the same one with its default value are one effective value. A cluster's own file is not seen
here: pass its settings as the side's.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.connectors import flink_options
from airflow_flinkcompat.plan.program import Pipeline, Program

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
"""Keys with fixed defaults on every cluster, by engine; None for the default of Flink's class.

For VVR these are the switches of its check and the fires that its page on group windows names.
"""


def name(key: str) -> str:
    """The key as Flink calls it today."""
    return flink_options.current_name(key)


def default(key: str, engine: str) -> str | None:
    """The effective value of an omitted key, spelled as :func:`value` does; None if unknown."""
    known = KNOWN_DEFAULTS[engine]
    if key not in known:
        return None
    option = flink_options.setting(key)
    text = known[key] or (option.default if option else None)
    return None if text is None else value(key, text)


def value(key: str, text: str) -> str:
    """A value in a form that is equal for all its spellings; unchanged if Flink does not parse it."""
    text = text.strip()
    if key == _DIALECT:
        return _DIALECTS.get(text.lower(), text.lower())
    if key in CHECK:
        return text.lower()
    option = flink_options.setting(key)
    return text if option is None else option.spelled(text)


def effective(settings: Mapping[str, str], key: str, engine: str) -> str | None:
    """The effective value, spelled as :func:`value` does; None if omitted without a known default."""
    return value(key, settings[key]) if key in settings else default(key, engine)


PREFIX = "table.exec.emit."
DELAYS = {EARLY_FIRE: f"{PREFIX}early-fire.delay", LATE_FIRE: f"{PREFIX}late-fire.delay"}
"""Both fires, each with the setting that is read only where it is enabled."""
LATENESS = f"{PREFIX}allow-lateness"
TTL = "table.exec.state.ttl"
"""Lateness of a legacy group window on open-source Flink without a setting."""


def in_force(pipeline: Pipeline) -> dict[str, str]:
    """The emit settings of an INSERT: a disabled fire is none, and its delay has no effect."""
    found = {key: value(key, text) for key, text in pipeline.settings if key.startswith(PREFIX)}
    for fire, delay in DELAYS.items():
        if found.get(fire, "false") == "false":
            found.pop(fire, None)
            found.pop(delay, None)
    return found


def fires(pipeline: Pipeline) -> list[str]:
    """The fires that are enabled at an INSERT."""
    return [key for key, text in in_force(pipeline).items() if key in DELAYS and text == "true"]


def expires(program: Program) -> bool:
    """Return whether idle state of any INSERT expires."""
    lives = (effective(dict(each.settings), TTL, "flink") for each in program.pipelines)
    return any(each not in (None, "0") for each in lives)


def repeating(pipeline: Pipeline) -> list[str]:
    """Settings under which a legacy group window of open-source Flink emits a result more than once."""
    ttl = effective(dict(pipeline.settings), TTL, "flink")
    return [*in_force(pipeline), *([] if ttl in (None, "0") else [TTL])]
