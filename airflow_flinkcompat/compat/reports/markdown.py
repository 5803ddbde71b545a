"""The report as Markdown, for approval pages and comments. Secrets are masked first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.gate import waiver_lines
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.report import Finding, Report, Reports
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, NO_CONTEXT, ReportContext, Step, if_resumed, steps
from airflow_flinkcompat.compat.reports.sections import (
    IN_FULL,
    SAME,
    WHICH_ENGINE,
    Section,
    basis_label,
    engine_label,
    fates_heading,
    finds_the_same,
    format_excerpt,
    format_inline,
    ground,
    headline,
    notice,
    outcome_label,
    overruled,
    page_address,
    page_url,
    rows,
    sections,
    title,
    verdicts,
    why,
)
from airflow_flinkcompat.secrets import mask_secrets


def render_markdown(report: Report, known: ReportContext = NO_CONTEXT) -> str:
    """Render the report as Markdown: verdict, next steps, and the findings of each operator.

    Args:
        report: The report on one change.
        known: Facts that the report does not contain, such as the deployed job and its backfill.

    Returns:
        Markdown that ends in a line break, with every secret masked.
    """
    blocks = [[f"## {headline(report)}"], *_notice(report), *_waivers([report])]
    blocks.append([f"{_sides(report)}, {engine_label(report)}"])
    if report.ground:
        blocks.append([plain_words(ground(report))])
    if known.project:
        blocks.append([plain_words(known.project)])
    if known.entry:
        job = f", job {code_span(known.job_id)}" if known.job_id else ""
        blocks.append([f"Deployed: entry {known.entry} of the ledger of {code_span(known.deployment)}{job}"])
    if known.stored:
        blocks.append([plain_words(f"Stored state: {known.stored}")])
    blocks += _blocks(report, known)
    if report.other is not None:
        blocks.append([f"On {engine_label(report.other[0])} this change would be *{report.other[1].value}*."])
    return _joined(blocks + _warnings(report))


def render_markdown_of_engines(reports: Reports, known: ReportContext = NO_CONTEXT) -> str:
    """Render the reports of several engines: all verdicts, the worst report in full, and other findings.

    Args:
        reports: The reports on one change.
        known: Facts that the reports do not contain.

    Returns:
        Markdown that ends in a line break, with every secret masked.
    """
    worst, *others = reports.each
    blocks = [[f"## {plain_words(head)}"] for head in verdicts(reports)]
    blocks += [*_notice(worst), *_waivers(reports.each), [f"{_sides(worst)}. {plain_words(WHICH_ENGINE)}"]]
    if known.project:
        blocks.append([plain_words(known.project)])
    blocks += [[f"## {plain_words(title(worst))}"], *_blocks(worst, known), *_warnings(worst)]
    for other in others:
        if finds_the_same(worst, other):
            blocks.append([plain_words(SAME.format(engine_label(other), other.engine))])
            continue
        blocks.append([f"## {plain_words(title(other))}"])
        blocks += [_trimmed(_finding(finding, with_fates=True)) for finding in other.deciding]
        blocks.append([plain_words(IN_FULL.format(other.engine))])
    return _joined(blocks)


def _sides(report: Report) -> str:
    return f"{code_span(report.old_source)} → {code_span(report.new_source)}"


def _blocks(report: Report, known: ReportContext = NO_CONTEXT) -> list[list[str]]:
    every = steps(report, known)
    todo = ["### What to do next", ""]
    for number, step in enumerate((step for step in every if step.brief != ""), start=1):
        todo += [f"{number}\\. {plain_words(step.brief or step.text)}", ""]
        todo += commands_of(step) if step.language == "sh" and step.brief is None else ()
    blocks = [_trimmed(todo)]
    longer = [step for step in every if step.brief is not None or (step.commands and step.language != "sh")]
    if longer:
        whole = [line for step in longer for line in (plain_words(step.text), "", *commands_of(step))]
        blocks.append(_folded("Steps in full, with commands", whole))
    if ends := if_resumed(report):
        lines = [f"**If it were resumed anyway:** {ends[0]}.", "", *(f"* {plain_words(end)}" for end in ends[1:])]
        blocks.append(_trimmed(lines))
    if report.migration is not None:
        blocks.append([*_migration(report.migration), *(["", plain_words(known.downtime)] if known.downtime else [])])
    if len(report.sinks) > 1:
        rows = (f"| {code_span(sink) or 'query'} | {outcome.value} |" for sink, outcome in report.sinks)
        blocks.append(["| sink | outcome |", "|---|---|", *rows])
    blocks += [_trimmed(_section(section)) for section in sections(report)]
    found, fine = overruled(report)
    if found or fine:
        lines = [f"* `{f.rule}`, {outcome_label(f)}: {plain_words(f.message)}" for f in found]
        lines += [f"* compatible: {', '.join(f'`{code}`' for code in fine)}"] if fine else []
        blocks.append(["### Overruled findings", "", *lines])
    return blocks


def commands_of(step: Step) -> Iterator[str]:
    """The commands of a step as a code block and an empty line; no lines if there are no commands."""
    if step.commands:
        yield from (f"```{step.language}", *map(mask_secrets, step.commands), "```", "")


def _waivers(reports: Iterable[Report]) -> list[list[str]]:
    return [[f"**{plain_words(line)}**"] for line in waiver_lines(reports)]


def _notice(report: Report) -> list[list[str]]:
    return [[f"**{plain_words(text)}**"] for text in (notice(report),) if text]


def _warnings(report: Report) -> list[list[str]]:
    return [[f"> Warning: {plain_words(warning)}"] for warning in report.warnings]


def _trimmed(lines: Iterable[str]) -> list[str]:
    """The lines without empty lines at the end."""
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _joined(blocks: Iterable[Iterable[str]]) -> str:
    return mask_secrets("\n\n".join("\n".join(block) for block in blocks) + "\n")


def _section(section: Section) -> Iterator[str]:
    """The findings, and a collapsed block with the keys, metrics and basis of each finding."""
    yield from (f"### {plain_words(section.heading)}", "")
    for finding in section.findings:
        yield from _finding(finding, with_fates=section.operator is None)
    more = []
    table = [] if section.operator is None else list(rows(section.operator))
    if section.operator is not None and table:
        more += [f"| | state | {fates_heading(section.operator) or 'what happens'} |", "|---|---|---|"]
        more += [f"| {label} | {code_span(text)} | {_emphasis(fate)} |" for label, text, fate in table]
        more.append("")
    more += [line for finding in section.findings for line in _basis(finding)]
    if more:
        yield from _folded("Keys, metrics and basis" if table else "Basis", more)


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *_trimmed(lines), "", "</details>"]


def _finding(finding: Finding, *, with_fates: bool) -> Iterator[str]:
    yield from (f"**`{finding.rule}`**, {outcome_label(finding)}: {plain_words(finding.message)}.", "")
    places = [f"{code_span(str(span))}" if span else "" for span in (finding.before_span, finding.after_span)]
    if finding.before or finding.after:
        yield f"| before {places[0]} | after {places[1]} |".replace("  ", " ")
        yield from ("|---|---|", f"| {code_span(finding.before) or '-'} | {code_span(finding.after) or '-'} |", "")
    elif any(places):
        yield from (f"At {' → '.join(filter(None, places))}.", "")
    if finding.fates and with_fates:
        yield from ("| metric | what happens |", "|---|---|")
        yield from (f"| {code_span(metric)} | {_emphasis(fate.value)} |" for metric, fate in finding.fates)
        yield ""
    if finding.consequence is not None:
        yield from (f"**{CONSEQUENCES[finding.consequence]}.**", "")
    if (reason := why(finding)) and reason not in finding.message:
        yield from (f"Why: {plain_words(reason)}.", "")


def _basis(finding: Finding) -> tuple[str, str]:
    rests_on = f"Basis: {plain_words(basis_label(finding))}. Page: {_page(finding.rule)}"
    return f"**`{finding.rule}`**: {rests_on}", ""


def _migration(migration: MigrationReport) -> Iterator[str]:
    yield from (f"### {migration.headline}", "")
    yield from ("| operator | its state | keeps | begins now | dropped |", "|---|---|---|---|---|")
    for each in migration.operators:
        metrics = (", ".join(map(code_span, found)) for found in (each.keeps, each.begins, each.gone))
        yield f"| {' | '.join((code_span(each.operator), plain_words(each.state), *metrics))} |"


def _page(code: str) -> str:
    url = page_url(code)
    return f"`{page_address(code)}`" if url is None else f"[{code}]({url})"


def code_span(text: str) -> str:
    clean = format_excerpt(text).replace("|", "\\|").replace("`", "'")
    return f"`{clean}`" if clean else ""


def plain_words(text: str) -> str:
    """Text on one line with Markdown characters escaped and mentions disabled."""
    clean = format_inline(text)
    for special in "\\*<[|":
        clean = clean.replace(special, "\\" + special)
    return without_mentions(clean)


def without_mentions(text: str) -> str:
    """Text whose ``@name`` mentions notify nobody: an invisible character follows each ``@``."""
    return _MENTION.sub("@\N{WORD JOINER}", text)


_MENTION = re.compile(r"(?<![0-9A-Za-z_])@(?=\w)")


def _emphasis(fate: str) -> str:
    return fate if fate in ("same", "kept") else f"**{fate}**"
