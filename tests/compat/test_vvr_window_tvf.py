"""The 26 rows of the Window TVF page for engine ``vvr``; every case is a section of a fixture file."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Report, Side, check, render_text
from airflow_flinkcompat.plan import FunctionDeclaration
from tests.fixture_cases import Case, load_cases

FOLDER = Path(__file__).parent.parent / "fixtures" / "vvr" / "window_tvf"
CASES = load_cases(FOLDER)

ROWS = (
    "aggregate-added",
    "aggregate-deleted",
    "aggregate-added-and-deleted",
    "aggregate-modified",
    "aggregate-reordered",
    "aggregate-input-changed",
    "window-field-output",
    "no-aggregates",
    "window-key-reordered",
    "window-changed",
    "group-key-changed",
    "group-key-reordered",
    "distinct-aggregate-changed",
    "all-aggregates-deleted",
    "first-aggregate-added",
    "only-aggregate-changed",
    "aggregates-replaced",
    "window-field-computation-changed",
    "window-bounds-in-keys-changed",
    "grouping-sets-changed",
    "window-field-computation-kept",
    "window-filter",
    "table-function",
    "python-aggregate",
    "window-field-aggregated",
    "grouping-sets-kept",
)


def outcome_of_row(row: int) -> str:
    """The page's own outcome: rows 1, 3, 4, 6 partial; to 9 compatible; 10 to 20 incompatible; 21 to 26 unknown."""
    if row in {1, 3, 4, 6}:
        return "partial"
    return "compatible" if row <= 9 else "incompatible" if row <= 20 else "unknown"


def sides(case: Case) -> tuple[Side, Side]:
    functions = tuple(FunctionDeclaration(name, kind, language) for name, kind, language in case.functions)
    old = Side(case.old_script, settings=case.settings_old, functions=functions, engine="vvr", source="old.sql")
    new = Side(case.new_script, settings=case.settings_new, functions=functions, engine="vvr", source="new.sql")
    return old, new


def deciding(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if not finding.overruled_by}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    report = check(*sides(case))
    place = f"{case.file}:{case.line}\n{render_text(report)}"
    assert report.outcome == case.outcome, place
    assert set(case.fires) <= deciding(report), place
    assert not set(case.not_fires) & deciding(report), place


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_unchanged_script_is_compatible(case: Case) -> None:
    """Whatever a script holds, against itself it is compatible, by the rule for that."""
    old, new = sides(case)
    for side in (old, new):
        report = check(side, side)
        assert report.outcome == "compatible", f"{case.file}:{case.line}\n{render_text(report)}"
        assert "unchanged" in deciding(report)


@pytest.mark.parametrize(("row", "rule"), list(enumerate(ROWS, start=1)))
def test_every_row_has_its_example_variants_and_near_miss(row: int, rule: str) -> None:
    cases = [case for case in CASES if case.row == row]
    assert {(case.file, case.rule) for case in cases} == {(f"{row:02}-{rule}.sql", rule)}

    examples, variants, misses = (
        [case for case in cases if case.title.startswith(kind)] for kind in ("document example", "variant", "near miss")
    )
    assert len(examples) >= 1
    assert len(variants) >= 3
    assert len(misses) >= 1
    assert len(examples) + len(variants) + len(misses) == len(cases)
    for case in examples + variants:
        assert rule in case.fires, f"{case.file}:{case.line}"
        assert case.outcome == outcome_of_row(row), f"{case.file}:{case.line}"
    for case in misses:
        assert rule in case.not_fires, f"{case.file}:{case.line}"


def test_every_file_is_a_row() -> None:
    assert {case.row for case in CASES} == set(range(1, len(ROWS) + 1))
