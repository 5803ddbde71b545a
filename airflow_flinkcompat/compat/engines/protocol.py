"""The interface between engines and the checker, and adjusters that several engines use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level, Rule
from airflow_flinkcompat.compat.verdict import SAFE, Verdict
from airflow_flinkcompat.model import Basis, Outcome, Reason

GraphAdjuster = Callable[[Finding, Rule], Finding]
"""Function that replaces a finding's outcome with the outcome of the diff, if graphs show the change."""


@dataclass(frozen=True)
class AdjusterContext:
    """The context in which an adjuster changes a finding.

    Attributes:
        change: The change.
        certain: Findings, by rule code and sink, that stay incompatible although only one side declares a table. The
            same findings occur if the table is declared on both sides, or occur in compiled plans.
        graph_adjuster: Function that applies the exec graph diff; None if Flink did not plan both sides.
        memo: Results about a query that an adjuster stores for the query's other findings.
    """

    change: Change
    certain: frozenset[tuple[str, str | None]] = frozenset()
    graph_adjuster: GraphAdjuster | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)


VerdictAdjuster = Callable[[Verdict, Any, Change], Verdict]
"""Function from a rule's verdict, its pair and the change to the adjusted verdict."""
FindingAdjuster = Callable[[Finding, Rule, AdjusterContext], Finding]
"""Function from a finding, its rule and the context to the adjusted finding."""


class Engine(Protocol):
    """One engine. The adjusters of an engine run in order on each verdict or finding.

    Facts independent of a change are in :class:`~airflow_flinkcompat.model.engine.EngineFacts`.
    """

    @property
    def name(self) -> str:
        """The name of the engine in rules, sides and options."""

    @property
    def verdict_adjusters(self) -> tuple[VerdictAdjuster, ...]:
        """Adjusters that adapt a rule's verdict to the pair and the version."""

    @property
    def finding_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """Adjusters that adapt a finding to the whole change."""

    @property
    def unchanged_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """Adjusters of the findings on a change without differences."""

    @property
    def safe_finding_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """Adjusters that run only if all findings are safe, and that may contradict the findings as a whole."""

    def level(self, rule: Rule) -> Level:
        """The precedence level of a rule's findings."""


MOVED = "no restore confirms that a query keeps its state when it uses different operations"


def lowered_to_unknown(finding: Finding, why: str) -> Finding:
    """Lower a safe finding to unknown."""
    if finding.outcome not in SAFE:
        return finding
    message = f"{finding.message} ({why})"
    return replace(finding, outcome=Outcome.UNKNOWN, reason=Reason.NOT_COVERED, message=message)


def unknown_value_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower incompatible findings about environment variables: two variables may have the same value."""
    inputs = {f"${{{name}}}" for program in case.change.programs for name in program.inputs}
    shown = f"{finding.before} {finding.after}"
    if finding.outcome is not Outcome.INCOMPATIBLE or not any(name in shown for name in inputs):
        return finding
    unless = "unless both values are equal in the job's environment; pass the values with --var"
    return _unknown(finding, Reason.NOT_READ, unless)


def _unknown(finding: Finding, reason: Reason, why: str) -> Finding:
    message = f"{finding.message}, {why}"
    return replace(
        finding, outcome=Outcome.UNKNOWN, reason=reason, basis=Basis.INFERRED, consequence=None, message=message
    )


def undeclared_table_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower incompatible findings if only one side declares a table, unless the findings are certain."""
    tables = case.change.declared_on_one_side
    if not tables or finding.outcome is not Outcome.INCOMPATIBLE or (rule.code, finding.sink) in case.certain:
        return finding
    why = (
        f"{', '.join(sorted(tables))} is declared on one side only, or its declaration on the other side was not "
        "read; pass the declaration with --catalog"
    )
    return _unknown(finding, Reason.UNDECLARED, f"but this is uncertain: {why}")
