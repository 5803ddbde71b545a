"""A verdict as values of the LSP protocol: diagnostics, hovers, positions and code lenses."""

from __future__ import annotations

import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lsprotocol import types
from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from airflow_flinkcompat.compat import Finding, Reports, Side, render_markdown, render_markdown_of_engines
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, steps
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.reports.markdown import code_span, commands_of, plain_words
from airflow_flinkcompat.compat.reports.sections import (
    engine_label,
    format_excerpt,
    outcome_label,
    page_file,
    page_text,
    page_url,
)
from airflow_flinkcompat.deploy.ledger.ledger import masked_job
from airflow_flinkcompat.fleet.baselines import Baseline
from airflow_flinkcompat.fleet.values import (
    Annotation,
    DeploymentReview,
    Severity,
    Status,
    annotations_of,
    result_label,
)
from airflow_flinkcompat.lsp.projects import DocumentVerdict
from airflow_flinkcompat.secrets import mask_secrets

REFRESH = "flinkcompat.refresh"
"""Name of the command that reads the deployed versions again."""
_SOURCE = "flinkcompat"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Hint,
}
_JUDGED = (Status.CHANGED, Status.ADDED)
_TOP = types.Range(types.Position(0, 0), types.Position(0, 0))


class DeployedTexts:
    """Temporary files with deployed versions, which an editor can open next to the script."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="flinkcompat-lsp-")
        self._written: dict[str, tuple[str, str]] = {}

    def of(self, side: Side) -> tuple[str, str]:
        """URI and text of the deployed script, with masked secrets."""
        digest = side.sha256
        if digest not in self._written:
            suffix = Path(side.source).suffix or ".sql"
            place = Path(self._folder.name, digest[:12], f"deployed{suffix}")
            place.parent.mkdir(exist_ok=True)
            text = masked_job(side).script
            place.write_text(text, encoding="utf-8", newline="")
            self._written[digest] = place.as_uri(), text
        return self._written[digest]

    def close(self) -> None:
        """Delete the files."""
        self._folder.cleanup()


@dataclass(frozen=True)
class ShownDocument:
    """A verdict in the form that the editor shows.

    Attributes:
        diagnostics: Diagnostics of the protocol, each with the annotation it shows.
    """

    verdict: DocumentVerdict
    diagnostics: tuple[tuple[types.Diagnostic, Annotation], ...] = ()


def shown_document(
    verdict: DocumentVerdict, text: str, codec: PositionCodec, deployed: DeployedTexts, related: bool
) -> ShownDocument:
    """A verdict with its diagnostics. Deployments of the same script share equal diagnostics.

    ``deployed`` writes files with the deployed versions. ``related`` is True if the editor shows related places.
    """
    positions = Positions(text, codec)
    several = len(verdict.fleet.deployments) > 1
    found: dict[tuple[object, ...], tuple[types.Diagnostic, Annotation]] = {}
    scripts = {review.name: review.script for review in verdict.fleet.deployments}
    for each in annotations_of(verdict.fleet):
        if each.path != scripts[each.deployment]:  # a place in the catalog, which is another document
            there = f"{each.path}:{each.line}:{each.column}: {each.message}"
            each = replace(each, message=there, line=1, column=1, end_line=1, end_column=None)
        key = (each.severity, each.rule, each.message, each.line, each.column, each.end_line, each.end_column)
        message = f"{each.deployment}: {each.message}" if several else each.message
        baseline = verdict.deployed.get(each.deployment)
        diagnostic = types.Diagnostic(
            positions.range(each.line, each.column, each.end_line, each.end_column),
            message,
            _SEVERITIES[each.severity],
            each.rule,
            _description(each.rule),
            _SOURCE,
            related_information=_former(each.finding, baseline, deployed, codec) if related else None,
        )
        found.setdefault(key, (diagnostic, each))
    return ShownDocument(verdict, tuple(found.values()))


def _description(rule: str) -> types.CodeDescription | None:
    """URL of a rule's page on the web, or else in the installed package."""
    if rule not in BY_CODE:
        return None
    return types.CodeDescription(page_url(rule) or page_file(rule).resolve().as_uri())


def _former(
    finding: Finding | None, baseline: Baseline | None, deployed: DeployedTexts, codec: PositionCodec
) -> list[types.DiagnosticRelatedInformation] | None:
    """The place of a finding in the deployed version."""
    span = None if finding is None else finding.before_span
    side = None if baseline is None else baseline.side
    if finding is None or span is None or baseline is None or side is None or span.source != side.source:
        return None
    uri, text = deployed.of(side)
    place = Positions(text, codec).range(span.line, span.column, span.end_line, span.end_column)
    said = format_excerpt(finding.before) or "here"
    message = f"deployed ({mask_secrets(baseline.words)}): {said}"
    return [types.DiagnosticRelatedInformation(types.Location(uri, place), message)]


def lenses(shown: ShownDocument) -> list[types.CodeLens]:
    """Code lenses with the verdict of each deployment; a click reads the deployed version again."""
    reviews = shown.verdict.fleet.deployments
    return [types.CodeLens(_TOP, types.Command(_line(each, shown.verdict), REFRESH)) for each in reviews]


def _line(review: DeploymentReview, verdict: DocumentVerdict) -> str:
    word = result_label(review)
    match review.status:
        case Status.LINTED:
            why = "nothing to compare it with" if verdict.warning else "no deployment of the project file uses it"
            return f"{review.name}: {word}, read by itself: {why}"
        case Status.UNREADABLE:
            return f"{review.name}: {word}: {review.sentence}"
        case Status.ADDED:
            return f"{review.name}: {word}: nothing is deployed according to {mask_secrets(review.baseline)}"
    outcome, *waived = word.split(" ", 1)
    shown = word if review.status is Status.UNCHANGED else " ".join((outcome.upper(), *waived))
    engines = "" if len(review.reports) == 1 else ", the worse verdict of both engines"
    return f"{review.name}: {shown} against {mask_secrets(review.baseline)}{engines}"


def hover(shown: ShownDocument, position: types.Position) -> types.Hover | None:
    """Hover text at a position; None without a finding at the position.

    The text shows the meaning, the next step and the rule's page of each finding. On the first line, it also shows the
    reports.
    """
    here = [(diagnostic, each) for diagnostic, each in shown.diagnostics if _covers(diagnostic.range, position)]
    reviews = {each.name: each for each in shown.verdict.fleet.deployments}
    blocks = ["\n".join(_explained(each, reviews[each.deployment], shown.verdict.deployed)) for _, each in here]
    pages = dict.fromkeys(each.rule for _, each in here if each.rule in BY_CODE)
    blocks += map(page_text, pages)
    if position.line == 0:
        blocks += [_report(each) for each in reviews.values() if each.status in _JUDGED]
    if not blocks:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(blocks))
    return types.Hover(content, here[0][0].range if here else None)


def _covers(place: types.Range, position: types.Position) -> bool:
    start, end, at = ((each.line, each.character) for each in (place.start, place.end, position))
    return start <= at <= end


def _explained(each: Annotation, review: DeploymentReview, deployed: Mapping[str, Baseline]) -> Iterator[str]:
    finding = each.finding
    outcome = "" if finding is None else f", {outcome_label(finding)}"
    yield f"**{plain_words(each.title)}** (`{each.rule}`{outcome})"
    yield f"\n{plain_words(each.message)}"
    if finding is None or review.status not in _JUDGED:
        return
    if finding.before or finding.after:
        words = deployed[review.name].words if review.name in deployed else review.baseline
        yield f"\n* deployed, {plain_words(words)}: {code_span(finding.before) or 'nothing'}"
        yield f"* here: {code_span(finding.after) or 'nothing'}"
    if finding.consequence is not None:
        yield f"\n**If the job were resumed:** {plain_words(CONSEQUENCES[finding.consequence])}."
    report = next(report for report in review.reports if finding in report.deciding)
    step = steps(report, review.known)[0]
    label = f" on {engine_label(report)}" if len(review.reports) > 1 else ""
    yield f"\n**Next{plain_words(label)}:** {plain_words(step.text)}\n"
    yield from commands_of(step)


def _report(review: DeploymentReview) -> str:
    if len(review.reports) > 1:
        return render_markdown_of_engines(Reports(review.reports), review.known)
    return render_markdown(review.reports[0], review.known)


_LINE_END = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARK = "\ufeff"


class Positions:
    """Conversion from lines and columns of a script, counted from 1, to positions of the protocol.

    In a script, only a line feed ends a line. Columns count characters without the byte order mark. In the protocol, a
    carriage return also ends a line. Columns count code units of the agreed encoding (``codec``).
    """

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._codec = codec
        self._text = text
        self._mark = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
        self._script_starts = [self._mark, *(match.end() for match in re.finditer("\n", text))]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        ends = [*self._starts[1:], len(text)]
        self._lines = [text[start:end] for start, end in zip(self._starts, ends, strict=True)]

    def at(self, offset: int) -> Position:
        """The position of a character offset in the document."""
        line = bisect_right(self._starts, offset) - 1
        inner = Position(line, offset - self._starts[line])
        return self._codec.position_to_client_units(self._lines, inner)

    def range(self, line: int, column: int, end_line: int, end_column: int | None) -> Range:
        """The range between two places of the script, by lines and columns from 1; the end is inclusive.

        If ``end_column`` is None, the range extends to the end of the line. A place outside of the document is moved to
        the nearest place inside.
        """
        start = self._offset(line, column)
        _, end_of_line = self._extent(end_line)
        end = end_of_line if end_column is None else self._offset(end_line, end_column + 1)
        return Range(self.at(start), self.at(max(start, end)))

    def _offset(self, line: int, column: int) -> int:
        start, end = self._extent(line)
        return min(start + max(column, 1) - 1, end)

    def _extent(self, line: int) -> tuple[int, int]:
        """The offset of a line's first character, and the offset after its last character."""
        index = min(max(line, 1), len(self._script_starts)) - 1
        start = self._script_starts[index]
        last = index + 1 == len(self._script_starts)
        end = len(self._text) if last else self._script_starts[index + 1] - 1
        return start, max(start, end - 1) if not last and self._text[start:end].endswith("\r") else end
