"""Kinds of Flink's exec nodes, with facts that apply to every configuration of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, StrEnum, auto
from typing import TypeAlias


class ExecKind(StrEnum):
    """Kinds of exec nodes in streaming jobs: Flink's names without the prefix ``stream-exec-``.

    An unlisted name of a later Flink version becomes a kind without a node family.
    """

    ASYNC_CALC = "async-calc"
    ASYNC_CORRELATE = "async-correlate"
    CALC = "calc"
    CHANGELOG_NORMALIZE = "changelog-normalize"
    CORRELATE = "correlate"
    DEDUPLICATE = "deduplicate"
    DELTA_JOIN = "delta-join"
    DROP_UPDATE_BEFORE = "drop-update-before"
    EXCHANGE = "exchange"
    EXPAND = "expand"
    GLOBAL_GROUP_AGGREGATE = "global-group-aggregate"
    GLOBAL_WINDOW_AGGREGATE = "global-window-aggregate"
    GROUP_AGGREGATE = "group-aggregate"
    GROUP_TABLE_AGGREGATE = "group-table-aggregate"
    GROUP_WINDOW_AGGREGATE = "group-window-aggregate"
    INCREMENTAL_GROUP_AGGREGATE = "incremental-group-aggregate"
    INTERVAL_JOIN = "interval-join"
    JOIN = "join"
    LIMIT = "limit"
    LOCAL_GROUP_AGGREGATE = "local-group-aggregate"
    LOCAL_WINDOW_AGGREGATE = "local-window-aggregate"
    LOOKUP_JOIN = "lookup-join"
    MATCH = "match"
    MINI_BATCH_ASSIGNER = "mini-batch-assigner"
    ML_PREDICT_TABLE_FUNCTION = "ml-predict-table-function"
    MULTI_JOIN = "multi-join"
    OVER_AGGREGATE = "over-aggregate"
    PROCESS_TABLE_FUNCTION = "process-table-function"
    PYTHON_ASYNC_CALC = "python-async-calc"
    PYTHON_CALC = "python-calc"
    PYTHON_CORRELATE = "python-correlate"
    PYTHON_GROUP_AGGREGATE = "python-group-aggregate"
    PYTHON_GROUP_TABLE_AGGREGATE = "python-group-table-aggregate"
    PYTHON_GROUP_WINDOW_AGGREGATE = "python-group-window-aggregate"
    PYTHON_OVER_AGGREGATE = "python-over-aggregate"
    RANK = "rank"
    SINK = "sink"
    SORT = "sort"
    SORT_LIMIT = "sort-limit"
    TABLE_SOURCE_SCAN = "table-source-scan"
    TEMPORAL_JOIN = "temporal-join"
    TEMPORAL_SORT = "temporal-sort"
    UNION = "union"
    VALUES = "values"
    VECTOR_SEARCH_TABLE_FUNCTION = "vector-search-table-function"
    WATERMARK_ASSIGNER = "watermark-assigner"
    WINDOW_AGGREGATE = "window-aggregate"
    WINDOW_DEDUPLICATE = "window-deduplicate"
    WINDOW_JOIN = "window-join"
    WINDOW_RANK = "window-rank"
    WINDOW_TABLE_FUNCTION = "window-table-function"

    @classmethod
    def _missing_(cls, value: object) -> ExecKind:
        made = str.__new__(cls, value)
        made._name_ = made._value_ = str(value)
        return made

    @property
    def traits(self) -> Trait:
        """The facts about this kind."""
        return _TRAITS.get(self, Trait(0))

    @property
    def in_one_phase(self) -> ExecKind:
        """The one-phase kind with the same state; this kind may be the second of two phases."""
        return ExecKind(self.removeprefix("global-"))


class SinkOperator(StrEnum):
    """The operators that Flink creates for one sink node, in order."""

    ENFORCER = "constraint-enforcer"
    ASSIGNER = "watermark-timestamp-assigner"
    MATERIALIZER = "sink-materializer"
    INSERTER = "timestamp-inserter"
    WRITER = "sink"
    COMMITTER = "committer"


OperatorKind: TypeAlias = ExecKind | SinkOperator


class Trait(Flag):
    """A fact about a kind of exec node."""

    STATELESS = auto()
    """The operator has no state, unless its node has a field ``state`` or rows wait for an answer."""
    PASSES_COLUMNS = auto()
    """The operator passes rows on, column by column."""
    APPENDS = auto()
    """The operator retracts no row, unless its input contains retractions."""
    LOCAL = auto()
    """The operator is the first of two phases; its node is read together with the second."""
    AGGREGATES = auto()
    """The operator stores accumulators by key, in a layout that was measured."""
    HOLDS_ROWS = auto()
    """The operator stores its input rows. Columns can be rewritten unless the layout is ``carried_only``."""
    WAITS = auto()
    """Rows of the operator wait for an answer. The waiting rows are stored in lists rather than by key."""
    HIDES_TTL = auto()
    """The node of the operator does not show the time to live of the job's state."""
    OF_WINDOWS = auto()
    """The operator stores the rows of each window until the window ends."""
    EMITS_AT_ONCE = auto()
    """The operator emits rows only when it receives rows, and never by a timer of processing time."""


_PASSING = Trait.STATELESS | Trait.PASSES_COLUMNS
_ROWS_OF_WINDOWS = Trait.HOLDS_ROWS | Trait.APPENDS
_TRAITS: Mapping[ExecKind, Trait] = {
    ExecKind.ASYNC_CALC: Trait.WAITS,
    ExecKind.ASYNC_CORRELATE: Trait.WAITS,
    ExecKind.CALC: Trait.STATELESS | Trait.APPENDS,
    ExecKind.CHANGELOG_NORMALIZE: Trait.EMITS_AT_ONCE,
    ExecKind.CORRELATE: Trait.STATELESS | Trait.APPENDS,
    ExecKind.DEDUPLICATE: Trait.HOLDS_ROWS | Trait.EMITS_AT_ONCE,
    ExecKind.DROP_UPDATE_BEFORE: _PASSING,
    ExecKind.EXCHANGE: _PASSING | Trait.APPENDS,
    ExecKind.EXPAND: Trait.STATELESS | Trait.APPENDS,
    ExecKind.GLOBAL_GROUP_AGGREGATE: Trait.AGGREGATES | Trait.EMITS_AT_ONCE,
    ExecKind.GLOBAL_WINDOW_AGGREGATE: Trait.AGGREGATES | Trait.APPENDS,
    ExecKind.GROUP_AGGREGATE: Trait.AGGREGATES | Trait.EMITS_AT_ONCE,
    ExecKind.GROUP_WINDOW_AGGREGATE: Trait.AGGREGATES,
    ExecKind.INTERVAL_JOIN: Trait.HOLDS_ROWS | Trait.APPENDS,
    ExecKind.JOIN: Trait.HOLDS_ROWS | Trait.EMITS_AT_ONCE,
    ExecKind.LIMIT: Trait.EMITS_AT_ONCE,
    ExecKind.LOCAL_GROUP_AGGREGATE: Trait.STATELESS | Trait.LOCAL,
    ExecKind.LOCAL_WINDOW_AGGREGATE: Trait.STATELESS | Trait.LOCAL | Trait.APPENDS,
    ExecKind.LOOKUP_JOIN: Trait.STATELESS | Trait.APPENDS | Trait.WAITS,
    ExecKind.MATCH: Trait.APPENDS,
    ExecKind.MINI_BATCH_ASSIGNER: _PASSING | Trait.APPENDS,
    ExecKind.ML_PREDICT_TABLE_FUNCTION: Trait.WAITS,
    ExecKind.OVER_AGGREGATE: Trait.HOLDS_ROWS | Trait.APPENDS | Trait.HIDES_TTL,
    ExecKind.RANK: Trait.HOLDS_ROWS | Trait.EMITS_AT_ONCE,
    ExecKind.SORT_LIMIT: Trait.EMITS_AT_ONCE,
    ExecKind.TEMPORAL_JOIN: Trait.HOLDS_ROWS | Trait.APPENDS | Trait.HIDES_TTL,
    ExecKind.TEMPORAL_SORT: Trait.PASSES_COLUMNS | Trait.APPENDS,
    ExecKind.UNION: _PASSING | Trait.APPENDS,
    ExecKind.VECTOR_SEARCH_TABLE_FUNCTION: Trait.WAITS,
    ExecKind.WATERMARK_ASSIGNER: _PASSING | Trait.APPENDS,
    ExecKind.WINDOW_AGGREGATE: Trait.AGGREGATES | Trait.APPENDS,
    ExecKind.WINDOW_DEDUPLICATE: _ROWS_OF_WINDOWS | Trait.OF_WINDOWS,
    ExecKind.WINDOW_JOIN: _ROWS_OF_WINDOWS,
    ExecKind.WINDOW_RANK: _ROWS_OF_WINDOWS | Trait.OF_WINDOWS,
    ExecKind.WINDOW_TABLE_FUNCTION: Trait.APPENDS,
}
