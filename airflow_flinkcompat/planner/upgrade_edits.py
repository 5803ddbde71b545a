"""Edits that make a script run on a newer line of Flink.

Former names of settings that the new line does not read are replaced first, because Flink ignores unknown settings.
Then the planner of the new line finds each place where an edit is needed: it refuses the script until the last edit is
applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.engines.flink.upgrade import ignored_settings, replaced_settings
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import ON_CONFLICT
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.from_planner import PlannerRefusal
from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.planner import questions
from airflow_flinkcompat.planner.installation import Installation
from airflow_flinkcompat.sql.base_parser import reserved_words
from airflow_flinkcompat.sql.script import Places

_MOST = 200
"""Greatest number of edits of one script."""
_ENCOUNTERED = re.compile(r'Encountered "(\w+)"')
_CONFLICT = re.compile(r"sink table '([^']+)'.*ON CONFLICT", re.DOTALL)
_BRACKETS = re.compile(r"(?:(?:\s|--[^\n]*|/\*.*?\*/)*\))*", re.DOTALL)
"""Closing brackets after the last name of a query, which are not in its tree."""
_CLAUSE = f"{ON_CONFLICT} DO DEDUPLICATE"


@dataclass(frozen=True)
class Edit:
    """A text that replaces a part of a script.

    Attributes:
        offset: The number of characters before the edit in the original script.
        place: The place of the edit in the original script.
        old: The replaced text; "" for an insertion.
        new: The new text.
        reason: The change of Flink that requires the edit.
    """

    offset: int
    place: Span
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class EditedJob:
    """A job whose script has the edits that a new line of Flink needs.

    Attributes:
        job: The job with the edited script.
        edits: The applied edits, in the order of the script.
        ignored: Sentences about settings that the new line ignores.
        refusal: The refusal of the new line after all edits; None if the new line plans the script.
    """

    job: JobSpec
    edits: tuple[Edit, ...] = ()
    ignored: tuple[str, ...] = ()
    refusal: PlannerRefusal | None = None


@dataclass(frozen=True)
class _Lines:
    old: str
    new: str


def edit_for(job: JobSpec, old_line: str, installation: Installation) -> EditedJob:
    """Edit a script until a new line of Flink plans it, or refuses it for a reason that no edit removes.

    Args:
        job: The job on the new line.
        old_line: The line of Flink that runs the job, such as ``1.20``.
        installation: The planner of the new line.

    Returns:
        The edited job; the script is unchanged if no edit is needed.

    Raises:
        PlannerFailure: The planner does not answer.
        ScriptError: The script contains no statement.
    """
    lines, side = _Lines(old_line, job.version), Side.of(job)
    edits, ignored = _renamed_settings(side, lines), ignored_settings(side, lines.old, lines.new)
    while True:
        edited = replace(job, script=_applied(job.script, edits))
        side = Side.of(edited) if edits else side
        refusal = questions.plan(side, installation).refusal
        found = None if refusal is None else _edit_after(refusal, side, lines)
        edit = None if found is None else _in_original(found, job, edits)
        if edit is None or len(edits) == _MOST or any((edit.offset, edit.old) == (e.offset, e.old) for e in edits):
            return EditedJob(edited, tuple(sorted(edits, key=lambda each: each.offset)), ignored, refusal)
        edits.append(edit)


def _applied(script: str, edits: Sequence[Edit]) -> str:
    for edit in sorted(edits, key=lambda each: each.offset, reverse=True):
        script = script[: edit.offset] + edit.new + script[edit.offset + len(edit.old) :]
    return script


def _in_original(edit: Edit, job: JobSpec, edits: Sequence[Edit]) -> Edit:
    """Convert an edit of the edited script to an edit of the original script."""
    offset = edit.offset
    for before in sorted(edits, key=lambda each: each.offset):
        if before.offset < offset:
            offset -= len(before.new) - len(before.old)
    return _edit(job, offset, edit.old, edit.new, edit.reason)


def _edit(job: JobSpec, offset: int, old: str, new: str, reason: str) -> Edit:
    place = Places(job.script, job.source).span(offset, offset + len(old))
    return Edit(offset, place, old, new, reason)


def _renamed_settings(side: Side, lines: _Lines) -> list[Edit]:
    """Edits of settings whose names in the script the new line does not read."""
    places = Places(side.script, side.source)
    return [
        _edit(
            side, side.script.index(key, places.offset(statement.span.line, statement.span.column)), key, name,
            f"Flink {lines.new} does not read the former name {key} of this setting",
        )
        for statement, key, name in replaced_settings(side, lines.old, lines.new)
        if name
    ]  # fmt: skip


def _edit_after(refusal: PlannerRefusal, side: Side, lines: _Lines) -> Edit | None:
    """The edit that removes the reason of a refusal; None without such an edit."""
    if refusal.place is None:
        return None
    return next(filter(None, (edit(refusal.message, refusal.place, side, lines) for edit in _EDITS)), None)


def _quoted_name(message: str, place: Span, side: Side, lines: _Lines) -> Edit | None:
    found = _ENCOUNTERED.match(message)
    if found is None or found[1].upper() not in reserved_words(lines.new) - reserved_words(lines.old):
        return None
    reason = f"{found[1].upper()} is a reserved word in Flink {lines.new}, but not in Flink {lines.old}"
    offset = Places(side.script, side.source).offset(place.line, place.column)
    return _edit(side, offset, found[1], f"`{found[1]}`", reason)


def _resolved_conflict(message: str, place: Span, side: Side, lines: _Lines) -> Edit | None:
    """The clause with which Flink keeps the latest row of a key, as the old line does without a clause."""
    found = _CONFLICT.search(message)
    if found is None:
        return None
    sink, text = last_name(found[1]), side.script
    for pipeline in side.program.pipelines:
        span = pipeline.span
        if span is None or last_name(pipeline.sink.name) != sink or not _contains(place, span):
            continue
        if any(name == ON_CONFLICT for name, _ in pipeline.sink.hints):
            continue
        end = Places(text, side.source).offset(span.end_line, span.end_column) + 1
        brackets = _BRACKETS.match(text, end)
        assert brackets is not None
        reason = (
            f"PRIMARY KEY of sink {sink} is not the upsert key of the query, so Flink {lines.new} requires ON "
            f"CONFLICT; DO DEDUPLICATE keeps the latest row of a key, as Flink {lines.old} does"
        )
        return _edit(side, brackets.end(), "", f"\n{_CLAUSE}", reason)
    return None


def _contains(outer: Span, inner: Span) -> bool:
    begin, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return begin <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end


_EDITS: Sequence[Callable[[str, Span, Side, _Lines], Edit | None]] = (_quoted_name, _resolved_conflict)
