"""Programs in the styles found in public: read whole, or up to the first statement beyond the subset.

A line that ends in ``# unread: reason`` is reported for that reason, and no other line is; ``# given: NAME=VALUE`` is
what ``--var`` would say. A folder is one program, the one that lies next to the modules and files it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import ENGINES, Outcome, Side, check
from airflow_flinkcompat.frontends.pyflink.reader import parse_program

PUBLIC = Path(__file__).parents[2] / "fixtures" / "table_api" / "public"
WITH_FILES = {"template_files": "job.py", "shared_run": "job.py"}


@dataclass(frozen=True)
class Public:
    """A program, what is given for it, and the texts beside it."""

    text: str
    given: Mapping[str, str]
    files: Mapping[str, str]
    marked: Mapping[int, str]

    def side(self, text: str = "") -> Side:
        return Side(text or self.text, source="job.py", language="python", variables=self.given, files=self.files)


def public(path: Path) -> Public:
    text = path.read_text(encoding="utf-8")
    beside = path.parent.rglob("*.*") if path.parent != PUBLIC else ()
    files = {file.relative_to(path.parent).as_posix(): file.read_text(encoding="utf-8") for file in beside}
    marked = {n: m[1] for n, line in enumerate(text.split("\n"), 1) if (m := re.search(r"# unread: (.+)$", line))}
    given = dict(line.split("=", 1) for line in re.findall(r"^# given: (.+)$", text, re.MULTILINE))
    return Public(text, given, files, marked)


PROGRAMS = {path.stem: public(path) for path in sorted(PUBLIC.glob("*.py"))} | {
    folder: public(PUBLIC / folder / name) for folder, name in WITH_FILES.items()
}
WHOLE = sorted(name for name, program in PROGRAMS.items() if not program.marked)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_first_statement_that_is_not_read_is_reported_and_no_other(name: str) -> None:
    program = PROGRAMS[name]
    script = parse_program(program.text, "job.py", program.given, program.files)
    found: dict[int, str] = {}
    for unread in script.unread:
        assert unread.span.source == "job.py"
        found.setdefault(unread.span.line, unread.reason)
    assert found.keys() == program.marked.keys()
    assert [(line, found[line]) for line, why in program.marked.items() if why not in found[line]] == []
    assert [statement.error for statement in script.statements if statement.error] == []


@pytest.mark.parametrize("name", WHOLE)
def test_a_program_read_whole_has_a_query_and_is_unchanged_beside_itself(name: str) -> None:
    side = PROGRAMS[name].side()
    assert side.program.pipelines
    assert [finding.rule for finding in check(side, PROGRAMS[name].side()).findings] == ["unchanged"]


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("udf_registered", "1 + VAT", "1 - VAT"),
        ("udf_registered", "0.19", "0.20"),
        ("udf_registered", "round(value, 2)", "round(value, 3)"),
        ("udf_inline", "text.strip()", "text.rstrip()"),
        ("udf_inline", "value * self.factor", "value + self.factor"),
        ("udf_inline", "Scale(2)", "Scale(3)"),
        ("udf_inline", "len(text)", "len(text) + 1"),
        ("udaf_pandas", "v.mean()", "v.max()"),
        ("udtf_lateral", "line.split()", "line.split(',')"),
    ],
)
def test_a_python_function_with_another_body_is_never_compatible(
    name: str, before: str, after: str, engine: str
) -> None:
    program = PROGRAMS[name]
    assert before in program.text
    old, new = program.side(), program.side(program.text.replace(before, after))
    assert check(old.on(engine), new.on(engine)).outcome is Outcome.UNKNOWN


def test_what_a_program_does_around_a_python_function_is_not_its_body() -> None:
    program = PROGRAMS["udf_registered"]
    edited = program.text.replace('"""A Python function', '"""Another word: a Python function').replace(
        "def rounded(value):\n", "def rounded(value):\n    # to cents\n"
    )
    assert [finding.rule for finding in check(program.side(), program.side(edited)).findings] == ["unchanged"]


def test_a_changed_module_is_a_changed_program() -> None:
    program = PROGRAMS["shared_run"]
    tables = program.files["common/tables.py"]
    files = {**program.files, "common/tables.py": tables.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)")}
    old = program.side()
    new = Side(program.text, source="job.py", language="python", files=files)
    assert old.sha256 != new.sha256
    assert "unchanged" not in {finding.rule for finding in check(old, new).findings}
