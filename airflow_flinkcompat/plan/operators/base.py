"""The stateful operators of a plan: what each keeps, with every expression resolved to its origins.

:func:`~airflow_flinkcompat.plan.lineage.resolve_operators` makes them. Together they are complete: whatever the plan
holds lands in exactly one field of one operator, segment or output, so comparing fields finds every difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from airflow_flinkcompat.model import NormalForm, Span
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import Window, WindowField, WindowKind
from airflow_flinkcompat.plan.origins import OperatorColumn, leaves
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

BOUNDS = frozenset({WindowField.START, WindowField.END})
"""Both bounds of a window."""


class TooLarge(ValueError):
    """An expression grew beyond the size limit of the view when unfolded through its views."""


@dataclass(frozen=True)
class AssignedWindow:
    """A window as a segment assigns it: definition, time column, clock and notation (``tvf`` or ``group window``).

    ``mismatched`` are the calls of a legacy window's fields that name another window; ``filters_below`` the conjuncts
    on the rows it assigns, which decide where a session ends.
    """

    window: Window
    time: Expression
    time_attribute: TimeAttribute | None
    notation: str
    partition_by: tuple[Expression, ...] = ()
    mismatched: tuple[NormalForm, ...] = ()
    filters_below: frozenset[Expression] = field(default=frozenset(), compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Source:
    """A table that is read; ``hints`` are its table hints."""

    table: str
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Rows:
    """Several literal rows (VALUES), resolved."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class StatelessSegment:
    """The stateless stretch between an operator (or sink) and what it reads.

    ``filters`` are conjuncts on anything but window fields, ``window_filters`` those on window fields,
    ``functions`` the table
    functions applied (call, outer), ``windows`` the windowing functions passed, nearest last.
    """

    origin: Source | Operator | Rows | None
    filters: frozenset[Expression] = frozenset()
    window_filters: frozenset[Expression] = frozenset()
    functions: tuple[tuple[FunctionCall, bool], ...] = ()
    windows: tuple[AssignedWindow, ...] = ()
    hints: tuple[tuple[str, str], ...] = ()

    def prune(self, read: Iterable[Expression]) -> StatelessSegment:
        """The segment with only those metrics and columns in its operator that somebody reads, and so on below.

        Args:
            read: What is computed above the segment.

        Returns:
            The segment as Flink's planner leaves it.
        """
        if not isinstance(self.origin, Operator):
            return self
        above = (*read, *self.filters, *self.window_filters, *(call for call, _ in self.functions))
        windows = (part for window in self.windows for part in (window.time, *window.partition_by))
        every = (leaf for part in (*above, *windows) for leaf in leaves(part))
        return replace(
            self, origin=self.origin.prune({leaf.output for leaf in every if isinstance(leaf, OperatorColumn)})
        )

    @property
    def filters_above_session(self) -> frozenset[Expression]:
        """Conjuncts on rows that a session window has assigned already; on other windows their place says nothing."""
        sessions = [window for window in self.windows if window.window.kind is WindowKind.SESSION]
        return self.filters - sessions[-1].filters_below if sessions else frozenset()


@dataclass(frozen=True)
class Operator(ABC):
    """A stateful operator. A new kind of operator is a subclass of it, in a module of its own."""

    span: Span | None = field(default=None, compare=False, kw_only=True)

    if TYPE_CHECKING:  # in some subclasses they are fields, whose default an attribute of the base would be

        @property
        def kind(self) -> str:
            """What the operator is called in reports; a class with several has them in an enum beside it."""

        @property
        def segments(self) -> tuple[StatelessSegment, ...]:
            """The stateless stretches below, one for each input."""

    @property
    @abstractmethod
    def appends(self) -> bool:
        """Whether the rows it hands on are never taken back, if the tables below only append."""

    @abstractmethod
    def prune(self, wanted: Set[object]) -> Self:
        """The operator without the metrics and columns that nobody reads.

        Args:
            wanted: Those of its outputs that are read above.

        Returns:
            The operator as Flink's planner leaves it, and so on below.
        """


def appends(segment: StatelessSegment) -> bool:
    """Whether rows that leave a segment are never taken back, if its tables only append.

    Args:
        segment: A stateless stretch of a pipeline.

    Returns:
        True where the segment reads a table, or an operator that only appends.
    """
    return not isinstance(segment.origin, Operator) or segment.origin.appends


@dataclass(frozen=True)
class Output:
    """What reaches a sink: its columns, resolved, over ``segment`` (HAVING and later filters are the segment's)."""

    segment: StatelessSegment
    columns: tuple[Expression, ...]
    sink: str
    insert_columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, str], ...] = ()
    overwrite: bool = False
    hints: tuple[tuple[str, str], ...] = ()
    types: tuple[DataType, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)


def operators(output: Output) -> tuple[Operator, ...]:
    """All stateful operators below a sink, nearest the sink first.

    Args:
        output: A sink and the segment that feeds it.

    Returns:
        The operators, one entry per path to the sink.
    """

    def below(segment: StatelessSegment) -> tuple[Operator, ...]:
        if not isinstance(segment.origin, Operator):
            return ()
        return (segment.origin, *(found for inner in segment.origin.segments for found in below(inner)))

    return below(output.segment)


def sources(output: Output) -> tuple[Source, ...]:
    """The tables a pipeline reads, in order of first use.

    Args:
        output: A sink and the segment that feeds it.

    Returns:
        The distinct tables.
    """
    found: dict[Source, None] = {}

    def below(segment: StatelessSegment) -> None:
        if isinstance(segment.origin, Source):
            found[segment.origin] = None
        elif isinstance(segment.origin, Operator):
            for inner in segment.origin.segments:
                below(inner)

    below(output.segment)
    return tuple(found)


def segments(output: Output) -> tuple[StatelessSegment, ...]:
    """All stateless stretches below a sink, nearest the sink first.

    Args:
        output: A sink and the segment that feeds it.

    Returns:
        The sink's own segment, then the inputs of each operator.
    """
    return (output.segment, *(segment for operator in operators(output) for segment in operator.segments))
