"""What both sides share says nothing to the other one: a report is the same where each side was read by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side, check, checker
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.model import ENGINES, InputError
from airflow_flinkcompat.plan import FunctionDeclaration
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases
from tests.support.nightly import mostly_nightly

FIXTURES = Path(__file__).parents[2] / "fixtures" / "vvr"


def _cases() -> Iterator[Case]:
    """Every seventh case of the vendor's documents: all kinds of statements are among them."""
    folders = (folder for folder in sorted(FIXTURES.iterdir()) if folder.is_dir())
    yield from [case for folder in folders for case in load_cases(folder)][::7]


def _side(case: Case, engine: str, *, old: bool) -> Side:
    functions = tuple(FunctionDeclaration(*declared) for declared in case.functions)
    script, settings = (case.old_script, case.settings_old) if old else (case.new_script, case.settings_new)
    return Side(script, settings, functions, engine=engine, source="old.sql" if old else "new.sql")


@pytest.mark.slow
@pytest.mark.parametrize("engine", mostly_nightly(ENGINES))
def test_a_report_is_the_same_where_each_side_was_read_alone(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(old: Side, new: Side) -> Change:
        return Change(old, replace(new, beside=None))

    compared = 0
    for case in _cases():
        sides = _side(case, engine, old=True), _side(case, engine, old=False)
        try:
            together = check(*sides)
        except (InputError, ScriptError):
            continue
        with monkeypatch.context() as patched:
            patched.setattr(checker, "Change", apart)
            alone = check(*sides)
        assert together == alone, case.id
        assert together.to_dict() == alone.to_dict(), case.id
        compared += 1
    assert compared > 100
