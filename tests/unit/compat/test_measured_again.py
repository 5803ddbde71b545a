"""The committed results of ``make measure-pairs``: what was refused or wrong on a real Flink is never compatible."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Reason, Report, Side, check, evidence, render_text
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.plan.operators import operators
from airflow_flinkcompat.sql import parse_script
from dev.measure import results
from dev.measure.measured import RIGHT, Restore, everything, load
from dev.measure.pairs import RELEASES, UPGRADES, VERSIONS, Pair, load_base, load_connector_pairs, load_pairs
from tests.support.nightly import mostly_nightly

# The newest file of each line: an older one of the same pairs is history.
LINES = [path for line in RELEASES if (path := results.newest(line))]
BASE_LINES = [line for line in RELEASES if line not in VERSIONS]
"""Lines on which the base set alone is run."""
OVER_CONNECTORS = [path for line in VERSIONS if (path := results.newest(line, "connectors"))]
FILES = [*LINES, *OVER_CONNECTORS]


def _marks(path: Path) -> tuple[pytest.MarkDecorator, ...]:
    """The pairs are the same on every line, and so is nearly all that became of them."""
    if "-2.3-" in path.name:
        return ()
    return (pytest.mark.slow if "-1.20-" in path.name else pytest.mark.nightly,)


EACH = [pytest.param(path, marks=_marks(path)) for path in FILES]


@pytest.fixture(scope="module", params=EACH, ids=lambda path: path.stem)
def pairs(request: pytest.FixtureRequest) -> list[Restore]:
    return load(str(request.param))


@cache
def judged(pair: Restore) -> Report:
    """The verdict of now."""
    return check(*pair.sides())


NEAR_REFUSED = frozenset({"decided-stateless-call-never", "decided-stateless-either-way"})
"""Conditions that no row meets, or every row: near ones were refused, and no script tells which the planner sees."""


def test_every_line_that_is_named_is_measured() -> None:
    assert len(LINES) == len(RELEASES)
    assert OVER_CONNECTORS


def test_what_did_not_restore_right_is_never_compatible(pairs: list[Restore]) -> None:
    assert len(pairs) >= 40
    assert {pair.outcome for pair in pairs} >= {RIGHT, "refused_at_submit", "refused_at_restore", "restored_WRONG"}
    false = [
        f"{pair} ended {pair.outcome}\n{render_text(judged(pair))}"
        for pair in pairs
        if pair.outcome != RIGHT and judged(pair).outcome is Outcome.COMPATIBLE
    ]
    assert not false, "\n\n".join(false)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", mostly_nightly([*map(results.newest, VERSIONS), *OVER_CONNECTORS], 2), ids=lambda path: path.stem
)
def test_nine_in_ten_that_restored_right_are_recognised(path: Path) -> None:
    """On the lines on which every pair was run."""
    pairs = load(str(path))
    right = {pair.id: judged(pair).outcome for pair in pairs if pair.outcome == RIGHT and pair.id not in NEAR_REFUSED}
    missed = [name for name, outcome in right.items() if outcome is not Outcome.COMPATIBLE]
    print(f"\nrecognised {len(right) - len(missed)} of {len(right)}; missed: {missed}")
    assert len(right) >= 80
    assert len(missed) <= 0.1 * len(right)


def test_unchanged_scripts_restore_right(pairs: list[Restore]) -> None:
    """Where this fails on a new measurement, the measuring is at fault: rows or conditions."""
    unchanged = [pair for pair in pairs if pair.id.endswith("-unchanged")]
    assert len(unchanged) >= 8
    assert all(pair.outcome == RIGHT and judged(pair).outcome is Outcome.COMPATIBLE for pair in unchanged)


def test_the_readme_says_what_was_measured() -> None:
    path = results.newest("2.3")
    assert path is not None
    outcomes = [entry["outcome"] for entry in results.read(path)["pairs"]]
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert (
        f"Among {len(outcomes)} changes measured on Flink 2.3, {outcomes.count('restored_WRONG')} ran with wrong"
        in readme
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", VERSIONS)
def test_every_pair_was_run_as_it_is_written(line: str) -> None:
    """Else run `make measure-pairs` for this line, with MEASURE_ARGS='--only …' where that is enough."""
    assert_run_as_written(results.newest(line), load_pairs(line))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("line", BASE_LINES)
def test_the_base_set_was_run_as_it_is_written(line: str) -> None:
    """Else run `make measure-pairs` for this line. A run that ended early left the last out; others may be there."""
    path = results.newest(line)
    assert path is not None
    written = [pair for pair in load_base(line) if pair.id in results.ids(path)]
    assert len(written) >= 40
    assert_run_as_written(path, written, whole=False)


@pytest.mark.nightly
@pytest.mark.parametrize("line", BASE_LINES)
def test_the_rows_of_the_base_set_show_what_goes_wrong(line: str) -> None:
    """What ended badly where it was measured first does so over these rows too: else `right` says little."""
    bad = {restore.id for restore in everything() if restore.version == "2.3.0" and restore.outcome != RIGHT}
    ran = {pair.id: pair.outcome for pair in load(str(results.newest(line))) if pair.id in bad}
    assert len(ran) >= 4
    assert RIGHT not in ran.values(), ran


@pytest.mark.nightly
def test_the_base_set_has_every_kind_of_operator_that_pairs_have() -> None:
    assert len(load_base("2.2")) >= 40
    assert operator_kinds(load_base("2.2")) >= operator_kinds(load_pairs("2.3"))


def operator_kinds(pairs: list[Pair]) -> set[str]:
    found = set()
    for pair in pairs:
        change = Change(Side(pair.old.script, engine="flink"), Side(pair.new.script, engine="flink"))
        found |= {
            operator.kind for pipeline in change.pipelines for side in (pipeline.old, pipeline.new)
            for operator in operators(side)
        }  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize("line", mostly_nightly(BASE_LINES))
def test_safe_on_a_line_is_what_was_run_there(line: str) -> None:
    """Every pair of 2.3, judged on a line on which the base set alone was run."""
    ran = {name for name, ended in evidence.restores().items() if ended.get(line) == RIGHT}
    judged_there = Counter[bool]()
    for pair in load(str(results.newest("2.3"))):
        sides = (replace(side, engine_version=line) for side in pair.sides())
        for finding in check(*sides).findings:
            if finding.outcome is Outcome.COMPATIBLE:
                assert ran.issuperset(finding.evidence), (pair, finding.rule)
            judged_there[finding.outcome is Outcome.COMPATIBLE] += 1
    assert judged_there[True] > 40
    assert judged_there[False] > 50


@pytest.mark.parametrize("line", BASE_LINES)
def test_what_the_base_set_does_not_hold_is_unknown_where_nothing_else_was_run(line: str) -> None:
    """The condition of a regular join, which was run on 2.3 alone."""
    tables = (
        "".join(
            f"CREATE TABLE {name} (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file:///{name}', "
            "'format' = 'csv', 'source.monitor-interval' = '1 s');\n"
            for name in ("placed", "paid")
        )
        + "CREATE TABLE both_of_them (k STRING, v BIGINT) WITH ('connector' = 'print');\nINSERT INTO both_of_them\n"
    )
    joined = tables + "SELECT placed.k, paid.v FROM placed JOIN paid ON placed.k = paid.k AND placed.v > paid.v"
    assert "rj-noneq-change" not in {pair.id for pair in load_base(line)}
    outcomes = []
    for version in (line, "2.3"):
        sides = (Side(text, engine="flink", engine_version=version) for text in (joined, joined.replace(">", "<")))
        report = check(*sides)
        outcomes.append((report.outcome, {finding.reason for finding in report.deciding}))
    assert outcomes == [(Outcome.UNKNOWN, {Reason.VERSION}), (Outcome.COMPATIBLE, {None})]


@pytest.mark.slow
def test_every_pair_over_connectors_was_run_as_it_is_written() -> None:
    """Else run `make measure-pairs MEASURE_ARGS=--connectors`."""
    assert_run_as_written(results.newest("2.3", "connectors"), load_connector_pairs())


@pytest.mark.parametrize("path", results.upgrades(), ids=lambda path: path.stem)
def test_every_upgrade_was_run_as_it_is_written(path: Path) -> None:
    """Else run `make measure-pairs FLINK_OLD=… FLINK=…` for these lines; edits go from 1.20 to 2.3 alone."""
    old, new = path.stem.split("-")[1:4:2]
    pairs = load_pairs(new, folder=UPGRADES)
    edits = (old, new) == ("1.20", "2.3")
    assert_run_as_written(path, [pair for pair in pairs if edits or not pair.id.startswith("upgrade-edit")])


def assert_run_as_written(path: Path | None, written: list[Pair], whole: bool = True) -> None:
    assert path is not None
    entries = {entry["id"]: entry for entry in results.read(path)["pairs"]}
    pairs = {pair.id: pair for pair in written}
    assert not whole or set(entries) == set(pairs)
    for name, pair in pairs.items():
        for side, key in ((pair.old, "old"), (pair.new, "new")):
            assert dict(side.settings) == entries[name][f"settings_{key}"], name
            for statement in parse_script(side.script, name).statements:
                assert statement.text in entries[name][key], name


def test_the_files_hold_no_place_of_one_machine() -> None:
    for path in (*FILES, *results.upgrades()):
        assert all("file:/" not in (pair["exception"] or "") for pair in results.read(path)["pairs"])
