"""SARIF 2.1.0 as GitHub's code scanning takes it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from airflow_flinkcompat.compat.report import tool_version
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.sections import page_text, page_url
from airflow_flinkcompat.fleet.annotations import BAD_INPUT_RULE, OUT_OF_REACH_RULE, Annotation, annotations_of
from airflow_flinkcompat.fleet.values import FleetDiff, Severity

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
# GitHub knows a finding again by this key alone; where it is missing it takes a hash of the line.
_GITHUB_KEY, _OWN_KEY = "primaryLocationLineHash", "flinkcompat/v1"
_BESIDE_THE_CATALOGUE = {
    BAD_INPUT_RULE: (
        "The input cannot be used",
        "A script has syntax errors, contains literal secrets or cannot be read, or the project file is "
        "wrong: correct it first, because nothing is judged before.",
    ),
    OUT_OF_REACH_RULE: (
        "The ledger is out of reach",
        "The deployed version is unknown, so nothing is compared.",
    ),
}


def render_sarif(fleet: FleetDiff) -> str:
    """The findings as a SARIF log, each at its place in the proposed file; without any, no result."""
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
    if each.end_column is not None:  # SARIF names the column behind the last one
        region["endColumn"] = each.end_column + 1
    return {
        "ruleId": each.rule,
        "ruleIndex": index,
        "level": each.severity.value,
        "message": {"text": f"{each.deployment}: {each.explained}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(each.path), "uriBaseId": _ROOT},
                    "region": region,
                }
            }
        ],
        "partialFingerprints": {_GITHUB_KEY: f"{each.fingerprint}:1", _OWN_KEY: each.fingerprint},
        **_suppressions(each),
        **({"properties": _ground(each)} if each.ground else {}),
    }


def _ground(each: Annotation) -> dict[str, str]:
    return {"ground": each.ground, **({} if each.disagrees is None else {"disagrees": each.disagrees.value})}


def _suppressions(each: Annotation) -> dict[str, Any]:
    """Waived findings as notes, too, for services that do not read suppressions."""
    if each.waiver is None:
        return {}
    waiver, holds = each.waiver.waiver, each.severity is Severity.NOTE
    said = {"by": waiver.by, "until": waiver.until.isoformat(), "evenSilentlyWrong": waiver.even_silently_wrong}
    # Where a waiver does not count, "rejected" keeps a result from being taken for a suppressed one.
    status = "accepted" if holds else "rejected"
    return {
        "suppressions": [
            {"kind": "external", "status": status, "justification": waiver.reason, "properties": said},
        ]
    }
