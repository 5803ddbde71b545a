"""The form of SQL fixtures: headers, an optional ``--- given``, then cases of three sections each.

The reader of a file knows its headers: :mod:`airflow_flinkcompat.testing.fixture_cases` those of expected outcomes,
``dev/measure/pairs.py`` those of pairs that run on a real Flink.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

_SECTION = re.compile(r"---\s+(?P<name>\w+)\s*(?::\s*(?P<title>.*))?$")
_HEADER = re.compile(r"--\s+(?P<key>[\w-]+)\s*:\s*(?P<value>.*)$")

Headers = dict[str, list[tuple[int, str]]]
"""``-- key: value`` lines by key, each value with its line, 1-based."""


class FixtureError(ValueError):
    """A fixture file that cannot be read; the message begins with ``file:line``."""

    @staticmethod
    def at(file: str, line: int, message: str) -> FixtureError:
        return FixtureError(f"{file}:{line}: {message}")


@dataclass
class FixtureSection:
    """The numbered lines after one ``---`` line.

    Attributes:
        line: The first line of the section, 1-based.
    """

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
    """The head of the file, the text of ``--- given``, and case, old and new of each case.

    ``file`` names it in errors. Raises FixtureError on anything malformed.
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
                file, triple[-1].line, f"the case ends after '--- {triple[-1].name}'; it needs old and new"
            )
        case, old, new = triple
        if not case.title:
            raise FixtureError.at(file, case.line, "a case needs a title: '--- case: document example'")
        for side in (old, new):
            if not side.text.strip():
                raise FixtureError.at(file, side.line, f"'--- {side.name}' holds no SQL")
        if any(other.title == case.title for other, _, _ in cases):
            raise FixtureError.at(file, case.line, f"a second case is titled {case.title!r}")
        cases.append((case, old, new))
    if not cases:
        raise FixtureError.at(file, head.line, "holds no case")
    return head, given, cases


def split(text: str, file: str, names: Collection[str] = ("given", "case", "old", "new")) -> list[FixtureSection]:
    """The head of the file, then one section per ``---`` line; only a case has a title."""
    sections = [FixtureSection("head", "", 1)]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("---"):
            sections[-1].lines.append((number, line))
            continue
        mark = _SECTION.fullmatch(line)
        if mark is None or mark["name"] not in names:
            raise FixtureError.at(file, number, f"{line!r} is no section; use {_listed(names)}")
        if mark["title"] and mark["name"] != "case":
            raise FixtureError.at(file, number, f"'--- {mark['name']}' takes no title")
        sections.append(FixtureSection(mark["name"], (mark["title"] or "").strip(), number))
    return sections


def _listed(names: Collection[str]) -> str:
    marks = [f"--- {name}{': title' if name == 'case' else ''}" for name in names]
    return f"{', '.join(marks[:-1])} or {marks[-1]}"


def headers(section: FixtureSection, known: Collection[str], file: str, lists: Collection[str] = ()) -> Headers:
    """The headers of a section; only those in ``lists`` may stand there more than once."""
    found: Headers = {}
    for number, key, value in _header_lines(section, file):
        if key not in known:
            raise FixtureError.at(file, number, f"header {key!r} is none of {', '.join(sorted(known))}")
        if not value:
            raise FixtureError.at(file, number, f"header {key!r} is empty")
        if key in found and key not in lists:
            raise FixtureError.at(file, number, f"header {key!r} stands here a second time")
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
    """The header's only value with its line."""
    if key not in found:
        raise FixtureError.at(file, section.line, f"'-- {key}: …' is missing")
    return found[key][0]


def settings(found: Headers, key: str, file: str) -> dict[str, str]:
    """The values ``key=value`` of a header that may stand there several times."""
    pairs = {}
    for line, item in found.get(key, []):
        name, equals, value = item.partition("=")
        if not (equals and name.strip()):
            raise FixtureError.at(file, line, f"{item!r} is no setting; write key=value")
        pairs[name.strip()] = value.strip()
    return pairs
