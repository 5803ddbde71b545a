"""Output formats of a project's reviews: text, Markdown, and JSON (``fleet.schema.json``)."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any

from airflow_flinkcompat.compat import (
    Reports,
    render_markdown,
    render_markdown_of_engines,
    render_text,
    render_text_of_engines,
)
from airflow_flinkcompat.compat.report import CATALOGUE, tool_version
from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words, without_mentions
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.fleet.values import (
    PASSED,
    READ,
    DeploymentReview,
    FleetDiff,
    Status,
    annotations_of,
    result_label,
    result_of,
)
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.redact import shortened

_COMPARED = (Status.CHANGED, Status.DELETED)
_LONGEST_COMMENT, _LONGEST_TABLE, _LONGEST_NOTES = 58_000, 36_000, 6_000
"""Maximum characters of a comment, of the rows of its table, and of its notes.

GitHub accepts 65,536 characters. The remaining characters are for the names of omitted reports.
"""
_NARROWEST, _WIDTH_OF_LOGS = 24, 160
_MOST_LISTED = 40
_HEADER = {False: ("deployment", "result", "what", "in Airflow the gate"), True: ("script", "result", "what", "")}
"""Column titles of the table: False for a comparison, True for ``lint``."""


def render_fleet_text(fleet: FleetDiff) -> str:
    """Render the reviews for a terminal: a table, then a report for each changed or unjudged deployment."""
    shown, passed = _split(fleet)
    rows = [_HEADER[fleet.command == "lint"], *map(_row, shown)] if shown else []
    widths = _widths(rows, max(WIDTH, shutil.get_terminal_size((_WIDTH_OF_LOGS, 24)).columns)) if rows else []
    lines = [_heading(fleet), *([""] if rows else [])]
    for row in rows:
        cells = (shortened(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    for word, names in passed.items():
        lines += ["", *textwrap.wrap(f"{word}: {_listed(names)}", WIDTH, subsequent_indent="  ")]
    lines += [f"note: {note}" for note in fleet.notes]
    blocks = [mask_secrets("\n".join(lines))]
    places = _places(fleet)
    for review in fleet.deployments:
        if text := explained(review) if review.status in _COMPARED else "\n".join(places.get(review.name, ())):
            title = review.name if review.name == review.script else f"{review.name}: {review.script}"
            blocks.append(f"{title}\n{'=' * len(title)}\n{text}")
    return "\n\n".join([*blocks, mask_secrets(fleet.summary)]) + "\n"


def render_fleet_markdown(fleet: FleetDiff) -> str:
    """Render the reviews as a pull-request comment, or as the summary of a CI step.

    The hidden first line is the same for every commit, so that a later comment can replace an earlier one. Folded
    reports follow the table. If the comment would be too long, reports are omitted and their names are listed.
    """
    linted = fleet.command == "lint"
    shown, passed = _split(fleet)
    head = [f"<!-- flinkcompat {fleet.command} {fleet.project} -->", f"### {plain_words(_heading(fleet))}"]
    if shown:
        titles = [title for title in _HEADER[linted] if title]
        head += ["", f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    rows = [_markdown_row(review, fleet) for review in shown]
    if sum(map(len, rows)) > _LONGEST_TABLE:  # rows that fail are shown first
        failing = [review.exit_code(fleet.fail_on) != PASSED for review in shown]
        rows = [row for fails in (True, False) for row, each in zip(rows, failing, strict=True) if each is fails]
    head += _fitting(rows, _LONGEST_TABLE)
    head += [f"\n{word}: {_listed([code_span(name) for name in names])}" for word, names in passed.items()]
    head += ["", plain_words(fleet.summary) + "."]
    head += _fitting([f"\n> {plain_words(note)}" for note in fleet.notes], _LONGEST_NOTES)
    blocks, left_out, places = ["\n".join(head)], [], _places(fleet)
    for review in fleet.deployments:
        body = _markdown_detail(review, places.get(review.name, ()))
        title = f"<summary>{_html(review.name)}: {result_label(review)}</summary>"
        block = f"<details>{title}\n\n{body}\n\n</details>"
        if not body:
            continue
        if len("\n\n".join((*blocks, block))) > _LONGEST_COMMENT:
            left_out.append(review.name)
        else:
            blocks.append(block)
    if left_out:
        blocks.append(f"Too long for a comment, see the log: {_listed([code_span(name) for name in left_out])}.")
    return mask_secrets("\n\n".join(blocks)) + "\n"


def explained(review: DeploymentReview) -> str:
    """Explanation of a deployment's result: the report, or the errors."""
    faults = mask_secrets("\n".join(each.message for each in review.faults))
    if not review.reports:
        return faults
    if review.status not in _COMPARED:
        found = "\n".join(f"{each.rule}: {each.message}" for each in review.findings)
        return "\n".join(filter(None, (faults, mask_secrets(found))))
    width = min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 72), 120)
    if len(review.reports) > 1:
        text = render_text_of_engines(Reports(review.reports), width, review.known, verbose=False)
    else:
        text = render_text(review.reports[0], width, review.known, verbose=False)
    above = f"{faults}\n\n" if faults else ""
    return f"{above}{text}\n" + "\n".join(textwrap.wrap(_gate(review), width))


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths of columns. The widest columns are narrowed until the table fits."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _heading(fleet: FleetDiff) -> str:
    against = f" against {fleet.against}" if fleet.against else ""
    return f"flinkcompat {fleet.command}{against}"


def _split(fleet: FleetDiff) -> tuple[tuple[DeploymentReview, ...], Mapping[str, Sequence[str]]]:
    """Deployments that need a row, and the names of all other deployments by result."""
    shown, passed = [], dict[str, list[str]]()
    for review in fleet.deployments:
        result = result_of(review)
        quiet = result == Status.UNCHANGED or (review.status is Status.LINTED and result == READ)
        if quiet and fleet.command != "plan":
            passed.setdefault(result, []).append(review.name)
        else:
            shown.append(review)
    return tuple(shown), passed


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more


def _row(review: DeploymentReview) -> tuple[str, str, str, str]:
    return review.name, result_label(review), review.sentence, format_inline(review.action)


def _markdown_row(review: DeploymentReview, fleet: FleetDiff) -> str:
    name, result, what, action = _row(review)
    mark = "" if review.exit_code(fleet.fail_on) == PASSED else "**"
    cells = [code_span(name), f"{mark}{result}{mark}", plain_words(what), plain_words(action)]
    return f"| {' | '.join(cells[:3] if fleet.command == 'lint' else cells)} |"


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The first lines that fit, and a line with the number of omitted lines."""
    ends = accumulate(len(line) + 1 for line in lines)
    count = sum(end <= room for end in ends)
    left = len(lines) - count
    return [*lines[:count], *([f"\nToo long for a comment, see the log: {left} more."] if left else [])]


def _markdown_detail(review: DeploymentReview, places: Sequence[str]) -> str:
    if review.status in _COMPARED:
        if len(review.reports) > 1:
            text = render_markdown_of_engines(Reports(review.reports), review.known)
        else:
            text = render_markdown(review.reports[0], review.known)
        faults = "".join(f"* {plain_words(format_inline(each.message))}\n" for each in review.faults)
        return "\n".join(filter(None, (faults, text, plain_words(_gate(review)))))
    return "\n".join(f"* {plain_words(line)}" for line in places)


def _gate(review: DeploymentReview) -> str:
    """Sentence about the gate's action and branch."""
    branches = f" (branch {' or '.join(dict.fromkeys(review.branch))})" if review.branch else ""
    return f"In Airflow the gate {format_inline(review.action)}{branches}."


def _places(fleet: FleetDiff) -> Mapping[str, Sequence[str]]:
    """Lines with place, severity, rule and message of each annotation, by deployment."""
    found: dict[str, list[str]] = {}
    for each in annotations_of(fleet):
        place = f"{each.path}:{each.line}:{each.column}: "
        line = f"{place}{each.severity}: {each.rule}: {each.message.removeprefix(place)}"
        found.setdefault(each.deployment, []).append(line)
    return found


def _html(text: str) -> str:
    return without_mentions(text).replace("&", "&amp;").replace("<", "&lt;")


SCHEMA_OF_FLEET = "flinkcompat-fleet/1"


def render_json(fleet: FleetDiff) -> str:
    """Render the reviews as JSON (``fleet.schema.json``), each with its full report."""
    return json.dumps(fleet_document(fleet), ensure_ascii=False, indent=2) + "\n"


def fleet_document(fleet: FleetDiff) -> dict[str, Any]:
    """The reviews as JSON values; see :func:`render_json`."""
    places: dict[str, list[dict[str, Any]]] = {}
    for each in annotations_of(fleet):
        places.setdefault(each.deployment, []).append(
            {
                "severity": each.severity.value,
                "rule": each.rule,
                "message": each.message,
                "path": each.path,
                "line": each.line,
                "column": each.column,
                "fingerprint": each.fingerprint,
                **({} if each.waiver is None else {"waiver": each.waiver.to_dict()}),
            }
        )
    return {
        "schema": SCHEMA_OF_FLEET,
        "tool": {"name": "airflow-flinkcompat", "version": tool_version(), "catalogue": CATALOGUE},
        "command": fleet.command,
        "project": fleet.project,
        "against": mask_secrets(fleet.against),
        "fail_on": fleet.fail_on,
        "exit_code": fleet.exit_code,
        "summary": fleet.summary,
        "notes": [mask_secrets(note) for note in fleet.notes],
        "deployments": [
            {**_review(review, fleet.fail_on), "annotations": places.get(review.name, [])}
            for review in fleet.deployments
        ],
    }


def _review(review: DeploymentReview, fail_on: str) -> dict[str, Any]:
    reports = review.reports if review.status is not Status.LINTED else ()
    report = reports[0] if len(reports) == 1 else Reports(reports) if reports else None
    return {
        "name": review.name,
        "status": review.status.value,
        "result": result_of(review),
        "script": review.script,
        "baseline": mask_secrets(review.baseline),
        "entry": review.known.entry or None,
        "outcome": None if review.outcome is None else review.outcome.value,
        "gate_outcome": None if review.gate_outcome is None else review.gate_outcome.value,
        "exit_code": review.exit_code(fail_on),
        "sentence": review.sentence,
        **({"ground": review.ground} if review.ground else {}),
        "branches": list(review.branch),
        "action": mask_secrets(review.action),
        "faults": [
            {
                "message": mask_secrets(each.message),
                "path": each.path or review.script,
                "line": each.line,
                "column": each.column,
            }
            for each in review.faults
        ],
        "report": None if report is None else report.to_dict(),
    }


def _of_service(name: str) -> Callable[[FleetDiff], str]:
    """Renderer of :mod:`.services`, which is imported only on a call."""
    return lambda fleet: str(getattr(import_module("airflow_flinkcompat.fleet.services"), name)(fleet))


FORMATS: Mapping[str, Callable[[FleetDiff], str]] = {
    "text": render_fleet_text,
    "markdown": render_fleet_markdown,
    "json": render_json,
    "sarif": _of_service("render_sarif"),
    "junit": _of_service("render_junit"),
    "github": _of_service("render_github"),
    "gitlab": _of_service("render_gitlab"),
}
"""Renderer of each format. Every text ends in a line break, and secrets are masked."""
