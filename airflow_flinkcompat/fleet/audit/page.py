"""The audit as one HTML file that loads and runs nothing: readers need no network and no trust."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from airflow_flinkcompat.compat.report import tool_version
from airflow_flinkcompat.fleet.audit.text import QUIET, common, heading, title_of, what
from airflow_flinkcompat.fleet.audit.values import AuditGroup, AuditResult, AuditSummary, Cause
from airflow_flinkcompat.secrets import mask_secrets

_MOST_MESSAGES = 20
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --incompatible: #b3261e; --unreadable: #8a3ffc; --unknown: #9a6700;
  --partial: #0b63c4; --compatible: #1a7f37; --no-job: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --incompatible: #ff8a80; --unreadable: #d0a9ff; --unknown: #f0b849;
  --partial: #79b8ff; --compatible: #6fdd8b; --no-job: #a0a8b0; } }
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

# A table that is wider than the screen scrolls by itself, by the keyboard too.
_TABLE = '<div class="scroll" tabindex="0"><table>'


def render_audit_page(summary: AuditSummary) -> str:
    """The audit as a page."""
    title = _shown(heading(summary))
    results = [result for result in AuditResult if summary.results[result]]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}{''.join(map(_style_of, AuditResult))}</style></head><body><main>",
        f"<h1>{title}</h1>",
        f"<p>{_shown(summary.sentence)}.</p>",
        *(f"<p>Note: {_shown(note)}</p>" for note in summary.remarks),
        "<fieldset><legend>Show</legend>",
        '<label><input type="radio" name="shown" id="show-all" checked> all</label>',
        *(
            f'<label><input type="radio" name="shown" id="show-{_class(result)}"> {result} '
            f"({summary.results[result]:,})</label>"
            for result in results
        ),
        "</fieldset>",
        f"{_TABLE}<caption>By result and reason; a job with several reasons is in each</caption>",
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
        f"<td>{_shown(title_of(group.reason))}<br><code>{_shown(group.reason)}</code></td>"
        f'<td class="number">{group.jobs:,}</td><td class="number">{group.alone:,}</td></tr>'
    )


def _details(group: AuditGroup) -> Iterator[str]:
    opened = "" if group.result in QUIET else " open"
    yield (
        f'<details class="of-{_class(group.result)}"{opened}><summary><h2><span class="result">{group.result}</span>: '
        f"{_shown(title_of(group.reason))}</h2> ({group.jobs:,})</summary>"
    )
    if group.result not in QUIET and (often := common(group, _MOST_MESSAGES)):
        yield "<ul>"
        yield from (f"<li>{count:,} x {_shown(text)}</li>" for text, count in often)
        yield "</ul>"
    yield f'{_TABLE}<thead><tr><th scope="col">job</th><th scope="col">what</th></tr></thead><tbody>'
    yield from (_row(name, cause) for name, cause in group.examples)
    yield "</tbody></table></div>"
    if group.jobs > len(group.examples):
        yield f"<p>and {group.jobs - len(group.examples):,} more: the JSON of this audit contains every job</p>"
    yield "</details>"


def _row(name: str, cause: Cause) -> str:
    return f'<tr><th scope="row"><code>{_shown(name)}</code></th><td class="what">{_shown(what(cause))}</td></tr>'


def _shown(text: str) -> str:
    """Text as text, secrets masked; characters that would show it in another order are spelled out."""
    masked = mask_secrets(text)
    return escape("".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in masked), quote=True)


def _class(result: AuditResult) -> str:
    return result.value.replace(" ", "-")
