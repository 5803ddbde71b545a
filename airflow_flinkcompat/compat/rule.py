"""A rule: data, and a small pure function over one pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum, IntEnum, StrEnum, auto
from typing import Any

from airflow_flinkcompat.compat.verdict import Verdict, unknown
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import Outcome, Span


class RuleScope(StrEnum):
    """Object of a rule: one pair of stateful operators, the pipeline of one sink, or the whole script."""

    OPERATOR = "operator"
    PIPELINE = "pipeline"
    SCRIPT = "script"


class Level(IntEnum):
    """Precedence on ``vvr``, highest first; within a level the worst wins."""

    UNCHANGED = 1
    VERSION = 2
    WINDOW = 3
    OPAQUE = 4
    REST = 5


class TableApiCover(Enum):
    """Range in which a rule about SQL also holds for the Table API, on engine ``flink``.

    ``OWN``: the rule is about them. ``ALWAYS``: its subject disappears before a query is planned. ``ONE_QUERY``: in
    programs of one query. ``ONE_WINDOW``: above one operator, an aggregation on a window.
    """

    NEVER = auto()
    OWN = auto()
    ALWAYS = auto()
    ONE_QUERY = auto()
    ONE_WINDOW = auto()


class Fate(StrEnum):
    """Fate of one metric's stored value; ``same``: the metric is unchanged, something else is in doubt."""

    KEPT = "kept"
    FROM_ZERO = "starts from zero"
    DROPPED = "dropped"
    UNCLEAR = "cannot be told"
    SAME = "same"

    def under(self, outcome: Outcome) -> Fate:
        """Fate of the metric under an outcome: unknown if the outcome is.

        If state may not be used, it is the fate in a start without state.
        """
        if outcome is Outcome.UNKNOWN:
            return Fate.UNCLEAR
        return Fate.FROM_ZERO if self is Fate.KEPT and outcome is Outcome.INCOMPATIBLE else self


class KeyFate(StrEnum):
    """Fate of one grouping key. Anything but ``same`` means other groups than those stored."""

    SAME = "same"
    MOVED = "moved"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class RuleMatch:
    """A rule that fired: its message, claimed differences, and the clauses on both sides.

    ``verdicts`` overrides the rule's own, by engine, if the pair decides it; ``notes`` extends the message on an
    engine; ``options`` are the keys of its options.
    """

    message: str
    claims: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    _: KW_ONLY
    before_span: Span | None = None
    after_span: Span | None = None
    fates: tuple[tuple[str, Fate], ...] = ()
    verdicts: Mapping[str, Verdict | None] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A change that illustrates the rule: both sides as SQL over :data:`EXAMPLE_TABLES`, or Python.

    ``versions`` are the engine versions of both sides, None for the default. ``outcomes`` are, by engine, the rule's
    answer if this change sharpens the rule's own verdict.
    """

    old: str
    new: str
    settings_old: Mapping[str, str] = field(default_factory=dict)
    settings_new: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str | None, str | None] = (None, None)
    language: str = "sql"
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


Find = Callable[[Any], Iterable[RuleMatch]]
"""Search for the places where a rule applies, in the pair of its scope."""
_SCOPES = {"OperatorPair": RuleScope.OPERATOR, "PipelinePair": RuleScope.PIPELINE, "Change": RuleScope.SCRIPT}
"""Scopes, by the class of the argument of a search."""


def _nowhere(target: Any) -> Iterable[RuleMatch]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: code, title, verdicts, rationale and example. It decorates the search for its places.

    Everything about a rule is a field here, so that other modules keep no lists of rules.

    Attributes:
        find: Gets the pair of its scope (``OperatorPair``, ``PipelinePair`` or ``Change``) and answers a
            :class:`RuleMatch` for every place where the rule applies.
        operators: The classes of operators it is about. Empty: it may apply without any of them.
        parts: The parts of which at least one differs if it applies, without the number of an input; ``table`` is any
            part of a table's declaration. Empty: it may apply if none differs.
        level: Who decides over whom on ``vvr``.
        case_dependent: Engines on which a change of this kind may well end worse than the verdict.
        not_applicable: Engines on which the rule never speaks.
        table_api_cover: Where it holds of queries through the Table API.
        yields_to: The code of the rule that decides over it where both speak in one pipeline, because its page does; ""
            where the worse one decides.
        beside_operators: It is about tables, settings or the parts of a query above its operators alone: if it is in
            doubt, an operator in which nothing changed is still the same.
    """

    code: str
    title: str
    vvr: Verdict
    flink: Verdict
    rationale: str
    example: Example
    scope: RuleScope = RuleScope.SCRIPT
    find: Find = _nowhere
    operators: tuple[type, ...] = ()
    parts: tuple[str, ...] = ()
    level: Level = Level.REST
    case_dependent: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    table_api_cover: TableApiCover = TableApiCover.NEVER
    yields_to: str = ""
    beside_operators: bool = False

    def __call__(self, find: Find) -> Rule:
        """The rule with its search, whose argument determines the scope."""
        return replace(self, find=find, scope=_SCOPES[next(iter(find.__annotations__.values()))])

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict on each engine."""
        return {"vvr": self.vvr, "flink": self.flink}

    def headline(self, engine: str) -> str:
        """The outcome in a word, for lists: a rule that is safe only in some cases is not shown as safe."""
        if engine in self.not_applicable:
            return "no finding"
        return "by case" if engine in self.case_dependent else self.verdicts[engine].outcome.value


EXAMPLE_TABLES = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, region STRING, order_time TIMESTAMP(3),
  arrived AS PROCTIME(), WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
"""

MINUTE = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))"


def windowed(select: str, keys: str = "customer, window_start, window_end", source: str = MINUTE) -> str:
    """A windowed aggregation over the example table."""
    return f"SELECT {select}\nFROM {source}\nGROUP BY {keys};"


def selecting(old: str, new: str) -> Example:
    """An example that changes only the SELECT list."""
    return Example(windowed(old), windowed(new))


def grouping(select: str, old: str, new: str) -> Example:
    """An example that changes only the GROUP BY."""
    return Example(windowed(select, old), windowed(select, new))


def reading(select: str, old: str, new: str) -> Example:
    """An example that changes only the read tables."""
    return Example(windowed(select, source=old), windowed(select, source=new))


def ranked(
    select: str = "customer, total, window_start",
    inner: str = "customer, SUM(amount) AS total, MAX(item) AS item",
    keys: str = "customer, window_start, window_end",
    partition: str = "window_start, window_end",
    order: str = "total DESC",
    condition: str = "place <= 3",
) -> str:
    """A window Top-N over a windowed aggregation of the example table."""
    rows = windowed(f"{inner}, window_start, window_end", keys).rstrip(";")
    number = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
    return f"SELECT {select}\nFROM (\nSELECT *, {number}\nFROM (\n{rows}\n))\nWHERE {condition};"


_TOTALS = "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
NOT_COVERED = Rule(
    code="difference-not-covered",
    title="A difference no rule covers",
    vvr=unknown(),
    flink=unknown(),
    rationale=(
        "Every difference between the two versions is claimed by a rule. A difference that no rule claims "
        "may have any effect on stored state, so it is reported for a person to decide: silence never "
        "means compatible."
    ),
    example=Example(
        _TOTALS + "INSERT INTO totals\n" + windowed("customer, SUM(amount)"),
        _TOTALS + "INSERT OVERWRITE totals\n" + windowed("customer, SUM(amount)"),
    ),
    beside_operators=True,
)
"""The rule of a difference that no rule claims; nothing looks for it."""
