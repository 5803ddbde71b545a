"""The reviews as JSON, by ``fleet.schema.json``."""

from __future__ import annotations

import json
from typing import Any

from airflow_flinkcompat.compat import Reports
from airflow_flinkcompat.compat.report import CATALOGUE, tool_version
from airflow_flinkcompat.fleet.annotations import annotations_of
from airflow_flinkcompat.fleet.values import DeploymentReview, FleetDiff, Status, result_of
from airflow_flinkcompat.secrets import mask_secrets

SCHEMA_OF_FLEET = "flinkcompat-fleet/1"


def render_json(fleet: FleetDiff) -> str:
    """The reviews as a JSON document by ``fleet.schema.json``, each with its whole report."""
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
