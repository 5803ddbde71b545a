"""When windows hand out results besides their end: the emit settings that take effect at a query."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.plan.program import Pipeline, Program

PREFIX = "table.exec.emit."
DELAYS = {settings.EARLY_FIRE: f"{PREFIX}early-fire.delay", settings.LATE_FIRE: f"{PREFIX}late-fire.delay"}
"""Both fires, each with the setting that is read only where it is enabled."""
LATENESS = f"{PREFIX}allow-lateness"
TTL = "table.exec.state.ttl"
"""What open-source Flink takes for the lateness of a legacy group window where none is given."""


def in_force(pipeline: Pipeline) -> dict[str, str]:
    """The emit settings that take effect at an INSERT: a fire set to false is none, and its delay then says nothing."""
    found = {key: settings.value(key, value) for key, value in pipeline.settings if key.startswith(PREFIX)}
    for fire, delay in DELAYS.items():
        if found.get(fire, "false") == "false":
            found.pop(fire, None)
            found.pop(delay, None)
    return found


def fires(pipeline: Pipeline) -> list[str]:
    """The fires that are enabled at an INSERT."""
    return [key for key, value in in_force(pipeline).items() if key in DELAYS and value == "true"]


def expires(program: Program) -> bool:
    """Return whether idle state of any INSERT expires."""
    lives = (settings.effective(dict(each.settings), TTL, "flink") for each in program.pipelines)
    return any(each not in (None, "0") for each in lives)


def repeating(pipeline: Pipeline) -> list[str]:
    """The settings in force under which a legacy group window of open-source Flink sends a result more than once."""
    ttl = settings.effective(dict(pipeline.settings), TTL, "flink")
    return [*in_force(pipeline), *([] if ttl in (None, "0") else [TTL])]
