"""Every rule: its example fires it with its outcome on both engines; codes, verdicts and documentation agree."""

from __future__ import annotations

import re

import pytest

from airflow_flinkcompat.compat import ENGINES, Basis, Outcome, Report, Side, check
from airflow_flinkcompat.compat.catalogue import explain, overview
from airflow_flinkcompat.compat.judge import UNCLAIMED
from airflow_flinkcompat.compat.rule import EXAMPLE_TABLES, Rule, Scope
from airflow_flinkcompat.compat.rules import ALL, BY_CODE

VERSIONS = {"engine-version-changed": ("2.3", "1.20")}
"""The one example that lies in the sides, not in the scripts."""

AS_CASE_DECIDES = {
    # (rule, engine): the example's own verdict, where the pair sharpens the rule's.
    ("setting-changed", "flink"): Outcome.INCOMPATIBLE,
    ("source-renamed", "flink"): Outcome.UNKNOWN,
    ("source-table-changed", "vvr"): Outcome.COMPATIBLE,
    ("source-table-changed", "flink"): Outcome.UNKNOWN,
    ("table-function", "flink"): Outcome.INCOMPATIBLE,
    ("window-filter", "flink"): Outcome.INCOMPATIBLE,
    ("window-field-aggregated", "flink"): Outcome.INCOMPATIBLE,
}

NOT_ON_FLINK = {"several-changes"}
"""Rules that say nothing on open-source Flink: each difference is judged by itself there."""


def script(text: str) -> str:
    """The example's side with its tables declared, unless it declares them itself."""
    return text if re.search(r"CREATE TABLE orders\b", text) else EXAMPLE_TABLES + text


def judged(rule: Rule, engine: str) -> Report:
    old_version, new_version = VERSIONS.get(rule.code, (None, None))
    example = rule.example
    return check(
        Side(script(example.old), example.settings_old, engine=engine, engine_version=old_version, source="old.sql"),
        Side(script(example.new), example.settings_new, engine=engine, engine_version=new_version, source="new.sql"),
    )


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_the_example_fires_its_rule_with_its_outcome(rule: Rule, engine: str) -> None:
    report = judged(rule, engine)
    hits = [finding for finding in report.findings if finding.rule == rule.code]
    if engine == "flink" and rule.code in NOT_ON_FLINK:
        assert not hits
        return
    assert hits, [finding.rule for finding in report.findings]
    expected = AS_CASE_DECIDES.get((rule.code, engine), rule.verdicts[engine].outcome)
    assert Outcome.worst(hit.outcome for hit in hits) is expected, [hit.message for hit in hits]
    for hit in hits:
        assert hit.title == rule.title
        assert hit.message


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_the_example_is_read_whole(rule: Rule) -> None:
    for text in (rule.example.old, rule.example.new):
        program = Side(script(text)).program
        assert bool(program.problems) == (rule.code == "statement-not-read" and text is rule.example.new)
    assert rule.code in {"undeclared-table", "engine-version-changed"} or rule.example.old != rule.example.new


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_the_example_against_itself_is_unchanged(rule: Rule) -> None:
    old = Side(script(rule.example.old))
    for engine in ENGINES:
        assert [finding.rule for finding in check(old.on(engine), old.on(engine)).findings] == ["unchanged"]


def test_no_example_holds_a_difference_nobody_covers() -> None:
    """But those whose point it is: an example shows its own rule and no noise."""
    noisy = {r.code for r in ALL for f in judged(r, "vvr").findings if f.rule == UNCLAIMED}
    assert noisy == set()


def test_codes_are_unique_and_kebab_case() -> None:
    codes = [rule.code for rule in ALL]
    assert len(set(codes)) == len(codes) == len(BY_CODE)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in [*codes, UNCLAIMED])
    assert UNCLAIMED not in codes


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_verdicts_are_complete(rule: Rule) -> None:
    assert set(rule.verdicts) == set(ENGINES)
    assert rule.verdicts["flink"].outcome is not Outcome.PARTIAL
    for verdict in rule.verdicts.values():
        assert (verdict.reason is not None) == (verdict.outcome is Outcome.UNKNOWN)
        assert verdict.source or verdict.basis is Basis.INFERRED
        assert verdict.consequence is None or verdict.outcome is Outcome.INCOMPATIBLE
    assert rule.title
    assert rule.why.endswith(".")
    assert isinstance(rule.scope, Scope)


def test_the_catalogue_names_every_rule_and_explains_each() -> None:
    table = overview()
    assert [line.split()[0] for line in table.splitlines()[1 : len(ALL) + 1]] == [rule.code for rule in ALL]
    for rule in ALL:
        text = explain(rule)
        assert text.startswith(f"{rule.code}: {rule.title}\n")
        for part in (rule.why, rule.example.old.splitlines()[0], rule.example.new.splitlines()[-1]):
            assert part in text
        for verdict in rule.verdicts.values():
            assert verdict.outcome.value in text
