"""The rule catalogue for people: a table of all rules, and one rule explained."""

from __future__ import annotations

from airflow_flinkcompat.compat.rule import EXAMPLE_TABLES, Rule, Verdict
from airflow_flinkcompat.compat.rules import ALL


def overview() -> str:
    """All rules as a table: code, outcome on both engines, title."""
    rows = [("code", "vvr", "flink", "title")]
    rows += [
        (rule.code, rule.verdicts["vvr"].outcome.value, rule.verdicts["flink"].outcome.value, rule.title)
        for rule in ALL
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    return "\n".join(
        [*lines, "", "An outcome may be sharpened by the change at hand; `flinkcompat rules CODE` says why.", ""]
    )


def explain(rule: Rule) -> str:
    """One rule: what it looks at, its verdicts and what they rest on, why, and an example."""
    lines = [f"{rule.code}: {rule.title}", "", f"scope  {rule.scope.value}"]
    lines += [f"{engine:<6} {_verdict(verdict)}" for engine, verdict in rule.verdicts.items()]
    lines += ["", rule.why, "", "Before", *_indented(rule.example.old), "", "After", *_indented(rule.example.new)]
    if "orders" in rule.example.old + rule.example.new:
        lines += ["", "With", *_indented(EXAMPLE_TABLES)]
    return "\n".join(lines) + "\n"


def _verdict(verdict: Verdict) -> str:
    parts = [verdict.outcome.value]
    if verdict.consequence is not None:
        parts.append(verdict.consequence.value)
    if verdict.reason is not None:
        parts.append(verdict.reason.value)
    source = f"{verdict.basis.value}: {verdict.source}" if verdict.source else verdict.basis.value
    return f"{' · '.join(parts)} ({source})"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.strip().splitlines()]
