"""The formats of an audit by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Protocol

from airflow_flinkcompat.fleet.audit.document import AuditDocument
from airflow_flinkcompat.fleet.audit.page import render_audit_page
from airflow_flinkcompat.fleet.audit.text import render_audit_markdown, render_audit_text
from airflow_flinkcompat.fleet.audit.values import AuditRow, AuditSummary

_RENDERERS: Mapping[str, Callable[[AuditSummary], str]] = {
    "text": render_audit_text,
    "markdown": render_audit_markdown,
    "html": render_audit_page,
}


class AuditWriter(Protocol):
    """Writes one format."""

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
