"""The rows of the vendor's documents and the language at depth, on both engines.

Every case is a section of an SQL file under ``tests/fixtures/vvr``; adding one needs no line here.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Report, Side, check, render_text
from airflow_flinkcompat.plan import FunctionDeclaration
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases

FOLDER = Path(__file__).parents[3] / "fixtures" / "vvr"
METRICS = (
    ("aggregate-added", "partial"),
    ("aggregate-deleted", "compatible"),
    ("aggregate-added-and-deleted", "partial"),
    ("aggregate-modified", "partial"),
    ("aggregate-reordered", "compatible"),
    ("aggregate-input-changed", "partial"),
    ("window-field-output", "compatible"),
)
DOCUMENTS = {
    "window_tvf": (
        *METRICS,
        ("no-aggregates", "compatible"),
        ("window-key-reordered", "compatible"),
        ("window-changed", "incompatible"),
        ("group-key-changed", "incompatible"),
        ("group-key-reordered", "incompatible"),
        ("distinct-aggregate-changed", "incompatible"),
        ("all-aggregates-deleted", "incompatible"),
        ("first-aggregate-added", "incompatible"),
        ("only-aggregate-changed", "incompatible"),
        ("aggregates-replaced", "incompatible"),
        ("window-field-computation-changed", "incompatible"),
        ("window-bounds-in-keys-changed", "incompatible"),
        ("grouping-sets-changed", "incompatible"),
        ("window-field-computation-kept", "unknown"),
        ("window-filter", "unknown"),
        ("table-function", "unknown"),
        ("python-aggregate", "unknown"),
        ("window-field-aggregated", "unknown"),
        ("grouping-sets-kept", "unknown"),
    ),
    "group_window": (
        *METRICS,
        ("window-key-reordered", "compatible"),
        ("no-aggregates", "compatible"),
        ("window-changed", "incompatible"),
        ("window-changed", "incompatible"),
        ("window-changed", "incompatible"),
        ("group-key-changed", "incompatible"),
        ("distinct-aggregate-changed", "incompatible"),
        ("all-aggregates-deleted", "incompatible"),
        ("early-or-late-fire", "incompatible"),
        ("group-key-reordered", "incompatible"),
        ("first-aggregate-added", "incompatible"),
        ("only-aggregate-changed", "incompatible"),
        ("aggregates-replaced", "incompatible"),
        ("early-or-late-fire", "incompatible"),
        ("python-aggregate", "unknown"),
    ),
    "window_top_n": (
        ("window-field-output", "compatible"),
        ("rank-number-output", "compatible"),
        ("rank-partition-reordered", "compatible"),
        ("window-changed", "incompatible"),
        ("group-key-changed", "incompatible"),
        ("ranked-row-changed", "incompatible"),
        ("rank-partition-changed", "incompatible"),
        ("rank-order-changed", "incompatible"),
        ("rank-range-changed", "incompatible"),
        ("ranked-window-key-reordered", "incompatible"),
        ("group-key-reordered", "incompatible"),
    ),
}
"""Each document's rows in the order of its own table: the rule that speaks, and the outcome the document states."""

AREAS = ("depth", "where", "sources", "sinks", "inserts", "settings", "operators")
"""The language at depth, and what the vendor's other pages and the measurements say of whole scripts."""

CASES = {folder: load_cases(FOLDER / folder) for folder in (*DOCUMENTS, *AREAS)}
EVERY = [
    pytest.param(case, id=f"{folder}/{case.id}", marks=() if number % 4 == 0 else pytest.mark.slow)
    for folder, cases in CASES.items()
    for number, case in enumerate(cases)
]
"""All cases; without a walk through every one, a quarter of each folder's."""


@cache
def read(script: str, settings: tuple[tuple[str, str], ...], functions: tuple[tuple[str, str, str], ...]) -> Side:
    """A side, read once for all tests."""
    return Side(script, dict(settings), tuple(FunctionDeclaration(*each) for each in functions))


def sides(case: Case) -> tuple[Side, Side]:
    return (
        read(case.old_script, tuple(case.settings_old.items()), case.functions),
        read(case.new_script, tuple(case.settings_new.items()), case.functions),
    )


def deciding(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if not finding.overruled_by}


@pytest.mark.parametrize("case", EVERY)
def test_case(case: Case) -> None:
    report = check(*sides(case))
    place = f"{case.file}:{case.line}\n{render_text(report)}"
    # What is not understood would be unknown for the wrong reason.
    assert not [problem for side in sides(case) for problem in side.program.problems], place
    assert report.outcome == case.outcome, place
    assert set(case.fires) <= deciding(report), place
    assert not set(case.not_fires) & deciding(report), place


@pytest.mark.parametrize("case", [param for param in EVERY if param.values[0].flink])
def test_case_on_open_source_flink(case: Case) -> None:
    report = check(*sides(case), engine="flink")
    assert report.outcome == case.flink, f"{case.file}:{case.line}\n{render_text(report)}"


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERY)
def test_an_unchanged_script_is_compatible(case: Case) -> None:
    """Whatever a script holds, against itself it is compatible, by the rule for that."""
    _, side = sides(case)
    report = check(side, side)
    assert report.outcome == "compatible", f"{case.file}:{case.line}\n{render_text(report)}"
    assert "unchanged" in deciding(report)


@pytest.mark.parametrize(
    ("document", "row", "rule", "outcome"),
    [(name, row, *what) for name, rows in DOCUMENTS.items() for row, what in enumerate(rows, start=1)],
)
def test_every_row_has_its_example_variants_and_near_miss(document: str, row: int, rule: str, outcome: str) -> None:
    cases = [case for case in CASES[document] if case.row == row]
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
        assert case.outcome == outcome, f"{case.file}:{case.line}"
    for case in misses:
        assert rule in case.not_fires, f"{case.file}:{case.line}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_is_a_row(document: str) -> None:
    assert {case.row for case in CASES[document]} == set(range(1, len(DOCUMENTS[document]) + 1))


@pytest.mark.parametrize("area", CASES)
def test_an_area_is_judged_on_both_engines(area: str) -> None:
    assert [case.id for case in CASES[area] if not case.flink] == []
    files = Counter(case.file for case in CASES[area])
    assert min(files.values()) > 2, files
