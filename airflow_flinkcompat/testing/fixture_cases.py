"""Reads the SQL fixtures: one file a rule, many cases a file, no Python needed to add one.

A file begins with ``-- row: N. title`` and, where it is about one rule, ``-- rule: code``. Then come sections, each
begun by a line of its own::

    --- given                 declarations that both sides of every case begin with (optional)
    --- case: near miss, …    a case; its first words say what it is: document example, variant or near miss
    -- outcome: partial       expected outcome: compatible, partial, unknown or incompatible
    -- flink: incompatible    expected outcome on open-source Flink (optional)
    -- fires: code, code      rules that decide (optional)
    -- not: code              rules that must not decide (optional)
    -- functions: name=kind[:language], …   what the caller declares besides the script (optional)
    -- settings-old: key=value              settings of one side, one a line (optional; also settings-new)
    --- old
    --- new

Every other line belongs to the section it stands in; SQL comments there stay SQL comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.testing import sections
from airflow_flinkcompat.testing.sections import FixtureError, FixtureSection

FUNCTION_KINDS = ("scalar", "aggregate", "table")
FUNCTION_LANGUAGES = ("java", "scala", "python")

_ROW = re.compile(r"(?P<row>\d+)\.\s+\S")
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LISTS = frozenset({"functions", "settings-old", "settings-new"})
_CASE_HEADERS = frozenset({"outcome", "flink", "fires", "not"}) | _LISTS


@dataclass(frozen=True)
class Case:
    """One change and what is expected of it; ``line`` is where the case begins in ``file``, 1-based."""

    file: str
    line: int
    row: int
    rule: str
    title: str
    given: str
    old: str
    new: str
    outcome: str
    flink: str = ""
    """The outcome on open-source Flink; "" where the file says none."""
    fires: tuple[str, ...] = ()
    not_fires: tuple[str, ...] = ()
    functions: tuple[tuple[str, str, str], ...] = ()
    """Name, kind and language of each function the caller declares."""
    settings_old: Mapping[str, str] = field(default_factory=dict)
    settings_new: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.file}::{self.title}"

    @property
    def old_script(self) -> str:
        return self.given + self.old

    @property
    def new_script(self) -> str:
        return self.given + self.new


def load_cases(folder: Path) -> list[Case]:
    """Every case of every ``*.sql`` file of the folder, in the order of file names and lines.

    Raises FixtureError, with file and line, on a malformed file, and when the folder holds none.
    """
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise FixtureError(f"{folder}: holds no .sql file")
    return [case for path in paths for case in parse_cases(path.read_text(encoding="utf-8"), path.name)]


def parse_cases(text: str, file: str) -> list[Case]:
    """Parse one fixture file.

    Args:
        text: The content of the file.
        file: Its name in errors.

    Returns:
        The cases in the order of the file.

    Raises:
        FixtureError: A line is malformed.
    """
    head, given, cases = sections.read(text, file)
    found = sections.headers(head, {"row", "rule"}, file)
    number, title = sections.required(found, "row", head, file)
    row = _ROW.match(title)
    if row is None:
        raise FixtureError.at(file, number, f"row is {title!r}; write its number, a full stop and what it is about")
    rule = [code for line, value in found.get("rule", []) for code in _codes(line, value, file)]
    if len(rule) > 1:
        raise FixtureError.at(file, head.line, "a file is about one rule or none")
    return [_case(*case, file=file, row=int(row["row"]), rule="".join(rule), given=given) for case in cases]


def _case(
    head: FixtureSection, old: FixtureSection, new: FixtureSection, *, file: str, row: int, rule: str, given: str
) -> Case:
    found = sections.headers(head, _CASE_HEADERS, file, _LISTS)
    outcome = _outcome(*sections.required(found, "outcome", head, file), file)
    fires, not_fires = (
        tuple(code for line, value in found.get(key, []) for code in _codes(line, value, file))
        for key in ("fires", "not")
    )
    if both := set(fires) & set(not_fires):
        raise FixtureError.at(file, head.line, f"{', '.join(sorted(both))} can not both fire and not fire")
    return Case(
        file=file,
        line=head.line,
        row=row,
        rule=rule,
        title=head.title,
        given=given,
        old=old.text,
        new=new.text,
        outcome=outcome,
        flink="".join(_outcome(line, value, file) for line, value in found.get("flink", [])),
        fires=fires,
        not_fires=not_fires,
        functions=tuple(
            _function(line, item.strip(), file)
            for line, value in found.get("functions", [])
            for item in value.split(",")
        ),
        settings_old=sections.settings(found, "settings-old", file),
        settings_new=sections.settings(found, "settings-new", file),
    )


def _outcome(line: int, value: str, file: str) -> str:
    if value not in tuple(Outcome):
        raise FixtureError.at(file, line, f"outcome {value!r} is none of {', '.join(Outcome)}")
    return value


def _codes(line: int, value: str, file: str) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in value.split(","))
    for code in codes:
        if not _CODE.fullmatch(code):
            raise FixtureError.at(file, line, f"{code!r} is no rule code")
    return codes


def _function(line: int, item: str, file: str) -> tuple[str, str, str]:
    name, equals, rest = item.partition("=")
    kind, _, language = rest.partition(":")
    declared = (name.strip(), kind.strip(), language.strip() or "java")
    if not (equals and declared[0] and declared[1] in FUNCTION_KINDS and declared[2] in FUNCTION_LANGUAGES):
        raise FixtureError.at(file, line, f"{item!r} is no function; write name=kind or name=kind:language")
    return declared
