"""The report as Markdown, for approval pages and comments on a change. Whatever is shown is masked first."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_flinkcompat.compat.report import Finding, Report
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, if_resumed, steps
from airflow_flinkcompat.compat.reports.render import HEADLINES
from airflow_flinkcompat.compat.reports.rule_pages import page_address, page_url
from airflow_flinkcompat.compat.reports.sections import (
    Section,
    basis_label,
    engine_label,
    excerpt,
    fates_heading,
    overruled,
    rows,
    sections,
    shown,
)
from airflow_flinkcompat.secrets import mask_secrets


def render_markdown(report: Report) -> str:
    """The report in tables and code: verdict, each operator with what was found, what to do next."""
    sides = f"{_code(report.old_source)} → {_code(report.new_source)}"
    lines = [f"## {HEADLINES[report.outcome]}", "", f"{sides}, {engine_label(report)}", ""]
    if len(report.sinks) > 1:
        lines += ["| sink | outcome |", "|---|---|"]
        lines += [f"| {_code(sink) or 'query'} | {outcome.value} |" for sink, outcome in report.sinks]
        lines.append("")
    for section in sections(report):
        lines += _section(section)
    found, fine = overruled(report)
    if found or fine:
        lines += ["### Also seen, but decided by the above", ""]
        lines += [f"* `{f.rule}`, {f.outcome.value}: {_words(f.message)}" for f in found]
        lines += [f"* compatible: {', '.join(f'`{code}`' for code in fine)}"] if fine else []
        lines.append("")
    lines += ["### What to do next", ""]
    for number, step in enumerate(steps(report), start=1):
        lines += [f"{number}\\. {_words(step.text)}", ""]
        if step.commands:
            lines += [f"```{step.language}", *map(mask_secrets, step.commands), "```", ""]
    if ends := if_resumed(report):
        lines += [f"**If it were resumed all the same:** {ends[0]}.", ""]
        lines += [*(f"* {_words(end)}" for end in ends[1:]), ""] if ends[1:] else []
    if report.other is not None:
        lines += [f"On {engine_label(report.other[0])} this change would be *{report.other[1].value}*.", ""]
    for warning in report.warnings:
        lines += [f"> Warning: {_words(warning)}", ""]
    return mask_secrets("\n".join(lines).rstrip() + "\n")


def _section(section: Section) -> Iterator[str]:
    yield from (f"### {_words(section.heading)}", "")
    if section.operator is not None:
        table = list(rows(section.operator))
        if table:
            yield from (f"| | state | {fates_heading(section.operator) or 'what happens'} |", "|---|---|---|")
            yield from (f"| {label} | {_code(text)} | {_emphasis(fate)} |" for label, text, fate in table)
            yield ""
    for finding in section.findings:
        yield from _finding(finding, with_fates=section.operator is None)


def _finding(finding: Finding, *, with_fates: bool) -> Iterator[str]:
    yield from (f"**`{finding.rule}`**, {finding.outcome.value}: {_words(finding.message)}.", "")
    places = [f"{_code(str(span))}" if span else "" for span in (finding.before_span, finding.after_span)]
    if finding.before or finding.after:
        yield f"| before {places[0]} | after {places[1]} |".replace("  ", " ")
        yield from ("|---|---|", f"| {_code(finding.before) or '-'} | {_code(finding.after) or '-'} |", "")
    elif any(places):
        yield from (f"At {' → '.join(filter(None, places))}.", "")
    if finding.fates and with_fates:
        yield from ("| metric | what happens |", "|---|---|")
        yield from (f"| {_code(metric)} | {_emphasis(fate.value)} |" for metric, fate in finding.fates)
        yield ""
    if finding.consequence is not None:
        yield from (f"**{CONSEQUENCES[finding.consequence]}.**", "")
    reason = f" ({finding.reason.value})" if finding.reason is not None else ""
    yield from (f"Basis: {_words(basis_label(finding))}{reason}. Page: {_page(finding.rule)}", "")


def _page(code: str) -> str:
    url = page_url(code)
    return f"`{page_address(code)}`" if url is None else f"[{code}]({url})"


def _code(text: str) -> str:
    clean = excerpt(text).replace("|", "\\|").replace("`", "'")
    return f"`{clean}`" if clean else ""


def _words(text: str) -> str:
    """Text that Markdown shows as it is written."""
    clean = shown(text)
    for special in "\\*<[|":
        clean = clean.replace(special, "\\" + special)
    return clean


def _emphasis(fate: str) -> str:
    return fate if fate in ("same", "kept") else f"**{fate}**"
