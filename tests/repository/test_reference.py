"""The reference pages say what the commands, operators and classes say today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_flinkcompat.airflow.operators import __all__ as operators
from airflow_flinkcompat.airflow.sensors import __all__ as sensors
from airflow_flinkcompat.cli import cli
from scripts.write_reference import PAGES, written


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert written(text) == text, "run `make docs`"


def test_whatever_a_dag_or_a_shell_names_has_a_heading() -> None:
    headings = {
        line for page in PAGES.glob("*.md") for line in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {*operators, *sensors} - headings == set()
    assert {f"flinkcompat {name}" for name in cli.list_commands(None)} - headings == set()  # type: ignore[arg-type]
