"""Symbolic evaluation of a pipeline's nodes, from its sources to its stateful operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.lazy import quick_init
from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.plan.aggregations import (
    Calls,
    aggregation,
    group_window_aggregation,
    properties,
    result_columns,
)
from airflow_flinkcompat.plan.conditions import CONDITION_PASSES, normalize_predicate, simplified, split_conjuncts
from airflow_flinkcompat.plan.expressions import (
    AggregateCall,
    Expression,
    FunctionCall,
    InputRef,
    Literal,
    Pass,
    conjuncts,
    placed,
    transform,
    with_inputs,
)
from airflow_flinkcompat.plan.joining import filtered, join_operator, strict_join
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Clause,
    Correlate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    Project,
    Scan,
    Sink,
    Sort,
    Union,
    Values,
    WindowAssign,
    WindowField,
)
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinOperator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    Rows,
    Source,
    StatelessSegment,
    TooLarge,
)
from airflow_flinkcompat.plan.origins import (
    CALL_PASSES,
    ColumnOutput,
    FunctionColumn,
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    SourceColumn,
    WindowColumn,
    leaves,
    normalize,
    normalize_aggregate,
    uses_window_field,
)
from airflow_flinkcompat.plan.ranks import is_select_list, numbering, numbers_rows, ranked, with_select_list
from airflow_flinkcompat.plan.types import BOOLEAN, UNKNOWN, TimeAttribute

SIZE_LIMIT = 20_000
"""Maximum number of parts of a resolved expression. A plan with a larger expression is not expanded."""
RELATIONS_LIMIT = 10_000
"""Maximum number of relations of a pipeline; a chain of 30 views, each read twice, expands to 2**30."""


RANKING = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"})
"""Window functions that number rows."""


@quick_init
@dataclass(frozen=True)
class _Stream:
    """A relation under evaluation: its resolved and typed columns over a segment.

    ``numbering`` is a ROW_NUMBER that is the direct input, if its range of ranks is not known yet.
    """

    columns: tuple[Expression, ...]
    segment: StatelessSegment
    numbering: Over | None = None


def resolve_operators(sink: Sink) -> Output:
    """Resolve the pipeline of a sink to its stateful operators.

    Raises :class:`TooLarge` if, after views are expanded, an expression has more than :data:`SIZE_LIMIT` parts, or the
    query more than :data:`RELATIONS_LIMIT` relations.
    """
    stream = _Resolver().stream(sink.input)
    output = Output(
        segment=stream.segment,
        columns=tuple(map(normalize, stream.columns)),
        sink=sink.name,
        insert_columns=_column_list(sink),
        partition=sink.partition,
        overwrite=sink.overwrite,
        hints=sink.hints,
        types=tuple([column.type for column in sink.schema]),
        span=sink.span,
    )
    for each in OUTPUT_PASSES:
        output = each.apply(output)
    return output


def _origin(part: Expression, below: _Stream) -> Expression:
    """The origin of a column. A computed column keeps its own span; any other gets the span of its use."""
    if not isinstance(part, InputRef):
        return part
    origin = below.columns[part.index]
    if isinstance(origin, FunctionCall) or part.span is None or part.span is origin.span:
        return origin
    return placed(origin, part.span)


def _column_list(sink: Sink) -> tuple[str, ...]:
    """The column list of an INSERT; empty if it names all columns of the table in their order."""
    if sink.table is None or not sink.table.declared or sink.partition:
        return sink.columns
    return () if sink.columns == tuple(column.name for column in sink.table.written) else sink.columns


class _Resolver:
    """Evaluation of nodes to relations, by one instance per pipeline, which counts its relations."""

    def __init__(self) -> None:
        self._visited = 0
        self._inputs: dict[int, _Stream] = {}
        self._unranked: set[int] = set()
        """OVER nodes, by identity, that number rows without a constant range of ranks."""

    def stream(self, node: Node) -> _Stream:
        """The relation of a node, including all conditions that directly follow a ROW_NUMBER."""
        stream = self._visit(node)
        if stream.numbering is None:
            return stream
        segment = ranked(stream.segment)
        if segment is not None:
            return _Stream(stream.columns, segment)
        self._unranked.add(id(stream.numbering))
        try:
            return self._visit(node)
        finally:
            self._unranked.discard(id(stream.numbering))

    def _visit(self, node: Node) -> _Stream:
        self._visited += 1
        if self._visited > RELATIONS_LIMIT:
            raise TooLarge(f"a query exceeds {RELATIONS_LIMIT} relations when its views are expanded")
        node = _normalized(node)
        match node:
            case Scan():
                return self._scan(node)
            case Values():
                return self._values(node)
            case Project():
                return self._project(node)
            case Filter():
                below = self._visit(node.input)
                return self._filtered(below, self._resolve(node.condition, below))
            case WindowAssign():
                return self._window(node)
            case Correlate():
                return self._correlate(node)
            case GroupWindowAggregate():
                return self._group_window(node)
            case Aggregate():
                return self._aggregate(node)
            case Join():
                return self._join(node)
            case Over():
                return self._over_calls(node)
            case _:
                return self._other(node)

    def _project(self, node: Project) -> _Stream:
        below = self._visit(node.input)
        segment = below.segment
        if node.hints:
            segment = replace(segment, hints=segment.hints + node.hints)
        columns = tuple([self._resolve(each, below) for each in node.expressions])
        if below.numbering is not None and is_select_list(node, below.numbering):
            columns, segment = with_select_list(columns, segment)
        if isinstance(segment.origin, OverOperator):
            segment = _in_order_of_use(segment, segment.origin, columns)
        return _Stream(columns, segment, below.numbering)

    def _over_calls(self, node: Over) -> _Stream:
        """The relation of an OVER node: a ranking, an OVER aggregation, or a different construct."""
        if numbers_rows(node) and id(node) not in self._unranked:
            return self._numbered(node)
        return self._over(node) if _one_window(node) else self._other(node)

    def _resolve(self, expression: Expression, below: _Stream) -> Expression:
        if isinstance(expression, FunctionCall):
            resolved = transform(expression, lambda part: _origin(part, below))
        else:
            resolved = _origin(expression, below)
        # A column that is only passed on was already counted where it was computed.
        if isinstance(resolved, FunctionCall) and _too_large(resolved):
            raise TooLarge(f"an expression exceeds {SIZE_LIMIT} parts when its views are expanded")
        return resolved

    def _scan(self, node: Scan) -> _Stream:
        base = tuple(SourceColumn(0, column.name, type=column.type) for column in node.table.columns)
        below = _Stream(base, StatelessSegment(Source(node.table.name, node.hints, node.span)))
        # A processing-time column is identified by its name, so two such columns are different.
        clocks = {c.name for c in node.table.columns if c.time_attribute is TimeAttribute.PROCTIME}
        computed = {name: value for name, value in node.table.computed if name not in clocks}
        columns = [
            self._resolve(computed[column.name], below) if column.name in computed else origin
            for column, origin in zip(node.table.columns, base, strict=True)
        ]
        return _Stream(tuple(columns), below.segment)

    def _values(self, node: Values) -> _Stream:
        if len(node.rows) == 1:
            return _Stream(node.rows[0], StatelessSegment(None))
        columns = tuple(
            FunctionCall("VALUES", tuple(row[i] for row in node.rows), c.type) for i, c in enumerate(node.schema)
        )
        return _Stream(
            columns, StatelessSegment(Rows(tuple(tuple(normalize(cell) for cell in row) for row in node.rows)))
        )

    def _filtered(self, below: _Stream, condition: Expression) -> _Stream:
        segment = below.segment
        for part in split_conjuncts(condition):
            segment = _with_filter(segment, part)
        return replace(below, segment=segment)

    def _window(self, node: WindowAssign) -> _Stream:
        below = self.stream(node.input)
        windowing = AssignedWindow(
            window=node.window,
            time=normalize(below.columns[node.time.index]),
            time_attribute=node.time_attribute,
            notation="tvf",
            partition_by=tuple(normalize(self._resolve(key, below)) for key in node.partition_by),
            filters_below=below.segment.filters,
            span=node.span,
        )
        level = len(below.segment.windows)
        fields = (WindowField.START, WindowField.END, WindowField.TIME)
        added = [
            WindowColumn(name, level, type=column.type) for name, column in zip(fields, node.schema[-3:], strict=True)
        ]
        return _Stream((*below.columns, *added), replace(below.segment, windows=(*below.segment.windows, windowing)))

    def _correlate(self, node: Correlate) -> _Stream:
        below = self.stream(node.input)
        call = FunctionCall(node.function, tuple(self._resolve(arg, below) for arg in node.args), UNKNOWN, node.span)
        bare = normalize(call)
        assert isinstance(bare, FunctionCall)
        added = tuple(
            FunctionColumn(call, i, type=column.type) for i, column in enumerate(node.schema[len(below.columns) :])
        )
        segment = replace(below.segment, functions=(*below.segment.functions, (bare, node.outer)))
        return _Stream(below.columns + added, segment)

    def _calls(self, calls: tuple[AggregateCall, ...], below: _Stream) -> Calls:
        """The calls, resolved over the columns of the input."""
        resolved = [
            with_inputs(
                call,
                tuple([self._resolve(arg, below) for arg in call.args]),
                None if call.filter is None else self._resolve(call.filter, below),
                call.type,
            )
            for call in calls
        ]
        bare = tuple(map(normalize_aggregate, resolved))
        first = dict(zip(reversed(bare), reversed(resolved), strict=True))
        unique = tuple(dict.fromkeys(bare))
        return Calls(calls, bare, unique, tuple([tuple([arg.type for arg in first[call].args]) for call in unique]))

    def _aggregate(self, node: Aggregate) -> _Stream:
        below = self.stream(node.input)
        keys = tuple([self._resolve(key, below) for key in node.keys])
        calls = self._calls(node.aggregates, below)
        segment = below.segment
        if isinstance(segment.origin, OverOperator):
            used = (*keys, *(arg for call in calls.unique for arg in call.args))
            segment = _in_order_of_use(segment, segment.origin, used)
        operator = aggregation(node, segment, below.columns, keys, calls)
        return _Stream(result_columns(keys, calls), StatelessSegment(operator))

    def _group_window(self, node: GroupWindowAggregate) -> _Stream:
        below = self.stream(node.input)
        keys = tuple(self._resolve(key, below) for key in node.keys)
        calls, time = self._calls(node.aggregates, below), self._resolve(node.time, below)
        operator = group_window_aggregation(node, below.segment, below.columns, time, keys, calls)
        return _Stream(result_columns(keys, calls) + properties(node), StatelessSegment(operator))

    def _join(self, node: Join) -> _Stream:
        sides = (self.stream(node.left), self.stream(node.right))
        row = self._side_by_side(sides)
        rows = tuple(tuple(normalize(column) for column in side.columns) for side in sides)
        operator = join_operator(
            node,
            (sides[0].segment, sides[1].segment),
            (rows[0], rows[1]),
            lambda part: normalize_predicate(normalize(self._resolve(part, row))),
            _with_filter,
        )
        kept = sides[:1] if node.kind in ("SEMI", "ANTI") else sides
        return _Stream(
            tuple(_passed_column(i, column) for i, side in enumerate(kept) for column in side.columns),
            StatelessSegment(replace(operator, input_columns=rows)),
        )

    def _over(self, node: Over) -> _Stream:
        below = self.stream(node.input)
        calls = self._calls(tuple(over.call for over in node.calls), below)
        first = node.calls[0]
        time = first.order_by[0][0] if first.order_by else None
        row = tuple(normalize(column) for column in below.columns)
        operator = OverOperator(
            segment=below.segment,
            aggregates=calls.unique,
            partition_by=tuple(normalize(self._resolve(key, below)) for key in first.partition_by),
            order=self._sort_keys(first.order_by, below),
            frame=first.frame,
            clock=node.input.schema[time.index].time_attribute if isinstance(time, InputRef) else None,
            row=row,
            all_columns=row,
            argument_types=calls.argument_types,
            partition_types=tuple(key.type for key in first.partition_by),
            span=node.span,
        )
        added = tuple(
            OperatorColumn(0, call, type=over.call.type) for call, over in zip(calls.each, node.calls, strict=True)
        )
        return _Stream(tuple(_passed_column(0, column) for column in below.columns) + added, StatelessSegment(operator))

    def _numbered(self, node: Over) -> _Stream:
        below = self._below(node)
        operator = numbering(node, below.columns, below.segment, lambda key: self._resolve(key, below))
        passed = tuple(column if isinstance(column, Literal) else _passed_column(0, column) for column in below.columns)
        number = tuple(OperatorColumn(0, RankNumber(), type=c.type) for c in node.schema[len(passed) :])
        return _Stream(passed + number, StatelessSegment(operator), node)

    def _below(self, node: Over) -> _Stream:
        """The input of an OVER, evaluated once even if the OVER is first evaluated as a ranking."""
        if id(node) not in self._inputs:
            self._inputs[id(node)] = self.stream(node.input)
        return self._inputs[id(node)]

    def _sort_keys(
        self, keys: tuple[tuple[Expression, bool, bool | None], ...], below: _Stream
    ) -> tuple[tuple[Expression, bool, bool | None], ...]:
        return tuple((normalize(self._resolve(key, below)), ascending, nulls) for key, ascending, nulls in keys)

    def _side_by_side(self, sides: tuple[_Stream, ...]) -> _Stream:
        """The columns of all inputs. Equal columns of different inputs stay distinct."""
        columns = tuple(
            OperatorColumn(i, normalize(column), type=column.type, span=column.span)
            for i, stream in enumerate(sides)
            for column in stream.columns
        )
        return _Stream(columns, StatelessSegment(None))

    def _other(self, node: Node) -> _Stream:
        below = (self._below(node),) if isinstance(node, Over) else tuple(self.stream(inner) for inner in node.inputs)
        rows = tuple(tuple(normalize(column) for column in stream.columns) for stream in below)
        operator = OtherOperator(
            kind=_kind(node),
            segments=tuple(stream.segment for stream in below),
            attributes=self._attributes(node, below),
            rows=rows,
            input_columns=rows,
            row_types=tuple(tuple(column.type for column in stream.columns) for stream in below),
            span=node.span,
        )
        if isinstance(node, Sort):
            return _Stream(tuple(_passed_column(0, column) for column in below[0].columns), StatelessSegment(operator))
        out = tuple(OperatorColumn(0, ColumnOutput(i), type=c.type) for i, c in enumerate(node.schema))
        return _Stream(out, StatelessSegment(operator))

    def _attributes(self, node: Node, below: tuple[_Stream, ...]) -> tuple[tuple[str, Any], ...]:
        match node:
            case Over():
                calls = tuple(
                    (
                        self._calls((over.call,), below[0]).each[0],
                        tuple(normalize(self._resolve(key, below[0])) for key in over.partition_by),
                        self._sort_keys(over.order_by, below[0]),
                        over.frame,
                    )
                    for over in node.calls
                )
                return (("calls", calls),)
            case Sort():
                keys = self._sort_keys(node.keys, below[0])
                time = keys[:1] if _clock(node) else ()
                return (
                    ("time key", time),
                    ("clock", _clock(node)),
                    ("sort keys", keys[len(time) :]),
                    ("limit", node.limit),
                    ("offset", node.offset or 0),
                )
            case Opaque():
                clauses = (("text", node.text), *node.clauses)
                partitions = (part for place, keys in node.keys for part in self._partition(place, keys, below))
                return (*((name, self._clause(clause, below)) for name, clause in clauses), *partitions)
        return ()

    def _clause(self, clause: Clause | NormalForm | str, below: tuple[_Stream, ...]) -> Clause | NormalForm | str:
        if not isinstance(clause, Clause):
            return clause
        read = below[clause.input]
        return replace(clause, columns=tuple(normalize(self._resolve(column, read)) for column in clause.columns))

    def _partition(
        self, place: int, keys: tuple[Expression, ...], below: tuple[_Stream, ...]
    ) -> tuple[tuple[str, Any], ...]:
        """The partition keys of one input, as a set and in order."""
        partition = tuple(normalize(self._resolve(key, below[place])) for key in keys)
        of = f" of input {place + 1}" if place else ""
        return (f"partition{of}", frozenset(partition)), (f"partition order{of}", partition)


def _normalized(node: Node) -> Node:
    for each in NODE_PASSES:
        node = each.apply(node)
    return node


def _passed_column(place: int, column: Expression) -> OperatorColumn:
    return OperatorColumn(0, PassedOutput(place, normalize(column)), type=column.type, span=column.span)


def _one_window(node: Over) -> bool:
    """True if all calls have the same frame and none is a ranking: they form one OVER aggregation."""
    windows = {(call.partition_by, call.order_by, call.frame) for call in node.calls}
    return len(windows) == 1 and not any(call.call.function in RANKING for call in node.calls)


def _clock(node: Sort) -> TimeAttribute | None:
    """The time attribute of a sort's first key; None if this key is descending or has none."""
    if not node.keys or not isinstance(node.keys[0][0], InputRef) or not node.keys[0][1]:
        return None
    return node.schema[node.keys[0][0].index].time_attribute


def _in_order_of_use(segment: StatelessSegment, over: OverOperator, columns: Iterable[Expression]) -> StatelessSegment:
    """Put the calls of an OVER in the order of the projection that reads the OVER directly.

    The planner merges this projection with the next, whose order therefore applies (EXPLAIN, 2.3.0 and 1.20.3).
    """
    if segment.filters or segment.window_filters or segment.functions:
        return segment
    types = dict(zip(over.aggregates, over.argument_types, strict=True))
    used = (leaf.output for column in columns for leaf in leaves(column) if isinstance(leaf, OperatorColumn))
    order = tuple(dict.fromkeys((*(each for each in used if each in types), *types)))
    if order == over.aggregates:
        return segment
    return replace(segment, origin=replace(over, aggregates=order, argument_types=tuple(types[each] for each in order)))


def _with_filter(segment: StatelessSegment, part: Expression) -> StatelessSegment:
    """Add a conjunct to a segment, or move it upstream of an operator as Flink's planner does."""
    for each in FILTER_PASSES:
        moved = each.apply(segment, part)
        if moved is not None:
            return moved
    if uses_window_field(part):
        return replace(segment, window_filters=segment.window_filters | {part})
    return replace(segment, filters=segment.filters | {part})


def _into_join(segment: StatelessSegment, part: Expression) -> StatelessSegment | None:
    origin = segment.origin
    if not isinstance(origin, JoinOperator) or segment.functions or segment.windows:
        return None
    joined = filtered(origin, part, _with_filter)
    return None if joined is None else replace(segment, origin=joined)


def _below_aggregation(segment: StatelessSegment, part: Expression) -> StatelessSegment | None:
    """Move a conjunct upstream through an aggregation if it reads only keys; None for other conjuncts."""
    origin = segment.origin
    if not isinstance(origin, AggregateOperator) or origin.grouping_sets is not None:
        return None
    read = [leaf for leaf in leaves(part) if not isinstance(leaf, Literal)]
    keys_only = read and all(isinstance(x, OperatorColumn) and isinstance(x.output, KeyOutput) for x in read)
    if not keys_only or segment.functions or segment.windows:
        return None
    return replace(segment, origin=replace(origin, segment=_with_filter(origin.segment, transform(part, _below_key))))


def _where_of_join(node: Node) -> Node:
    if isinstance(node, Join) and node.condition is not None:
        return replace(node, condition=simplified(node.condition))
    if not isinstance(node, Filter) or not isinstance(node.input, Join | Project):
        return node
    parts = conjuncts(simplified(node.condition))
    if isinstance(node.input, Project):
        return _where_of_selected_join(node, node.input, parts)
    join = strict_join(node.input, parts)
    if join.kind in ("CROSS", "INNER") and join.temporal is None:
        on = () if join.condition is None else (simplified(join.condition),)
        return replace(join, kind="INNER", condition=FunctionCall("AND", (*on, *parts), BOOLEAN))
    return node if join is node.input else replace(node, input=join)


def _where_of_selected_join(node: Filter, selected: Project, parts: Iterable[Expression]) -> Node:
    """Make the outer join of a subquery stricter if a condition of the outer query drops its padded rows."""
    if not isinstance(selected.input, Join) or selected.hints:
        return node
    columns = selected.expressions
    below = [
        transform(part, lambda leaf: columns[leaf.index] if isinstance(leaf, InputRef) else leaf) for part in parts
    ]
    join = strict_join(selected.input, below)
    return node if join is selected.input else replace(node, input=replace(selected, input=join))


def _pruned(output: Output) -> Output:
    segment = output.segment.prune(output.columns)
    return output if segment is output.segment else replace(output, segment=segment)


NODE_PASSES: tuple[Pass[Callable[[Node], Node]], ...] = (
    Pass(
        "where-of-join",
        "FROM a, b WHERE … is one join with this condition, and so is LEFT JOIN b WHERE b.x > "
        "1, which drops rows without b",
        _where_of_join,
    ),
)
"""Passes that are applied to each node of a plan before the node is resolved."""
FILTER_PASSES: tuple[Pass[Callable[[StatelessSegment, Expression], StatelessSegment | None]], ...] = (
    Pass("filter-into-join", "a condition above a join moves into or below the join", _into_join),
    Pass(
        "filter-below-aggregation",
        "a condition that only reads group keys moves below the aggregation",
        _below_aggregation,
    ),
)
"""Passes that try to move a downstream conjunct upstream; None means that a pass did not move it."""
OUTPUT_PASSES: tuple[Pass[Callable[[Output], Output]], ...] = (
    Pass("pruning", "metrics and columns that nothing reads are removed", _pruned),
)
"""Passes that are applied to a whole pipeline."""
PASSES: tuple[Pass[Any], ...] = (*CALL_PASSES, *CONDITION_PASSES, *NODE_PASSES, *FILTER_PASSES, *OUTPUT_PASSES)
"""The passes of all stages, in order."""


def _below_key(leaf: Expression) -> Expression:
    if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, KeyOutput):
        return leaf.output.key
    return leaf


def _kind(node: Node) -> str:
    match node:
        case Over():
            return OverOperator.KIND
        case Sort():
            if not node.keys:
                return OtherKind.LIMIT
            if node.limit is not None:
                return OtherKind.SORT_LIMIT
            return OtherKind.TEMPORAL_SORT if _clock(node) else OtherKind.SORT
        case Union():
            return OtherKind.UNION_ALL
        case Opaque():
            return node.kind
    return type(node).__name__


def _too_large(expression: FunctionCall) -> bool:
    """True if an expression, with the operator outputs that it reads, exceeds :data:`SIZE_LIMIT` parts."""
    parts = 0
    pending: list[Any] = [expression]
    while pending and parts <= SIZE_LIMIT:
        parts += 1
        match pending.pop():
            case FunctionCall(args=args) as call:
                known = call.memo.get("parts")
                if known is None:
                    pending += args
                else:
                    parts += known - 1
            case AggregateCall(args=args, filter=condition):
                pending += (*args, condition)
            case FunctionColumn(call=inner) | OperatorColumn(output=inner) | KeyOutput(key=inner):
                pending.append(inner)
            case PassedOutput(column=inner):
                pending.append(inner)
    expression.memo["parts"] = parts
    return parts > SIZE_LIMIT
