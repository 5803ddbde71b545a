"""Verdicts name restores, and hold on the versions on which these were run: on no other, whatever else is known."""

from __future__ import annotations

import ast
import json
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airflow_flinkcompat.compat
from airflow_flinkcompat.cli.rules import example_sides, judged
from airflow_flinkcompat.compat import Basis, Outcome, Reason, Report, Side, check, evidence
from airflow_flinkcompat.compat.checker import ENGINE_BY_NAME
from airflow_flinkcompat.compat.engines.flink.engine import measured_line_adjuster
from airflow_flinkcompat.compat.plan_comparison import example_plans
from airflow_flinkcompat.compat.reports.catalogue import ENTRIES
from airflow_flinkcompat.compat.single_script import RULES as ONE_SIDED
from airflow_flinkcompat.compat.verdict import SAFE, Verdict, combined, inferred, measured
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import evidence as made
from dev.measure.pairs import RELEASES, VERSIONS
from tests.support import golden
from tests.support.nightly import mostly_slow

CODE = Path(airflow_flinkcompat.compat.__file__).parent
MADE_UP = "2.4"
COMPARED = [rule for rule in ENTRIES if rule not in ONE_SIDED]
"""Where only one side has a script, nothing is restored."""


# ------------------------------------------------------------------------------------------------------- the table
def test_the_shipped_table_is_what_the_results_say() -> None:
    assert made.TABLE.read_text(encoding="utf-8") == made.text(made.build(made.sources())), (
        "run `python -m dev.measure pairs --evidence`"
    )


def test_all_lines_and_the_upgrades_between_them_are_in_it() -> None:
    assert {*evidence.measured_lines()} == {*RELEASES} > {*VERSIONS} >= {"2.3", "1.20"}
    between = {line for outcomes in evidence.restores().values() for line in outcomes} - {*RELEASES}
    assert between >= {f"{line} to 2.3" for line in RELEASES if line != "2.3"}
    assert {line for lines in between for line in lines.split(" to ")} <= {*RELEASES}
    # The same change need not end the same on another line.
    ended = evidence.restores()["u-ttl-add"]
    refused = {"1.19", "1.20", "2.0", "2.1"}
    assert ended == {line: "refused_at_restore" if line in refused else "restored_right" for line in ended}


def test_two_files_that_disagree_are_refused(tmp_path: Path) -> None:
    for name, outcome in (("one", "restored_right"), ("two", "restored_WRONG")):
        text = json.dumps({"flink": "2.3.0", "outcomes": {"w-unchanged": outcome}})
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    with pytest.raises(
        FixtureError, match=r"two\.json: w-unchanged on 2\.3 is restored_WRONG, but restored_right in another file"
    ):
        made.build(sorted(tmp_path.glob("*.json")))


# ---------------------------------------------------------------------------------------------------- one verdict
@pytest.mark.parametrize(
    ("ids", "versions"),
    [
        (("w-unchanged",), evidence.measured_lines()),
        (("rj-ttl-hint",), ("2.3",)),
        (("w-unchanged", "rj-ttl-hint"), ("2.3",)),
        (("u-ttl-add",), tuple(line for line in evidence.measured_lines() if line > "2.1")),
        (("cdc-group-startup-latest",), ("1.20",)),
    ],
)
def test_the_versions_are_those_on_which_every_restore_ended_right(
    ids: tuple[str, ...], versions: tuple[str, ...]
) -> None:
    verdict = measured(Outcome.COMPATIBLE, *ids)
    assert sorted(verdict.versions) == sorted(versions)
    for version in (*evidence.measured_lines(), "1.18", MADE_UP):
        found = verdict.on_line(version)
        assert (found is verdict) == (version in versions)
        assert found.outcome is Outcome.COMPATIBLE or found.reason is Reason.VERSION


@pytest.mark.parametrize(
    "ids",
    [
        ("never-run",),
        ("w-unchanged", "never-run"),
        ("w-add-agg",),
        ("ij-wider-slight",),
        ("sm-force-print",),
        ("up-tumble-proctime-group", "w-unchanged"),
        ("cdc-group-startup-latest", "rj-ttl-hint"),
        (),
    ],
    ids=[
        "unknown id",
        "one unknown id",
        "refused",
        "right on this data",
        "upserts only",
        "an upgrade",
        "apart",
        "none",
    ],
)
def test_what_was_not_restored_right_carries_no_safe_verdict(ids: tuple[str, ...]) -> None:
    for outcome in SAFE:
        if ids:
            verdict = measured(outcome, *ids)
            assert (verdict.outcome, verdict.reason) == (Outcome.UNKNOWN, Reason.NOT_COVERED)
            assert all(each in verdict.source for each in ids if each not in evidence.restores())
            with pytest.raises(ValueError, match="restored all of them right"):
                Verdict(outcome, Basis.MEASURED, evidence=ids)
        for version in evidence.measured_lines():
            assert inferred(outcome, "it follows", ids=ids).on_line(version).outcome is Outcome.UNKNOWN


def test_a_measured_verdict_names_restores() -> None:
    with pytest.raises(ValueError, match="must name its restores"):
        Verdict(Outcome.INCOMPATIBLE, Basis.MEASURED, "it was seen")


def test_what_the_vendor_documents_asks_for_no_restore_of_open_source_flink() -> None:
    assert measured_line_adjuster in ENGINE_BY_NAME["flink"].verdict_adjusters
    assert measured_line_adjuster not in ENGINE_BY_NAME["vvr"].verdict_adjusters
    assert judged("aggregate-reordered", "vvr").outcome is Outcome.COMPATIBLE


def test_several_verdicts_hold_together_only_where_each_does() -> None:
    everywhere, newer = measured(Outcome.COMPATIBLE, "w-unchanged"), measured(Outcome.COMPATIBLE, "rj-ttl-hint")
    assert combined([everywhere, newer]).versions == ("2.3",)
    refused = measured(Outcome.INCOMPATIBLE, "w-add-agg")
    assert combined([everywhere, refused, newer]) is refused
    assert combined([everywhere, inferred(Outcome.COMPATIBLE, "it follows")]).on_line("2.3").outcome is (
        Outcome.UNKNOWN
    )


@given(
    st.lists(st.sampled_from(sorted(evidence.restores())), min_size=1, max_size=4),
    st.sampled_from([*RELEASES, "2.4"]),
)
def test_safe_is_what_every_named_restore_was_on_that_version(ids: list[str], version: str) -> None:
    right = all(evidence.restores()[each].get(version) == evidence.RIGHT for each in ids)
    assert (measured(Outcome.COMPATIBLE, *ids).on_line(version).outcome is Outcome.COMPATIBLE) == right


# ------------------------------------------------------------------------------------------------ what rules name
CITE = {
    "right": True,
    "wrong": False,
    "refused": False,
    "refused_later": False,
    "at_submit": False,
}


@pytest.mark.parametrize(
    ("version", "basis"), [("2.3", Basis.MEASURED), ("1.20", Basis.MEASURED), ("2.4", Basis.INFERRED)]
)
def test_an_unchanged_script_is_called_measured_only_where_it_was(version: str, basis: Basis) -> None:
    """readings.md: an unchanged script is compatible on every version, but nobody restored it on each."""
    side = Side("SELECT a, COUNT(*) FROM t GROUP BY a;", engine="flink", engine_version=version)
    report = check(side, side)
    assert report.outcome is Outcome.COMPATIBLE
    assert [finding.basis for finding in report.findings] == [basis]


def cited() -> Iterator[tuple[str, bool | None, str]]:
    """Place, whether it ended right (None: not told), and id, of every restore that code names."""
    for file in sorted(CODE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name, arguments = node.func.id, node.args
                good = CITE.get(name)
                if name == "measured" and arguments:
                    good = {"COMPATIBLE": True, "INCOMPATIBLE": False}.get(getattr(arguments[0], "attr", ""))
                    arguments = arguments[1:]
                if name in CITE or name == "measured":
                    yield from ((f"{file.name}:{node.lineno}", good, each) for each in _texts(arguments))
            elif isinstance(node, ast.Tuple) and set(found := list(_texts(node.elts))) & evidence.restores().keys():
                yield from ((f"{file.name}:{node.lineno}", None, each) for each in found)


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.IfExp(body=body, orelse=orelse):
                yield from _texts([body, orelse])


def test_every_restore_that_a_rule_names_was_run_and_ended_as_the_rule_says() -> None:
    found = list(cited())
    assert len(found) > 250
    table = evidence.restores()
    assert [(place, name) for place, _, name in found if name not in table] == []
    for place, good, name in found:
        ends = set(table[name].values())
        assert good is None or (evidence.RIGHT in ends if good else ends != {evidence.RIGHT}), (place, name, ends)


# --------------------------------------------------------------------------------------------- a version nobody ran
def modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(airflow_flinkcompat.compat.__path__, "airflow_flinkcompat.compat."):
        yield import_module(module.name)


def widened(value: Any) -> Any:
    """The same with the made-up version beside every measured one, or in its place where there is room for one."""
    lines = set(evidence.measured_lines())
    match value:
        case str() if value == evidence.measured_lines()[0]:
            return MADE_UP
        case tuple() | frozenset() | set() | list() if lines & {each for each in value if isinstance(each, str)}:
            return type(value)([*value, MADE_UP])
        case Mapping():
            grown = {key: widened(each) for key, each in value.items()}
            named = [key for key in value if isinstance(key, str) and key in lines]
            return {**grown, **({MADE_UP: grown[named[0]]} if named else {})}
    return value


@cache
def wider() -> list[tuple[ModuleType, str, Any]]:
    """Every list and table of versions: its module, its name, and the same widened."""
    return [
        (module, name, grown)
        for module in modules()
        for name, value in vars(module).copy().items()
        if isinstance(value, str | tuple | list | set | frozenset | Mapping) and not name.startswith("__")
        if (grown := widened(value)) != value
    ]


@pytest.fixture
def claimed(monkeypatch: pytest.MonkeyPatch) -> int:
    """Every list and table of versions names the made-up one too; how many there are.

    A restore on it is in the table of evidence as well, but of a change that no verdict names.
    """
    for module, name, grown in wider():
        monkeypatch.setattr(module, name, grown)
    table = {**evidence.restores(), "made-up": {MADE_UP: evidence.RIGHT}}
    monkeypatch.setattr(evidence, "restores", lambda: table)
    return len(wider())


def unsafe(old: Side, new: Side, plans: Any = None) -> Report | None:
    """The report where a changed script is called safe on the version."""
    old, new = (replace(side, engine_version=MADE_UP, beside=None) for side in (old, new))
    report = check(old, new, plans=plans)
    unchanged = [finding.rule for finding in report.deciding] == ["unchanged"]
    return None if unchanged or report.outcome not in SAFE else report


def test_lists_of_versions_are_found(claimed: int) -> None:
    assert claimed >= 1  # at least the version that is judged by when none is named
    assert MADE_UP in evidence.measured_lines()


@pytest.mark.parametrize("rule", mostly_slow(COMPARED, 6), ids=lambda rule: rule.code)
def test_no_example_is_safe_on_a_version_that_is_only_named(rule: Any, claimed: int) -> None:
    assert unsafe(*example_sides(rule, "flink"), example_plans(rule.code)) is None


@pytest.mark.slow
@pytest.mark.nightly
def test_nothing_changed_is_safe_on_a_version_that_is_only_named(claimed: int) -> None:
    seen = 0
    for name, engine, old, new in golden.pairs():
        if engine == "flink":
            seen += 1
            assert unsafe(old, new) is None, name
    assert seen > 1000


@pytest.mark.slow
def test_where_it_was_measured_it_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: with the restores themselves, the version is as good as the one they were run on."""
    table = {
        name: {**ends, **({MADE_UP: ends["2.3"]} if "2.3" in ends else {})}
        for name, ends in evidence.restores().items()
    }
    monkeypatch.setattr(evidence, "restores", lambda: table)
    found = [rule.code for rule in COMPARED if unsafe(*example_sides(rule, "flink"), example_plans(rule.code))]
    assert len(found) > 10
