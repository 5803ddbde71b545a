"""A rule: data, and a small pure function that searches one pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum, IntEnum, StrEnum, auto
from typing import Any

from airflow_flinkcompat.compat.verdict import Verdict, unknown
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import Outcome, Span


class RuleScope(StrEnum):
    """Argument of a rule: a pair of stateful operators, the pipelines of a sink, or the whole script."""

    OPERATOR = "operator"
    PIPELINE = "pipeline"
    SCRIPT = "script"


class Level(IntEnum):
    """Precedence of a rule on ``vvr``, highest first. Within a level, the worst finding decides."""

    UNCHANGED = 1
    VERSION = 2
    WINDOW = 3
    OPAQUE = 4
    REST = 5


class TableApiCover(Enum):
    """The Table API programs to which a SQL rule also applies, on engine ``flink``.

    ``OWN``: the rule is about Table API programs. ``ALWAYS``: the planner removes the rule's subject before it plans a
    query. ``ONE_QUERY``: programs with one query. ``ONE_WINDOW``: queries with one operator, a window aggregation.
    """

    NEVER = auto()
    OWN = auto()
    ALWAYS = auto()
    ONE_QUERY = auto()
    ONE_WINDOW = auto()


class Fate(StrEnum):
    """Fate of a metric's stored value; ``same``: the metric is unchanged, only other parts are in doubt."""

    KEPT = "kept"
    FROM_ZERO = "starts from zero"
    DROPPED = "dropped"
    UNCLEAR = "cannot be told"
    SAME = "same"

    def under(self, outcome: Outcome) -> Fate:
        """The fate of the metric under an outcome. The fate is unknown if the outcome is unknown.

        If the outcome is incompatible, a kept metric starts from zero.
        """
        if outcome is Outcome.UNKNOWN:
            return Fate.UNCLEAR
        return Fate.FROM_ZERO if self is Fate.KEPT and outcome is Outcome.INCOMPATIBLE else self


class KeyFate(StrEnum):
    """Fate of one grouping key. Any fate but ``same`` means that groups differ from the stored groups."""

    SAME = "same"
    MOVED = "moved"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class RuleMatch:
    """One place where a rule applies: the message, the claimed differences, and the clauses of both sides.

    ``verdicts`` overrides the rule's verdict on an engine. ``notes`` extends the message on an engine. ``options`` are
    the keys of the matched table options or settings.
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
    """A change that illustrates a rule: both sides as SQL over :data:`EXAMPLE_TABLES`, or as Python.

    ``versions`` are the engine versions of both sides, None for the default. ``outcomes`` contains the outcome by
    engine, if it differs from the rule's general verdict.
    """

    old: str
    new: str
    settings_old: Mapping[str, str] = field(default_factory=dict)
    settings_new: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str | None, str | None] = (None, None)
    language: str = "sql"
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


Find = Callable[[Any], Iterable[RuleMatch]]
"""Function that finds the places where a rule applies in a pair of its scope."""
_SCOPES = {"OperatorPair": RuleScope.OPERATOR, "PipelinePair": RuleScope.PIPELINE, "Change": RuleScope.SCRIPT}
"""The scope of a rule by the argument class of its search function."""


def _nowhere(target: Any) -> Iterable[RuleMatch]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: code, title, verdicts, rationale and example. A rule decorates its search function.

    Every property of a rule is a field, so that no other module needs lists of rules.

    Attributes:
        find: The search function. The function accepts a pair of the scope (``OperatorPair``, ``PipelinePair`` or
            ``Change``) and returns a :class:`RuleMatch` for every place where the rule applies.
        operators: The operator classes that the rule concerns. If empty, the rule is asked for every query.
        parts: The rule applies only if at least one of these parts differs. Parts have no input number; ``table`` is
            any part of a table's declaration. If empty, the rule may apply without a difference.
        level: The precedence of the rule on ``vvr``.
        case_dependent: Engines on which a change of this kind often has a worse outcome than the verdict.
        not_applicable: Engines on which the rule never applies.
        table_api_cover: The Table API programs to which the rule applies.
        yields_to: The code of a rule that, by the vendor's documents, overrules this rule in the same pipeline. If "",
            the worse finding decides.
        beside_operators: True if the rule concerns only tables, settings, or parts of a query outside its operators. An
            unknown verdict of such a rule does not affect unchanged operators.
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
        """Add the search function, whose argument class determines the scope."""
        return replace(self, find=find, scope=_SCOPES[next(iter(find.__annotations__.values()))])

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict on each engine."""
        return {"vvr": self.vvr, "flink": self.flink}

    def headline(self, engine: str) -> str:
        """The outcome for lists. A case-dependent rule is shown as "by case", never as safe."""
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
    """An example that changes only the tables in FROM."""
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
    title="A difference that no rule covers",
    vvr=unknown(),
    flink=unknown(),
    rationale=(
        "A rule claims each difference between the two versions. An unclaimed difference may have any effect on "
        "stored state, so it is reported as unknown, and a person must decide."
    ),
    example=Example(
        _TOTALS + "INSERT INTO totals\n" + windowed("customer, SUM(amount)"),
        _TOTALS + "INSERT OVERWRITE totals\n" + windowed("customer, SUM(amount)"),
    ),
    beside_operators=True,
)
"""The rule for a difference that no other rule claims. This rule has no search function."""
