"""What a rewritten savepoint would keep, told from both scripts alone: no plan that Flink compiled is at hand."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.planner import EQUAL
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.state.from_plan import aggregation_state
from airflow_flinkcompat.state.migration import Migration, migration
from airflow_flinkcompat.state.model import JobState, NotPredicted, StateKind

_TIME_TO_LIVE = "table.exec.state.ttl"


def script_migration(change: Change) -> Migration | None:
    """What of a job's state a rewritten savepoint could keep, where the scripts alone tell all that is kept.

    Args:
        change: Two scripts of one query each.

    Returns:
        What the compiled plans of both scripts would tell too, but for the names of operators in one phase or two; None
        where something may be kept that the scripts do not tell, where the sources are others, or where nothing was
        measured on that version.
    """
    sides = change.old, change.new
    versions = {side.version for side in sides}
    measured = len(versions) == 1 and versions <= set(EQUAL.verdicts["flink"].versions)
    if not measured or not ENGINE_FACTS[change.engine].compiles_plans or not _same_settings(change):
        return None
    old, new = map(_kept, sides)
    if isinstance(old, NotPredicted) or isinstance(new, NotPredicted):
        return None
    positions = ([spec for spec in state.specs if spec.kind is StateKind.POSITIONS] for state in (old, new))
    return migration(old, new) if next(positions) == next(positions) else None


def _same_settings(change: Change) -> bool:
    """Whether no setting differs, but for the time that state lives."""
    old, new = (
        [dict(each.settings) | {_TIME_TO_LIVE: ""} for each in program.pipelines] for program in change.programs
    )
    return old == new


def _kept(side: Side) -> JobState | NotPredicted:
    outputs, untold = side.outputs
    if side.language != "sql" or side.program.problems or untold or len(side.program.pipelines) != 1:
        return NotPredicted("only scripts of one query are told")
    return aggregation_state(outputs[0], side.program.pipelines[0], side.program)
