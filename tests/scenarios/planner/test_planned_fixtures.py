"""Changes of ``tests/fixtures/planned`` by the rules alone and by Flink's planner, next to their restores.

A case with ``-- lines: 1.20 2.3`` is an upgrade with an edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import Installation, find, install
from airflow_flinkcompat.planner.questions import predict
from airflow_flinkcompat.testing import fixture_cases

FOLDER = Path(__file__).parents[2] / "fixtures" / "planned"
RESTORED = {"right", "wrong", "refused at submit", "refused at restore"}


@dataclass(frozen=True)
class Case:
    """A change, its two lines of Flink, how its restore ended on the newer one, and both verdicts."""

    title: str
    old: str
    new: str
    restored: str
    read: Outcome
    planned: Outcome
    lines: tuple[str, str]

    @property
    def is_upgrade(self) -> bool:
        return self.lines[0] != self.lines[1]

    def sides(self) -> tuple[Side, Side]:
        old, new = self.lines
        return (
            Side(self.old, engine="flink", engine_version=old, source="old.sql"),
            Side(self.new, engine="flink", engine_version=new, source="new.sql"),
        )


def load(path: Path) -> Iterator[Case]:
    _, given, cases = fixture_cases.read(path.read_text("utf-8"), path.name)
    for head, old, new in cases:
        found = fixture_cases.headers(head, {"restored", "read", "planned", "lines"}, path.name)
        restored, read, planned = (
            fixture_cases.required(found, key, head, path.name)[1] for key in ("restored", "read", "planned")
        )
        before, after = found["lines"][0][1].split() if "lines" in found else ("2.3", "2.3")
        yield Case(
            head.title, given + old.text, given + new.text, restored, Outcome(read), Outcome(planned), (before, after)
        )


CASES = [each for path in sorted(FOLDER.glob("*.sql")) for each in load(path)]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


@every_case
def test_rules_alone(case: Case) -> None:
    assert case.restored in RESTORED
    assert case.restored == "right" or Outcome.COMPATIBLE not in (case.read, case.planned)
    assert check(*case.sides()).outcome is case.read


@pytest.fixture(scope="module")
def installed() -> Iterator[Callable[[str], Installation]]:
    @cache
    def on_line(line: str) -> Installation:
        install(line)
        return find(line)

    yield on_line
    close_all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.title, marks=pytest.mark.nightly if case.is_upgrade else ()) for case in CASES],
)
def test_with_the_planner(installed: Callable[[str], Installation], case: Case) -> None:
    old, new = case.sides()
    said = predict(old, new, *map(installed, case.lines))
    assert check_planned(old, new, said.prediction, said.plans).outcome is case.planned
