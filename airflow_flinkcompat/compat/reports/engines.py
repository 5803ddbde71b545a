"""The verdicts of both engines on one change: the worst is told in full, the other one as far as it differs."""

from __future__ import annotations

from itertools import groupby

from airflow_flinkcompat.compat.report import Report, Reports
from airflow_flinkcompat.compat.reports.sections import engine_label, headline

WHICH_ENGINE = (
    "No engine was named, so both are judged and the worse verdict counts. Name the one that runs the job with "
    "--engine flink or --engine vvr, or in the environment variable FLINKCOMPAT_ENGINE."
)
IN_FULL = "With --engine {} that report is shown in full, with what to do next."
SAME = "On {} the findings are the same; --engine {} shows what they rest on there."


def verdicts(reports: Reports) -> tuple[str, ...]:
    """The headline of each outcome with the engines that it holds for, worst first.

    Args:
        reports: The verdicts on one change.

    Returns:
        A headline for each engine; one for both where they agree.
    """
    found = []
    for line, agreeing in groupby(reports.each, key=headline):
        word, _, meaning = line.partition(": ")
        found.append(f"{word} on {' and on '.join(map(engine_label, agreeing))}: {meaning}")
    return tuple(found)


def title(report: Report) -> str:
    """The heading over what one of several engines says."""
    return f"On {engine_label(report)}: {headline(report).partition(':')[0].lower()}"


def finds_the_same(one: Report, other: Report) -> bool:
    """Whether the reports of two engines have one outcome by the same findings, whatever these rest on."""

    def found(report: Report) -> tuple[object, ...]:
        return report.outcome, [(finding.rule, finding.outcome, finding.message) for finding in report.deciding]

    return found(one) == found(other)
