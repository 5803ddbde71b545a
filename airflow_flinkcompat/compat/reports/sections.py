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
    single_script.ADDED.code: "NEW DEPLOYMENT: there is nothing to compare it with",
    single_script.REMOVED.code: "DELETED: the script was deleted, but its job still runs",
}
_FIRST_START = {
    Outcome.UNKNOWN: "NEW DEPLOYMENT: it is unknown whether {engine} accepts {script}",
    Outcome.INCOMPATIBLE: "REFUSED: {engine} does not accept {script}",
}
WHICH_ENGINE = (
    "No engine was named, so both are judged and the worse verdict counts. Name the one that runs the job: in "
    'flinkcompat.toml (engine = "flink" or "vvr"), with --engine flink or --engine vvr, or in the environment variable '
    "FLINKCOMPAT_ENGINE."
)
IN_FULL = "--engine {} shows that report in full, with the next steps."
SAME = "The findings on {} are the same; --engine {} shows their basis."
_LONGEST = 600
"""Maximum characters of one clause; the place next to it has the rest."""
URL_VARIABLE = "FLINKCOMPAT_RULES_URL"
"""Environment variable with the address of the published ``docs/rules``."""
_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "rule_pages", _PACKAGE.parent / "docs" / "rules")
"""Folders of the pages in the wheel and in a checkout."""


@dataclass(frozen=True)
class Section:
    """An operator with its findings, or findings about a sink's pipeline or the script (no operator)."""

    heading: str
    outcome: Outcome
    operator: OperatorReport | None
    findings: tuple[Finding, ...]


def headline(report: Report) -> str:
    """The verdict in a line: its word in capitals, a colon, and its meaning."""
    if report.findings[0].rule == single_script.ADDED.code and report.outcome in _FIRST_START:
        engine = engine_label(report).removeprefix("open-source ")
        return _FIRST_START[report.outcome].format(engine=engine, script=format_inline(report.new_source))
    line = _ONE_SIDED.get(report.findings[0].rule) or HEADLINES[report.outcome]
    resumes = report.outcome in (Outcome.COMPATIBLE, Outcome.PARTIAL)
    return (
        f"{line}, but {_and(report.sinks_begin_empty)} begins empty" if report.sinks_begin_empty and resumes else line
    )


def notice(report: Report) -> str:
    """Notice next to the verdict that a reader needs first; "" if there is none."""
    if not report.sinks_begin_empty:
        return ""
    fits = "The state fits, but the" if report.outcome is Outcome.COMPATIBLE else "The"
    return (
        f"{fits} new location of {_and(report.sinks_begin_empty)} receives only keys that change from now "
        "on: rows of all other keys stay only at the old location. Copy them first, or start without state."
    )


def _and(names: Iterable[str]) -> str:
    return " and ".join(map(format_inline, names))


def sections(report: Report) -> tuple[Section, ...]:
    """Everything that decides, worst first, and causes before their effects.

    Findings of a sink with one operator are in that operator's section.
    """
    return tuple(sorted(_sections(report), key=lambda section: (-section.outcome.rank, not section.findings)))


def _sections(report: Report) -> Iterator[Section]:
    left = list(report.deciding)

    def take(sink: str | None, operator: str | None = None) -> tuple[Finding, ...]:
        found = [f for f in left if f.sink == sink and (operator is None or f.operator == operator)]
        left[:] = [f for f in left if f not in found]
        return tuple(found)

    of_sink = Counter(operator.sink for operator in report.operators)
    names = operator_names(report)
    for operator in report.operators:
        found = take(operator.sink, None if of_sink[operator.sink] == 1 else operator.path)
        fit = _UNCHANGED if operator.unchanged else _FIT[operator.outcome]
        yield Section(f"{names[operator.path]}: {fit}", operator.outcome, operator, found)
    for sink in dict.fromkeys(f.sink for f in left):
        found = take(sink)
        worst = Outcome.worst(f.outcome for f in found)
        where = ", above and below its operators" if of_sink[sink or ""] else ""
        about = "Script as a whole" if sink is None else f"{format_inline(sink) or 'query'}{where}"
        yield Section(f"{about}: {worst.value}", worst, None, found)


def operator_names(report: Report) -> Mapping[str, str]:
    """Name of each operator by its path: its sink, its kind, and its number among several."""
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
    Outcome.UNKNOWN: "it is unknown whether its state fits",
    Outcome.INCOMPATIBLE: "its state does not fit",
}


_UNCHANGED = "its state is unchanged; the doubt is about something else"


def _kind(operator: OperatorReport) -> str:
    """The operator's kind, with its fate if it is on one side only."""
    if operator.before is None or operator.after is None:
        return f"{operator.kind} ({'new' if operator.before is None else 'gone'})"
    return operator.kind


def rows(operator: OperatorReport) -> Iterator[tuple[str, str, str]]:
    """Label, text and fate of the window, each key and each metric. Other parts appear in findings."""
    before, after = (side.window if side else "" for side in (operator.before, operator.after))
    changed = [(before, "replaced" if after else "gone"), (after, "new")]
    fates = [(before, "same")] if before == after else changed
    yield from (("window", format_excerpt(text), fate) for text, fate in fates if text)
    yield from (("key", format_excerpt(key), fate.value) for key, fate in operator.keys)
    yield from (("metric", format_excerpt(metric), fate.value) for metric, fate in operator.metrics)
    yield from (("rows", format_excerpt(which), fate.value) for which, fate in operator.rows)


def fates_heading(operator: OperatorReport) -> str:
    """Heading for the start that :func:`rows` refers to; "" for the resumed one, or without fates."""
    told = operator.outcome is Outcome.INCOMPATIBLE and (operator.metrics or operator.rows)
    return "after a start without state" if told else ""


def outcome_label(finding: Finding) -> str:
    """The outcome of a finding, and that it is waived where it is."""
    return f"{finding.outcome.value}, waived" if finding.is_waived else finding.outcome.value


def overruled(report: Report) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Overruled findings, and the codes of those among them that are fine by themselves."""
    found = [finding for finding in report.findings if finding.overruled_by]
    fine = dict.fromkeys(finding.rule for finding in found if finding.outcome is Outcome.COMPATIBLE)
    return tuple(finding for finding in found if finding.outcome is not Outcome.COMPATIBLE), tuple(fine)


def format_inline(text: str) -> str:
    """Text as it may be shown: secrets masked while it is whole, on one line, never cut."""
    return " ".join(mask_secrets(text).split())


def format_excerpt(text: str) -> str:
    """A clause of a script as :func:`format_inline` shows it, cut between two words if it is very long."""
    return shortened(text, _LONGEST)


def engine_label(report: Report | str) -> str:
    """The engine, of a report with its version, as a reader knows it."""
    if isinstance(report, str):
        return ENGINE_FACTS[report].label
    facts = ENGINE_FACTS[report.engine]
    return f"{facts.label} {report.engine_version}" if facts.label_has_version else facts.label


def basis_label(finding: Finding) -> str:
    """Evidence of the finding, with its source."""
    says = finding.source if not _says_why(finding) else ""
    return f"{finding.basis.value}: {says}" if says else finding.basis.value


def why(finding: Finding) -> str:
    """Reason for an unknown outcome, "" for another one."""
    if finding.reason is None:
        return ""
    return finding.source if _says_why(finding) else finding.reason.value


def _says_why(finding: Finding) -> bool:
    doubted = finding.reason is Reason.NOT_COVERED and finding.basis is Basis.INFERRED
    return doubted and bool(finding.source) and not finding.evidence


def verdicts(reports: Reports) -> tuple[str, ...]:
    """The headline of each outcome with the engines that it holds for, worst first."""
    found = []
    for line, agreeing in groupby(reports.each, key=headline):
        word, _, meaning = line.partition(": ")
        found.append(f"{word} on {' and on '.join(map(engine_label, agreeing))}: {meaning}")
    return tuple(found)


def ground(report: Report) -> str:
    """Reader of the scripts, the planner's doubt, and the outcome by the rules alone if it differs."""
    words = report.ground[:1].upper() + report.ground[1:]
    if report.doubt:
        words += f", because {format_inline(report.doubt)}"
    if report.read_outcome is None:
        return words
    return f"{words}; read from the script alone, the change would be {report.read_outcome.value}"


def title(report: Report) -> str:
    """Heading of one engine's report."""
    return f"On {engine_label(report)}: {headline(report).partition(':')[0].lower()}"


def finds_the_same(one: Report, other: Report) -> bool:
    """True if two engines' reports have one outcome by the same findings, whatever their evidence."""

    def found(report: Report) -> tuple[object, ...]:
        return report.outcome, [(finding.rule, finding.outcome, finding.message) for finding in report.deciding]

    return found(one) == found(other)


def page_url(code: str) -> str | None:
    """The published page of a rule."""
    base = os.environ.get(URL_VARIABLE, "").strip()
    if "://" not in base:
        return None
    return base.replace("{code}", code) if "{code}" in base else f"{base.rstrip('/')}/{code}.md"


def page_address(code: str) -> str:
    """Address of a rule's page for a reader: its URL, else the command that shows it.

    A report is read on other machines than the one that wrote it, so it names no file.
    """
    return page_url(code) or f"flinkcompat rules {code}"


def page_file(code: str) -> Path:
    """The page of a rule in the installed package, or in the checkout."""
    places = [folder / f"{code}.md" for folder in _FOLDERS]
    return next((place for place in places if place.is_file()), places[0])


def page_text(code: str) -> str:
    """The page of a rule, to be shown in another document."""
    lines = page_file(code).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("<!--", "[All rules]"))).strip()
