"""What a rule is: data, and a small pure function over one pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.sql import Span


class Scope(StrEnum):
    """What a rule looks at: one pair of stateful operators, the pipeline of one sink, or the whole script."""

    OPERATOR = "operator"
    PIPELINE = "pipeline"
    SCRIPT = "script"


class Level(IntEnum):
    """Who decides over whom on ``vvr``, highest first (readings.md, "What decides"); within a level the worst wins."""

    UNCHANGED = 1
    VERSION = 2
    WINDOW = 3
    OPAQUE = 4
    REST = 5


class Fate(StrEnum):
    """What becomes of one metric's stored value."""

    KEPT = "kept"
    FROM_ZERO = "starts from zero"
    DROPPED = "dropped"
    UNCLEAR = "cannot be told"

    def under(self, outcome: Outcome) -> Fate:
        """What becomes of the metric where that is the outcome: nothing can be told where the outcome cannot.

        Where state may not be used, it is what a start without state makes of it.
        """
        if outcome is Outcome.UNKNOWN:
            return Fate.UNCLEAR
        return Fate.FROM_ZERO if self is Fate.KEPT and outcome is Outcome.INCOMPATIBLE else self


class KeyFate(StrEnum):
    """What happens to one grouping key. Anything but ``same`` means other groups than those stored."""

    SAME = "same"
    MOVED = "moved"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class Verdict:
    """A rule's answer for one engine.

    ``versions`` are those the outcome was seen on, empty for every measured one: any other caps it at unknown.
    """

    outcome: Outcome
    basis: Basis
    source: str = ""
    reason: Reason | None = None
    consequence: Consequence | None = None
    versions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.outcome is Outcome.UNKNOWN) != (self.reason is not None):
            raise ValueError("an unknown verdict has a reason from the closed list, no other has one")


@dataclass(frozen=True)
class Hit:
    """A rule that fired: what it says, which differences it claims, the clauses on both sides.

    ``verdicts`` overrides the rule's own, by engine, where the pair decides it.
    """

    message: str
    claims: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    before_span: Span | None = None
    after_span: Span | None = None
    fates: tuple[tuple[str, Fate], ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """A change a reader recognises the rule by: both sides as SQL over :data:`EXAMPLE_TABLES`, or as Python.

    ``versions`` are the engine versions of both sides, None for the one that is judged by default.
    """

    old: str
    new: str
    settings_old: Mapping[str, str] = field(default_factory=dict)
    settings_new: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str | None, str | None] = (None, None)
    language: str = "sql"


@dataclass(frozen=True)
class Rule:
    """One rule: stable code, title, scope, verdict per engine, why, example, and the function that finds it.

    ``find`` gets the pair of its scope (``OperatorPair``, ``PipelinePair`` or ``Change``) and answers a
    :class:`Hit` for every place it fires. ``by_case`` are the engines on which a change of this kind may well end worse
    than the verdict, ``silent`` those on which the rule never speaks.
    """

    code: str
    title: str
    scope: Scope
    verdicts: Mapping[str, Verdict]
    why: str
    example: Example
    find: Callable[[Any], Iterable[Hit]]
    level: Level = Level.REST
    by_case: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    def headline(self, engine: str) -> str:
        """The outcome in a word, for lists: no rule is shown as safe that is so in some cases only, or says nothing."""
        if engine in self.silent:
            return "says nothing"
        return "by case" if engine in self.by_case else self.verdicts[engine].outcome.value


EXAMPLE_TABLES = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, region STRING, order_time TIMESTAMP(3),
  arrived AS PROCTIME(), WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
"""


def documented(outcome: Outcome, row: str) -> Verdict:
    """A row of the vendor's documents; an unknown one is unknown because the document says so."""
    reason = Reason.DOCUMENTED if outcome is Outcome.UNKNOWN else None
    return Verdict(outcome, Basis.DOCUMENT, row, reason)


def measured(
    outcome: Outcome, source: str, consequence: Consequence | None = None, versions: tuple[str, ...] = ()
) -> Verdict:
    """An outcome seen on a real engine."""
    return Verdict(outcome, Basis.MEASURED, source, None, consequence, versions)


def inferred(outcome: Outcome, source: str = "", reason: Reason | None = None) -> Verdict:
    """An outcome no page and no measurement states; unknown for lack of cover unless another reason is given."""
    if outcome is Outcome.UNKNOWN and reason is None:
        reason = Reason.NOT_COVERED
    return Verdict(outcome, Basis.INFERRED, source, reason)
