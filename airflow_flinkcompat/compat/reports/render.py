"""A report as text and as log rows. Secrets are masked before lines are wrapped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from airflow_flinkcompat.compat.gate import waiver_lines
from airflow_flinkcompat.compat.report import READ, Finding, OperatorReport, Report, Reports
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, NO_CONTEXT, ReportContext, if_resumed, steps
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
    operator_names,
    outcome_label,
    overruled,
    page_address,
    rows,
    sections,
    title,
    verdicts,
    why,
)
from airflow_flinkcompat.secrets import mask_secrets

WIDTH = 100
"""Width of the text in columns if the terminal's width is unknown."""
_MORE = "`flinkcompat check --verbose` adds keys, metrics, commands and evidence."
_MORE_OVERRULED = "`flinkcompat check --verbose` adds keys, metrics, commands, evidence, and overruled {}."
_GAP = "   "
_SEPARATOR = "  |  "


def render_text(report: Report, width: int = WIDTH, known: ReportContext = NO_CONTEXT, *, verbose: bool = True) -> str:
    """Render the report for a terminal with ``width`` columns: verdict, next steps, findings.

    Args:
        report: The report on one change.
        width: The width of the terminal in columns.
        known: Facts that the reports do not contain.
        verbose: True to also show operators, all commands, and the basis of each finding.

    Returns:
        Text that ends in a line break, with every secret masked.
    """
    head = [*_wrapped(headline(report), width), *_wrapped(notice(report), width), *_waivers([report], width)]
    is_planned = bool(report.ground) and not report.ground.startswith(READ)
    planned = f". {ground(report)}." if is_planned else ""
    head += _wrapped(f"{_sides(report)}, {engine_label(report)}{planned}", width)
    blocks = [[*head, *_wrapped(format_inline(known.project), width)]]
    blocks += _blocks(report, width, known, verbose=verbose)
    if report.other is not None and verbose:
        blocks.append([f"On {engine_label(report.other[0])} this change would be {report.other[1].value}."])
    last = [] if is_planned or not report.ground else [_wrapped(f"{ground(report)}.", width)]
    return _joined(blocks + _warnings(report, width) + ([] if verbose else [_more([report], width)]) + last)


def render_text_of_engines(
    reports: Reports, width: int = WIDTH, known: ReportContext = NO_CONTEXT, *, verbose: bool = True
) -> str:
    """Render the reports of several engines: all verdicts, the worst report in full, and other findings.

    Args:
        reports: The reports on one change.
        width: The width of the terminal in columns.
        known: Facts that the reports do not contain.
        verbose: As in :func:`render_text`.

    Returns:
        Text that ends in a line break, with every secret masked.
    """
    worst, *others = reports.each
    heads = [line for head in verdicts(reports) for line in _wrapped(head, width, "", "  ")]
    heads += [*_wrapped(notice(worst), width), *_waivers(reports.each, width), *_wrapped(_sides(worst), width)]
    heads += _wrapped(format_inline(known.project), width)
    blocks = [heads, _wrapped(WHICH_ENGINE, width)]
    blocks += [_underlined(worst), *_blocks(worst, width, known, verbose=verbose), *_warnings(worst, width)]
    for other in others:
        if finds_the_same(worst, other):
            blocks.append(_wrapped(SAME.format(engine_label(other), other.engine), width))
            continue
        blocks.append(_underlined(other))
        names = operator_names(other)
        blocks += [list(_finding(each, width, names, with_fates=True, verbose=verbose)) for each in other.deciding]
        blocks.append(_wrapped(IN_FULL.format(other.engine), width))
    return _joined(blocks + ([] if verbose else [_more(reports.each, width)]))


def _more(reports: Iterable[Report], width: int) -> list[str]:
    """Note about the content that only a verbose report shows, such as overruled findings."""
    seen = dict.fromkeys(each.rule for report in reports for each in report.findings if each.overruled_by)
    return _wrapped(_MORE_OVERRULED.format(", ".join(seen)) if seen else _MORE, width)


def _underlined(report: Report) -> list[str]:
    return [title(report), "-" * len(title(report))]


def _blocks(report: Report, width: int, known: ReportContext, *, verbose: bool) -> list[list[str]]:
    """The blocks of a report after the verdict. Empty lines separate blocks."""
    blocks = [list(_to_do(report, width, known, verbose=verbose))]
    if verbose and (ends := if_resumed(report)):
        lines = _wrapped(f"If it were resumed anyway: {ends[0]}.", width)
        blocks.append(
            lines + [line for end in ends[1:] for line in _wrapped(format_inline(end), width, "  - ", "    ")]
        )
    if report.migration is not None and (verbose or report.keeps_state):
        lines_of_state = (part for line in report.migration.lines() for part in _wrapped(line, width, "", " " * 6))
        downtime = _wrapped(format_inline(known.downtime), width, "  ", " " * 6) if known.downtime else []
        blocks.append([report.migration.headline, *lines_of_state, *downtime])
    if len(report.sinks) > 1:
        rows = ((format_inline(sink) or "query", outcome.value) for sink, outcome in report.sinks)
        blocks.append(["Sinks", *_table(rows, "  ")])
    if not verbose:
        names = operator_names(report)
        found = [list(_finding(each, width, names, with_fates=False, verbose=False)) for each in report.deciding]
        return [*blocks, ["What was found", *found[0]], *found[1:]] if found else blocks
    blocks += [list(_section(section, width)) for section in sections(report)]
    if seen := _overruled(report, width):
        blocks.append(seen)
    return blocks


def _to_do(report: Report, width: int, known: ReportContext, *, verbose: bool) -> Iterator[str]:
    """The numbered next steps. A short report omits SQL commands, which are the same for every redeploy."""
    yield "What to do next"
    found = [step for step in steps(report, known) if verbose or step.brief != ""]
    for number, step in enumerate(found, start=1):
        text = step.text if verbose or step.brief is None else step.brief
        yield from _wrapped(format_inline(text), width, f"  {number}. ", "     ")
        if verbose or (step.language == "sh" and step.brief is None):
            yield from (f"       {mask_secrets(command)}" for command in step.commands)


def _waivers(reports: Iterable[Report], width: int) -> list[str]:
    return [line for said in waiver_lines(reports) for line in _wrapped(said, width, "", "  ")]


def _warnings(report: Report, width: int) -> list[list[str]]:
    return [_wrapped(f"Warning: {format_inline(warning)}", width) for warning in report.warnings]


def _joined(blocks: Iterable[Iterable[str]]) -> str:
    return mask_secrets("\n\n".join("\n".join(block) for block in blocks) + "\n")


def report_rows(report: Report) -> list[str]:
    """Render the report as the lines of a table, one log record each.

    Args:
        report: The report on a change.

    Returns:
        The headline, a header row, and a row for each finding: outcome, where, rule, what and effect.
    """
    header = ("outcome", "where", "rule", "what", "effect")
    rows = [
        (
            finding.outcome.value
            + (" (overruled)" if finding.overruled_by else "")
            + (" (waived)" if finding.is_waived else ""),
            format_inline(finding.operator or finding.sink or "script"),
            finding.rule,
            format_inline(finding.message),
            finding.consequence.value
            if finding.consequence is not None
            else (finding.reason.name.lower() if finding.reason else ""),
        )
        for finding in report.findings
    ]
    widths = [min(70, max(len(row[i]) for row in (header, *rows))) for i in range(len(header))]

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(_fit(cell, width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [
        f"{headline(report)} ({engine_label(report)})",
        line(header),
        line("-" * width for width in widths),
        *map(line, rows),
    ]


def _sides(report: Report) -> str:
    return f"{format_inline(report.old_source)} -> {format_inline(report.new_source)}"


def _section(section: Section, width: int) -> Iterator[str]:
    yield from _wrapped(section.heading, width)
    if section.operator is not None:
        yield from _operator(section.operator, width)
    for i, finding in enumerate(section.findings):
        if i or section.operator is not None:
            yield ""
        yield from _finding(finding, width, {}, with_fates=section.operator is None, verbose=True)


def _operator(operator: OperatorReport, width: int) -> Iterator[str]:
    """Rows for the window, each key and each metric, with their fates."""
    table = list(rows(operator))
    room = max(20, width - 14 - max((len(fate) for _, _, fate in table), default=0))
    wrapped = [(label, textwrap.wrap(text, room), fate) for label, text, fate in table]
    column = max((len(line) for _, lines, _ in wrapped for line in lines), default=0)
    if heading := fates_heading(operator):
        yield f"  {heading}:"
    for label, (first, *more), fate in wrapped:
        yield f"  {label:<8} {first:<{column}}{_GAP}{fate}"
        yield from (f"  {'':<8} {line}" for line in more)


def _finding(
    finding: Finding, width: int, names: Mapping[str, str], *, with_fates: bool, verbose: bool
) -> Iterator[str]:
    about = names.get(finding.operator or "", finding.subject)
    where = f"{about}: " if not verbose and finding.sink is not None else ""
    yield from _wrapped(
        f"[{outcome_label(finding)}] {finding.rule}: {where}{format_inline(finding.message)}", width, "  ", "    "
    )
    yield from _clauses(finding, width)
    notes = [("metric", f"{format_excerpt(metric)}: {fate.value}") for metric, fate in finding.fates if with_fates]
    if finding.consequence is not None:
        notes.append(("effect", CONSEQUENCES[finding.consequence]))
    if (reason := why(finding)) and reason not in finding.message:
        notes.append(("why", reason))
    if verbose:
        notes += [("basis", basis_label(finding)), ("page", page_address(finding.rule))]
    for label, text in notes:
        yield from _wrapped(text, width, f"    {label:<7} ", " " * 12)


def _clauses(finding: Finding, width: int) -> Iterator[str]:
    """Both clauses below their places: side by side, or one below the other if they are too long."""
    before, after = format_excerpt(finding.before), format_excerpt(finding.after)
    places = ["" if span is None else format_inline(str(span)) for span in (finding.before_span, finding.after_span)]
    if not before and not after:
        if any(places):
            yield from _wrapped(" -> ".join(filter(None, places)), width, "    at      ", " " * 12)
        return
    heads = [f"{label} {place}".rstrip() for label, place in zip(("before", "after"), places, strict=True)]
    room = (width - 4 - len(_SEPARATOR)) // 2
    columns = [[head, *textwrap.wrap(text or "-", room)] for head, text in zip(heads, (before, after), strict=True)]
    if max(map(len, heads)) <= room and max(map(len, columns)) <= 4:
        left = max(len(line) for line in columns[0])
        for i in range(max(map(len, columns))):
            one, other = (column[i] if i < len(column) else "" for column in columns)
            yield f"    {one:<{left}}{_SEPARATOR}{other}".rstrip()
        return
    for head, text in zip(heads, (before, after), strict=True):
        yield f"    {head}"
        yield from _wrapped(text or "-", width, "      ")


def _overruled(report: Report, width: int) -> list[str]:
    found, fine = overruled(report)
    lines = [f"[{outcome_label(finding)}] {finding.rule}: {format_inline(finding.message)}" for finding in found]
    if fine:
        lines.append(f"[compatible] {', '.join(fine)}")
    if not lines:
        return []
    items = (part for line in lines for part in _wrapped(line, width, "  - ", "    "))
    return ["Overruled findings", *items]


def _wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap text at ``width`` columns. Longer words, such as paths, are not split."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(rows: Iterable[tuple[str, str]], indent: str) -> list[str]:
    every = list(rows)
    width = max(len(row[0]) for row in every)
    return [f"{indent}{left:<{width}}{_GAP}{right}" for left, right in every]


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"
