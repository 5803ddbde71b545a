"""Everything the product knows about a change: one frozen, versioned value that all renderings show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.rule import Fate
from airflow_flinkcompat.sql import Span, mask_secrets

SCHEMA = "flinkcompat-report/1"
CATALOGUE = "1"
"""Version of the rule catalogue; it rises whenever a rule's verdict changes."""


def tool_version() -> str:
    """The installed version of the package."""
    try:
        return version("airflow-flinkcompat")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True)
class Finding:
    """One rule that fired.

    ``overruled_by`` is the code of the rule that decides instead, "" where this finding counts. ``before`` and
    ``after`` are
    the clauses on both sides, secrets masked. ``source`` names the document row or measurement behind ``basis``.
    """

    rule: str
    title: str
    outcome: Outcome
    message: str
    before: str = ""
    after: str = ""
    basis: Basis = Basis.INFERRED
    source: str = ""
    reason: Reason | None = None
    consequence: Consequence | None = None
    fates: tuple[tuple[str, Fate], ...] = ()
    sink: str | None = None
    before_span: Span | None = None
    after_span: Span | None = None
    overruled_by: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "title": self.title,
            "outcome": self.outcome.value,
            "message": mask_secrets(self.message),
            "before": mask_secrets(self.before),
            "after": mask_secrets(self.after),
            "basis": self.basis.value,
            "source": self.source,
            "reason": None if self.reason is None else self.reason.name.lower(),
            "consequence": None if self.consequence is None else self.consequence.value,
            "fates": [{"metric": mask_secrets(metric), "fate": fate.value} for metric, fate in self.fates],
            "sink": self.sink,
            "before_span": _span_to_dict(self.before_span),
            "after_span": _span_to_dict(self.after_span),
            "overruled_by": self.overruled_by,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Finding:
        """The finding a report holds as JSON. Raises KeyError or ValueError where it is none."""
        return Finding(
            rule=data["rule"],
            title=data.get("title", ""),
            outcome=Outcome(data["outcome"]),
            message=data["message"],
            before=data.get("before", ""),
            after=data.get("after", ""),
            basis=Basis(data.get("basis", "inferred")),
            source=data.get("source", ""),
            reason=None if data.get("reason") is None else Reason[data["reason"].upper()],
            consequence=None if data.get("consequence") is None else Consequence(data["consequence"]),
            fates=tuple((row["metric"], Fate(row["fate"])) for row in data.get("fates", ())),
            sink=data.get("sink"),
            before_span=_span_from_dict(data.get("before_span")),
            after_span=_span_from_dict(data.get("after_span")),
            overruled_by=data.get("overruled_by", ""),
        )


@dataclass(frozen=True)
class Report:
    """The verdict on a change with every finding, worst first among those that count.

    ``other`` is what the other engine would say, (engine, outcome), where that was asked for.
    """

    outcome: Outcome
    engine: str
    engine_version: str
    findings: tuple[Finding, ...]
    old_sha256: str
    new_sha256: str
    old_source: str = "old"
    new_source: str = "new"
    other: tuple[str, Outcome] | None = None
    warnings: tuple[str, ...] = ()
    tool_version: str = ""

    @property
    def deciding(self) -> tuple[Finding, ...]:
        """Findings nothing decides over."""
        return tuple(finding for finding in self.findings if not finding.overruled_by)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-able data; secrets masked. Published as ``report.schema.json``."""
        return {
            "schema": SCHEMA,
            "tool": {"name": "airflow-flinkcompat", "version": self.tool_version, "catalogue": CATALOGUE},
            "outcome": self.outcome.value,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "findings": [finding.to_dict() for finding in self.findings],
            "old": {"sha256": self.old_sha256, "source": self.old_source},
            "new": {"sha256": self.new_sha256, "source": self.new_source},
            "other_engine": None if self.other is None else {"engine": self.other[0], "outcome": self.other[1].value},
            "warnings": list(self.warnings),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Report:
        """The report that ``to_dict`` wrote. Raises ValueError where the data is none."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"not a {SCHEMA}: {data.get('schema')!r}")
        other = data.get("other_engine")
        try:
            return Report(
                outcome=Outcome(data["outcome"]),
                engine=data["engine"],
                engine_version=data["engine_version"],
                findings=tuple(Finding.from_dict(finding) for finding in data["findings"]),
                old_sha256=data["old"]["sha256"],
                new_sha256=data["new"]["sha256"],
                old_source=data["old"].get("source", "old"),
                new_source=data["new"].get("source", "new"),
                other=None if other is None else (other["engine"], Outcome(other["outcome"])),
                warnings=tuple(data.get("warnings", ())),
                tool_version=data.get("tool", {}).get("version", ""),
            )
        except KeyError as error:
            raise ValueError(f"the report lacks {error}") from error


def _span_to_dict(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {
        "source": span.source,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _span_from_dict(data: Mapping[str, Any] | None) -> Span | None:
    return None if data is None else Span(**data)
