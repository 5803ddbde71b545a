"""What the README shows is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli

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
