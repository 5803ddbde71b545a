"""Values and defaults of settings, and the emit settings of a query.

An omitted setting has the same effective value as a setting that is set to its default. This module does not read a
cluster's configuration file: pass the settings of that file as settings of the side.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.connectors import flink_options
from airflow_flinkcompat.plan.program import Pipeline, Program

_DIALECT = "table.sql-dialect"
_DIALECTS = {"flink": "default"}
"""Other names of SQL dialects, with Flink's name for each."""
EARLY_FIRE = "table.exec.emit.early-fire.enabled"
LATE_FIRE = "table.exec.emit.late-fire.enabled"
CHECK: Mapping[str, str] = {
    "table.optimizer.state-compatibility.ignore-filter": "false",
    "table.optimizer.state-compatibility.ignore-sink": "true",
}
"""Switches of the vendor's compatibility check, with their defaults (Overview page)."""
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
"""Keys with the same default on every cluster, by engine; None is the default in Flink's own class.

For VVR, the keys are the switches of VVR's compatibility check, and the early and late fires on VVR's page about group
windows.
"""


def name(key: str) -> str:
    """Return Flink's current name of a key."""
    return flink_options.current_name(key)


def default(key: str, engine: str) -> str | None:
    """Return the default of a key in the form of :func:`value`; None if the default is unknown."""
    known = KNOWN_DEFAULTS[engine]
    if key not in known:
        return None
    option = flink_options.setting(key)
    text = known[key] or (option.default if option else None)
    return None if text is None else value(key, text)


def value(key: str, text: str) -> str:
    """Return one form for all spellings of a value; a value that Flink cannot parse is returned unchanged."""
    text = text.strip()
    if key == _DIALECT:
        return _DIALECTS.get(text.lower(), text.lower())
    if key in CHECK:
        return text.lower()
    option = flink_options.setting(key)
    return text if option is None else option.spelled(text)


def effective(settings: Mapping[str, str], key: str, engine: str) -> str | None:
    """Return the effective value in the form of :func:`value`; None if omitted with an unknown default."""
    return value(key, settings[key]) if key in settings else default(key, engine)


PREFIX = "table.exec.emit."
DELAYS = {EARLY_FIRE: f"{PREFIX}early-fire.delay", LATE_FIRE: f"{PREFIX}late-fire.delay"}
"""The switch of each fire, with the delay setting that Flink reads only if that fire is enabled."""
LATENESS = f"{PREFIX}allow-lateness"
TTL = "table.exec.state.ttl"
"""Setting that open-source Flink uses as the lateness of legacy group windows if no lateness is set."""


def effective_emit_settings(pipeline: Pipeline) -> dict[str, str]:
    """The emit settings that affect an INSERT; a disabled fire and its delay are left out."""
    found = {key: value(key, text) for key, text in pipeline.settings if key.startswith(PREFIX)}
    for fire, delay in DELAYS.items():
        if found.get(fire, "false") == "false":
            found.pop(fire, None)
            found.pop(delay, None)
    return found


def enabled_fires(pipeline: Pipeline) -> list[str]:
    """The switches of the fires that an INSERT enables."""
    return [key for key, text in effective_emit_settings(pipeline).items() if key in DELAYS and text == "true"]


def state_expires(program: Program) -> bool:
    """True if idle state of any INSERT expires."""
    lives = (effective(dict(each.settings), TTL, "flink") for each in program.pipelines)
    return any(each not in (None, "0") for each in lives)


def repeating_settings(pipeline: Pipeline) -> list[str]:
    """Settings that make a legacy group window of open-source Flink emit a result more than once."""
    ttl = effective(dict(pipeline.settings), TTL, "flink")
    return [*effective_emit_settings(pipeline), *([] if ttl in (None, "0") else [TTL])]
