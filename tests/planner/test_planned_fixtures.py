"""Changes of ``tests/fixtures/planned`` by the rules alone and by Flink's planner, next to their restores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.planner import Installation, close_all, find, install, predict
from tests import sections

FOLDER = Path(__file__).parents[1] / "fixtures" / "planned"
RESTORED = {"right", "wrong", "refused at submit", "refused at restore"}


@dataclass(frozen=True)
class Case:
    """A change, how its restore ended on Flink 2.3.0, and both verdicts."""

    title: str
    old: str
    new: str
    restored: str
    read: Outcome
    planned: Outcome

    def sides(self) -> tuple[Side, Side]:
        return Side(self.old, engine="flink", source="old.sql"), Side(self.new, engine="flink", source="new.sql")


def load(path: Path) -> Iterator[Case]:
    _, given, cases = sections.read(path.read_text("utf-8"), path.name)
    for head, old, new in cases:
        found = sections.headers(head, {"restored", "read", "planned"}, path.name)
        restored, read, planned = (
            sections.required(found, key, head, path.name)[1] for key in ("restored", "read", "planned")
        )
        yield Case(head.title, given + old.text, given + new.text, restored, Outcome(read), Outcome(planned))


CASES = [each for path in sorted(FOLDER.glob("*.sql")) for each in load(path)]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


@every_case
def test_rules_alone(case: Case) -> None:
    assert case.restored in RESTORED
    assert case.restored == "right" or Outcome.COMPATIBLE not in (case.read, case.planned)
    assert check(*case.sides()).outcome is case.read


@pytest.fixture(scope="module")
def flink() -> Iterator[Installation]:
    install("2.3")
    yield find("2.3")
    close_all()


@pytest.mark.slow
@every_case
def test_with_the_planner(flink: Installation, case: Case) -> None:
    old, new = case.sides()
    said = predict(old, new, flink, flink)
    assert check_planned(old, new, said.prediction, said.plans).outcome is case.planned
