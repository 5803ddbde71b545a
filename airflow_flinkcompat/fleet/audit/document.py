"""Formats of an audit, and its JSON document by ``audit.schema.json``, written row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import IO, Any, Protocol

from airflow_flinkcompat.compat.report import CATALOGUE, tool_version
from airflow_flinkcompat.fleet.audit.page import render_audit_page
from airflow_flinkcompat.fleet.audit.text import render_audit_markdown, render_audit_text, title_of
from airflow_flinkcompat.fleet.audit.values import AuditRow, AuditSummary
from airflow_flinkcompat.secrets import mask_secrets

SCHEMA_OF_AUDIT = "flinkcompat-audit/1"


class AuditDocument:
    """Writer of the document to a file."""

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
        "tables": list(row.tables),
        "secrets": row.secrets,
    }


def _encoded(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


_RENDERERS: Mapping[str, Callable[[AuditSummary], str]] = {
    "text": render_audit_text,
    "markdown": render_audit_markdown,
    "html": render_audit_page,
}


class AuditWriter(Protocol):
    """Writer of one format."""

    def add(self, row: AuditRow) -> None:
        """Take a row."""

    def end(self, summary: AuditSummary) -> None:
        """Write the totals of all rows."""


class _Rendered:
    """Writer of the summary alone."""

    def __init__(self, render: Callable[[AuditSummary], str], file: IO[str]) -> None:
        self._render, self._file = render, file

    def add(self, row: AuditRow) -> None:
        pass

    def end(self, summary: AuditSummary) -> None:
        self._file.write(self._render(summary))


def writer(name: str, file: IO[str]) -> AuditWriter:
    """The writer of a format."""
    return AuditDocument(file) if name == "json" else _Rendered(_RENDERERS[name], file)
