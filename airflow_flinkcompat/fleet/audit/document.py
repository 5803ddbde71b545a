"""Output formats of an audit: text, Markdown, a single HTML file, and JSON (``audit.schema.json``).

JSON is written row by row. The HTML page loads nothing from the network and runs no script.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import IO, Any, Protocol

from airflow_flinkcompat.compat.report import CATALOGUE, tool_version
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.fleet.audit.judging import REASONS
from airflow_flinkcompat.fleet.audit.values import AuditGroup, AuditResult, AuditRow, AuditSummary, Cause
from airflow_flinkcompat.secrets import mask_secrets

SCHEMA_OF_AUDIT = "flinkcompat-audit/1"


class AuditDocument:
    """JSON document of an audit, which is written to a file row by row."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._separator = "\n  "
        head = {
            "schema": SCHEMA_OF_AUDIT,
            "tool": {"name": "airflow-flinkcompat", "version": tool_version(), "catalogue": CATALOGUE},
        }
        file.write(f'{_encoded(head)[:-1]}, "rows": [')

    def add(self, row: AuditRow) -> None:
        """Write a row."""
        self._file.write(self._separator + _encoded(row_document(row)))
        self._separator = ",\n  "

    def end(self, summary: AuditSummary) -> None:
        """Write the totals of all rows."""
        subject = summary.subject
        rest = {
            "source": mask_secrets(subject.source),
            "question": mask_secrets(subject.question),
            "tables": list(subject.tables),
            "fail_on": subject.fail_on,
            "exit_code": summary.exit_code,
            "summary": summary.sentence,
            "notes": [mask_secrets(note) for note in summary.remarks],
            "jobs": summary.jobs,
            "results": {result.value: count for result, count in sorted(summary.results.items())},
            "groups": [
                {
                    "result": group.result.value,
                    "reason": group.reason,
                    "title": title_of(group.reason),
                    "jobs": group.jobs,
                    "alone": group.alone,
                }
                for group in summary.groups
            ],
        }
        self._file.write(f"\n], {_encoded(rest)[1:]}\n")


def row_document(row: AuditRow) -> dict[str, Any]:
    """A row as JSON values."""
    return {
        "name": row.name,
        "result": row.result.value,
        "causes": [
            {
                "reason": each.reason,
                "message": each.message,
                "place": each.place or None,
                "consequence": each.consequence or None,
            }
            for each in row.causes
        ],
        "engines": [
            {
                "engine": each.engine,
                "old_version": each.old_version,
                "new_version": each.new_version,
                "outcome": each.outcome.value,
                **({"ground": each.ground} if each.ground else {}),
                **({} if each.disagrees is None else {"disagrees": each.disagrees.value}),
            }
            for each in row.engines
        ],
        "operators": [
            {
                "operator": mask_secrets(each.operator),
                "effect": each.effect,
                **({"reason": mask_secrets(each.reason)} if each.reason else {}),
                **({"serializers": list(each.serializers)} if each.serializers else {}),
            }
            for each in row.operators
        ],
        "tables": list(row.tables),
        **({"ignored_settings": list(row.ignored)} if row.ignored else {}),
        "secrets": row.secrets,
    }


def _encoded(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


QUIET = (AuditResult.COMPATIBLE, AuditResult.NO_JOB)
"""Results that need no attention; only their number is shown."""
_HEADER = ("result", "reason", "jobs", "alone", "for example")
_EXAMPLES = 3
_MESSAGES = 5
_LONGEST_NAME = 60


def title_of(reason: str) -> str:
    """Title of the reason for a result."""
    rule = BY_CODE.get(reason)
    return REASONS.get(reason, reason) if rule is None else rule.title


def render_audit_text(summary: AuditSummary) -> str:
    """Render the audit for a terminal."""
    rows = [_HEADER, *map(_cells, summary.groups)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [heading(summary), ""]
    for result, reason, jobs, alone, example in rows:
        cells = (result.ljust(widths[0]), reason.ljust(widths[1]), jobs.rjust(widths[2]), alone.rjust(widths[3]))
        lines.append("  ".join((*cells, example)).rstrip())
    for group in summary.groups:
        if group.result not in QUIET:
            lines += ["", f"[{group.result}] {group.reason}: {title_of(group.reason)} ({_jobs(group.jobs)})"]
            lines += _messages(group)
    lines += ["", *(line for note in summary.remarks for line in _wrapped("note: ", note, "  "))]
    return "\n".join([*lines, summary.sentence]).replace("\n\n\n", "\n\n") + "\n"


def render_audit_markdown(summary: AuditSummary) -> str:
    """Render the audit as a pull-request comment, or as the summary of a CI step."""
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
    """The question of the audit on one line."""
    subject = summary.subject
    return format_inline(f"flinkcompat audit of {subject.source}: {subject.question}")


def what(cause: Cause) -> str:
    """The message of a cause, with its place and its effect in Flink."""
    place = f"{cause.place}: " if cause.place and not cause.message.startswith(cause.place) else ""
    return f"{place}{cause.message}{_ends(cause)}"


def _ends(cause: Cause) -> str:
    return f" ({cause.consequence})" if cause.consequence else ""


def _cells(group: AuditGroup) -> tuple[str, ...]:
    name = group.examples[0][0]
    short = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return group.result.value, group.reason, f"{group.jobs:,}", f"{group.alone:,}", format_inline(short)


def common(group: AuditGroup, most: int) -> list[tuple[str, int]]:
    """Messages that several jobs of a group share, with their number of jobs, most frequent first."""
    return [(text, count) for text, count in group.messages.most_common(most) if count > 1]


def _messages(group: AuditGroup) -> Sequence[str]:
    """The most frequent messages, then examples; an example does not repeat a message."""
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


_MOST_MESSAGES = 20
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --incompatible: #b3261e; --unreadable: #8a3ffc; --unknown: #9a6700;
  --conditional: #7d6a00; --partial: #0b63c4; --compatible: #1a7f37; --no-job: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --incompatible: #ff8a80; --unreadable: #d0a9ff; --unknown: #f0b849;
  --conditional: #d6c34a; --partial: #79b8ff; --compatible: #6fdd8b; --no-job: #a0a8b0; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; display: inline; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line); }
h1, p, td, summary, li { overflow-wrap: break-word; } code { overflow-wrap: anywhere; }
th[scope=row] { min-width: 8rem; } td.what { min-width: 12rem; }
th.number, td.number { text-align: right; white-space: nowrap; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
fieldset { border: 1px solid var(--line); margin: 1rem 0; } label { margin-right: 1rem; white-space: nowrap; }
details { border: 1px solid var(--line); border-radius: .25rem; padding: .5rem; margin: .75rem 0; }
summary { cursor: pointer; }
.result { font-weight: 600; white-space: nowrap; }
"""

# A table that is wider than the screen can be scrolled separately, also with the keyboard.
_TABLE = '<div class="scroll" tabindex="0"><table>'


def render_audit_page(summary: AuditSummary) -> str:
    """Render the audit as an HTML page."""
    title = _html(heading(summary))
    results = [result for result in AuditResult if summary.results[result]]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}{''.join(map(_style_of, AuditResult))}</style></head><body><main>",
        f"<h1>{title}</h1>",
        f"<p>{_html(summary.sentence)}.</p>",
        *(f"<p>Note: {_html(note)}</p>" for note in summary.remarks),
        "<fieldset><legend>Show</legend>",
        '<label><input type="radio" name="shown" id="show-all" checked> all</label>',
        *(
            f'<label><input type="radio" name="shown" id="show-{_class(result)}"> {result} '
            f"({summary.results[result]:,})</label>"
            for result in results
        ),
        "</fieldset>",
        f"{_TABLE}<caption>By result and reason. A job with several reasons is in several rows</caption>",
        '<thead><tr><th scope="col">result</th><th scope="col">reason</th>'
        '<th scope="col" class="number">jobs</th><th scope="col" class="number">alone</th></tr></thead><tbody>',
        *map(_overview, summary.groups),
        "</tbody></table></div>",
        *(line for group in summary.groups for line in _details(group)),
        f"<p><small>airflow-flinkcompat {escape(tool_version())}</small></p>",
        "</main></body></html>",
    ]
    return "\n".join(lines) + "\n"


def _style_of(result: AuditResult) -> str:
    name = _class(result)
    others = (_class(each) for each in AuditResult if each is not result)
    hidden = ", ".join(f"main:has(#show-{name}:checked) .of-{other}" for other in others)
    return f".of-{name} .result {{ color: var(--{name}); }}\n{hidden} {{ display: none; }}\n"


def _overview(group: AuditGroup) -> str:
    return (
        f'<tr class="of-{_class(group.result)}"><td class="result">{group.result}</td>'
        f"<td>{_html(title_of(group.reason))}<br><code>{_html(group.reason)}</code></td>"
        f'<td class="number">{group.jobs:,}</td><td class="number">{group.alone:,}</td></tr>'
    )


def _details(group: AuditGroup) -> Iterator[str]:
    opened = "" if group.result in QUIET else " open"
    yield (
        f'<details class="of-{_class(group.result)}"{opened}><summary><h2><span class="result">{group.result}</span>: '
        f"{_html(title_of(group.reason))}</h2> ({group.jobs:,})</summary>"
    )
    if group.result not in QUIET and (often := common(group, _MOST_MESSAGES)):
        yield "<ul>"
        yield from (f"<li>{count:,} x {_html(text)}</li>" for text, count in often)
        yield "</ul>"
    yield f'{_TABLE}<thead><tr><th scope="col">job</th><th scope="col">what</th></tr></thead><tbody>'
    yield from (_row(name, cause) for name, cause in group.examples)
    yield "</tbody></table></div>"
    if group.jobs > len(group.examples):
        yield f"<p>and {group.jobs - len(group.examples):,} more: the JSON of this audit contains every job</p>"
    yield "</details>"


def _row(name: str, cause: Cause) -> str:
    return f'<tr><th scope="row"><code>{_html(name)}</code></th><td class="what">{_html(what(cause))}</td></tr>'


def _html(text: str) -> str:
    """Escape text for HTML, mask secrets, and show unprintable characters as codes."""
    masked = mask_secrets(text)
    return escape("".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in masked), quote=True)


def _class(result: AuditResult) -> str:
    return result.value.replace(" ", "-")


_RENDERERS: Mapping[str, Callable[[AuditSummary], str]] = {
    "text": render_audit_text,
    "markdown": render_audit_markdown,
    "html": render_audit_page,
}


class AuditWriter(Protocol):
    """Writer of an audit in one format."""

    def add(self, row: AuditRow) -> None:
        """Add a row."""

    def end(self, summary: AuditSummary) -> None:
        """Write the totals of all rows."""


class _Rendered:
    """Writer of a format that shows only the summary."""

    def __init__(self, render: Callable[[AuditSummary], str], file: IO[str]) -> None:
        self._render, self._file = render, file

    def add(self, row: AuditRow) -> None:
        pass

    def end(self, summary: AuditSummary) -> None:
        self._file.write(self._render(summary))


def writer(name: str, file: IO[str]) -> AuditWriter:
    """The writer of an audit in a format."""
    return AuditDocument(file) if name == "json" else _Rendered(_RENDERERS[name], file)
