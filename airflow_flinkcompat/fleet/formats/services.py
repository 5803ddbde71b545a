"""Formats of GitHub, GitLab and every CI that reads JUnit: annotations, code quality, test cases."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from airflow_flinkcompat.compat.reports.sections import format_inline, ground
from airflow_flinkcompat.compat.waivers import waiver_lines
from airflow_flinkcompat.fleet.annotations import Annotation, annotations_of
from airflow_flinkcompat.fleet.formats.people import explained
from airflow_flinkcompat.fleet.values import BAD_INPUT, PASSED, FleetDiff, Severity, result_of
from airflow_flinkcompat.secrets import mask_secrets

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GITLAB_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}
_GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_MOST_PRESSING = tuple(Severity)


def render_github(fleet: FleetDiff) -> str:
    """Workflow commands with which GitHub shows findings at the lines of a pull request.

    Errors come first, because GitHub shows ten of a step; notes and the summary follow.
    """
    found = sorted(annotations_of(fleet), key=lambda each: _MOST_PRESSING.index(each.severity))
    title = _escaped(f"flinkcompat {fleet.command}", property_=True)
    notes = [f"::notice title={title}::{_escaped(mask_secrets(format_inline(note)))}" for note in fleet.notes]
    return "\n".join([*map(_command, found), *notes, mask_secrets(f"flinkcompat: {fleet.summary}")]) + "\n"


def _command(each: Annotation) -> str:
    place = {"file": each.path, "line": str(each.line), "endLine": str(each.end_line), "col": str(each.column)}
    if each.end_column is not None and each.end_line == each.line:  # GitHub takes columns of one line alone
        place["endColumn"] = str(each.end_column + 1)
    place["title"] = f"{each.deployment}: {each.rule}"
    told = ",".join(f"{key}={_escaped(value, property_=True)}" for key, value in place.items())
    return f"::{_GITHUB_COMMANDS[each.severity]} {told}::{_escaped(each.explained)}"


def _escaped(text: str, *, property_: bool = False) -> str:
    found = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return found.replace(":", "%3A").replace(",", "%2C") if property_ else found


def render_gitlab(fleet: FleetDiff) -> str:
    """A report of GitLab's code quality: a JSON list with an entry for each finding."""
    rows = [
        {
            "description": f"{each.deployment}: {each.explained}",
            "check_name": each.rule,
            "fingerprint": each.fingerprint,
            "severity": _GITLAB_SEVERITIES[each.severity],
            "location": {"path": each.path, "lines": {"begin": each.line, "end": each.end_line}},
        }
        for each in annotations_of(fleet)
    ]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def render_junit(fleet: FleetDiff) -> str:
    """XML of a test suite with a case per deployment: a failure if the gate fails, an error if unjudged."""
    codes = [each.exit_code(fleet.fail_on) for each in fleet.deployments]
    counts = {
        "tests": str(len(codes)),
        "failures": str(sum(PASSED < code < BAD_INPUT for code in codes)),
        "errors": str(sum(code >= BAD_INPUT for code in codes)),
    }
    name = f"flinkcompat {fleet.command}"
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **counts, "skipped": "0"})
    for review, code in zip(fleet.deployments, codes, strict=True):
        script = _xml(review.script)
        names = {"name": _xml(review.name), "classname": script, "file": script}
        case = ElementTree.SubElement(suite, "testcase", names)
        if code != PASSED:
            kind = "failure" if code < BAD_INPUT else "error"
            attributes = {"type": result_of(review), "message": _xml(review.sentence)}
            ElementTree.SubElement(case, kind, attributes).text = _xml(explained(review))
            continue
        planned = [ground(review.reports[0])] if review.ground else []
        if said := [*planned, *waiver_lines(review.reports), *review.notes]:
            ElementTree.SubElement(case, "system-out").text = _xml(mask_secrets("\n".join(said)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _xml(text: str) -> str:
    """Text without the characters that XML has no way to write."""
    return _NO_XML.sub("\ufffd", text)
