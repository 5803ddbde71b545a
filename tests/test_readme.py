"""What the README shows is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli
from tests.frontends.table_api import test_validation

README = Path(__file__).parents[1] / "README.md"
FIXTURES = Path(__file__).parent / "fixtures" / "readme"


def test_the_sample_report_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[str] = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (command, shown), *others = [block.split("\n", 1) for block in blocks if block.startswith("$ flinkcompat check ")]
    assert not others
    monkeypatch.chdir(FIXTURES)
    monkeypatch.setenv("COLUMNS", "100")
    result = CliRunner().invoke(cli, shlex.split(command)[2:])
    assert result.exit_code == 1
    assert result.output == shown


@pytest.mark.parametrize("page", [README, *sorted((README.parent / "docs").rglob("*.md"))], ids=lambda path: path.stem)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_linked_to_from_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in (README.parent / "docs").glob("*.md") if f"(docs/{page.name}" not in text] == []


def test_the_refusal_that_the_page_of_programs_shows_is_the_one_that_is_said() -> None:
    page = (README.parent / "docs" / "table-api.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    message, _, place = " ".join(shown.split()).partition("] program-refused: ")[2].rpartition(" at ")
    case = test_validation.CASES["windows/size-plain-number"]
    (found,) = (f for f in test_validation.unchanged(case["wrong"], "flink").findings if f.after_span is not None)
    assert (found.message, str(found.after_span)) == (message, place.replace(".py", ""))
