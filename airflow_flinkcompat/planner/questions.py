"""The questions that are put to the planner about a change: each script, settings that are not known, absent jars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.compiled import QUERY_SINK
from airflow_flinkcompat.compat.planned_jobs import PlannedScript, Prediction, predicted
from airflow_flinkcompat.deploy.flink.statements import as_one_statement
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.planner.daemon import daemon
from airflow_flinkcompat.planner.installation import Installation
from airflow_flinkcompat.sql import parse_script
from airflow_flinkcompat.sql.nodes import SetOption

PARALLELISM = "parallelism.default"
_PLANNING = {"table.plan.compile.catalog-objects": "SCHEMA"}  # options of tables may hold secrets
_UNKNOWN_PARALLELISM = ("1", "2")
"""Chains differ between one subtask and several, and so do OperatorIDs."""
_STAND_INS: Sequence[Mapping[str, Any]] = (
    {},
    {"changelog": "all"},
    {"changelog": "insert", "push_down": True},
)
"""What an absent connector may be; an answer counts where it is the same for all of these."""


@dataclass(frozen=True)
class Sources:
    """Who plans each side.

    Attributes:
        old: The planner of the deployed job's line.
        new: The planner of the new script's line.
        jars: Jars of connectors, formats and functions.
    """

    old: Installation
    new: Installation
    jars: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Planned:
    """The answers about a change.

    Attributes:
        old: What is planned for the deployed script.
        new: What is planned for the new one.
        prediction: How a restore ends, where every variant of what is not known says the same.
    """

    old: PlannedScript
    new: PlannedScript
    prediction: Prediction


def predict(old: Side, new: Side, sources: Sources) -> Planned:
    """Ask Flink how a restore of a changed script ends.

    Args:
        old: What is deployed.
        new: What is proposed.
        sources: Who plans each side.

    Returns:
        The answers.

    Raises:
        PlannerFailure: The planner gives no answer.
        ScriptError: A script holds no statement.
    """
    first, *others = _variants(old, new)
    planned = _planned(old, new, sources, first)
    if planned.old.refusal is not None or planned.new.refusal is not None:
        others = [each for each in others if set(each) != {"settings"}] if planned.prediction.stand_ins else []
    for variant in others:
        if "settings" not in variant and not planned.prediction.stand_ins:
            continue
        again = _planned(old, new, sources, {**first, **variant})
        if (doubt := _disagreement(planned, again, variant)) is not None:
            return Planned(planned.old, planned.new, Prediction(planned.new.flink, doubt=doubt, stand_ins=planned.prediction.stand_ins))
    return planned


def _variants(old: Side, new: Side) -> Iterator[Mapping[str, Any]]:
    """What is asked first, and then what else may hold."""
    known = all(_sets_parallelism(side) for side in (old, new))
    first, *widths = (None,) if known else _UNKNOWN_PARALLELISM
    yield {} if first is None else {"settings": {PARALLELISM: first}}
    yield from ({"settings": {PARALLELISM: each}} for each in widths)
    yield from _STAND_INS[1:]


def _sets_parallelism(side: Side) -> bool:
    if PARALLELISM in side.settings:
        return True
    trees = (statement.tree for statement in side.parsed.statements)
    return any(isinstance(tree, SetOption) and tree.this is not None and tree.this.name == PARALLELISM for tree in trees)


def _planned(old: Side, new: Side, sources: Sources, variant: Mapping[str, Any]) -> Planned:
    before = plan(old, sources.old, sources.jars, variant)
    after = plan(new, sources.new, sources.jars, variant, tuple(job.savepoint for job in before.jobs))
    return Planned(before, after, predicted(before, after))


def plan(
    side: Side,
    installation: Installation,
    jars: Sequence[Path] = (),
    variant: Mapping[str, Any] | None = None,
    restore: Sequence[str] = (),
) -> PlannedScript:
    """What Flink plans for one script.

    Args:
        side: The script with its settings and catalog.
        installation: Who plans it.
        jars: Jars of connectors, formats and functions.
        variant: What stands in for what is not known.
        restore: By job a savepoint to restore from.

    Returns:
        What is planned.

    Raises:
        PlannerFailure: The planner gives no answer.
        ScriptError: The script holds no statement.
    """
    declared = parse_script(side.catalog, "<catalog>").statements if side.catalog.strip() else ()
    statements = tuple(chain(declared, side.parsed.statements))
    given = variant or {}
    question = {
        **given,
        "statements": [as_one_statement(each.text) for each in statements],
        "settings": {**given.get("settings", {}), **side.settings, **_PLANNING},
        "query_sink": QUERY_SINK,
        "jars": list(map(str, jars)),
        "restore": list(restore),
    }
    return PlannedScript.of(daemon(installation).ask(question), _places(each.span for each in statements))


def _places(spans: Iterator[Span]) -> tuple[Span, ...]:
    return tuple(spans)


def _disagreement(one: Planned, other: Planned, variant: Mapping[str, Any]) -> str | None:
    """Why two answers about one change cannot both be right, None where they say the same."""
    same = _said(one) == _said(other)
    if same:
        return None
    if "settings" in variant:
        return f"it depends on {PARALLELISM}, which is not known: set it in the script or with --set {PARALLELISM}=N"
    absent = ", ".join(one.prediction.stand_ins)
    return f"it depends on {absent}, whose jar is not here: name it with --jar FILE"


def _said(planned: Planned) -> tuple[Any, ...]:
    sides = ((side.refusal is None or side.refusal.message) for side in (planned.old, planned.new))
    return (*sides, planned.prediction.consequence, bool(planned.prediction.doubt))
