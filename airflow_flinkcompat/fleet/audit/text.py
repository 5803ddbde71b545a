"""The audit for people: a table by outcome and reason, then the most frequent causes with examples."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.fleet.audit.judging import REASONS
from airflow_flinkcompat.fleet.audit.values import AuditGroup, AuditResult, AuditSummary, Cause

QUIET = (AuditResult.COMPATIBLE, AuditResult.NO_JOB)
"""Results that are only counted."""
_HEADER = ("result", "reason", "jobs", "alone", "for example")
_EXAMPLES = 3
_MESSAGES = 5
_LONGEST_NAME = 60


def title_of(reason: str) -> str:
    """A reason in words."""
    rule = BY_CODE.get(reason)
    return REASONS.get(reason, reason) if rule is None else rule.title


def render_audit_text(summary: AuditSummary) -> str:
    """The audit for a terminal."""
    rows = [_HEADER, *map(_cells, summary.groups)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [heading(summary), ""]
    for result, reason, jobs, alone, example in rows:
        cells = (result.ljust(widths[0]), reason.ljust(widths[1]), jobs.rjust(widths[2]), alone.rjust(widths[3]))
        lines.append("  ".join((*cells, example)).rstrip())
    for group in summary.groups:
        if group.result not in QUIET:
            lines += ["", f"[{group.result}] {group.reason}: {title_of(group.reason)} ({_jobs(group.jobs)})"]
            lines += _said(group)
    lines += ["", *(line for note in summary.remarks for line in _wrapped("note: ", note, "  "))]
    return "\n".join([*lines, summary.sentence]).replace("\n\n\n", "\n\n") + "\n"


def render_audit_markdown(summary: AuditSummary) -> str:
    """The audit as a comment, or as the summary of a CI step."""
    lines = [f"### {plain_words(heading(summary))}", "", f"| {' | '.join(_HEADER)} |", "|---|---|---:|---:|---|"]
    for group in summary.groups:
        mark = "" if group.result in QUIET else "**"
        examples = ", ".join(code_span(name) for name, _ in group.examples[:_EXAMPLES])
        cells = (
            f"{mark}{group.result}{mark}",
            code_span(group.reason),
            f"{group.jobs:,}",
            f"{group.alone:,}",
            examples,
        )
        lines.append(f"| {' | '.join(cells)} |")
    for group in summary.groups:
        if group.result in QUIET:
            continue
        lines += ["", f"<details><summary>{group.result}: {plain_words(title_of(group.reason))}</summary>", ""]
        lines += [f"* {count:,} x {plain_words(message)}" for message, count in common(group, _MESSAGES)]
        lines += [f"* {code_span(name)}: {plain_words(what(cause))}" for name, cause in group.examples[:_EXAMPLES]]
        lines += ["", "</details>"]
    lines += ["", *(f"> {plain_words(note)}\n" for note in summary.remarks), f"{plain_words(summary.sentence)}."]
    return "\n".join(lines) + "\n"


def heading(summary: AuditSummary) -> str:
    """The question on one line."""
    subject = summary.subject
    return format_inline(f"flinkcompat audit of {subject.source}: {subject.question}")


def what(cause: Cause) -> str:
    """A reason with its place and Flink's reaction."""
    place = f"{cause.place}: " if cause.place and not cause.message.startswith(cause.place) else ""
    return f"{place}{cause.message}{_ends(cause)}"


def _ends(cause: Cause) -> str:
    return f" ({cause.consequence})" if cause.consequence else ""


def _cells(group: AuditGroup) -> tuple[str, ...]:
    name = group.examples[0][0]
    short = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return group.result.value, group.reason, f"{group.jobs:,}", f"{group.alone:,}", format_inline(short)


def common(group: AuditGroup, most: int) -> list[tuple[str, int]]:
    """Causes that several jobs of a group share, with their number, most frequent first."""
    return [(text, count) for text, count in group.messages.most_common(most) if count > 1]


def _said(group: AuditGroup) -> Sequence[str]:
    """The most frequent causes, then examples; an example does not repeat a cause above it."""
    lines: list[str] = []
    often = common(group, _MESSAGES)
    for text, count in often:
        lines += _wrapped(f"  {count:,} x ", text)
    for name, cause in group.examples[:_EXAMPLES]:
        above = cause.place and any(cause.message == text for text, _ in often)
        said = f"{cause.place}{_ends(cause)}" if above else what(cause)
        lines += _wrapped("  ", said if said.startswith(name) else f"{name}: {said}")
    if group.jobs > _EXAMPLES:
        lines.append(f"  and {group.jobs - _EXAMPLES:,} more")
    return lines


def _wrapped(before: str, text: str, indent: str = "    ") -> Sequence[str]:
    found = textwrap.wrap(
        format_inline(text), WIDTH, initial_indent=before, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return found or [before.rstrip()]


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"
