"""Reader of SQL fixtures: each file contains the test cases of one rule, without Python code.

A file begins with ``-- row: N. title``. If all cases test one rule, ``-- rule: code`` follows. The rest of the file
consists of sections. A section begins with a ``---`` line, and ``--`` lines may follow::

    --- given                 declarations at the beginning of both sides of every case (optional)
    --- case: near miss, …    a case; the title begins with its kind: document example, variant or near miss
    -- outcome: partial       expected outcome: compatible, partial, unknown or incompatible
    -- flink: incompatible    expected outcome on open-source Flink (optional)
    -- fires: code, code      rules that decide on engine vvr (optional)
    -- not: code              rules that must not decide on engine vvr (optional)
    -- functions: name=kind[:language], …   functions that the caller declares outside the script (optional)
    -- settings-old: key=value              a setting of the old side (optional, repeatable; also settings-new)
    --- old
    --- new

Every other line, including SQL comments, belongs to the section above it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_flinkcompat.model import Outcome

FUNCTION_KINDS = ("scalar", "aggregate", "table")
FUNCTION_LANGUAGES = ("java", "scala", "python")

_ROW = re.compile(r"(?P<row>\d+)\.\s+\S")
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LISTS = frozenset({"functions", "settings-old", "settings-new"})
_CASE_HEADERS = frozenset({"outcome", "flink", "fires", "not"}) | _LISTS


@dataclass(frozen=True)
class Case:
    """A change with its expected verdict; ``line`` is the case's first line in ``file``, 1-based."""

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
    """The expected outcome on open-source Flink, or "" if the case does not specify one."""
    fires: tuple[str, ...] = ()
    not_fires: tuple[str, ...] = ()
    functions: tuple[tuple[str, str, str], ...] = ()
    """Name, kind and language of each function that the caller declares."""
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
    """All cases of the folder's ``*.sql`` files, in order of file name. Raises FixtureError."""
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise FixtureError(f"{folder} contains no .sql file")
    return [case for path in paths for case in parse_cases(path.read_text(encoding="utf-8"), path.name)]


def parse_cases(text: str, file: str) -> list[Case]:
    """Parse the text of a fixture file. Error messages refer to the text as ``file``. Raises FixtureError."""
    head, given, cases = read(text, file)
    found = headers(head, {"row", "rule"}, file)
    number, title = required(found, "row", head, file)
    row = _ROW.match(title)
    if row is None:
        raise FixtureError.at(file, number, f"row is {title!r}; write the row's number, a full stop and a title")
    rule = [code for line, value in found.get("rule", []) for code in _codes(line, value, file)]
    if len(rule) > 1:
        raise FixtureError.at(file, head.line, "a file may name at most one rule")
    return [_case(*case, file=file, row=int(row["row"]), rule="".join(rule), given=given) for case in cases]


def _case(
    head: FixtureSection, old: FixtureSection, new: FixtureSection, *, file: str, row: int, rule: str, given: str
) -> Case:
    found = headers(head, _CASE_HEADERS, file, _LISTS)
    outcome = _outcome(*required(found, "outcome", head, file), file)
    fires, not_fires = (
        tuple(code for line, value in found.get(key, []) for code in _codes(line, value, file))
        for key in ("fires", "not")
    )
    if both := set(fires) & set(not_fires):
        raise FixtureError.at(file, head.line, f"{', '.join(sorted(both))} cannot both fire and not fire")
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
        settings_old=settings(found, "settings-old", file),
        settings_new=settings(found, "settings-new", file),
    )


def _outcome(line: int, value: str, file: str) -> str:
    if value not in tuple(Outcome):
        raise FixtureError.at(file, line, f"outcome {value!r} is not one of {', '.join(Outcome)}")
    return value


def _codes(line: int, value: str, file: str) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in value.split(","))
    for code in codes:
        if not _CODE.fullmatch(code):
            raise FixtureError.at(file, line, f"{code!r} is not a rule code")
    return codes


def _function(line: int, item: str, file: str) -> tuple[str, str, str]:
    name, equals, rest = item.partition("=")
    kind, _, language = rest.partition(":")
    declared = (name.strip(), kind.strip(), language.strip() or "java")
    if not (equals and declared[0] and declared[1] in FUNCTION_KINDS and declared[2] in FUNCTION_LANGUAGES):
        raise FixtureError.at(file, line, f"{item!r} is not a function; write name=kind or name=kind:language")
    return declared


_SECTION = re.compile(r"---\s+(?P<name>\w+)\s*(?::\s*(?P<title>.*))?$")
_HEADER = re.compile(r"--\s+(?P<key>[\w-]+)\s*:\s*(?P<value>.*)$")

Headers = dict[str, list[tuple[int, str]]]
"""Values of ``-- key: value`` lines by key, each with its 1-based line number."""


class FixtureError(ValueError):
    """Raised if a fixture file is malformed. The error message begins with ``file:line``."""

    @staticmethod
    def at(file: str, line: int, message: str) -> FixtureError:
        return FixtureError(f"{file}:{line}: {message}")


@dataclass
class FixtureSection:
    """A section with its numbered lines; ``line`` is the number of its ``---`` line, or 1 for the head."""

    name: str
    title: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(f"{text}\n" for _, text in self.lines)


def read(
    text: str, file: str
) -> tuple[FixtureSection, str, list[tuple[FixtureSection, FixtureSection, FixtureSection]]]:
    """The head section, the text of ``--- given``, and each case's three sections (case, old, new).

    Raises FixtureError.
    """
    head, *rest = split(text, file)
    given = ""
    if rest and rest[0].name == "given":
        given = rest.pop(0).text
    cases: list[tuple[FixtureSection, FixtureSection, FixtureSection]] = []
    while rest:
        triple, rest = rest[:3], rest[3:]
        for section, name in zip(triple, ("case", "old", "new"), strict=False):
            if section.name != name:
                raise FixtureError.at(file, section.line, f"expected '--- {name}' here, found '--- {section.name}'")
        if len(triple) != 3:
            raise FixtureError.at(
                file, triple[-1].line, f"the case ends after '--- {triple[-1].name}', but needs '--- old' and '--- new'"
            )
        case, old, new = triple
        if not case.title:
            raise FixtureError.at(file, case.line, "a case needs a title: '--- case: document example'")
        for side in (old, new):
            if not side.text.strip():
                raise FixtureError.at(file, side.line, f"'--- {side.name}' contains no SQL")
        if any(other.title == case.title for other, _, _ in cases):
            raise FixtureError.at(file, case.line, f"two cases have the title {case.title!r}")
        cases.append((case, old, new))
    if not cases:
        raise FixtureError.at(file, head.line, "the file contains no case")
    return head, given, cases


def split(text: str, file: str, names: Collection[str] = ("given", "case", "old", "new")) -> list[FixtureSection]:
    """The file's head, then one section for each ``---`` line. Only a section ``case`` has a title."""
    sections = [FixtureSection("head", "", 1)]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("---"):
            sections[-1].lines.append((number, line))
            continue
        mark = _SECTION.fullmatch(line)
        if mark is None or mark["name"] not in names:
            raise FixtureError.at(file, number, f"{line!r} is not a section; use {_joined_names(names)}")
        if mark["title"] and mark["name"] != "case":
            raise FixtureError.at(file, number, f"'--- {mark['name']}' does not accept a title")
        sections.append(FixtureSection(mark["name"], (mark["title"] or "").strip(), number))
    return sections


def _joined_names(names: Collection[str]) -> str:
    marks = [f"--- {name}{': title' if name == 'case' else ''}" for name in names]
    return f"{', '.join(marks[:-1])} or {marks[-1]}"


def headers(section: FixtureSection, known: Collection[str], file: str, lists: Collection[str] = ()) -> Headers:
    """The headers of a section. Only headers in ``lists`` may be repeated."""
    found: Headers = {}
    for number, key, value in _header_lines(section, file):
        if key not in known:
            raise FixtureError.at(file, number, f"header {key!r} is not one of {', '.join(sorted(known))}")
        if not value:
            raise FixtureError.at(file, number, f"header {key!r} is empty")
        if key in found and key not in lists:
            raise FixtureError.at(file, number, f"header {key!r} is repeated; remove one of the lines")
        found.setdefault(key, []).append((number, value))
    return found


def _header_lines(section: FixtureSection, file: str) -> Iterator[tuple[int, str, str]]:
    for number, line in section.lines:
        if not line.strip():
            continue
        match = _HEADER.fullmatch(line.rstrip())
        if match is None:
            raise FixtureError.at(file, number, f"expected a header such as '-- outcome: partial', found {line!r}")
        yield number, match["key"], match["value"].strip()


def required(found: Headers, key: str, section: FixtureSection, file: str) -> tuple[int, str]:
    """The value of a required header, with its line number."""
    if key not in found:
        raise FixtureError.at(file, section.line, f"'-- {key}: …' is missing")
    return found[key][0]


def settings(found: Headers, key: str, file: str) -> dict[str, str]:
    """The ``key=value`` pairs of a repeatable header."""
    pairs = {}
    for line, item in found.get(key, []):
        name, equals, value = item.partition("=")
        if not (equals and name.strip()):
            raise FixtureError.at(file, line, f"{item!r} is not a setting; write key=value")
        pairs[name.strip()] = value.strip()
    return pairs
