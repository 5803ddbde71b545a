"""Every rule: its example fires it with its outcome on both engines; codes, verdicts and documentation agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from airflow_flinkcompat.cli.rules import GENERATED, example_sides, judged, pages, write_pages
from airflow_flinkcompat.compat import ENGINES, Basis, Outcome, Reason, check
from airflow_flinkcompat.compat.reports.catalogue import (
    BY_CODE,
    ENTRIES,
    as_data,
    explain,
    overview,
    select,
    similar_codes,
)
from airflow_flinkcompat.compat.rule import NOT_COVERED, Rule, RuleScope
from airflow_flinkcompat.compat.rules import ALL
from airflow_flinkcompat.exec_graph.prediction import ConditionKind
from tests.support.nightly import mostly_slow

PLANNED = frozenset(ConditionKind)
"""Rules whose findings need the planners of two versions."""


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_the_example_fires_its_rule_with_its_outcome(rule: Rule, engine: str) -> None:
    report = judged(rule.code, engine)
    hits = [finding for finding in report.findings if finding.rule == rule.code]
    if engine in rule.not_applicable or rule.code in PLANNED:
        assert not hits
        return
    assert hits, [finding.rule for finding in report.findings]
    expected = rule.example.outcomes.get(engine, rule.verdicts[engine].outcome)
    assert Outcome.worst(hit.outcome for hit in hits) is expected, [hit.message for hit in hits]
    for hit in hits:
        assert hit.title == rule.title
        assert hit.message


@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_the_example_is_read_whole(rule: Rule) -> None:
    sides = example_sides(rule, "vvr")
    for side in sides:
        unread = rule.code in {"statement-not-read", "program-refused"} and side is sides[1]
        assert bool(side.program.problems) == unread
    assert rule.code in {"undeclared-table", "engine-version-changed", *PLANNED} or rule.example.old != rule.example.new


@pytest.mark.parametrize("rule", mostly_slow(ENTRIES, 6), ids=lambda rule: rule.code)
def test_the_example_against_itself_is_unchanged(rule: Rule) -> None:
    for engine in ENGINES:
        old, new = example_sides(rule, engine)
        old = old if rule.example.old else new
        assert [finding.rule for finding in check(old, old).findings] == ["unchanged"]


def test_no_example_holds_a_difference_nobody_covers() -> None:
    """But those whose point it is: an example shows its own rule and no noise."""
    noisy = {r.code for r in ALL for f in judged(r.code, "vvr").findings if f.rule == NOT_COVERED.code}
    assert noisy == set()


def test_codes_are_unique_and_kebab_case() -> None:
    codes = [rule.code for rule in ENTRIES]
    assert len(set(codes)) == len(codes) == len(BY_CODE)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_verdicts_are_complete(rule: Rule) -> None:
    assert set(rule.verdicts) == set(ENGINES)
    assert rule.verdicts["flink"].outcome is not Outcome.PARTIAL
    for verdict in rule.verdicts.values():
        assert (verdict.reason is not None) == (verdict.outcome is Outcome.UNKNOWN)
        assert verdict.grounds or verdict.basis is Basis.INFERRED
        assert verdict.consequence is None or verdict.outcome is Outcome.INCOMPATIBLE
    assert rule.title
    assert rule.rationale.endswith(".")
    assert isinstance(rule.scope, RuleScope)


def test_the_catalogue_names_every_rule_and_explains_each() -> None:
    table = overview()
    assert [line.split()[0] for line in table.splitlines()[1 : len(ENTRIES) + 1]] == [rule.code for rule in ENTRIES]
    for rule in ENTRIES:
        text = explain(rule)
        assert text.startswith(f"{rule.code}: {rule.title}\n")
        for part in (rule.rationale, *rule.example.old.splitlines()[:1], *rule.example.new.splitlines()[-1:]):
            assert part in text
        for engine in ENGINES:
            assert rule.headline(engine) in text
        assert json.loads(json.dumps(as_data(rule)))["engines"].keys() == set(ENGINES)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_a_rule_is_listed_as_compatible_only_where_no_example_is_worse(rule: Rule, engine: str) -> None:
    for finding in judged(rule.code, engine).findings:
        if finding.rule in BY_CODE and finding.reason is not Reason.VERSION:
            assert finding.outcome is Outcome.COMPATIBLE or BY_CODE[finding.rule].headline(engine) != "compatible"


def test_what_says_nothing_is_selected_by_no_outcome() -> None:
    assert "several-changes" not in {rule.code for rule in select("flink", Outcome.COMPATIBLE)}
    assert "several-changes" in {rule.code for rule in select("vvr", Outcome.UNKNOWN)}


def test_rules_can_be_selected() -> None:
    assert select() == ENTRIES
    partial = select("vvr", Outcome.PARTIAL)
    assert "aggregate-added" in {rule.code for rule in partial}
    assert {rule.verdicts["vvr"].outcome for rule in partial} == {Outcome.PARTIAL}
    assert select(outcome=Outcome.PARTIAL) == partial
    assert select("flink", Outcome.PARTIAL) == ()


@pytest.mark.parametrize(
    ("code", "meant"),
    [("window-chagned", "window-changed"), ("window", "window-changed"), ("Aggregate added", "aggregate-added")],
)
def test_similar_codes(code: str, meant: str) -> None:
    assert meant in similar_codes(code)
    assert len(similar_codes(code)) <= 5


def test_nothing_is_similar_to_noise() -> None:
    assert similar_codes("qqqq") == ()


# ---------------------------------------------------------------------------------------------------- pages
PAGES = Path(__file__).parents[4] / "docs" / "rules"


def test_the_committed_pages_are_those_of_the_rules() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    stale = sorted(name for name in {*written, *pages()} if written.get(name) != pages().get(name))
    assert not stale, "run `make docs`"


def test_every_page_says_what_its_example_really_gives() -> None:
    every = pages()
    assert every.keys() == {"README.md", *(f"{rule.code}.md" for rule in ENTRIES)}
    for rule in ENTRIES:
        page = every[f"{rule.code}.md"]
        assert f"({rule.code}.md)" in every["README.md"]
        assert page.startswith(f"{GENERATED}\n# {rule.title}\n")
        assert page.count("```") % 2 == 0
        for engine in ENGINES:
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `{engine}` |")]
            own = {finding.outcome for finding in judged(rule.code, engine).findings if finding.rule == rule.code}
            assert (Outcome.worst(own).value if own else "no finding") in row.split(" | ")[-1]


def test_writing_pages_replaces_and_removes_only_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "rules"
    assert set(write_pages(folder)) == set(pages())
    assert write_pages(folder) == ()
    (folder / "gone.md").write_text(GENERATED + "\nof a rule that is gone\n", encoding="utf-8")
    (folder / "window-changed.md").write_text(GENERATED + "\nold\n", encoding="utf-8")
    (folder / "notes.md").write_text("mine\n", encoding="utf-8")
    assert write_pages(folder) == ("gone.md", "window-changed.md")
    assert (folder / "window-changed.md").read_text(encoding="utf-8") == pages()["window-changed.md"]
    assert sorted(set(pages()) | {"notes.md"}) == sorted(path.name for path in folder.iterdir())


def test_a_hand_written_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"README\.md"):
        write_pages(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
