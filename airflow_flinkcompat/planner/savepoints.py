"""Stored state under the names of a script, which Flink's planner plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import migrations, require_one_job
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner.judgement import DeployedJob, compile_plans

if TYPE_CHECKING:
    from airflow_flinkcompat.compat.plan_comparison import Plans
    from airflow_flinkcompat.state import OpenSavepoint


def state_specs(side: Side, plans: Plans) -> list[StateSpec]:
    """States of the operators of a planned script. Raises InputError unless the script has one job."""
    require_one_job("state reads", plans)
    (own,) = migrations(side, side, plans)
    return [line.old for line in own.operators if line.old is not None]


def open_savepoint(
    path: str, script: str | Path | Side | None = None, *, engine_version: str | None = None, jars: Sequence[Path] = ()
) -> OpenSavepoint:
    """Open a canonical savepoint, which is only read.

    Args:
        path: Path or URI of its folder, on any store that universal-pathlib supports.
        script: Path of the SQL script of the job that took the savepoint, or a side with the settings of the job.
            Tables and columns then have the names of the script. Flink's planner must be installed.
        engine_version: Flink's version, such as ``2.3``; the newest by default. A side has its own version.
        jars: Jars of connectors and functions that the script needs.

    Returns:
        The savepoint, whose tables are readers of Arrow record batches.

    Raises:
        InputError: Flink refuses the script, or the planner is unavailable.
        SavepointUnreadable: The savepoint is out of reach, damaged or of an unknown form.
    """
    from airflow_flinkcompat.exec_graph.from_savepoint import read_job
    from airflow_flinkcompat.state import open_savepoint as opened

    if script is None:
        return opened(path)
    if not isinstance(script, Side):
        try:
            text = Path(script).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{script} cannot be read: {error}") from None
        script = Side(text, engine="flink", engine_version=engine_version, source=str(script))
    stored = read_job(path)
    plans = compile_plans(script, script, jars, DeployedJob({}, stored.stateful, stored))
    return opened(path, state_specs(script, plans))
