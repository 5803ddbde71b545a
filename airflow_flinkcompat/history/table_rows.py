"""Spark steps for the input rows of a script's operator, from tables or from other operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.windowing import zone_of
from airflow_flinkcompat.backfill.protocols import Locations, Metadata, Range
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, quoted, read_by, typed
from airflow_flinkcompat.backfill.spark_sql.localtime import localised
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.spark_sql.windows import DAY, from_micros
from airflow_flinkcompat.backfill.steps import Group, Merge, Select, Step, Where
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.derived_rows import (
    ROW_OPERATORS,
    Computed,
    NotComputable,
    first_ranks,
    ordered_by,
    require_exact,
    result_type,
)
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal, transform
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Table,
    Union,
    Window,
    WindowAssign,
    WindowField,
    WindowKind,
)
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    Operator,
    OtherOperator,
    RankOperator,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    SourceColumn,
    WindowColumn,
    describe,
    retyped,
)
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import (
    APPROXIMATE,
    BIGINT,
    BOOLEAN,
    Column,
    DataType,
    TimeAttribute,
    timestamp,
    timestamp_ltz,
)

BOUNDS = (WindowField.START, WindowField.END, WindowField.TIME)
"""Window fields of a row, in the order of their columns."""
EVERY_WINDOW = Range()
LONG_AGO = -(1 << 50)
"""A watermark earlier than every row whose microseconds fit into a BIGINT."""
_ARRIVAL_KEYS = ("timestamp", "file.modification-time")
"""Metadata keys for the time of a record or a file."""


@dataclass(frozen=True)
class TableRows:
    """Input rows of an operator, from one table or from tables that are joined or combined by UNION ALL.

    Attributes:
        watermark: The watermark in milliseconds; None if unknown.
        published: Range of windows whose rows are needed; an unlimited range stands for all windows.
        time_to_live: State TTL of the operator in milliseconds; 0 if there is none.
    """

    pipeline: Pipeline
    segment: StatelessSegment
    locations: Locations
    watermark: int | None = None
    published: Range = EVERY_WINDOW
    time_to_live: int = 0

    @property
    def table(self) -> Table:
        origin = self.segment.origin
        assert isinstance(origin, Source)
        tables = (node.table for node in self.pipeline.sink.nodes if isinstance(node, Scan))
        return next(table for table in tables if table.name == origin.table)

    @property
    def tables(self) -> tuple[Table, ...]:
        if isinstance(self.segment.origin, Source):
            return (self.table,)
        return tuple(dict.fromkeys(table for each in self._inputs for table in each.tables))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of :attr:`node`, without the column for the time of arrival."""
        return self.table.columns if isinstance(self.segment.origin, Source) else self.node.schema

    @property
    def _inputs(self) -> Sequence[TableRows]:
        """Inputs of the operator that supplies the rows."""
        assert isinstance(self.segment.origin, Operator)
        return [replace(self, segment=each) for each in self.segment.origin.segments]

    @property
    def node(self) -> Node:
        """Input rows that pass the filters. With a state TTL, the last column is the time of arrival."""
        match self.segment.origin:
            case JoinOperator() as join:
                left, right = (self._side(join, number) for number in (0, 1))
                body: Node = Join(left, right, join.join, self._join_condition(join))
            case AggregateOperator() as below:
                body = self._aggregated(below)
            case RankOperator() as ranking:
                body = self._ranked(ranking)
            case OtherOperator() as union:
                body = self._union_all(union)
            case _:
                body = Scan(self._arriving() if self.time_to_live else self.table)
        for condition in self.conditions:
            body = Filter(body, condition)
        return body

    def _join_condition(self, join: JoinOperator) -> Expression:
        """Condition of a join, over the columns of both inputs."""

        def leaf(each: Expression) -> Expression:
            return self.joined_column(each.operator, each.output) if isinstance(each, OperatorColumn) else each

        equal = (FunctionCall("=", pair, BOOLEAN) for pair in join.keys)
        parts = tuple(transform(each, leaf) for each in (*equal, *sorted(join.conditions, key=describe)))
        return parts[0] if len(parts) == 1 else FunctionCall("AND", parts, BOOLEAN)

    def joined_column(self, side: int, column: Expression) -> Expression:
        """Column of one input of the preceding join, as an index into the columns of both inputs."""
        join = self.segment.origin
        assert isinstance(join, JoinOperator)
        if column not in join.rows[side]:
            raise NotComputable(f"{describe(column)} of a preceding join is not computed from history yet")
        place = join.rows[side].index(column)
        before = len(join.rows[0]) if side else 0
        type, without_match = join.row_types[side][place], join.join in ("FULL", "RIGHT" if side == 0 else "LEFT")
        return InputRef(before + place, type.with_nullability(True) if without_match else type)

    def _side(self, join: JoinOperator, side: int) -> Project:
        """Compute the columns of a join input before the join, because unmatched rows become NULL afterwards."""
        rows = self._inputs[side]
        columns = tuple(map(rows.of_type, join.rows[side], join.row_types[side]))
        return Project(rows.node, columns, tuple(Column(f"c{i}", each.type) for i, each in enumerate(columns)))

    def _aggregated(self, below: AggregateOperator) -> Aggregate:
        """Compute one row for each key, with the results of the aggregate calls."""
        (rows,) = self._inputs
        keys = tuple(map(rows.of_type, below.keys, below.key_types))
        calls = tuple(
            replace(
                call,
                args=tuple(map(rows.of_type, call.args, types)),
                filter=None if call.filter is None else rows.over_table(call.filter),
                type=result_type(call, types),
            )
            for call, types in zip(below.aggregates, below.argument_types, strict=True)
        )
        if rounded := [call for call in calls if call.function in ("SUM", "AVG") and call.type.name in APPROXIMATE]:
            raise NotComputable(
                f"{describe(rounded[0])} depends on the order in which FLOAT or DOUBLE values are added, but the "
                "operator looks up rows by this result"
            )
        schema = tuple(Column(f"c{i}", part.type) for i, part in enumerate((*keys, *calls)))
        return Aggregate(rows.node, keys, calls, schema)

    def _ranked(self, ranking: RankOperator) -> Computed:
        """Rows that a preceding Top-N or deduplication emits."""
        (rows,) = self._inputs
        require_exact(ranking)
        if not rows.ordered:
            raise NotComputable(
                f"{rows.locations.source(rows.table).place} does not show in which order rows with equal sort "
                "keys arrived"
            )
        keys = [rows.over_table(key) for key in ranking.partition]
        order = [rows.over_table(key) for key, _, _ in ordered_by(ranking)]
        columns = [*keys, *order, *rows.stored(ranking.row, ranking.row_types)]
        by_order = range(len(keys), len(keys) + len(order))
        of_row = range(by_order.stop, len(columns))
        found = first_ranks(ranking, rows.selected(rows.node, columns), range(len(keys)), by_order, of_row)
        schema = tuple(Column(f"c{i}", type) for i, type in enumerate(ranking.row_types))
        return Computed((), schema, steps=Select(found, tuple(enumerate(f"c{i}" for i in of_row)), unordered=True))

    def stored(self, row: Sequence[Expression], types: Sequence[DataType]) -> list[Expression]:
        """Columns of a row in the form in which Flink stores them. Processing time is stored as NULL."""
        clocks = {column.name for column in self.columns if column.time_attribute is TimeAttribute.PROCTIME}
        return [
            Literal(None, type)
            if (isinstance(column, SourceColumn) and column.column in clocks) or _is_clock(column)
            else self.of_type(column, type)
            for column, type in zip(row, types, strict=True)
        ]

    def _union_all(self, union: OtherOperator) -> Union:
        """Combine the rows of all inputs of a UNION ALL, restricted to the columns that are read."""
        if len({tuple(each.with_nullability(True) for each in row) for row in union.row_types}) > 1:
            raise NotComputable("a union whose inputs have different column types is not computed from history yet")
        time = self._time
        schema = tuple(
            Column(f"c{i}", type, TimeAttribute.ROWTIME if time is not None and time.index == i else None)
            for i, type in enumerate(union.row_types[0])
        )
        return Union(
            tuple(
                Project(branch.node, tuple(map(branch.over_table, row)), schema)
                for branch, row in zip(self._inputs, union.rows, strict=True)
            ),
            schema,
        )

    def _arriving(self) -> Table:
        """Add a column for the time of arrival to the table."""
        table, source = self.table, self.locations.source(self.table)
        for key in _ARRIVAL_KEYS:
            if isinstance(source, Metadata) and source.metadata(key) is not None:
                arrival = Column(f"came by {key}", timestamp_ltz(3))
                return replace(
                    table, columns=(*table.columns, arrival), metadata=(*table.metadata, (arrival.name, key, True))
                )
        raise NotComputable(f"{source.place} does not record when its rows arrived, so a state TTL cannot be computed")

    @property
    def conditions(self) -> Sequence[Expression]:
        """Filter conditions, over the columns of the table."""
        return [self.over_table(condition) for condition in self.segment.filters]

    def over_table(self, part: Expression) -> Expression:
        """Replace an expression's columns with columns of the table or, for several tables, of :attr:`node`."""
        return typed(retyped(transform(part, self._leaf)))

    def of_type(self, part: Expression, type: DataType) -> Expression:
        found = self.over_table(part)
        if found.type.with_nullability(True) != type.with_nullability(True):
            raise NotComputable(f"{describe(part)} has the type {type}, but its parts result in {found.type}")
        return found

    def _leaf(self, leaf: Expression) -> Expression:
        origin = self.segment.origin
        if isinstance(leaf, WindowColumn) and leaf.field in BOUNDS:
            return self.bound(leaf.field)
        if isinstance(leaf, SourceColumn):
            place = [column.name for column in self.table.columns].index(leaf.column)
            return InputRef(place, self.table.columns[place].type, leaf.span)
        if isinstance(leaf, OperatorColumn) and isinstance(origin, RankOperator):
            if not isinstance(leaf.output, PassedOutput) or leaf.output.column not in origin.row:
                raise NotComputable(f"{describe(leaf)} of a preceding ranking is not computed from history yet")
            place = origin.row.index(leaf.output.column)
            return InputRef(place, origin.row_types[place], leaf.span)
        if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput):
            return self.joined_column(leaf.output.input, leaf.output.column)
        if isinstance(leaf, OperatorColumn) and isinstance(origin, AggregateOperator):
            outputs = [*map(KeyOutput, origin.keys), *origin.aggregates]
            if leaf.output not in outputs:
                raise NotComputable(f"{describe(leaf)} of a preceding aggregation is not computed from history yet")
            place = outputs.index(leaf.output)
            types = [*origin.key_types, *map(result_type, origin.aggregates, origin.argument_types)]
            return InputRef(place, types[place], leaf.span)
        if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, ColumnOutput):
            assert isinstance(origin, OtherOperator)
            column = [row[leaf.output.index] for row in origin.input_columns]
            place = [list(row) for row in zip(*origin.rows, strict=True)].index(column)
            return InputRef(place, origin.row_types[0][place], leaf.span)
        return leaf

    @property
    def time(self) -> InputRef:
        """Event-time column of the table, or of all tables of a union."""
        found = self._time
        if found is None:
            raise NotComputable("no event-time column is known for rows of several tables")
        return found

    @property
    def _time(self) -> InputRef | None:
        origin = self.segment.origin
        if isinstance(origin, OtherOperator):
            branches = [(each, each._time) for each in self._inputs]
            for place, row in enumerate(zip(*origin.rows, strict=True)):
                timed = zip(branches, row, strict=True)
                if all(time is not None and each.over_table(column) == time for (each, time), column in timed):
                    return InputRef(place, origin.row_types[0][place])
        if not isinstance(origin, Source) or self.table.watermark is None:
            return None
        table = self.table
        place = [column.name for column in table.columns].index(self.table.watermark.column)
        return InputRef(place, table.columns[place].type)

    def in_windows(self, window: Window, partition_by: tuple[Expression, ...] = ()) -> WindowAssign:
        """Repeat each row for each of its windows, and append the window's bounds."""
        bounds = (Column(f"bound_{field}", self.bound(field).type) for field in BOUNDS)
        return WindowAssign(self.node, window, self.time, (*self.columns, *bounds), partition_by)

    @property
    def zone(self) -> str:
        """Time zone of the windows over the table's event time; UTC if the event time has no zone."""
        rows = WindowAssign(self.node, Window(WindowKind.TUMBLE), self.time, ())
        return zone_of(dict(self.pipeline.settings), rows, self.time) or "UTC"

    def omit_fired_windows(self, windows: SlicedWindow) -> TableRows:
        """Omit rows whose windows have all fired."""
        if self.watermark is None or self.watermark < LONG_AGO:
            return self
        begins = (self.watermark + 2 - windows.size) * 1000
        # The difference between local time and UTC is less than a day.
        return replace(
            self, published=Range(from_micros(begins if self.time.type.name == "TIMESTAMP" else begins - DAY))
        )

    def grouped(self, node: Node, keys: Sequence[Expression], calls: Sequence[AggregateCall]) -> Group:
        """Aggregate rows by keys."""
        distinct_args = list(dict.fromkeys(arg for call in calls if call.distinct for arg in call.args))
        if not distinct_args:
            return self._grouped(node, keys, calls)
        if self.time_to_live:
            raise NotComputable("distinct values with a separate state TTL are not computed from history yet")
        counted = [AggregateCall("COUNT", (), BIGINT, filter=call.filter) if call.distinct else call for call in calls]
        values = self._grouped(node, (*keys, *distinct_args), counted)
        columns = []
        for number, call in enumerate(calls):
            made = InputRef(len(keys) + len(distinct_args) + number, counted[number].type)
            if not call.distinct:
                columns.append(_merged(call, made))
                continue
            args = tuple(InputRef(len(keys) + distinct_args.index(arg), arg.type) for arg in call.args)
            there = FunctionCall(">", (made, Literal(0, BIGINT)), BOOLEAN)
            columns.append(AggregateCall(call.function, args, call.type, distinct=True, filter=there))
        by = tuple(grouped(InputRef(i, key.type)) for i, key in enumerate(keys))
        return Group(values, by, tuple((len(keys) + i, aggregate(call)) for i, call in enumerate(columns)))

    def _grouped(self, node: Node, keys: Sequence[Expression], calls: Sequence[AggregateCall]) -> Group:
        settings = dict(self.pipeline.settings)
        rows = Aggregate(node, tuple(keys), tuple(calls), ())
        made = localised(replace(self.pipeline.sink, input=rows), settings, {}).input
        assert isinstance(made, Aggregate)
        context = CompileContext(ROW_OPERATORS, self.locations, self.published, settings)
        read = read_by(made.keys, made.aggregates)
        first = len(keys)
        columns = tuple((first + i, aggregate(call)) for i, call in enumerate(made.aggregates))
        by = tuple(map(grouped, made.keys))
        if self.time_to_live:
            columns += ((first + len(columns), self.checked_arrival(f"max(unix_millis(c{len(self.table.columns)}))")),)
            return Group(self._unexpired_rows(context, made.input, read, by), by, columns)
        below = context.compile(made.input, read)
        merged = tuple(
            (first + i, aggregate(_merged(call, InputRef(first + i, call.type))))
            for i, call in enumerate(made.aggregates)
        )
        of_parts = tuple(grouped(InputRef(i, key.type)) for i, key in enumerate(made.keys))
        return Group(below, by, columns, merge=Merge(of_parts, merged) if self._in_parts else None)

    def checked_arrival(self, arrival: str) -> str:
        """SQL that checks an arrival time, or the latest of several arrival times, and returns it."""
        refused = quoted(f"{ERROR}table {self.table.name}: a record has no arrival time, which a state TTL requires")
        return f"IF({arrival} >= 0, {arrival}, raise_error({refused}))"

    @property
    def arrival_column(self) -> InputRef:
        """Column that contains the time of arrival if there is a state TTL."""
        return InputRef(len(self.table.columns), timestamp_ltz(3))

    @property
    def _in_parts(self) -> bool:
        """True if results over parts of the tables can be merged, which is impossible for a join."""
        if isinstance(self.segment.origin, Source):
            return True
        return isinstance(self.segment.origin, OtherOperator) and all(each._in_parts for each in self._inputs)

    def _unexpired_rows(self, context: CompileContext, node: Node, read: frozenset[int], keys: Sequence[str]) -> Step:
        """Omit rows of expired values. A gap as long as the TTL starts a new value."""
        arrival = len(self.table.columns)
        of_key = f"PARTITION BY {', '.join(keys)} " if keys else ""
        columns = tuple((i, f"c{i}") for i in sorted(read | {arrival}))
        since = f"unix_millis(c{arrival}) - lag(unix_millis(c{arrival})) OVER ({of_key}ORDER BY c{arrival})"
        anew = (arrival + 1, f"IF({since} >= {self.time_to_live}, c{arrival}, NULL)")
        steps = Select(context.compile(node, read | {arrival}), (*columns, anew))
        last = (arrival + 2, f"max(c{arrival + 1}) OVER ({of_key.strip()})")
        return Where(Select(steps, (*columns, last)), f"c{arrival + 2} IS NULL OR c{arrival} >= c{arrival + 2}")

    def bound(self, field: WindowField) -> InputRef:
        """Column of a window bound."""
        type = self.time.type if field is WindowField.TIME else timestamp(3)
        return InputRef(len(self.columns) + BOUNDS.index(field), type)

    @property
    def ordered(self) -> bool:
        """True if the table defines in which order its rows arrived."""
        return self.locations.source(self.table).ordered

    def selected(self, node: Node, columns: Sequence[Expression], in_order: bool = True) -> Select:
        """Select columns of rows. If the table defines an order of arrival, add the column ``arrival``."""
        settings = dict(self.pipeline.settings)
        named = tuple(Column(f"c{i}", each.type) for i, each in enumerate(columns))
        rows = Project(node, tuple(columns), named)
        made = localised(replace(self.pipeline.sink, input=rows), settings, {}).input
        assert isinstance(made, Project)
        context = CompileContext(
            ROW_OPERATORS, self.locations, self.published, settings, arriving=in_order and self.ordered
        )
        step = context.compile(made, frozenset(range(len(columns))))
        assert isinstance(step, Select)
        return step


def _is_clock(column: Expression) -> bool:
    return isinstance(column, FunctionCall) and column.function == "PROCTIME"


_MERGED_BY = {"COUNT": "SUM", "SUM": "SUM", "MIN": "MIN", "MAX": "MAX"}


def _merged(call: AggregateCall, column: InputRef) -> AggregateCall:
    """Call that merges the results of an aggregate call over parts of the rows."""
    return AggregateCall(_MERGED_BY[call.function], (column,), call.type)
