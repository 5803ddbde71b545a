"""Programs as real PyFlink plans them, beside our plan of them: the same operators, keys, windows and calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev.measure.pyflink import PyFlink
from tests.scenarios.frontends import oracle


@pytest.mark.parametrize("name", oracle.programs())
def test_a_program_is_read_as_pyflink_plans_it(name: str) -> None:
    assert oracle.read(name) == oracle.told(oracle.kept()[name])


def test_sixty_programs_and_those_of_the_restores() -> None:
    """Else run `python -m tests.scenarios.frontends.oracle`, with PyFlink (`make pyflink`)."""
    assert set(oracle.kept()) == set(oracle.programs())
    assert len(list(oracle.FOLDER.glob("*.py"))) >= 60
    assert all(all(oracle.told(plans).values()) for plans in oracle.kept().values())


@pytest.fixture(scope="module")
def pyflink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyFlink]:
    with PyFlink(tmp_path_factory.mktemp("pyflink")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", oracle.programs())
def test_pyflink_still_plans_a_program_so(pyflink: PyFlink, name: str) -> None:
    assert oracle.told(oracle.planned(pyflink, name)) == oracle.told(oracle.kept()[name])
