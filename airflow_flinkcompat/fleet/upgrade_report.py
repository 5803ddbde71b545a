"""Report of an upgrade of many jobs, as text, Markdown, HTML or JSON.

The report begins with counts for a reader who decides, and then has one line for each job. The HTML page loads nothing
from the network and runs no script.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from html import escape

from airflow_flinkcompat.compat.report import tool_version
from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.fleet.audit.document import row_document
from airflow_flinkcompat.fleet.upgrades import JobUpgrade, UpgradeSummary, Way

SCHEMA = "flinkcompat-upgrade/1"
MEANINGS: Mapping[Way, str] = {
    Way.UNTOUCHED: "The new line plans the same operators and reads their state.",
    Way.EDITED: "The script needs edits; with them, the new line reads the state.",
    Way.CONDITIONAL: "The new line reads the state if a condition holds that the script does not show.",
    Way.MIGRATED: "The new line does not read the savepoint; flinkcompat migrate writes one that it reads.",
    Way.RESTARTED: "The job runs on the new line, but starts without its state.",
    Way.REFUSED: "The new line refuses the script, or has no release of a connector.",
    Way.UNDECIDED: "The planners do not decide; the reason names the missing part.",
    Way.UNREADABLE: "The old line refuses the script, or a file cannot be read.",
}
"""The meaning of each way for the reader of a report."""
_COLORS: Mapping[Way, str] = {
    Way.UNTOUCHED: "#1a7f37",
    Way.EDITED: "#0b63c4",
    Way.CONDITIONAL: "#7d6a00",
    Way.MIGRATED: "#0b63c4",
    Way.RESTARTED: "#b3261e",
    Way.REFUSED: "#b3261e",
    Way.UNDECIDED: "#9a6700",
    Way.UNREADABLE: "#8a3ffc",
}
_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid #8886; }
td { overflow-wrap: anywhere; } .number { text-align: right; } .way { font-weight: 600; white-space: nowrap; }
.jobs th:nth-child(1) { width: 25%; } .jobs th:nth-child(2) { width: 40%; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; white-space: pre-wrap; margin: 0; }
"""


def heading(fleet: UpgradeSummary) -> str:
    """The title of a report."""
    old, new = fleet.lines
    lines = f"Flink {old} to {new}" if old else f"Flink {new}"
    return format_inline(f"Upgrade of {fleet.source}: {lines}")


def sentence(fleet: UpgradeSummary) -> str:
    """The number of jobs for each way, on one line."""
    total = fleet.ways.total()
    counts = ", ".join(f"{fleet.ways[way]:,} {way}" for way in Way if fleet.ways[way])
    return f"{total:,} job{'' if total == 1 else 's'}" + (f": {counts}" if counts else "")


def _in_order(fleet: UpgradeSummary) -> Iterator[tuple[Way, list[JobUpgrade]]]:
    for way in Way:
        if jobs := [job for job in fleet.jobs if job.way is way]:
            yield way, jobs


def _edits(job: JobUpgrade) -> Iterator[str]:
    for each in job.edited.edits if job.edited else ():
        change = f"replace {each.old} by {each.new}" if each.old else f"add {each.new.strip()}"
        yield f"{each.place}: {change}: {each.reason}"
    yield from job.edited.ignored if job.edited else ()


def render_text(fleet: UpgradeSummary) -> str:
    """Render a report for a terminal."""
    lines = [heading(fleet), ""]
    for way, jobs in _in_order(fleet):
        lines.append(f"{way} ({len(jobs):,}): {MEANINGS[way]}")
        for job in jobs:
            details = [*_why(job), *([f"state: {job.state}"] if job.state else [])]
            lines += [f"  {format_inline(job.row.name)}", *(line for each in details for line in _wrapped(each))]
        lines.append("")
    lines += [f"note: {note}" for note in fleet.notes]
    return "\n".join([*lines, sentence(fleet)]) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        format_inline(text), WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def render_markdown(fleet: UpgradeSummary) -> str:
    """Render a report for a pull request or a wiki."""
    lines = [f"### {plain_words(heading(fleet))}", "", f"{plain_words(sentence(fleet))}.", ""]
    lines += ["| way | jobs | meaning |", "|---|---:|---|"]
    lines += [f"| **{way}** | {len(jobs):,} | {MEANINGS[way]} |" for way, jobs in _in_order(fleet)]
    lines += ["", "| job | way | why | state |", "|---|---|---|---|"]
    for way, jobs in _in_order(fleet):
        for job in jobs:
            why = "<br>".join(map(_cell, _why(job)))
            lines.append(f"| {code_span(job.row.name)} | {way} | {why} | {_cell(job.state)} |")
    lines += ["", *(f"> {plain_words(note)}\n" for note in fleet.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return plain_words(format_inline(text)).replace("|", "\\|")


def _why(job: JobUpgrade) -> list[str]:
    return [each for each in (job.reason, *_edits(job)) if each]


def render_html(fleet: UpgradeSummary) -> str:
    """Render a report as one HTML page."""
    title = _html(heading(fleet))
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}{''.join(map(_color, Way))}</style></head><body><main>",
        f"<h1>{title}</h1><p>{_html(sentence(fleet))}.</p>",
        *(f"<p>Note: {_html(note)}</p>" for note in fleet.notes),
        '<table><thead><tr><th scope="col">way</th><th scope="col" class="number">jobs</th>'
        '<th scope="col">meaning</th></tr></thead><tbody>',
        *(
            f'<tr><td class="way {way.name.lower()}">{way}</td><td class="number">{len(jobs):,}</td>'
            f"<td>{_html(MEANINGS[way])}</td></tr>"
            for way, jobs in _in_order(fleet)
        ),
        "</tbody></table>",
    ]
    for way, jobs in _in_order(fleet):
        lines.append(f'<h2 class="{way.name.lower()}">{way} ({len(jobs):,})</h2>')
        lines.append(
            '<table class="jobs"><thead><tr><th scope="col">job</th><th scope="col">why</th><th scope="col">state</th>'
            "</tr></thead><tbody>"
        )
        for job in jobs:
            why = "<br>".join(map(_html, _why(job))) or "no edit, and no migration"
            cells = f"<td>{why}</td><td>{_html(job.state)}</td>"
            lines.append(f'<tr><th scope="row"><code>{_html(job.row.name)}</code></th>{cells}</tr>')
        lines.append("</tbody></table>")
    lines += [f"<p><small>airflow-flinkcompat {escape(tool_version())}</small></p>", "</main></body></html>"]
    return "\n".join(lines) + "\n"


def _color(way: Way) -> str:
    return f".{way.name.lower()} {{ color: {_COLORS[way]}; }}\n"


def _html(text: str) -> str:
    return escape(format_inline(text), quote=True)


def render_json(fleet: UpgradeSummary) -> str:
    """Render a report as JSON, with the verdict of each job as in the JSON of an audit."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "airflow-flinkcompat", "version": tool_version()},
        "source": fleet.source,
        "from": fleet.lines[0] or None,
        "to": fleet.lines[1],
        "summary": sentence(fleet),
        "ways": {way.value: count for way, count in sorted(fleet.ways.items())},
        "notes": fleet.notes,
        "jobs": [
            {
                "name": job.row.name,
                "way": job.way.value,
                "reason": job.reason or None,
                "state": job.state or None,
                "edits": [
                    {
                        "line": each.place.line,
                        "column": each.place.column,
                        "old": each.old,
                        "new": each.new,
                        "reason": each.reason,
                    }
                    for each in (job.edited.edits if job.edited else ())
                ],
                "verdict": row_document(job.row),
            }
            for job in fleet.jobs
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


RENDERERS: Mapping[str, Callable[[UpgradeSummary], str]] = {
    "text": render_text,
    "markdown": render_markdown,
    "json": render_json,
    "html": render_html,
}
