"""Output formats for services: GitHub annotations, GitLab code quality, JUnit and SARIF 2.1.0."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from airflow_flinkcompat.compat.gate import waiver_lines
from airflow_flinkcompat.compat.report import tool_version
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.sections import format_inline, ground, page_text, page_url
from airflow_flinkcompat.fleet.formats import explained
from airflow_flinkcompat.fleet.values import (
    BAD_INPUT,
    BAD_INPUT_RULE,
    OUT_OF_REACH_RULE,
    PASSED,
    Annotation,
    FleetDiff,
    Severity,
    annotations_of,
    result_of,
)
from airflow_flinkcompat.secrets import mask_secrets

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GITLAB_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}
_GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_MOST_PRESSING = tuple(Severity)


def render_github(fleet: FleetDiff) -> str:
    """Render workflow commands for GitHub, which show findings at the lines of a pull request.

    Errors are first, because GitHub shows only ten annotations of a step. Notes and the summary are last.
    """
    found = sorted(annotations_of(fleet), key=lambda each: _MOST_PRESSING.index(each.severity))
    title = _escaped(f"flinkcompat {fleet.command}", property_=True)
    notes = [f"::notice title={title}::{_escaped(mask_secrets(format_inline(note)))}" for note in fleet.notes]
    return "\n".join([*map(_command, found), *notes, mask_secrets(f"flinkcompat: {fleet.summary}")]) + "\n"


def _command(each: Annotation) -> str:
    place = {"file": each.path, "line": str(each.line), "endLine": str(each.end_line), "col": str(each.column)}
    if each.end_column is not None and each.end_line == each.line:  # GitHub accepts columns only on a single line
        place["endColumn"] = str(each.end_column + 1)
    place["title"] = f"{each.deployment}: {each.rule}"
    properties = ",".join(f"{key}={_escaped(value, property_=True)}" for key, value in place.items())
    return f"::{_GITHUB_COMMANDS[each.severity]} {properties}::{_escaped(each.explained)}"


def _escaped(text: str, *, property_: bool = False) -> str:
    found = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return found.replace(":", "%3A").replace(",", "%2C") if property_ else found


def render_gitlab(fleet: FleetDiff) -> str:
    """Render a code-quality report for GitLab: a JSON list with an entry for each finding."""
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
    """Render JUnit XML: a test case for each deployment, with a failure, or an error if it is unjudged."""
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
    """Replace the characters that XML cannot contain."""
    return _NO_XML.sub("\ufffd", text)


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
# GitHub recognizes a finding only by this key; without the key, GitHub uses a hash of the line.
_GITHUB_KEY, _OWN_KEY = "primaryLocationLineHash", "flinkcompat/v1"
_BESIDE_THE_CATALOGUE = {
    BAD_INPUT_RULE: (
        "The input cannot be used",
        "A script has syntax errors, contains literal secrets or cannot be read, or the project file is wrong. "
        "Correct the input first; until then, nothing is judged.",
    ),
    OUT_OF_REACH_RULE: ("The ledger is out of reach", "The deployed version is unknown, so nothing is compared."),
}


def render_sarif(fleet: FleetDiff) -> str:
    """Render the findings as a SARIF log, each at its place in the proposed file."""
    found = annotations_of(fleet)
    codes = sorted({each.rule for each in found})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "flinkcompat",
                        "semanticVersion": tool_version(),
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "automationDetails": {
                    "id": "/".join(filter(None, ("flinkcompat", fleet.command, fleet.project))) + "/"
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, codes.index(each.rule)) for each in found],
            }
        ],
    }
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    if code in _BESIDE_THE_CATALOGUE:
        title, why = _BESIDE_THE_CATALOGUE[code]
        page = why
    else:
        rule = BY_CODE[code]
        title, why, page = rule.title, rule.rationale, page_text(code)
    url = page_url(code)
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in code.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": why, "markdown": page},
        **({} if url is None else {"helpUri": url}),
        "properties": {"tags": ["flink-sql", "state"]},
    }


def _result(each: Annotation, index: int) -> dict[str, Any]:
    region = {"startLine": each.line, "startColumn": each.column, "endLine": each.end_line}
    if each.end_column is not None:  # SARIF's end column is exclusive
        region["endColumn"] = each.end_column + 1
    return {
        "ruleId": each.rule,
        "ruleIndex": index,
        "level": each.severity.value,
        "message": {"text": f"{each.deployment}: {each.explained}"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": quote(each.path), "uriBaseId": _ROOT}, "region": region}}
        ],
        "partialFingerprints": {_GITHUB_KEY: f"{each.fingerprint}:1", _OWN_KEY: each.fingerprint},
        **_suppressions(each),
        **({"properties": _ground(each)} if each.ground else {}),
    }


def _ground(each: Annotation) -> dict[str, str]:
    return {"ground": each.ground, **({} if each.disagrees is None else {"disagrees": each.disagrees.value})}


def _suppressions(each: Annotation) -> dict[str, Any]:
    """SARIF suppression of a waived finding. Services that ignore it show the level ``note``."""
    if each.waiver is None:
        return {}
    waiver, holds = each.waiver.waiver, each.severity is Severity.NOTE
    said = {"by": waiver.by, "until": waiver.until.isoformat(), "evenSilentlyWrong": waiver.even_silently_wrong}
    # If the waiver does not apply, "rejected" prevents services from hiding the result.
    status = "accepted" if holds else "rejected"
    return {
        "suppressions": [{"kind": "external", "status": status, "justification": waiver.reason, "properties": said}]
    }
