"""State that a rewritten savepoint would keep, determined from both scripts without a compiled plan."""

from __future__ import annotations

from collections.abc import Collection

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.settings import TTL
from airflow_flinkcompat.compat.plan_comparison import sinks_elsewhere
from airflow_flinkcompat.compat.restore_verdict import EQUAL
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.from_script import query_state
from airflow_flinkcompat.exec_graph.migration import Accept, DdlEffects, Migration, migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.model.engine import ENGINE_FACTS


def script_migration(change: Change, accepted: Collection[Accept] = ()) -> Migration | None:
    """State of a job that a rewritten savepoint could keep, if the scripts alone determine all of it."""
    versions = {*change.versions}
    measured = len(versions) == 1 and versions <= set(EQUAL.verdicts["flink"].versions)
    if not measured or not ENGINE_FACTS[change.engine].compiles_plans or not _same_settings(change):
        return None
    symbols = Symbols()
    old = _kept(change.old, symbols)
    new = None if old is None else _kept(change.new, symbols)
    if old is None or new is None or _positions(old) != _positions(new):
        return None
    return migration(old, new, DdlEffects(replaced=sinks_elsewhere(change)), accepted)


def _same_settings(change: Change) -> bool:
    """True if no setting differs except the state's time to live."""
    old, new = ([dict(each.settings) | {TTL: ""} for each in program.pipelines] for program in change.programs)
    return old == new


def _kept(side: Side, symbols: Symbols) -> ExecGraph | None:
    outputs, untold = side.outputs
    if side.language != "sql" or side.program.problems or untold or len(side.program.pipelines) != 1:
        return None
    state = query_state(outputs[0], side.program.pipelines[0], side.program, symbols)
    return state if isinstance(state, ExecGraph) else None


def _positions(state: ExecGraph) -> list[StateSpec]:
    return [spec for spec in state.specs if spec.kind is StateKind.POSITIONS]
