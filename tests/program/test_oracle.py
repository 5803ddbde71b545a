"""Programs as real PyFlink plans them, beside our plan of them: the same operators, keys, windows and calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from measure.pairs import PROGRAMS as PAIRS
from measure.pairs import load_pairs
from measure.pyflink import PyFlink
from tests.program.flink_plans import Told, of_each_sink, of_ours

PROGRAMS = sorted((Path(__file__).parent.parent / "fixtures" / "table_api" / "oracle").glob("*.py"))
SIDES = {
    side.script: f"{pair.id}-{name}"
    for pair in load_pairs("2.3", folder=PAIRS)
    for name, side in (("old", pair.old), ("new", pair.new))
    if side.language == "python"
}
"""The programs of the measured restores, each once."""


def read(text: str, name: str) -> dict[str, tuple[Told, ...]]:
    """By sink, of a program that is read whole."""
    side = Side(text, engine="flink", language="python", source=name)
    assert side.parsed.unread == ()
    assert side.program.problems == ()
    outputs, failures = side.outputs
    assert not failures
    pipelines = side.program.pipelines
    return {outputs[i].sink: of_ours(outputs[i], not pipelines[i].steps) for i in outputs}


def planned(pyflink: PyFlink, text: str, name: str) -> dict[str, tuple[Told, ...]]:
    plans = pyflink.plan(text.replace("file://DATA", "file:///in").replace("file://OUT", "file:///out"), name)
    return {sink: told for plan in plans for sink, told in of_each_sink(json.loads(plan)).items()}


def test_there_are_sixty_programs() -> None:
    assert len(PROGRAMS) >= 60


@pytest.fixture(scope="module")
def pyflink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyFlink]:
    with PyFlink(tmp_path_factory.mktemp("pyflink")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_read_as_pyflink_plans_it(pyflink: PyFlink, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    by_flink = planned(pyflink, text, path.name)
    assert read(text, path.name) == by_flink
    assert all(by_flink.values())


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("text", SIDES, ids=SIDES.values())
def test_a_program_of_the_restores_is_read_as_pyflink_plans_it(pyflink: PyFlink, text: str) -> None:
    assert read(text, "pair.py") == planned(pyflink, text, "pair.py")
