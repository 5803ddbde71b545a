"""The environments a program may meet: each way in which conditions on what only the environment knows may turn out.

A change is judged in each of them, on both sides alike: the deployed job met one of them, nobody knows which. A way in
which a program starts no job at all is no such environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.frontends.programs import ProgramScript

LIMIT = 200
"""Readings of a program beyond which a condition stays open: what depends on it is not read."""


@dataclass(frozen=True)
class ProgramEnvironment:
    """One of them: how conditions turn out, and both sides as they are read then."""

    decided: Mapping[str, bool]
    old: Side
    new: Side

    def __str__(self) -> str:
        said = [name if holds else f"not {name}" for name, holds in self.decided.items()]
        return ", ".join([*said[:3], *(["…"] if said[3:] else [])])


def environments(old: Side, new: Side) -> list[ProgramEnvironment]:
    """Every environment that the sides may meet, at most :data:`LIMIT` of them; one where nothing depends on it."""
    found = list(_all(old, new)) if "python" in (old.language, new.language) else []
    if len(found) < 2:
        return found or [ProgramEnvironment({}, old, new)]
    running = [each for each in found if _starts(each.old) and _starts(each.new)]
    different = {(_reading(each.old), _reading(each.new)): each for each in reversed(running or found)}
    return list(reversed(different.values()))


def _all(old: Side, new: Side) -> Iterator[ProgramEnvironment]:
    pending: list[dict[str, bool]] = [{}]
    readings = 0
    same = _same(old, new)
    while pending:
        decided = pending.pop()
        readings += 1
        before = _under(old, decided)
        now = ProgramEnvironment(decided, before, before if same else _under(new, decided))
        condition = _undecided(now.old) or _undecided(now.new)
        if not condition or readings + len(pending) >= LIMIT:
            yield now
        else:
            pending += [{**decided, condition: False}, {**decided, condition: True}]


def _under(side: Side, decided: Mapping[str, bool]) -> Side:
    return replace(side, decided=decided) if decided and side.language == "python" else side


def _same(old: Side, new: Side) -> bool:
    """Whether both read the same."""
    return (old.language, old.digest(), old.source) == (new.language, new.digest(), new.source)


def _undecided(side: Side) -> str:
    script = side.parsed
    return script.undecided[0] if isinstance(script, ProgramScript) and script.undecided else ""


def _starts(side: Side) -> bool:
    """Whether a job comes of it, or something unread could be one."""
    return bool(side.program.pipelines or side.program.problems)


def _reading(side: Side) -> object:
    script = side.parsed
    unread = script.unread if isinstance(script, ProgramScript) else ()
    return tuple(statement.text for statement in script.statements), unread
