"""The audit for people: a table by outcome and reason, then what is said most often of each, with examples."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.fleet.audit.judging import REASONS
from airflow_flinkcompat.fleet.audit.values import AuditRow, AuditSummary, Group, Result

QUIET = (Result.COMPATIBLE, Result.NO_JOB)
"""Results of which nothing but the number is to be said."""
_HEADER = ("result", "reason", "jobs", "alone", "for example")
_EXAMPLES = 3
_MESSAGES = 5
_LONGEST_NAME = 60


def title_of(reason: str) -> str:
    """A reason in words."""
    rule = BY_CODE.get(reason)
    return REASONS.get(reason, reason) if rule is None else rule.title


def render_audit_text(summary: AuditSummary) -> str:
    """The audit for a terminal.

    Args:
        summary: All rows, counted.

    Returns:
        The text, secrets masked.
    """
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
    """The audit as a comment, or as the summary of a CI step.

    Args:
        summary: All rows, counted.

    Returns:
        The Markdown, secrets masked.
    """
    lines = [f"### {plain_words(heading(summary))}", "", f"| {' | '.join(_HEADER)} |", "|---|---|---:|---:|---|"]
    for group in summary.groups:
        mark = "" if group.result in QUIET else "**"
        examples = ", ".join(code_span(row.name) for row in group.rows[:_EXAMPLES])
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
        lines += [f"* {count:,} x {plain_words(message)}" for message, count in group.messages.most_common(_MESSAGES)]
        lines += [f"* {code_span(row.name)}: {plain_words(what(row))}" for row in group.rows[:_EXAMPLES]]
        lines += ["", "</details>"]
    lines += ["", *(f"> {plain_words(note)}\n" for note in summary.remarks), f"{plain_words(summary.sentence)}."]
    return "\n".join(lines) + "\n"


def heading(summary: AuditSummary) -> str:
    """What was asked, on one line."""
    subject = summary.subject
    return format_inline(f"flinkcompat audit of {subject.source}: {subject.question}")


def what(row: AuditRow) -> str:
    """What decides over a row, with its place and how Flink would end."""
    place = f"{row.place}: " if row.place and not row.message.startswith(row.place) else ""
    ends = f" ({row.consequence})" if row.consequence else ""
    return f"{place}{row.message}{ends}"


def _cells(group: Group) -> tuple[str, ...]:
    name = group.rows[0].name
    short = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return group.result.value, group.reason, f"{group.jobs:,}", f"{group.alone:,}", format_inline(short)


def _said(group: Group) -> Sequence[str]:
    """What is said most often, with an example each; messages that were said once are examples themselves."""
    lines: list[str] = []
    common = [(text, count) for text, count in group.messages.most_common(_MESSAGES) if count > 1]
    for text, count in common:
        lines += _wrapped(f"  {count:,} x ", text)
    for row in group.rows[:_EXAMPLES]:
        same = any(row.message == text for text, _ in common)
        ends = f" ({row.consequence})" if row.consequence else ""
        said = f"{row.place}{ends}" if same and row.place else what(row)
        lines += _wrapped("  ", said if said.startswith(row.name) else f"{row.name}: {said}")
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
