"""``flinkcompat rules``: the catalogue in a terminal, as data and as pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli.rules import pages
from airflow_flinkcompat.compat.rules import ALL
from tests.support.cli.command import INCOMPATIBLE, V1, Run, save


def test_rules(run: Run, snapshot: SnapshotAssertion) -> None:
    result = run("rules")
    assert result.code == 0
    assert all(rule.code in result.out for rule in ALL)
    explained = run("rules", "aggregate-added").out
    place = Path(explained.splitlines()[-1].removeprefix("page   "))
    assert explained.replace(str(place), "(page)") == snapshot
    assert place.read_text(encoding="utf-8") == pages()["aggregate-added.md"]
    unknown = run("rules", "no-such-rule")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no-such-rule" in unknown.err


def test_rules_near_to_what_was_written(run: Run) -> None:
    result = run("rules", "window-chnaged")
    assert (result.code, result.out) == (2, "")
    assert "did you mean window-changed" in result.err
    assert "`flinkcompat rules` lists them" in run("rules", "qqqq").err


def test_rules_as_data_and_filtered(run: Run) -> None:
    found = json.loads(run("rules", "--format", "json", "--engine", "vvr", "--outcome", "partial").out)
    assert {rule["engines"]["vvr"]["outcome"] for rule in found} == {"partial"}
    assert json.loads(run("rules", "aggregate-added", "--format", "json").out) in found
    table = run("rules", "--engine", "vvr", "--outcome", "partial").out
    assert "aggregate-added " in table
    assert "window-changed" not in table


def test_a_published_page_is_named_by_its_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(old=V1, new=INCOMPATIBLE)
    check_ = ("check", "old.sql", "new.sql", "--engine", "flink", "--verbose")
    assert "    page    flinkcompat rules window-changed\n" in run(*check_).out
    assert "Page: `flinkcompat rules window-changed`" in run(*check_, "--format", "markdown").out
    for base in ("https://docs.example.org/rules/", "https://docs.example.org/rules/{code}.md"):
        monkeypatch.setenv("FLINKCOMPAT_RULES_URL", base)
        address = "https://docs.example.org/rules/window-changed.md"
        assert f"    page    {address}\n" in run(*check_).out
        assert f"Page: [window-changed]({address})" in run(*check_, "--format", "markdown").out
        assert run("rules", "window-changed").out.endswith(f"page   {address}\n")
        assert json.loads(run("rules", "window-changed", "--format", "json").out)["page"] == address
    monkeypatch.setenv("FLINKCOMPAT_RULES_URL", "no address")
    assert "    page    flinkcompat rules window-changed\n" in run(*check_).out


def test_rules_writes_pages_and_keeps_what_is_not_its_own(run: Run) -> None:
    assert "pages changed" in run("rules", "--write", "pages").out
    assert run("rules", "--write", "pages").out == "pages: up to date\n"
    assert Path("pages/window-changed.md").read_text(encoding="utf-8").count("```sql") >= 2
    Path("README.md").write_text("mine", encoding="utf-8")
    refused = run("rules", "--write", ".")
    assert refused.code == 2
    assert "README.md" in refused.err
