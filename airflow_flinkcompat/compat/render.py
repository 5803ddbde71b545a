"""Renderings of a report for people: plain text, Markdown and log rows. All of them mask secrets."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.compat.outcome import Consequence, Outcome
from airflow_flinkcompat.compat.report import Finding, Report
from airflow_flinkcompat.sql import mask_secrets

HEADLINES = {
    Outcome.COMPATIBLE: "COMPATIBLE: the job can resume from its savepoint",
    Outcome.PARTIAL: "PARTIAL: the job can resume, but some metrics start from zero",
    Outcome.UNKNOWN: "UNKNOWN: it cannot be told whether the savepoint still fits",
    Outcome.INCOMPATIBLE: "INCOMPATIBLE: the savepoint must not be used",
}
NEXT_STEPS = {
    Outcome.COMPATIBLE: "Stop with a savepoint and start the new script from it.",
    Outcome.PARTIAL: "Resume if the metrics that start from zero may; otherwise start without state and backfill.",
    Outcome.UNKNOWN: "Let a person decide. When in doubt start without state and backfill.",
    Outcome.INCOMPATIBLE: "Start without state and backfill the history.",
}
CONSEQUENCES = {
    Consequence.REFUSED_AT_SUBMIT: "Flink would refuse the job when it is submitted",
    Consequence.REFUSED_AT_RESTORE: "Flink would accept the job, then fail it while restoring",
    Consequence.SILENTLY_WRONG: "Flink would run on WITH WRONG ROWS AND NO ERROR",
}


def render_text(report: Report) -> str:
    """The report for a terminal: verdict first, then each finding with both clauses, then what to do."""
    lines = [f"{HEADLINES[report.outcome]} ({engine_label(report)})", ""]
    for finding in report.deciding:
        lines += _finding_text(finding)
    overruled = [finding for finding in report.findings if finding.overruled_by]
    if overruled:
        lines.append("Also seen, but decided by the above:")
        lines += [f"  - [{f.outcome.value}] {f.rule}: {f.message}" for f in overruled]
        lines.append("")
    lines.append(f"Next: {NEXT_STEPS[report.outcome]}")
    if report.other is not None:
        lines.append(f"On {_ENGINE_NAMES[report.other[0]]} this change would be {report.other[1].value}.")
    lines += [f"Warning: {warning}" for warning in report.warnings]
    return mask_secrets("\n".join(lines) + "\n")


_ENGINE_NAMES = {"vvr": "VVR (Realtime Compute, Ververica)", "flink": "open-source Flink"}


def engine_label(report: Report) -> str:
    """The engine with its version, as a reader knows it."""
    name = _ENGINE_NAMES.get(report.engine, report.engine)
    return f"{name} {report.engine_version}" if report.engine == "flink" else name


def basis_label(finding: Finding) -> str:
    """What the finding rests on, with its source."""
    return f"{finding.basis.value}: {finding.source}" if finding.source else finding.basis.value


def _finding_text(finding: Finding) -> list[str]:
    lines = [f"[{finding.outcome.value}] {finding.rule}: {finding.message}"]
    if finding.sink:
        lines.append(f"    sink    {finding.sink}")
    for label, clause, span in (
        ("before", finding.before, finding.before_span),
        ("after", finding.after, finding.after_span),
    ):
        if clause:
            place = f"   ({span})" if span is not None else ""
            lines.append(f"    {label:<7} {clause}{place}")
    lines += [f"    metric  {metric}: {fate.value}" for metric, fate in finding.fates]
    if finding.consequence is not None:
        lines.append(f"    effect  {CONSEQUENCES[finding.consequence]}")
    if finding.reason is not None:
        lines.append(f"    why     {finding.reason.value}")
    return [*lines, f"    basis   {basis_label(finding)}", ""]


def render_markdown(report: Report) -> str:
    """The report for an approval page: tables and code, no colours."""
    lines = [f"## {HEADLINES[report.outcome]}", "", f"Engine: {engine_label(report)}", ""]
    for finding in report.deciding:
        lines += [f"### `{finding.rule}` · {finding.outcome.value}", "", f"{finding.message}.", ""]
        if finding.before or finding.after:
            lines += ["| | clause | where |", "|---|---|---|"]
            for label, clause, span in (
                ("before", finding.before, finding.before_span),
                ("after", finding.after, finding.after_span),
            ):
                lines.append(f"| {label} | {_cell(clause)} | {span or ''} |")
            lines.append("")
        if finding.fates:
            lines += ["| metric | fate |", "|---|---|"]
            lines += [f"| {_cell(metric)} | {fate.value} |" for metric, fate in finding.fates]
            lines.append("")
        if finding.consequence is not None:
            lines += [f"**{CONSEQUENCES[finding.consequence]}.**", ""]
        reason = f" ({finding.reason.value})" if finding.reason is not None else ""
        lines += [f"Basis: {basis_label(finding)}{reason}", ""]
    overruled = [finding for finding in report.findings if finding.overruled_by]
    if overruled:
        lines += ["Also seen, but decided by the above:", ""]
        lines += [f"* `{f.rule}` · {f.outcome.value}: {f.message}" for f in overruled]
        lines.append("")
    lines += [f"**Next:** {NEXT_STEPS[report.outcome]}", ""]
    if report.other is not None:
        lines += [f"On {_ENGINE_NAMES[report.other[0]]} this change would be *{report.other[1].value}*.", ""]
    lines += [f"> Warning: {warning}" for warning in report.warnings]
    return mask_secrets("\n".join(lines).rstrip() + "\n")


def _cell(text: str) -> str:
    clean = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{clean}`" if clean else ""


def report_rows(report: Report) -> list[str]:
    """The verdict as table rows of equal width, one log record each: outcome, rule, message, effect."""
    header = ("outcome", "rule", "what", "effect")
    rows = [
        (
            f.outcome.value + (" (overruled)" if f.overruled_by else ""),
            f.rule,
            mask_secrets(f.message),
            f.consequence.value if f.consequence is not None else (f.reason.name.lower() if f.reason else ""),
        )
        for f in report.findings
    ]
    widths = [min(70, max(len(row[i]) for row in (header, *rows))) for i in range(len(header))]

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(_fit(cell, width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [
        f"{HEADLINES[report.outcome]} ({engine_label(report)})",
        line(header),
        line("-" * w for w in widths),
        *map(line, rows),
    ]


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"
