"""What every engine's adjusters are made of."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.compat.engines.protocol import Case
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import SAFE, Rule
from airflow_flinkcompat.model import Basis, Outcome, Reason

MOVED = "no measurement says that a query keeps its state when it is written through other operations"


def doubted(finding: Finding, why: str) -> Finding:
    """A finding that says too much.

    Args:
        finding: What was found.
        why: The reason for the doubt.

    Returns:
        ``unknown`` in place of a safe finding; any other as it is.
    """
    if finding.outcome not in SAFE:
        return finding
    message = f"{finding.message} ({why})"
    return replace(finding, outcome=Outcome.UNKNOWN, reason=Reason.NOT_COVERED, message=message)


def undeclared_table_adjuster(finding: Finding, rule: Rule, case: Case) -> Finding:
    """What is refused or wrong by the types of a table that one side does not declare is unknown, unless certain."""
    tables = case.change.declared_on_one_side
    if not tables or finding.outcome is not Outcome.INCOMPATIBLE or (rule.code, finding.sink) in case.certain:
        return finding
    why = (
        f"{', '.join(sorted(tables))} is declared on one side only, or its declaration on the other was not read; "
        "pass it with --catalog"
    )
    return replace(
        finding,
        outcome=Outcome.UNKNOWN,
        reason=Reason.UNDECLARED,
        basis=Basis.INFERRED,
        consequence=None,
        message=f"{finding.message}, as far as it can be told: {why}",
    )
