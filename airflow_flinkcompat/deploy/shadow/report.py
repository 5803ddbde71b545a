"""Result of a shadow run, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.deploy.rehearsal.report import StoredOperator
from airflow_flinkcompat.deploy.shadow.question import (
    ACCEPTED,
    HEADING,
    NO_PROOF,
    SCRIPTS,
    STATES,
    ComparedSides,
    decisive_finding,
)
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns
from airflow_flinkcompat.state.output import text_table

SCHEMA = "flinkcompat-shadow/1"
_NO_PROOF = (
    f"  {NO_PROOF}",
    "  Compare the values below with the values that the change intends. If they are right, add --expect changed.",
)
_COMPARE_STATE = "  To compare the state, too, add --from-earliest."


@dataclass(frozen=True)
class StateComparison:
    """The comparison of stored state with the state that the new script would have if it had always run.

    Attributes:
        finding: ``equal``, ``differs`` if the stored state is wrong for the new script, ``could not tell``, or
            ``differs as expected`` if only expected columns differ that also differ for the old script.
        reason: The reason why there is no result.
        sinks: The difference between the rows from both states, for each sink.
        seconds: Time of all runs of the comparison.
    """

    finding: ShadowFinding
    reason: str = ""
    sinks: tuple[SinkDifference, ...] = ()
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values.

        Returns:
            One key for each field, and ``headline``.
        """
        return {
            "finding": str(self.finding),
            "headline": redact(self.headline),
            "reason": redact(self.reason),
            "sinks": [_sink_row(each, STATES) for each in self.sinks],
            "seconds": self.seconds,
        }

    @property
    def headline(self) -> str:
        """The finding as a line for people.

        Returns:
            The line, with the reason if there is no result.
        """
        match self.finding:
            case ShadowFinding.DIFFERS:
                return "STATE: wrong: if the new script had always run, it would write other rows than from this state"
            case ShadowFinding.INCONCLUSIVE:
                return f"STATE: could not tell: {self.reason}"
            case ShadowFinding.EXPECTED:
                return "STATE: differs as expected: only in columns of --expect that also differ for the old script"
            case _:
                return "STATE: equal: from this state, the new script writes the same rows as if it had always run"


@dataclass(frozen=True)
class ShadowReport:
    """The result of a shadow run.

    Attributes:
        finding: The worst finding of all sinks, or ``refused``, or ``could not tell``.
        reason: Flink's message for ``refused``, or the reason why there is no result.
        at: Phase of a refusal: ``migration``, ``submit``, ``restore`` or ``run``.
        job_id: The live job.
        seconds: Time between both savepoints, and the run time of the old and of the new script.
        sinks: The difference of each sink.
        dropped: Operators whose state only the old script restored.
        left: Jobs and savepoints that could not be removed.
        migration: State that the savepoint of the new script keeps; None if it was not migrated.
        unnamed: The reason why the columns that the change names are unknown; "" if they are known.
        state: Comparison with runs from the earliest rows; None if it was not requested.
    """

    finding: ShadowFinding
    reason: str = ""
    at: str = ""
    job_id: str = ""
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    sinks: tuple[SinkDifference, ...] = ()
    dropped: tuple[StoredOperator, ...] = ()
    left: tuple[str, ...] = ()
    migration: MigrationReport | None = None
    unnamed: str = ""
    state: StateComparison | None = None

    @property
    def decisive(self) -> tuple[ShadowFinding, str]:
        """The finding on which a person decides, and its line.

        Returns:
            The finding of the state if the rows are accepted and the state is worse, else that of the rows.
        """
        state = self.state
        if state is not None and decisive_finding(self.finding, state.finding) != self.finding:
            return state.finding, redact(state.headline)
        return self.finding, redact(f"{HEADING}{self._headline()}")

    @property
    def accepted(self) -> bool:
        """True if neither rows nor state differ, except in the expected columns.

        Returns:
            False also without a result.
        """
        return self.finding in ACCEPTED and (self.state is None or self.state.finding in ACCEPTED)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values.

        Returns:
            One key for each field. ``sinks`` contains the shown rows.
        """
        return {
            "schema": SCHEMA,
            "finding": str(self.finding),
            "reason": redact(self.reason),
            "at": self.at,
            "job_id": self.job_id,
            "seconds": dict(zip(("live", "old", "new"), self.seconds, strict=True)),
            "sinks": [_sink_row(each, SCRIPTS) for each in self.sinks],
            "dropped": [{"id": each.id, "name": each.name} for each in self.dropped],
            "left": [redact(each) for each in self.left],
            "migration": None if self.migration is None else self.migration.to_dict(),
            "unnamed": redact(self.unnamed),
            "state": None if self.state is None else self.state.to_dict(),
        }

    def lines(self) -> tuple[str, ...]:
        """The report as text for people.

        Returns:
            The lines.
        """
        return tuple(map(redact, self._lines()))

    def _lines(self) -> Iterator[str]:
        yield f"{HEADING}{self._headline()}"
        yield from _reasons(self)
        for each in self.sinks:
            yield from _sink_lines(each)
        if self.state is not None:
            yield self.state.headline
            for each in self.state.sinks if self.state.finding is not ShadowFinding.EQUAL else ():
                yield from _sink_lines(each, STATES)
        yield from _notes(self)

    def _headline(self) -> str:
        match self.finding:
            case ShadowFinding.EQUAL:
                return f"equal: both scripts write the same rows{_uncompared(self.sinks)}"
            case ShadowFinding.EXPECTED:
                return f"differs as expected: only in the columns of --expect{_uncompared(self.sinks)}"
            case ShadowFinding.CHANGED:
                names = "differs in changed columns: only in columns that the change names"
                return f"{names}{_uncompared(self.sinks)}"
            case ShadowFinding.DIFFERS:
                return "differs: the new script writes other rows"
            case ShadowFinding.REFUSED:
                return f"refused at {self.at}: the new script does not start from the live job's state"
            case _:
                return "could not tell"


def _uncompared(sinks: Collection[SinkDifference]) -> str:
    """The limits of a finding: columns that were not compared, and sinks without rows; "" without limits."""
    names = "; ".join(f"{', '.join(each.not_compared)} of {each.sink}" for each in sinks if each.not_compared)
    empty = ", ".join(each.sink for each in sinks if not any(each.compared))
    return (names and f". Columns of only one script are not compared: {names}") + (
        empty and f". Neither script wrote a row to {empty}"
    )


def _reasons(report: ShadowReport) -> Iterator[str]:
    """Lines about the reason and the meaning of the finding."""
    if report.finding is ShadowFinding.CHANGED:
        yield from _NO_PROOF
        if report.state is None:
            yield _COMPARE_STATE
    if report.reason:
        yield f"  reason: {report.reason}"
    if report.migration is None and report.at in ("submit", "restore"):
        yield "  remedy: --migrate starts the new script from a migrated savepoint"


def _notes(report: ShadowReport) -> Iterator[str]:
    """Lines about unknown columns, state, times and leftovers."""
    if report.unnamed and report.finding is ShadowFinding.DIFFERS:
        yield f"the columns that the change names are unknown: {report.unnamed}"
    if report.dropped:
        yield "state that only the old script restored:"
        yield from (f"  {each.name or 'operator'} ({each.id[:8]})" for each in report.dropped)
    if report.migration is not None:
        yield f"state of the new script, from a migrated savepoint ({report.migration.kept}):"
        yield from report.migration.lines()
    if report.sinks:
        live, old, new = report.seconds
        yield f"rows of {live:.0f} s, read again in {old:.0f} s (old) and {new:.0f} s (new)"
    if report.state is not None and report.state.sinks:
        yield f"all rows of the sources, read by both scripts in {report.state.seconds:.0f} s"
    yield from (f"LEFT BEHIND: {each}" for each in report.left)


def _sink_lines(sink: SinkDifference, by: ComparedSides = SCRIPTS) -> Iterator[str]:
    (first, second), (one, other) = sink.compared, by.words
    yield f"{sink.sink}: {sink.finding} ({first} changes {one}, {second} {other})"
    if sink.note:
        yield f"  note: {sink.note}"
    if sink.not_compared:
        yield f"  columns of only one script: {', '.join(sink.not_compared)}"
    if sink.differing and sink.expected:
        yield f"  columns of --expect: {', '.join(sink.expected)}"
    if sink.differing and sink.changed is not None:
        yield f"  columns that the change names: {_named(sink.changed)}"
    if sink.differing:
        columns = ", ".join(f"{name} {count}" for name, count in sink.columns.items())
        what = "keys" if sink.by_key else "rows"
        yield f"  differing {what}: {sink.differing}{f' (by column: {columns})' if columns else ''}"
    if sink.rows is not None:
        yield from (f"    {line}" for line in text_table(sink.rows).splitlines())


def _named(changed: ChangedColumns) -> str:
    if changed.rows:
        return "all, because it filters, groups, joins or ranks other rows"
    return ", ".join(sorted(changed.columns)) or "none"


def _sink_row(sink: SinkDifference, sides: ComparedSides) -> dict[str, Any]:
    return {
        "sink": sink.sink,
        "finding": str(sink.finding),
        **dict(zip(sides.counts, sink.compared, strict=True)),
        "by_key": sink.by_key,
        "differing": sink.differing,
        "columns": dict(sink.columns),
        "not_compared": list(sink.not_compared),
        "expected": list(sink.expected),
        "changed": None if sink.changed is None else sorted(sink.changed.columns),
        "note": sink.note,
        "other_rows": sink.changed is not None and sink.changed.rows,
        # the ledger sorts the keys of objects
        "row_columns": [] if sink.rows is None else sink.rows.schema.names,
        "rows": [] if sink.rows is None else sink.rows.to_pylist(),
    }


def render_text(report: ShadowReport) -> str:
    """Render the report for a terminal.

    Args:
        report: The report.

    Returns:
        The lines.
    """
    return "\n".join(report.lines()) + "\n"


def render_json(report: ShadowReport) -> str:
    """Render the report as JSON.

    Args:
        report: The report.

    Returns:
        One object in the format ``flinkcompat-shadow/1``.
    """
    return json.dumps(report.to_dict(), indent=2, ensure_ascii=False) + "\n"


_STYLE = """body { font-family: sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: .5em 0 1.5em; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #ddd; padding: .3em .8em; text-align: left }
.equal { color: #176b2c } .differs, .differs-in-changed-columns, .refused { color: #a31515 }
.differs-as-expected, .could-not-tell { color: #8a5a00 }
"""


def render_html(report: ShadowReport) -> str:
    """Render the report as a page that contains all of its styles.

    Args:
        report: The report.

    Returns:
        The page.
    """
    parts = [f"<h1 class={_class(report.finding)}>{escape(report.lines()[0])}</h1>", *_paragraphs(_reasons(report))]
    for sink in report.sinks:
        parts += _html_sink(sink, SCRIPTS)
    if report.state is not None:
        parts.append(f"<h1 class={_class(report.state.finding)}>{escape(redact(report.state.headline))}</h1>")
        for sink in report.state.sinks:
            parts += _html_sink(sink, STATES)
    if notes := "\n".join(map(redact, _notes(report))):
        parts.append(f"<pre>{escape(notes)}</pre>")
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Shadow run of job {escape(report.job_id)}'
        f"</title><style>{_STYLE}</style>\n{chr(10).join(parts)}\n</html>\n"
    )


def _html_sink(sink: SinkDifference, by: ComparedSides) -> Iterator[str]:
    lead, *lines = _sink_lines(replace(sink, rows=None), by)
    yield f"<h2 class={_class(sink.finding)}>{escape(redact(lead))}</h2>"
    yield from _paragraphs(lines)
    if sink.rows is not None:
        yield _html_table(sink.rows.schema.names, sink.rows.to_pylist())


def _class(finding: ShadowFinding) -> str:
    return finding.value.replace(" ", "-")


def _paragraphs(lines: Iterable[str]) -> list[str]:
    return [f"<p>{escape(redact(line.strip()))}</p>" for line in lines]


def _html_table(names: list[str], rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(redact('NULL' if row[name] is None else str(row[name])))}" for name in names)
        for row in rows
    )
    return f"<table><tr>{head}{body}</table>"


RENDERERS: Mapping[str, Callable[[ShadowReport], str]] = {
    "text": render_text,
    "json": render_json,
    "html": render_html,
}
"""Function that renders a report, by format."""
