"""The rule catalogue as a table, as an explanation of one rule, and as data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from airflow_flinkcompat.compat import planned_upgrade, restore_verdict, single_script
from airflow_flinkcompat.compat.reports.sections import page_file, page_url
from airflow_flinkcompat.compat.rule import EXAMPLE_TABLES, NOT_COVERED, Example, Rule, RuleScope
from airflow_flinkcompat.compat.rules import ALL
from airflow_flinkcompat.compat.verdict import Verdict
from airflow_flinkcompat.model import ENGINES, Outcome

ENTRIES: tuple[Rule, ...] = (
    *ALL, NOT_COVERED, *planned_upgrade.CONDITIONS.values(), *single_script.RULES, *restore_verdict.RULES,
)  # fmt: skip
"""Every rule that a finding may have, in the order of reports."""

BY_CODE = {rule.code: rule for rule in ENTRIES}

SCOPES = {
    RuleScope.SCRIPT: "the whole script",
    RuleScope.PIPELINE: "the pipeline of one sink",
    RuleScope.OPERATOR: "one stateful operator on both sides",
}


def select(engine: str | None = None, outcome: Outcome | None = None) -> tuple[Rule, ...]:
    """Rules with this default outcome on an engine; None selects any engine or outcome."""
    engines = [engine] if engine else ENGINES
    return tuple(
        rule
        for rule in ENTRIES
        if outcome is None
        or any(name not in rule.not_applicable and rule.verdicts[name].outcome is outcome for name in engines)
    )


def similar_codes(code: str) -> tuple[str, ...]:
    """At most five rule codes that are similar to ``code``, most similar first."""
    alike = difflib.get_close_matches(code, BY_CODE, n=5)
    words = tuple(word for word in re.split(r"\W+", code.lower()) if len(word) > 2)
    sharing = [name for name in BY_CODE if words and any(part.startswith(words) for part in name.split("-"))]
    return tuple(dict.fromkeys((*alike, *sharing)))[:5]


def overview(rules: Iterable[Rule] = ENTRIES) -> str:
    """The rules as a table: code, outcome on both engines, title."""
    rows = [("code", *ENGINES, "title")]
    rows += [(rule.code, *(rule.headline(name) for name in ENGINES), rule.title) for rule in rules]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    return "\n".join(
        [*lines, "", "A specific change may have a different outcome; `flinkcompat rules CODE` explains why.", ""]
    )


def explain(rule: Rule) -> str:
    """Explanation of one rule: scope, verdicts with their basis, rationale, and example."""
    lines = [f"{rule.code}: {rule.title}", "", f"scope  {SCOPES[rule.scope]}"]
    lines += [
        f"{engine:<6} {outcome_text(rule, engine)} ({basis_text(verdict)})" for engine, verdict in rule.verdicts.items()
    ]
    lines += ["", rule.rationale]
    for heading, text in example_parts(rule.example):
        lines += ["", heading, *(f"    {line}" for line in text.strip().splitlines())]
    return "\n".join([*lines, "", f"page   {_page(rule.code)}"]) + "\n"


def _page(code: str) -> str:
    """The URL of a rule's page, or else its file on this machine."""
    return page_url(code) or str(page_file(code))


def as_data(rule: Rule) -> dict[str, Any]:
    """One rule as JSON values."""
    return {
        "code": rule.code,
        "title": rule.title,
        "scope": rule.scope.value,
        "engines": {
            engine: {
                "outcome": verdict.outcome.value,
                "headline": rule.headline(engine),
                "basis": verdict.basis.value,
                "source": verdict.grounds,
                "evidence": list(verdict.evidence),
                "reason": verdict.reason and verdict.reason.name.lower(),
                "consequence": verdict.consequence and verdict.consequence.value,
            }
            for engine, verdict in rule.verdicts.items()
        },
        "why": rule.rationale,
        "example": {heading.lower(): text for heading, text in example_parts(rule.example)},
        "page": _page(rule.code),
    }


def example_parts(example: Example) -> Iterator[tuple[str, str]]:
    """The heading and the text of each part of an example."""
    for heading, text, settings, version in (
        ("Before", example.old, example.settings_old, example.versions[0]),
        ("After", example.new, example.settings_new, example.versions[1]),
    ):
        yield heading, text or "-- no script"
        if settings:
            yield f"Settings {heading.lower()}", "\n".join(f"{key} = {value}" for key, value in settings.items())
        if version:
            yield f"Engine version {heading.lower()}", version
    if "orders" in example.old + example.new and "CREATE TABLE orders" not in example.old:
        yield "Tables", EXAMPLE_TABLES


def outcome_text(rule: Rule, engine: str) -> str:
    """The default outcome, the result of a restore, and the reason for an unknown outcome."""
    headline, verdict = rule.headline(engine), rule.verdicts[engine]
    if engine in rule.not_applicable:
        return headline
    parts = (verdict.outcome, verdict.consequence, verdict.reason)
    text = " · ".join(part.value for part in parts if part is not None)
    return f"{headline}, {text} at best" if engine in rule.case_dependent else text


def basis_text(verdict: Verdict) -> str:
    """The basis of a verdict with its source."""
    return f"{verdict.basis.value}: {verdict.grounds}" if verdict.grounds else verdict.basis.value
