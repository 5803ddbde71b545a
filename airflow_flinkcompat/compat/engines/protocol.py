"""What an engine is to the checker: how it turns what the rules say into what holds on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level, Rule, Verdict

Settle = Callable[[Finding, Rule], Finding]
"""Makes of a finding what compiled plans settle of it."""


@dataclass(frozen=True)
class Case:
    """What findings are adjusted by, beside themselves and their rules.

    Attributes:
        change: What is judged.
        certain: Findings, by code of their rule and sink, that stay incompatible although one side alone declares a
            table: they were found just so with the table declared on both sides, or in compiled plans.
        settle: What compiled plans of both sides settle; None without such plans.
    """

    change: Change
    certain: frozenset[tuple[str, str | None]] = frozenset()
    settle: Settle | None = None


VerdictAdjuster = Callable[[Verdict, Any, Change], Verdict]
"""A rule's verdict, the pair that it speaks of, and the change → the verdict that holds."""
FindingAdjuster = Callable[[Finding, Rule, Case], Finding]
"""A finding, its rule and the case → the finding that holds. It makes nothing safe but by compiled plans."""


class Engine(Protocol):
    """How one engine judges. A verdict passes the adjusters in their order, each gets what the one before it left.

    What is true of an engine whatever is judged is in :class:`~airflow_flinkcompat.model.engine.EngineFacts`.
    """

    @property
    def name(self) -> str:
        """The name by which rules, sides and users call it."""

    @property
    def verdict_adjusters(self) -> tuple[VerdictAdjuster, ...]:
        """What makes of a rule's verdict what holds of the pair at hand on the version at hand."""

    @property
    def finding_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """What makes of a finding what holds in the light of the whole change."""

    @property
    def unchanged_adjusters(self) -> tuple[FindingAdjuster, ...]:
        """The adjusters that a change without any difference passes."""

    def level(self, rule: Rule) -> Level:
        """At which level a rule's findings take part in the precedence."""
