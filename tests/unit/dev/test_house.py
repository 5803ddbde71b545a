"""The check of docstrings' first lines."""

from pathlib import Path

import pytest

from dev import house


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "module.py"
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "modules", lambda *folders: [path])
    return path


@pytest.mark.parametrize("folder", house.CHECKED)
def test_modules_of_every_checked_folder_are_found(folder: str) -> None:
    assert house.modules(folder)


def test_a_clause_and_a_long_first_line_are_reported_with_their_place(module: Path) -> None:
    module.write_text(
        f'"""Layout of a state."""\n\nROWS = 1\n"""What is kept."""\n\n\ndef f():\n    """{"x" * 101}"""\n'
    )
    clause, long = house.faults()
    assert clause.startswith("module.py:4: 13 of 100 characters, or begins with a clause: What is kept.")
    assert long.startswith("module.py:8: 101 of 100 characters")


def test_later_lines_of_a_docstring_are_not_checked(module: Path) -> None:
    module.write_text('"""Layout of a state.\n\nWhat follows is the body.\n"""\n')
    assert house.faults() == []
