"""A report in sections: each operator with its findings, worst first. Secrets are masked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from airflow_flinkcompat.compat import single_script
from airflow_flinkcompat.compat.report import Finding, OperatorReport, Report, Reports
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.redact import shortened

HEADLINES = {
    Outcome.COMPATIBLE: "COMPATIBLE: the job can resume from its savepoint",
    Outcome.PARTIAL: "PARTIAL: the job can resume, but some metrics start from zero",
    Outcome.UNKNOWN: "UNKNOWN: the savepoint may no longer fit",
    Outcome.INCOMPATIBLE: "INCOMPATIBLE: the savepoint must not be used",
}
_ONE_SIDED = {
    single_script.ADDED.code: "NEW DEPLOYMENT: there is no deployed script to compare with",
    single_script.REMOVED.code: "DELETED: the script was deleted, but its job still runs",
}
_FIRST_START = {
    Outcome.UNKNOWN: "NEW DEPLOYMENT: {engine} may not accept {script}",
    Outcome.INCOMPATIBLE: "REFUSED: {engine} does not accept {script}",
}
WHICH_ENGINE = (
    "No engine was selected, so both are judged and the worse verdict applies. Select the engine that runs the job: in "
    'flinkcompat.toml (engine = "flink" or "vvr"), with --engine flink or --engine vvr, or in the environment variable '
    "FLINKCOMPAT_ENGINE."
)
IN_FULL = "For the full report with next steps, pass --engine {}."
SAME = "The findings on {} are the same. For their basis, pass --engine {}."
_LONGEST = 600
"""Maximum number of characters of a quoted clause. The report also shows the place of the full text."""
URL_VARIABLE = "FLINKCOMPAT_RULES_URL"
"""Environment variable with the base URL of the published ``docs/rules``."""
_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "rule_pages", _PACKAGE.parent / "docs" / "rules")
"""Folders with the rule pages in the wheel and in a checkout."""


@dataclass(frozen=True)
class Section:
    """An operator with its findings; or, without operator, findings about a sink or the script."""

    heading: str
    outcome: Outcome
    operator: OperatorReport | None
    findings: tuple[Finding, ...]


def headline(report: Report) -> str:
    """The verdict in one line: the outcome in capitals, a colon, and the meaning."""
    if report.findings[0].rule == single_script.ADDED.code and report.outcome in _FIRST_START:
        engine = engine_label(report).removeprefix("open-source ")
        return _FIRST_START[report.outcome].format(engine=engine, script=format_inline(report.new_source))
    line = _ONE_SIDED.get(report.findings[0].rule) or HEADLINES[report.outcome]
    resumes = report.outcome in (Outcome.COMPATIBLE, Outcome.PARTIAL)
    return (
        f"{line}, but {_and(report.sinks_begin_empty)} begins empty" if report.sinks_begin_empty and resumes else line
    )


def notice(report: Report) -> str:
    """Notice about sinks that begin empty, to show next to the verdict; "" if there are none."""
    if not report.sinks_begin_empty:
        return ""
    fits = "The state fits, but the" if report.outcome is Outcome.COMPATIBLE else "The"
    return (
        f"{fits} new location of {_and(report.sinks_begin_empty)} receives only keys that change from now on. Rows of "
        "all other keys exist only at the old location. Copy these rows first, or start without state."
    )


def _and(names: Iterable[str]) -> str:
    return " and ".join(map(format_inline, names))


def sections(report: Report) -> tuple[Section, ...]:
    """The operators and decisive findings in sections, worst first.

    If a sink has one operator, all findings of the sink are in the section of that operator.
    """
    return tuple(sorted(_sections(report), key=lambda section: (-section.outcome.rank, not section.findings)))


def _sections(report: Report) -> Iterator[Section]:
    remaining = list(report.deciding)

    def take(sink: str | None, operator: str | None = None) -> tuple[Finding, ...]:
        found = [f for f in remaining if f.sink == sink and (operator is None or f.operator == operator)]
        remaining[:] = [f for f in remaining if f not in found]
        return tuple(found)

    of_sink = Counter(operator.sink for operator in report.operators)
    names = operator_names(report)
    for operator in report.operators:
        found = take(operator.sink, None if of_sink[operator.sink] == 1 else operator.path)
        fit = _UNCHANGED if operator.unchanged else _FIT[operator.outcome]
        yield Section(f"{names[operator.path]}: {fit}", operator.outcome, operator, found)
    for sink in dict.fromkeys(f.sink for f in remaining):
        found = take(sink)
        worst = Outcome.worst(f.outcome for f in found)
        where = ", outside its operators" if of_sink[sink or ""] else ""
        about = "Script as a whole" if sink is None else f"{format_inline(sink) or 'query'}{where}"
        yield Section(f"{about}: {worst.value}", worst, None, found)


def operator_names(report: Report) -> Mapping[str, str]:
    """Display names by operator path: the sink, the kind, and a number if the sink has several operators."""
    of_sink = Counter(operator.sink for operator in report.operators)
    seen, names = Counter[str](), {}
    for operator in report.operators:
        seen[operator.sink] += 1
        several = of_sink[operator.sink] > 1
        which = f", {seen[operator.sink]} of {of_sink[operator.sink]} from the sink" if several else ""
        names[operator.path] = f"{format_inline(operator.sink or 'query')}, {_kind(operator)}{which}"
    return names


_FIT = {
    Outcome.COMPATIBLE: "its state fits",
    Outcome.PARTIAL: "its state fits in part",
    Outcome.UNKNOWN: "its state may not fit",
    Outcome.INCOMPATIBLE: "its state does not fit",
}


_UNCHANGED = "its state is unchanged; only other parts of the change are in doubt"


def _kind(operator: OperatorReport) -> str:
    """The kind of an operator, marked as new or removed if the operator is on one side only."""
    if operator.before is None or operator.after is None:
        return f"{operator.kind} ({'new' if operator.before is None else 'removed'})"
    return operator.kind


def rows(operator: OperatorReport) -> Iterator[tuple[str, str, str]]:
    """Label, text and fate of the window, of each key, of each metric, and of stored rows."""
    before, after = (side.window if side else "" for side in (operator.before, operator.after))
    changed = [(before, "replaced" if after else "removed"), (after, "new")]
    fates = [(before, "same")] if before == after else changed
    yield from (("window", format_excerpt(text), fate) for text, fate in fates if text)
    yield from (("key", format_excerpt(key), fate.value) for key, fate in operator.keys)
    yield from (("metric", format_excerpt(metric), fate.value) for metric, fate in operator.metrics)
    yield from (("rows", format_excerpt(which), fate.value) for which, fate in operator.rows)


def fates_heading(operator: OperatorReport) -> str:
    """Heading for :func:`rows` if the fates describe a start without state; else ""."""
    has_fates = operator.outcome is Outcome.INCOMPATIBLE and (operator.metrics or operator.rows)
    return "after a start without state" if has_fates else ""


def outcome_label(finding: Finding) -> str:
    """The outcome of a finding, marked if the finding is waived."""
    return f"{finding.outcome.value}, waived" if finding.is_waived else finding.outcome.value


def overruled(report: Report) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The overruled findings that are not compatible, and the codes of those that are compatible."""
    found = [finding for finding in report.findings if finding.overruled_by]
    fine = dict.fromkeys(finding.rule for finding in found if finding.outcome is Outcome.COMPATIBLE)
    return tuple(finding for finding in found if finding.outcome is not Outcome.COMPATIBLE), tuple(fine)


def format_inline(text: str) -> str:
    """Text on one line with secrets masked, never shortened."""
    return " ".join(mask_secrets(text).split())


def format_excerpt(text: str) -> str:
    """A clause of a script on one line with secrets masked, shortened if very long."""
    return shortened(text, _LONGEST)


def engine_label(report: Report | str) -> str:
    """The display name of an engine; for a report's engine, the name may include the version."""
    if isinstance(report, str):
        return ENGINE_FACTS[report].label
    facts = ENGINE_FACTS[report.engine]
    return f"{facts.label} {report.engine_version}" if facts.label_has_version else facts.label


def basis_label(finding: Finding) -> str:
    """The basis of a finding with its source."""
    source = finding.source if not _source_is_reason(finding) else ""
    return f"{finding.basis.value}: {source}" if source else finding.basis.value


def why(finding: Finding) -> str:
    """The reason for an unknown outcome; "" for other outcomes."""
    if finding.reason is None:
        return ""
    return finding.source if _source_is_reason(finding) else finding.reason.value


def _source_is_reason(finding: Finding) -> bool:
    doubted = finding.reason is Reason.NOT_COVERED and finding.basis is Basis.INFERRED
    return doubted and bool(finding.source) and not finding.evidence


def verdicts(reports: Reports) -> tuple[str, ...]:
    """The headline of each outcome with the engines that have the outcome, worst first."""
    found = []
    for line, agreeing in groupby(reports.each, key=headline):
        word, _, meaning = line.partition(": ")
        found.append(f"{word} on {' and on '.join(map(engine_label, agreeing))}: {meaning}")
    return tuple(found)


def ground(report: Report) -> str:
    """Sentence on the basis of a report, the planner's doubt, and the rules' outcome if it differs."""
    words = report.ground[:1].upper() + report.ground[1:]
    if report.doubt:
        words += f", because {format_inline(report.doubt)}"
    if report.read_outcome is None:
        return words
    return f"{words}; by the rules alone, the change would be {report.read_outcome.value}"


def title(report: Report) -> str:
    """The heading of one engine's report."""
    return f"On {engine_label(report)}: {headline(report).partition(':')[0].lower()}"


def finds_the_same(one: Report, other: Report) -> bool:
    """True if two reports have the same outcome and decisive findings, despite different evidence."""

    def found(report: Report) -> tuple[object, ...]:
        return report.outcome, [(finding.rule, finding.outcome, finding.message) for finding in report.deciding]

    return found(one) == found(other)


def page_url(code: str) -> str | None:
    """The URL of a rule's published page; None if no base URL is set."""
    base = os.environ.get(URL_VARIABLE, "").strip()
    if "://" not in base:
        return None
    return base.replace("{code}", code) if "{code}" in base else f"{base.rstrip('/')}/{code}.md"


def page_address(code: str) -> str:
    """The URL of a rule's page, or else the command that shows the page.

    A report may be read on a different machine, so the address is never a file.
    """
    return page_url(code) or f"flinkcompat rules {code}"


def page_file(code: str) -> Path:
    """The file of a rule's page in the installed package or in the checkout."""
    places = [folder / f"{code}.md" for folder in _FOLDERS]
    return next((place for place in places if place.is_file()), places[0])


def page_text(code: str) -> str:
    """The text of a rule's page without its comment and its link to the list of rules."""
    lines = page_file(code).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("<!--", "[All rules]"))).strip()
