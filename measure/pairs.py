"""The pairs to run: SQL files, one an area, in sections as ``tests/sections.py`` reads them.

A file begins with ``-- area: several INSERTs``, perhaps ``--- given`` (what both sides begin with), then cases::

    --- case: step-halved
    -- about: what changes, in words
    -- settings-old: key=value     what the session of one side is given, one a line (optional; also settings-new)
    -- rows-before: 3              the old SQL has printed at least so many rows before its savepoint (optional)
    -- on-this-data: why           what restores right here goes wrong on other rows (optional)
    --- old
    --- new

A side ends in what makes the job: INSERT, EXECUTE STATEMENT SET, or a bare query, which gets a print sink of its own
schema. ``file://DATA/<name>`` in a path stands for the rows of ``measure/data/<name>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import sections
from tests.sections import FixtureError, Section

FOLDER = Path(__file__).parent / "pairs"
_CASE_HEADERS = frozenset({"about", "settings-old", "settings-new", "rows-before", "on-this-data"})
_TITLE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Side:
    """One script with the settings of its session; ``rows_before`` rows are printed before a savepoint is taken."""

    script: str
    settings: tuple[tuple[str, str], ...] = ()
    rows_before: int = 0


@dataclass(frozen=True)
class Pair:
    """One change; ``caveat`` says why it is right on these rows only, "" where it is right or not at all."""

    id: str
    area: str
    about: str
    old: Side
    new: Side
    caveat: str = field(default="")

    def settings(self, side: str) -> Mapping[str, str]:
        return dict((self.old if side == "old" else self.new).settings)


def load_pairs(folder: Path = FOLDER, only: str = "") -> list[Pair]:
    """Every pair of every ``*.sql`` file whose id matches ``only`` (a regular expression; "" is all).

    Raises FixtureError, with file and line, on a malformed file, and when nothing matches.
    """
    pairs = [pair for path in sorted(folder.glob("*.sql")) for pair in parse_pairs(path.read_text("utf-8"), path.name)]
    found = [pair for pair in pairs if re.search(only, pair.id)]
    if not found:
        raise FixtureError(f"{folder}: holds no pair{f' that matches {only!r}' if only else ''}")
    return found


def parse_pairs(text: str, file: str) -> list[Pair]:
    """The pairs of one file; ids are ``<file>-<case>``. Raises FixtureError on anything malformed."""
    head, given, cases = sections.read(text, file)
    _, area = sections.required(sections.headers(head, {"area"}, file), "area", head, file)
    return [_pair(*case, given=given, area=area, file=file) for case in cases]


def _pair(head: Section, old: Section, new: Section, *, given: str, area: str, file: str) -> Pair:
    if not _TITLE.fullmatch(head.title):
        raise FixtureError.at(file, head.line, f"a case is titled like step-halved, not {head.title!r}")
    found = sections.headers(head, _CASE_HEADERS, file, {"settings-old", "settings-new"})
    line, rows = found.get("rows-before", [(head.line, "0")])[0]
    if not rows.isdecimal():
        raise FixtureError.at(file, line, f"rows-before is {rows!r}, not a number")
    sides = [
        Side(given + section.text, tuple(sorted(sections.settings(found, key, file).items())), printed)
        for section, key, printed in ((old, "settings-old", int(rows)), (new, "settings-new", 0))
    ]
    return Pair(
        id=f"{Path(file).stem}-{head.title}",
        area=area,
        about=sections.required(found, "about", head, file)[1],
        old=sides[0],
        new=sides[1],
        caveat=found.get("on-this-data", [(0, "")])[0][1],
    )
