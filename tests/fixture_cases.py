"""Reads the SQL fixtures: one file a rule, many cases a file, no Python needed to add one.

A file begins with ``-- row: N. title`` and ``-- rule: code``. Then come sections, each begun by a line of its own::

    --- given                 declarations that both sides of every case begin with (optional)
    --- case: near miss, …    a case; its first words say what it is: document example, variant or near miss
    -- outcome: partial       expected outcome: compatible, partial, unknown or incompatible
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

OUTCOMES = ("compatible", "partial", "unknown", "incompatible")
FUNCTION_KINDS = ("scalar", "aggregate", "table")
FUNCTION_LANGUAGES = ("java", "scala", "python")

_SECTION = re.compile(r"---\s+(?P<name>\w+)\s*(?::\s*(?P<title>.*))?$")
_HEADER = re.compile(r"--\s+(?P<key>[\w-]+)\s*:\s*(?P<value>.*)$")
_ROW = re.compile(r"(?P<row>\d+)\.\s+\S")
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LISTS = frozenset({"functions", "settings-old", "settings-new"})
_CASE_HEADERS = frozenset({"outcome", "fires", "not"}) | _LISTS


class FixtureError(ValueError):
    """A fixture file that cannot be read; the message begins with ``file:line``."""


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


@dataclass
class _Section:
    name: str
    title: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(f"{text}\n" for _, text in self.lines)


def load_cases(folder: Path) -> list[Case]:
    """Every case of every ``*.sql`` file of the folder, in the order of file names and lines.

    Raises FixtureError, with file and line, on a malformed file, and when the folder holds none.
    """
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise FixtureError(f"{folder}: holds no .sql file")
    return [case for path in paths for case in parse_cases(path.read_text(encoding="utf-8"), path.name)]


def parse_cases(text: str, file: str) -> list[Case]:
    """The cases of one fixture file; ``file`` names it in errors. Raises FixtureError on anything malformed."""
    sections = _sections(text, file)
    head = sections[0]
    headers = _headers(head, frozenset({"row", "rule"}), file)
    number, title = _required(headers, "row", head, file)
    row = _ROW.match(title)
    if row is None:
        raise _error(file, number, f"row is {title!r}; write its number, a full stop and what it is about")
    rule = _codes(*_required(headers, "rule", head, file), file)
    if len(rule) != 1:
        raise _error(file, head.line, "a file has exactly one rule")

    rest = sections[1:]
    given = ""
    if rest and rest[0].name == "given":
        given = rest.pop(0).text
    cases: list[Case] = []
    while rest:
        triple, rest = rest[:3], rest[3:]
        for section, name in zip(triple, ("case", "old", "new"), strict=False):
            if section.name != name:
                raise _error(file, section.line, f"expected '--- {name}' here, found '--- {section.name}'")
        if len(triple) != 3:
            raise _error(file, triple[-1].line, f"the case ends after '--- {triple[-1].name}'; it needs old and new")
        case = _case(*triple, file=file, row=int(row["row"]), rule=rule[0], given=given)
        if any(other.title == case.title for other in cases):
            raise _error(file, case.line, f"a second case is titled {case.title!r}")
        cases.append(case)
    if not cases:
        raise _error(file, head.line, "holds no case")
    return cases


def _case(head: _Section, old: _Section, new: _Section, *, file: str, row: int, rule: str, given: str) -> Case:
    if not head.title:
        raise _error(file, head.line, "a case needs a title: '--- case: document example'")
    for side in (old, new):
        if not side.text.strip():
            raise _error(file, side.line, f"'--- {side.name}' holds no SQL")
    headers = _headers(head, _CASE_HEADERS, file)
    number, outcome = _required(headers, "outcome", head, file)
    if outcome not in OUTCOMES:
        raise _error(file, number, f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}")
    fires, not_fires = (
        tuple(code for line, value in headers.get(key, []) for code in _codes(line, value, file))
        for key in ("fires", "not")
    )
    if both := set(fires) & set(not_fires):
        raise _error(file, head.line, f"{', '.join(sorted(both))} can not both fire and not fire")
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
        fires=fires,
        not_fires=not_fires,
        functions=tuple(
            _function(line, item.strip(), file)
            for line, value in headers.get("functions", [])
            for item in value.split(",")
        ),
        settings_old=dict(_setting(line, value, file) for line, value in headers.get("settings-old", [])),
        settings_new=dict(_setting(line, value, file) for line, value in headers.get("settings-new", [])),
    )


def _sections(text: str, file: str) -> list[_Section]:
    """The head of the file, then one section per ``---`` line."""
    sections = [_Section("head", "", 1)]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("---"):
            sections[-1].lines.append((number, line))
            continue
        mark = _SECTION.fullmatch(line)
        if mark is None or mark["name"] not in {"given", "case", "old", "new"}:
            raise _error(file, number, f"{line!r} is no section; use --- given, --- case: title, --- old or --- new")
        if mark["title"] and mark["name"] != "case":
            raise _error(file, number, f"'--- {mark['name']}' takes no title")
        sections.append(_Section(mark["name"], (mark["title"] or "").strip(), number))
    return sections


def _headers(section: _Section, known: frozenset[str], file: str) -> dict[str, list[tuple[int, str]]]:
    """``-- key: value`` lines by key, each value with its line; only headers that name a list may repeat."""
    found: dict[str, list[tuple[int, str]]] = {}
    for number, key, value in _header_lines(section, file):
        if key not in known:
            raise _error(file, number, f"header {key!r} is none of {', '.join(sorted(known))}")
        if not value:
            raise _error(file, number, f"header {key!r} is empty")
        if key in found and key not in _LISTS:
            raise _error(file, number, f"header {key!r} stands here a second time")
        found.setdefault(key, []).append((number, value))
    return found


def _header_lines(section: _Section, file: str) -> Iterator[tuple[int, str, str]]:
    for number, line in section.lines:
        if not line.strip():
            continue
        match = _HEADER.fullmatch(line.rstrip())
        if match is None:
            raise _error(file, number, f"expected a header such as '-- outcome: partial', found {line!r}")
        yield number, match["key"], match["value"].strip()


def _required(headers: dict[str, list[tuple[int, str]]], key: str, section: _Section, file: str) -> tuple[int, str]:
    if key not in headers:
        raise _error(file, section.line, f"'-- {key}: …' is missing")
    return headers[key][0]


def _codes(line: int, value: str, file: str) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in value.split(","))
    for code in codes:
        if not _CODE.fullmatch(code):
            raise _error(file, line, f"{code!r} is no rule code")
    return codes


def _function(line: int, item: str, file: str) -> tuple[str, str, str]:
    name, equals, rest = item.partition("=")
    kind, _, language = rest.partition(":")
    declared = (name.strip(), kind.strip(), language.strip() or "java")
    if not (equals and declared[0] and declared[1] in FUNCTION_KINDS and declared[2] in FUNCTION_LANGUAGES):
        raise _error(file, line, f"{item!r} is no function; write name=kind or name=kind:language")
    return declared


def _setting(line: int, item: str, file: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not (equals and key.strip()):
        raise _error(file, line, f"{item!r} is no setting; write key=value")
    return key.strip(), value.strip()


def _error(file: str, line: int, message: str) -> FixtureError:
    return FixtureError(f"{file}:{line}: {message}")
