"""Interface of an engine to the checker, and adjusters that engines share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level, Rule
from airflow_flinkcompat.compat.verdict import SAFE, Verdict
from airflow_flinkcompat.model import Basis, Outcome, Reason

GraphVoice = Callable[[Finding, Rule], Finding]
"""Replacement of a finding's effect by that of the exec graphs' diff, if they show its subject."""


@dataclass(frozen=True)
class AdjusterContext:
    """Context of adjusting a finding, besides the finding and its rule.

    Attributes:
        change: The change.
        certain: Findings, by code of their rule and sink, that stay incompatible although one side alone declares a
            table: they were found just so with the table declared on both sides, or in compiled plans.
        graph_voice: The diff of the exec graphs; None if Flink did not plan both sides.
        memo: Results that an adjuster has derived from a query: it sees every finding about it.
    """

    change: Change
    certain: frozenset[tuple[str, str | None]] = frozenset()
    graph_voice: GraphVoice | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)


VerdictAdjuster = Callable[[Verdict, Any, Change], Verdict]
"""A rule's verdict, the pair that it speaks of, and the change → the verdict that holds."""
FindingAdjuster = Callable[[Finding, Rule, AdjusterContext], Finding]
"""A finding, its rule and the case → the finding that holds. It makes nothing safe but by exec graphs."""


class Engine(Protocol):
    """Judgement of one engine. A verdict passes the adjusters in order, each receives the former's result.

    Facts independent of a change are in :class:`~airflow_flinkcompat.model.engine.EngineFacts`.
    """

    @property
    def name(self) -> str:
        """The name by which rules, sides and users call it."""

    @property
    def verdict_adjusters(self) -> tuple[VerdictAdjuster, ...]:
        """Adjusters from a rule's verdict to the pair and version at hand."""

    @property
    def finding_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """Adjusters of a finding in the light of the whole change."""

    @property
    def unchanged_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """The adjusters that a change without any difference passes."""

    @property
    def safe_finding_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """Adjusters of findings that are all safe: facts that may contradict them as a whole."""

    def level(self, rule: Rule) -> Level:
        """Level of a rule's findings in the precedence."""


MOVED = "no restore confirms that a query keeps its state when it uses different operations"


def lowered_to_unknown(finding: Finding, why: str) -> Finding:
    """A finding lowered to unknown."""
    if finding.outcome not in SAFE:
        return finding
    message = f"{finding.message} ({why})"
    return replace(finding, outcome=Outcome.UNKNOWN, reason=Reason.NOT_COVERED, message=message)


def unknown_value_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower findings about environment values, which may be equal under two names."""
    inputs = {f"${{{name}}}" for program in case.change.programs for name in program.inputs}
    shown = f"{finding.before} {finding.after}"
    if finding.outcome is not Outcome.INCOMPATIBLE or not any(name in shown for name in inputs):
        return finding
    unless = "unless both are the same, which only the environment knows; pass the values with --var"
    return _unknown(finding, Reason.NOT_READ, unless)


def _unknown(finding: Finding, reason: Reason, why: str) -> Finding:
    message = f"{finding.message}, {why}"
    return replace(
        finding, outcome=Outcome.UNKNOWN, reason=reason, basis=Basis.INFERRED, consequence=None, message=message
    )


def undeclared_table_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower refusals and wrong rows that rest on types of a one-sided table, unless certain."""
    tables = case.change.declared_on_one_side
    if not tables or finding.outcome is not Outcome.INCOMPATIBLE or (rule.code, finding.sink) in case.certain:
        return finding
    why = (
        f"{', '.join(sorted(tables))} is declared on one side only, or its declaration on the other was not read; "
        "pass it with --catalog"
    )
    return _unknown(finding, Reason.UNDECLARED, f"as far as the check can tell: {why}")
