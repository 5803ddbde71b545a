"""Sink columns that a change names, by Flink's compiled plans of both scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans, Plans
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.plans import explain_plans
from airflow_flinkcompat.deploy.rehearsal.restoring import RunnableSide, job_of
from airflow_flinkcompat.deploy.target import PlanCompiler, Target
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, IdsByStandIns
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns, SinkPath
from airflow_flinkcompat.model import InputError

PlanBoth = Callable[[Side, Side], Plans]
"""Function that compiles the plans of both scripts. It may raise InputError."""


@dataclass(frozen=True)
class NamedColumns:
    """The columns that a change names, for each sink; None with a reason if they are unknown.

    ``stand_ins``: operator ids of the old and the new script with stand-ins for their sinks.
    """

    of: Mapping[SinkPath, ChangedColumns] | None = None
    unknown: str = ""
    stand_ins: tuple[IdsByStandIns, IdsByStandIns] = (UNKNOWN_IDS, UNKNOWN_IDS)


def named_columns(
    target: Target, old: RunnableSide, new: RunnableSide, folder: str | None, plan: PlanBoth | None
) -> NamedColumns:
    """Compare the plans of both scripts.

    The target compiles the plans in ``folder``, as in ``explain_plans``. Otherwise ``plan`` compiles them.
    """
    sides = [Side.of(job_of(side)) for side in (old, new)]
    try:
        if isinstance(target, PlanCompiler):
            version = target.engine().version
            sides = [replace(side, engine_version=side.engine_version or version) for side in sides]
            plans = explain_plans(sides[0], sides[1], target, folder=folder)
        elif plan is not None:
            plans = plan(sides[0], sides[1])
        else:
            return NamedColumns(unknown=f"{target} cannot compile plans")
        compared = ComparedPlans(Change(sides[0], sides[1]), plans)
        return NamedColumns(compared.changed_columns, stand_ins=compared.stand_ins)
    except (DeployError, InputError) as error:
        return NamedColumns(unknown=str(error))
