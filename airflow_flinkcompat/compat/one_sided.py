"""What is said where only one side has a script: a deployment that is new, and one whose script was deleted.

Nothing is compared, so no rule looks for these, nor for what only a script by itself is asked for; they have their
pages in the catalogue.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from airflow_flinkcompat.compat.lint import UNDECLARED_FUNCTION, lint
from airflow_flinkcompat.compat.report import Finding, Report, tool_version
from airflow_flinkcompat.compat.rule import Example, Rule, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.startup_offsets import startup_positions
from airflow_flinkcompat.model import ENGINES, InputError, Outcome
from airflow_flinkcompat.sql import ScriptError

ADDED = Rule(
    code="deployment-added",
    title="The deployment is new",
    scope=RuleScope.SCRIPT,
    verdicts={engine: inferred(Outcome.COMPATIBLE, "there is no state yet") for engine in ENGINES},
    rationale="Nothing is deployed, so there is no state that the script could lose, and nothing to compare it with. "
    "It is read by itself, as flinkcompat lint does.",
    example=Example("", windowed("customer, SUM(amount)")),
    find=lambda change: (),
)
REMOVED = Rule(
    code="deployment-removed",
    title="The script of a deployment was deleted",
    scope=RuleScope.SCRIPT,
    verdicts={engine: inferred(Outcome.INCOMPATIBLE, "no script is left that could resume") for engine in ENGINES},
    rationale="Deleting a script stops no job: it runs on, without a script, until somebody stops it. Its state "
    "belongs to no script any more.",
    example=Example(windowed("customer, SUM(amount)"), ""),
    find=lambda change: (),
)
RULES = (ADDED, REMOVED, UNDECLARED_FUNCTION)
NO_SCRIPT = hashlib.sha256(b"").hexdigest()
"""The hash of a side that is not there."""


def added_report(new: Side, old_source: str) -> Report:
    """The report on a deployment that is new."""
    try:
        shown = tuple(each for each in lint(new) if each.outcome is not Outcome.COMPATIBLE)
    except RecursionError:
        raise InputError(f"{new.source}: an expression or query is nested too deeply to be read") from None
    message = "there is nothing to compare with: the script is read by itself"
    sides = (NO_SCRIPT, old_source), (new.sha256, new.source)
    report = _report(ADDED, message, new, *sides, startup_positions(new))
    outcome = Outcome.worst((report.outcome, *(each.outcome for each in shown)))
    sinks = tuple((sink, outcome) for sink, _ in report.sinks)
    return replace(report, outcome=outcome, findings=(*report.findings, *shown), sinks=sinks)


def removed_report(old: Side, new_source: str) -> Report:
    """The report on a deployment whose script was deleted."""
    message = "the script was deleted, and its job runs on until it is stopped"
    return _report(REMOVED, message, old, (old.sha256, old.source), (NO_SCRIPT, new_source), ())


def _report(
    rule: Rule,
    message: str,
    side: Side,
    old: tuple[str, str],
    new: tuple[str, str],
    sources: tuple[tuple[str, str], ...],
) -> Report:
    verdict = rule.verdicts[side.engine]
    return Report(
        outcome=verdict.outcome,
        engine=side.engine,
        engine_version=side.version,
        findings=(
            Finding(rule.code, rule.title, verdict.outcome, message, basis=verdict.basis, source=verdict.source),
        ),
        old_sha256=old[0],
        new_sha256=new[0],
        old_source=old[1],
        new_source=new[1],
        tool_version=tool_version(),
        sinks=tuple((sink, verdict.outcome) for sink in _sinks(side)),
        sources=sources,
    )


def _sinks(side: Side) -> tuple[str, ...]:
    """The sinks of a side, as far as it can be read."""
    try:
        return tuple(dict.fromkeys(output.sink for output in side.outputs[0].values()))
    except (RecursionError, ScriptError):
        return ()
