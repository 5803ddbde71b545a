"""Answers to a question about a change: their authors, who may answer, and if they decide.

This module is free of Airflow, which stores one answer of a task. A question that needs two is asked again by the same
task, which passes the former answers on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from email.utils import parseaddr
from typing import Any, Self


@dataclass(frozen=True)
class Person:
    """A user as Airflow names one."""

    id: str
    name: str

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> Person:
        """A user by id, or by ``{"id", "name"}``. Raises ValueError: it is neither."""
        if isinstance(given, str) and given:
            return cls(given, given)
        if isinstance(given, Mapping) and given.get("id") and set(given) <= {"id", "name"}:
            return cls(str(given["id"]), str(given.get("name") or given["id"]))
        raise ValueError(f"{given!r} is no user; write an id, or a table of id and name")

    def is_called(self, names: Sequence[str]) -> bool:
        """True if one of ``names`` is this user's id or name, ignoring case."""
        return bool({self.id.casefold(), self.name.casefold()} & {name.casefold() for name in names})


@dataclass(frozen=True)
class Answer:
    """A user's choice and reason. ``doubt``: unknown facts about the user."""

    by: Person
    choice: str
    reason: str | None = None
    doubt: str = ""


@dataclass(frozen=True)
class AskedQuestion:
    """A question in its present state. Times are seconds since the epoch.

    ``at`` is when it was first asked, ``until`` its end, None: never. ``escalates_at`` is when others may answer too,
    None: there are none, or they may by now. ``answers`` are those that count, one for each user.
    """

    at: float
    until: float | None = None
    escalates_at: float | None = None
    answers: tuple[Answer, ...] = field(default=())

    def with_answer(self, answer: Answer) -> AskedQuestion:
        """The question with one more answer; a user who answers again has changed their mind."""
        others = (each for each in self.answers if each.by.id != answer.by.id)
        return replace(self, answers=(*others, answer))

    def agreed(self, choice: str) -> tuple[Answer, ...]:
        """The answers with that choice."""
        return tuple(each for each in self.answers if each.choice == choice)

    def said(self) -> list[dict[str, str | None]]:
        """The answers so far, for who answers next."""
        return [{"by": each.by.name, "choice": each.choice, "reason": each.reason} for each in self.answers]

    @property
    def next_time(self) -> float | None:
        """Time of the next look without an answer."""
        return min(filter(None, (self.escalates_at, self.until)), default=None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        answers = (Answer(**{**each, "by": Person(**each["by"])}) for each in row["answers"])
        return cls(**{**row, "answers": tuple(answers)})


def is_author(person: Person, author: str | None, known: Mapping[str, Sequence[str]]) -> bool | None:
    """True if a user made the change; None if unknown."""
    if not author:
        return None
    names = [part for part in parseaddr(author) if part] or [author]
    said = [user for key, users in known.items() if key.casefold() in {n.casefold() for n in names} for user in users]
    if said:
        return person.is_called(said)
    return True if person.is_called(names) else None


def doubt(person: Person, author: str | None, told: bool | None) -> str:
    """Doubt about a user who is assumed, but not known, not to be the author; "" without one."""
    if told is not None:
        return ""
    if author is None:
        return f"whether {person.name} made the change is not known, as it has no known author"
    return f"whether {person.name} is its author, {author}, cannot be told"
