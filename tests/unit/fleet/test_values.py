"""The words for what came of a deployment."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from airflow_flinkcompat.compat import Report
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.fleet.values import DeploymentReview, Status, result_label
from airflow_flinkcompat.model import AppliedWaiver, Outcome, Waiver, WaiverState

WAIVER = Waiver("r", "script", "flink", "o", "f", "counted by hand", "ann", date(2026, 12, 31), "", "")
ADDED = Finding("aggregate-added", "t", Outcome.INCOMPATIBLE, "an aggregate was added")
CHANGED = Finding("output-changed", "t", Outcome.UNKNOWN, "the sink's rows changed")


def waived(finding: Finding) -> Finding:
    return replace(finding, waiver=AppliedWaiver(WAIVER, WaiverState.HOLDS))


@pytest.mark.parametrize(
    ("status", "findings", "label", "sentence"),
    [
        (Status.CHANGED, (ADDED, CHANGED), "incompatible", ADDED.message),
        (Status.CHANGED, (waived(ADDED), CHANGED), "unknown (incompatible waived)", CHANGED.message),
        (Status.CHANGED, (ADDED, waived(CHANGED)), "incompatible", ADDED.message),
        (Status.CHANGED, (waived(ADDED), ADDED), "incompatible", ADDED.message),
        (Status.CHANGED, (waived(ADDED), waived(CHANGED)), "incompatible (waived)", ADDED.message),
        (Status.ADDED, (waived(ADDED), CHANGED), "added (waived in part)", CHANGED.message),
        (Status.ADDED, (waived(ADDED),), "added (waived)", ADDED.message),
    ],
)
def test_a_row_names_what_still_fails(status: Status, findings: tuple[Finding, ...], label: str, sentence: str) -> None:
    report = Report(Outcome.INCOMPATIBLE, "flink", "2.3.0", findings, "", "", "", "orders.sql")
    review = DeploymentReview("orders", status, "orders.sql", reports=(report,))
    assert (result_label(review), review.sentence) == (label, sentence)
