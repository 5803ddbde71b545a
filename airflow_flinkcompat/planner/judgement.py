"""The verdict on a change with the answer of Flink's own planner: when it is asked, and what happens without one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.compat import Report, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.checker import READ, WithHistory, check_planned
from airflow_flinkcompat.compat.planned_jobs import PlannedScript
from airflow_flinkcompat.model import InputError, PlannerMode, install_command, missing_packages
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.state.migration import Accept

if TYPE_CHECKING:
    from airflow_flinkcompat.planner.questions import PlannedChange


class PlannerUnavailable(InputError):
    """Flink's planner must be asked, and gives no answer."""


def judge(
    old: Side,
    new: Side,
    mode: PlannerMode = "auto",
    jars: Sequence[Path] = (),
    *,
    accepted: Collection[Accept] = (),
    history: WithHistory | None = None,
    with_other_engine: bool = False,
) -> Report:
    """Judge a change, and ask Flink's planner first.

    Args:
        old: What is deployed.
        new: What is proposed.
        mode: When the planner is asked: ``always``, ``never``, or ``auto``, where one is installed for the version and
            the scripts differ in more than layout.
        jars: Jars of connectors, formats and functions.
        accepted: What a migration may do on request alone.
        history: What a migration keeps with history.
        with_other_engine: Whether the report also holds the outcome on the other engine.

    Returns:
        The report, with its ground; with a warning where ``auto`` found no planner.

    Raises:
        InputError: Flink refuses a script, or a script holds no query.
        PlannerUnavailable: The mode is ``always``, and there is no answer.
        ScriptError: A script holds no statement.
    """

    def read(why: str = "") -> Report:
        report = check(old, new, with_other_engine=with_other_engine, accepted=accepted, history=history)
        if not why:
            return report
        return replace(report, ground=READ, warnings=(*report.warnings, f"Flink's planner was not asked: {why}"))

    if mode == "never":
        return read()
    if not ENGINE_FACTS[new.engine].compiles_plans or any(side.language != "sql" for side in (old, new)):
        if mode == "always":
            raise PlannerUnavailable("--planner always plans SQL scripts on open-source Flink: add --engine flink")
        return read()
    if mode == "auto" and Change(old, replace(new, beside=old)).unchanged:
        return read()
    try:
        planned = _planned(old, new, jars)
    except PlannerUnavailable as error:
        if mode == "always":
            raise
        return read(str(error))
    _require_planned(new, planned.new, "")
    deployed = "; name the script that is really deployed, or its Flink with --old-engine-version"
    _require_planned(old, planned.old, deployed)
    return check_planned(
        old, new, planned.prediction, planned.plans,
        with_other_engine=with_other_engine, accepted=accepted, history=history,
    )  # fmt: skip


def _planned(old: Side, new: Side, jars: Sequence[Path]) -> PlannedChange:
    """The planner's answers. Raises PlannerUnavailable: there are none."""
    try:
        from airflow_flinkcompat.planner.daemon import PlannerFailure
        from airflow_flinkcompat.planner.installation import PlannerMissing, find
        from airflow_flinkcompat.planner.questions import predict
    except ImportError as error:
        missing = ", ".join(missing_packages("local-flink") or (str(error.name),))
        remedy = install_command("local-flink")
        raise PlannerUnavailable(f"it needs packages that are not installed ({missing}): {remedy}") from None
    try:
        return predict(old, new, find(old.version, jars), find(new.version, jars))
    except (PlannerMissing, PlannerFailure) as error:
        raise PlannerUnavailable(str(error)) from None


def _require_planned(side: Side, script: PlannedScript, remedy: str) -> None:
    refusal = script.refusal
    if refusal is not None and refusal.conclusive:
        raise InputError(f"{refusal.place or side.source}: Flink {script.flink} refuses it: {refusal.message}{remedy}")
