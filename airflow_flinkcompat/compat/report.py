"""The report on a change: one frozen, versioned value from which every output format is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from airflow_flinkcompat.compat.migration_report import (
    COMPUTED_RULES,
    CONDITION_RULE,
    SEEN_RULES,
    SETTING_RULE,
    MigrationReport,
)
from airflow_flinkcompat.compat.rule import Fate, KeyFate, Rule
from airflow_flinkcompat.compat.verdict import Remedy, Verdict
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.prediction import ConditionKind
from airflow_flinkcompat.lazy import quick_init
from airflow_flinkcompat.model import (
    PROGRAM_SUFFIXES,
    AppliedWaiver,
    Basis,
    Consequence,
    Outcome,
    Reason,
    Span,
    WaiverState,
)
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.secrets import mask_secrets

SCHEMA = "flinkcompat-report/1"
SCHEMA_OF_SEVERAL = "flinkcompat-reports/1"
CATALOGUE = "8"
"""Version of the rule catalogue. Every release that changes a rule or verdict increases this version."""
READ = "read from the script"
"""The ``ground`` of a report if Flink's planner was asked but gave no answer."""
PLANNED = "planned by Flink"
"""The prefix of ``ground`` if the jobs that Flink planned decide the report."""
UNDECIDED = f"{READ}, undecided by Flink"
"""The prefix of ``ground`` if Flink planned both jobs but the effect of their diff is unknown."""
PROPOSED_ALONE = ", the proposed script alone"
"""The suffix of ``ground`` if Flink refuses the deployed script."""


@cache
def tool_version() -> str:
    """The installed version of the package."""
    try:
        return version("airflow-flinkcompat")
    except PackageNotFoundError:
        return "unknown"


@quick_init
@dataclass(frozen=True)
class Finding:
    """One rule that applies to the change.

    ``overruled_by`` is the code of the rule that overrules this finding, "" if the finding is decisive. ``before`` and
    ``after`` are the clauses of both sides. ``source`` names the document row or measurement of ``basis``. Every item
    of ``evidence`` is the id of a restore. ``sink`` is None for the script as a whole. ``operator`` is the path of the
    operator, "" if the finding concerns no operator. ``remedy`` is an option that settles an unknown outcome or keeps
    the rest of the state; ``remedy_tables`` are the tables that need the option. ``waiver`` is the applied waiver.
    ``claims`` are the keys of the differences that the finding explains; a report read from JSON has no claims.
    """

    rule: str
    title: str
    outcome: Outcome
    message: str
    before: str = ""
    after: str = ""
    basis: Basis = Basis.INFERRED
    source: str = ""
    evidence: tuple[str, ...] = ()
    reason: Reason | None = None
    consequence: Consequence | None = None
    fates: tuple[tuple[str, Fate], ...] = ()
    sink: str | None = None
    before_span: Span | None = None
    after_span: Span | None = None
    overruled_by: str = ""
    operator: str = ""
    remedy: Remedy | None = None
    remedy_tables: tuple[str, ...] = ()
    claims: tuple[str, ...] = field(default=(), compare=False, repr=False)
    waiver: AppliedWaiver | None = None

    @classmethod
    def of(cls, rule: Rule, verdict: Verdict, message: str, **more: Any) -> Finding:
        """Create a finding from a rule and its verdict.

        Args:
            rule: The rule.
            verdict: The rule's verdict on the change.
            message: A sentence about the change.
            more: Other fields of the finding.

        Returns:
            The finding.
        """
        return cls(
            rule.code, rule.title, verdict.outcome, message, basis=verdict.basis, source=verdict.grounds,
            evidence=verdict.evidence, reason=verdict.reason, consequence=verdict.consequence, remedy=verdict.remedy,
            **more,
        )  # fmt: skip

    @property
    def is_waived(self) -> bool:
        """True if a valid waiver lets a gate ignore the finding."""
        return self.waiver is not None and self.waiver.state is WaiverState.HOLDS

    @property
    def subject(self) -> str:
        """The operator path, the sink, or ``script``, with secrets masked."""
        return " ".join(mask_secrets(self.operator or self.sink or "script").split())

    def to_dict(self) -> dict[str, Any]:
        """Convert the finding to JSON values with secrets masked; :meth:`from_dict` is the inverse.

        Returns:
            An entry of ``findings`` in ``report.schema.json``.
        """
        return {
            "rule": self.rule,
            "title": self.title,
            "outcome": self.outcome.value,
            "message": mask_secrets(self.message),
            "before": mask_secrets(self.before),
            "after": mask_secrets(self.after),
            "basis": self.basis.value,
            "source": self.source,
            "evidence": list(self.evidence),
            "reason": None if self.reason is None else self.reason.name.lower(),
            "consequence": None if self.consequence is None else self.consequence.value,
            "fates": [{"metric": mask_secrets(metric), "fate": fate.value} for metric, fate in self.fates],
            "sink": self.sink,
            "before_span": _span_to_dict(self.before_span),
            "after_span": _span_to_dict(self.after_span),
            "overruled_by": self.overruled_by,
            "operator": mask_secrets(self.operator),
            **({} if self.remedy is None else {"remedy": self.remedy.value}),
            **({"remedy_tables": list(map(mask_secrets, self.remedy_tables))} if self.remedy_tables else {}),
            **({} if self.waiver is None else {"waiver": self.waiver.to_dict()}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Finding:
        """Read a finding that :meth:`to_dict` wrote.

        Args:
            data: An entry of a report's ``findings``.

        Returns:
            The finding. Fields that an older report lacks have default values.

        Raises:
            KeyError: The rule, outcome or message is missing, or the reason is unknown.
            ValueError: The outcome, basis, consequence, fate or remedy is unknown.
        """
        return Finding(
            rule=data["rule"],
            title=data.get("title", ""),
            outcome=Outcome(data["outcome"]),
            message=data["message"],
            before=data.get("before", ""),
            after=data.get("after", ""),
            basis=Basis(data.get("basis", "inferred")),
            source=data.get("source", ""),
            evidence=tuple(data.get("evidence", ())),
            reason=None if data.get("reason") is None else Reason[data["reason"].upper()],
            consequence=None if data.get("consequence") is None else Consequence(data["consequence"]),
            fates=tuple((row["metric"], Fate(row["fate"])) for row in data.get("fates", ())),
            sink=data.get("sink"),
            before_span=_span_from_dict(data.get("before_span")),
            after_span=_span_from_dict(data.get("after_span")),
            overruled_by=data.get("overruled_by", ""),
            operator=data.get("operator", ""),
            remedy=Remedy(data["remedy"]) if "remedy" in data else None,
            remedy_tables=tuple(data.get("remedy_tables", ())),
            waiver=AppliedWaiver.from_dict(data["waiver"]) if "waiver" in data else None,
        )


@dataclass(frozen=True)
class OperatorSide:
    """A stateful operator on one side. ``window`` is "" for an operator without a window."""

    kind: str
    window: str = ""
    span: Span | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "window": mask_secrets(self.window), "span": _span_to_dict(self.span)}

    @staticmethod
    def from_dict(data: Mapping[str, Any] | None) -> OperatorSide | None:
        if data is None:
            return None
        return OperatorSide(data["kind"], data.get("window", ""), _span_from_dict(data.get("span")))


@dataclass(frozen=True)
class OperatorReport:
    """The fate of one stateful operator's state.

    ``before`` is None for a new operator, ``after`` is None for a removed operator. ``outcome`` applies to this
    operator only: other operators of the job may have a worse outcome. ``keys`` and ``metrics`` are the keys and
    metrics of both sides with their fates. ``rows`` are stored rows of Top-N and joins. ``parts`` lists other differing
    parts, each with its name, old value and new value. ``consequence`` is the result of a start from the savepoint on
    open-source Flink. ``resumed`` lists the stored values that would be misread.
    """

    path: str
    sink: str
    outcome: Outcome
    before: OperatorSide | None
    after: OperatorSide | None
    keys: tuple[tuple[str, KeyFate], ...] = ()
    metrics: tuple[tuple[str, Fate], ...] = ()
    rows: tuple[tuple[str, Fate], ...] = ()
    parts: tuple[tuple[str, str, str], ...] = ()
    consequence: Consequence | None = None
    resumed: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The operator's kind, or both kinds if the kind changed."""
        kinds = [side.kind for side in (self.before, self.after) if side is not None]
        return " → ".join(dict.fromkeys(kinds))

    @property
    def unchanged(self) -> bool:
        """True if the operator is unchanged, and only other parts of the query are in doubt."""
        fates = [fate for _, fate in (*self.metrics, *self.rows)]
        return bool(fates) and all(fate is Fate.SAME for fate in fates)

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": mask_secrets(self.path),
            "sink": mask_secrets(self.sink),
            "outcome": self.outcome.value,
            "before": None if self.before is None else self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "keys": [{"key": mask_secrets(key), "fate": fate.value} for key, fate in self.keys],
            "metrics": [{"metric": mask_secrets(metric), "fate": fate.value} for metric, fate in self.metrics],
            "rows": [{"rows": mask_secrets(rows), "fate": fate.value} for rows, fate in self.rows],
            "parts": [
                {"part": part, "before": mask_secrets(before), "after": mask_secrets(after)}
                for part, before, after in self.parts
            ],
            "consequence": None if self.consequence is None else self.consequence.value,
            "resumed": [mask_secrets(line) for line in self.resumed],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> OperatorReport:
        """Read an operator from a report's JSON; raise KeyError or ValueError if the data is no operator."""
        return OperatorReport(
            path=data["path"],
            sink=data["sink"],
            outcome=Outcome(data["outcome"]),
            before=OperatorSide.from_dict(data.get("before")),
            after=OperatorSide.from_dict(data.get("after")),
            keys=tuple((row["key"], KeyFate(row["fate"])) for row in data.get("keys", ())),
            metrics=tuple((row["metric"], Fate(row["fate"])) for row in data.get("metrics", ())),
            rows=tuple((row["rows"], Fate(row["fate"])) for row in data.get("rows", ())),
            parts=tuple((row["part"], row["before"], row["after"]) for row in data.get("parts", ())),
            consequence=None if data.get("consequence") is None else Consequence(data["consequence"]),
            resumed=tuple(data.get("resumed", ())),
        )


@dataclass(frozen=True)
class RestoredOperator:
    """The effect of an upgrade on a stateful operator or a connector, by the planners of both versions.

    ``effect`` is ``right``, ``begins empty``, ``silently wrong``, ``refused at submit``, ``refused at restore`` or
    ``unknown``. ``reason`` is "" for ``right``. ``serializers`` are the names of the serializers of keyed state.
    """

    operator: str
    effect: str
    reason: str = ""
    serializers: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """True if the new version reads the state."""
        return self.effect == "right"


_NOT_READ = "statement-not-read"
_CONDITIONS = frozenset(ConditionKind)
_REMOVED = "deployment-removed"
REFUSALS = frozenset({"program-refused", "statement-refused"})
_REFUSED_BY_FLINK = (Consequence.REFUSED_AT_SUBMIT, Consequence.REFUSED_AT_RESTORE)


@dataclass(frozen=True)
class Report:
    """The verdict on a change. Decisive findings are before overruled findings, each group worst first.

    ``other`` is the other engine and its outcome, if requested. ``sinks`` contains an outcome for every sink of either
    side; ``outcome`` is the worst of them. ``operators`` contains every stateful operator. ``sinks`` and ``operators``
    are empty in reports of earlier versions, and if the sides could not be paired. ``sources`` are the declared tables
    that the proposed script reads, each with its position for a start without state. ``migration`` is the state that a
    rewritten savepoint would keep, if this state is known. ``sinks_begin_empty`` are keyed sinks of updating queries
    that write to a new place without the former rows. ``ground`` is the basis of the verdict, "" if Flink's planner was
    not asked. ``read_outcome`` is the outcome by the rules alone, if the planner's answer differs. ``doubt`` is the
    reason if Flink's planner was asked but gave no answer. ``environments`` is the number of environments in which a
    program was judged; this report is the worst of them. ``restored`` are the stateful operators and connectors of an
    unchanged job on a new version, if Flink planned it on both versions. ``old_version`` is the version of the deployed
    side; "" if it is unknown. ``environments``, ``restored`` and ``old_version`` are not part of the JSON.
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
    sinks: tuple[tuple[str, Outcome], ...] = ()
    operators: tuple[OperatorReport, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    migration: MigrationReport | None = None
    sinks_begin_empty: tuple[str, ...] = ()
    ground: str = ""
    read_outcome: Outcome | None = None
    doubt: str = ""
    environments: int = field(default=1, compare=False, repr=False)
    restored: tuple[RestoredOperator, ...] = field(default=(), compare=False, repr=False)
    old_version: str = field(default="", compare=False, repr=False)

    @property
    def is_planned(self) -> bool:
        """True if Flink planned the scripts, even if the effect of their diff is unknown."""
        return self.ground.startswith((PLANNED, UNDECIDED))

    @property
    def deployed_is_refused(self) -> bool:
        """True if Flink plans the proposed script but refuses the deployed script."""
        return self.ground.endswith(PROPOSED_ALONE)

    @property
    def is_conditional(self) -> bool:
        """True if the change is compatible on a condition, which findings name."""
        return self.outcome is Outcome.UNKNOWN and {each.rule for each in self.deciding} <= _CONDITIONS

    @property
    def deciding(self) -> tuple[Finding, ...]:
        """The findings that no other finding overrules."""
        return tuple(finding for finding in self.findings if not finding.overruled_by)

    @property
    def waived(self) -> tuple[Finding, ...]:
        """The findings that a gate ignores because of a waiver."""
        return tuple(finding for finding in self.findings if finding.is_waived)

    @property
    def gate_outcome(self) -> Outcome:
        """The outcome for a gate, without waived findings. It is never worse than ``outcome``."""
        if not self.waived:
            return self.outcome
        left = Outcome.worst(finding.outcome for finding in self.deciding if not finding.is_waived)
        return min(left, self.outcome, key=lambda each: each.rank)

    @property
    def migration_is_wrong(self) -> bool:
        """True if a rewritten savepoint would contain exactly the state that causes wrong rows."""
        # If a condition on the input changed, a migration keeps the aggregation's state only on request.
        unasked = (each for each in self.deciding if each.rule != CONDITION_RULE)
        wrong = any(each.consequence is Consequence.SILENTLY_WRONG for each in unasked)
        return wrong and self.migration is not None and self.migration.only_carries

    @property
    def keeps_state(self) -> bool:
        """True if a rewritten savepoint keeps state from which the job can resume."""
        kept = MigrationExtent.NONE if self.migration is None else self.migration.kept
        return kept is not MigrationExtent.NONE and not self.migration_is_wrong

    @property
    def unseen(self) -> tuple[Finding, ...]:
        """Findings that a migration cannot detect, such as a changed function."""
        computed = COMPUTED_RULES if self.migration is not None and self.migration.computes_all else frozenset()
        return tuple(
            each
            for each in self.findings
            if each.outcome is not Outcome.COMPATIBLE
            and (self.migration_is_wrong or each.rule not in SEEN_RULES | computed)
            # Operator ids and layouts show the effect of a setting if Flink refuses the restore.
            and not (each.rule == SETTING_RULE and each.consequence in _REFUSED_BY_FLINK)
        )

    @property
    def is_refused(self) -> bool:
        """True if Flink refuses the proposed script or program even without state."""
        # A statement that was not read makes a change incompatible only if Flink's parser refuses the statement.
        unread = any(each.rule == _NOT_READ and each.outcome is Outcome.INCOMPATIBLE for each in self.deciding)
        return unread or any(finding.rule in REFUSALS for finding in self.deciding)

    @property
    def migration_is_unknown(self) -> bool:
        """True if a rewritten savepoint may keep state, but the report does not contain a migration."""
        planned = ENGINE_FACTS[self.engine].compiles_plans and not self.new_source.endswith(PROGRAM_SUFFIXES)
        judged = self.outcome is Outcome.INCOMPATIBLE and not self.is_refused
        removed = any(finding.rule == _REMOVED for finding in self.findings)
        return planned and judged and not removed and self.migration is None

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to JSON values with secrets masked; :meth:`from_dict` is the inverse.

        Returns:
            A report that conforms to ``report.schema.json``.
        """
        return {
            "schema": SCHEMA,
            "tool": {"name": "airflow-flinkcompat", "version": self.tool_version, "catalogue": CATALOGUE},
            "outcome": self.outcome.value,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "sinks": [{"sink": mask_secrets(sink), "outcome": outcome.value} for sink, outcome in self.sinks],
            "operators": [operator.to_dict() for operator in self.operators],
            "sources": [{"table": mask_secrets(table), "begins": mask_secrets(words)} for table, words in self.sources],
            "findings": [finding.to_dict() for finding in self.findings],
            "old": {"sha256": self.old_sha256, "source": self.old_source},
            "new": {"sha256": self.new_sha256, "source": self.new_source},
            "other_engine": None if self.other is None else {"engine": self.other[0], "outcome": self.other[1].value},
            "warnings": [*self.warnings, *filter(None, [self.doubt])],
            **({} if self.migration is None else {"migration": self.migration.to_dict()}),
            **({"sinks_begin_empty": list(self.sinks_begin_empty)} if self.sinks_begin_empty else {}),
            **({"ground": self.ground} if self.ground else {}),
            **({} if self.read_outcome is None else {"disagrees": self.read_outcome.value}),
            **({"doubt": self.doubt} if self.doubt else {}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Report:
        """Read a report that :meth:`to_dict` wrote.

        Args:
            data: The report as JSON values.

        Returns:
            The report.

        Raises:
            ValueError: The data has a different schema, lacks a field, or contains an unknown value.
        """
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
                warnings=tuple(each for each in data.get("warnings", ()) if each != data.get("doubt")),
                tool_version=data.get("tool", {}).get("version", ""),
                sinks=tuple((row["sink"], Outcome(row["outcome"])) for row in data.get("sinks", ())),
                operators=tuple(OperatorReport.from_dict(row) for row in data.get("operators", ())),
                sources=tuple((row["table"], row["begins"]) for row in data.get("sources", ())),
                migration=MigrationReport.from_dict(data["migration"]) if "migration" in data else None,
                sinks_begin_empty=tuple(data.get("sinks_begin_empty", ())),
                ground=data.get("ground", ""),
                read_outcome=Outcome(data["disagrees"]) if "disagrees" in data else None,
                doubt=data.get("doubt", ""),
            )
        except KeyError as error:
            raise ValueError(f"the report lacks {error}") from error


@dataclass(frozen=True)
class Reports:
    """The reports of several engines on one change, if no engine was selected.

    ``each`` contains a report per engine, worst first, and is never empty.
    """

    each: tuple[Report, ...]

    @classmethod
    def of(cls, reports: Iterable[Report]) -> Reports:
        """The reports, worst first.

        Args:
            reports: A report per engine.

        Returns:
            The sorted reports; reports with equal outcomes keep their order.
        """
        return cls(tuple(sorted(reports, key=lambda report: -report.outcome.rank)))

    @property
    def outcome(self) -> Outcome:
        """The worst outcome over all engines."""
        return self.each[0].outcome

    @property
    def gate_outcome(self) -> Outcome:
        """The worst gate outcome over all engines."""
        return Outcome.worst(report.gate_outcome for report in self.each)

    def to_dict(self) -> dict[str, Any]:
        """Convert the reports to JSON values.

        Returns:
            A document of ``reports.schema.json``: the worst outcome, and each engine's report under the engine's name.
        """
        return {
            "schema": SCHEMA_OF_SEVERAL,
            "outcome": self.outcome.value,
            "engines": {report.engine: report.to_dict() for report in self.each},
        }


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
