"""What computes the state of an operator of a script, found by what a compiled plan tells of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Locations
from airflow_flinkcompat.bootstrap.aggregations import aggregation_query, as_group_by
from airflow_flinkcompat.bootstrap.entries import check_writable
from airflow_flinkcompat.bootstrap.interval_joins import interval_join_query
from airflow_flinkcompat.bootstrap.joins import join_query
from airflow_flinkcompat.bootstrap.local_clock import LocalClock
from airflow_flinkcompat.bootstrap.ranks import rank_query
from airflow_flinkcompat.bootstrap.state_rows import NotComputable, StateQuery, TableRows
from airflow_flinkcompat.compat.changes.settings import value
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.expressions import Expression, transform, transform_aggregate
from airflow_flinkcompat.plan.nodes import WindowKind, walk_nodes
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    OverOperator,
    RankOperator,
    Source,
    StatelessSegment,
    operators,
)
from airflow_flinkcompat.plan.origins import ColumnOutput, OperatorColumn
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import TimeAttribute
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.state.layouts.plan_types import LayoutNotDerived
from airflow_flinkcompat.state.layouts.script_aggregation import derive_aggregation
from airflow_flinkcompat.state.layouts.script_operator import operator_layout
from airflow_flinkcompat.state.model import StateSpec
from airflow_flinkcompat.state.windows import SlicedWindow

_RowsOf = Callable[[StatelessSegment], TableRows]
_QUERIES: Mapping[type[Operator], Callable[[_RowsOf, Any, StateLayout], StateQuery]] = {
    AggregateOperator: lambda rows, operator, layout: aggregation_query(rows(operator.segment), operator, layout),
    OverOperator: lambda rows, operator, layout: aggregation_query(
        rows(operator.segment), as_group_by(operator), layout
    ),
    RankOperator: lambda rows, operator, layout: rank_query(rows(operator.segment), operator, layout),
    JoinOperator: lambda rows, operator, layout: (
        interval_join_query if operator.form is JoinForm.INTERVAL else join_query
    )([*map(rows, operator.segments)], operator, layout),
}
_RANKS_OF_WINDOWS = frozenset({"window-rank", "window-deduplicate"})
_OFFSETS_SINCE = "2.3"
_TTL, _STATE_TTL = "table.exec.state.ttl", "STATE_TTL"
_SEVERAL = "several operators of the script store the same, and which of them it is is not told"


def state_query(side: Side, spec: StateSpec, locations: Locations, watermark: int | None = None) -> StateQuery:
    """What computes the state of an operator of a script.

    Args:
        side: The script with all that it is planned with.
        spec: What the compiled plan of the script tells of the operator.
        locations: Where the rows of its tables lie.
        watermark: How far time has come, in milliseconds; windows that have fired are left out then.

    Returns:
        For each of its states what computes it.

    Raises:
        NotComputable: History does not say what stands in the state, or that was not measured.
    """
    try:
        if (between_windows := _between_windows(side, spec, locations)) is not None:
            return between_windows
        pipeline, operator, layout = _of_script(side, spec)
        time_to_live = 0
        # Of an OVER the compiled plan does not tell it.
        if any(state.time_to_live for state in layout.states) or (
            isinstance(operator, OverOperator) and value(_TTL, dict(pipeline.settings).get(_TTL, "0")) != "0"
        ):
            time_to_live = _time_to_live(pipeline, operator)
        rows = partial(TableRows, pipeline, locations=locations, watermark=watermark, time_to_live=time_to_live)
        query = _QUERIES[type(operator)](rows, operator, layout)
        for state in layout.states:
            check_writable(layout.key, state)
        if isinstance(operator, AggregateOperator):
            require_punctual(side, query)
    except (BackfillError, NotMigratable, SavepointUnreadable) as error:
        raise NotComputable(str(error)) from None
    require_plain(operator)
    # Which rows are of a value that has not expired Spark says alone.
    return replace(query, time_to_live=time_to_live, plain=() if time_to_live else query.plain)


def _between_windows(side: Side, spec: StateSpec, locations: Locations) -> StateQuery | None:
    """What computes the state of a ranking that gets the rows of a window when this has ended, and sends its own then.

    The watermark that ends a window goes through the aggregation below and the ranking before any savepoint is taken.

    Returns:
        A query without rows; None of any other operator.
    """
    outputs, problems = side.outputs
    if spec.name not in _RANKS_OF_WINDOWS or not isinstance(spec.layout, StateLayout) or problems:
        return None
    found = [
        (rank, side.program.pipelines[place])
        for place, output in outputs.items()
        for rank in operators(output)
        if isinstance(rank, RankOperator) and rank.window is not None
    ]
    query = None
    for rank, pipeline in found:
        if (below := _windows_below(rank)) is None:
            return None
        segment, windows = below
        rows = TableRows(pipeline, segment, locations)
        tables = rows.tables if query is None else (*query.tables, *rows.tables)
        query = StateQuery(tuple(dict.fromkeys(tables)), spec.layout.key, (), windows, zone=rows.zone)
        require_punctual(side, query)
    return query


def _windows_below(rank: RankOperator) -> tuple[StatelessSegment, SlicedWindow] | None:
    """What the aggregation straight below puts into the windows of a ranking, and these, if their ends are told."""
    below, assigned = rank.segment.origin, rank.window
    if assigned is None or assigned.time_attribute is not TimeAttribute.ROWTIME or rank.segment.windows:
        return None
    if not isinstance(below, AggregateOperator) or (below.kind, below.window) != (AggregateKind.WINDOW, assigned):
        return None
    windows = SlicedWindow.of(assigned.window)
    return (below.segment, windows) if windows is not None and below.segment.windows else None


def _time_to_live(pipeline: Pipeline, operator: Operator) -> int:
    """How long a value of an operator lives that is not written any more, in milliseconds."""
    if not isinstance(operator, AggregateOperator | JoinOperator):
        raise NotComputable("a time to live is followed of GROUP BY and joins alone")
    if not all(isinstance(segment.origin, Source) for segment in operator.segments):
        raise NotComputable("a time to live of what is made of several tables is not followed yet")
    if any(name == _STATE_TTL for node in walk_nodes(pipeline.sink) for name, _ in getattr(node, "hints", ())):
        raise NotComputable(f"a time to live that is given by {_STATE_TTL} is not followed yet")
    given = dict(pipeline.settings).get(_TTL, "")
    if not (milliseconds := value(_TTL, given)).isdecimal():
        raise NotComputable(f"{_TTL} is {given!r}, which says not how long its values live")
    return int(milliseconds)


def require_plain(operator: Operator) -> None:
    """Sees that nothing stands between an operator and its tables but conditions, and the one window it is over.

    Args:
        operator: Of the script's own plan.

    Raises:
        NotComputable: Something else does.
    """
    window = getattr(operator, "window", None)
    for segment in operator.segments:
        if isinstance(segment.origin, Operator):
            require_plain(segment.origin)
        if len(segment.windows) > (window is not None):
            raise NotComputable("rows that come from windows of another definition are not computed from history yet")
        if segment.window_filters:
            raise NotComputable("conditions on the bounds of windows are not computed from history yet")
        if segment.hints or (isinstance(segment.origin, Source) and segment.origin.hints):
            raise NotComputable("hints are not followed where state is computed from history")


def require_punctual(side: Side, query: StateQuery) -> None:
    """Sees that an aggregation fires its windows as soon as they end, so that its watermark tells which have fired.

    Args:
        side: The script.
        query: What computes the aggregation's state.

    Raises:
        NotComputable: When it fires them depends on when checkpoints came (measured, and read in Flink 2.3 and 1.20).
        NotMigratable: It is not told.
    """
    windows = query.windows
    if windows is None:
        return
    if not LocalClock(query.zone).is_punctual(windows.step):
        raise NotComputable(
            f"in {query.zone} such windows do not end where they would by UTC, and Flink fires them late"
        )
    if windows.offset % windows.step and ENGINE_FACTS[side.engine].flink_line(side.version) != _OFFSETS_SINCE:
        raise NotComputable(f"before Flink {_OFFSETS_SINCE} windows with an offset fire late")


def require_sole(spec: StateSpec, specs: Iterable[StateSpec]) -> None:
    """Sees that an operator is told from all others of its job by what it stores.

    Args:
        spec: The operator.
        specs: Those of the compiled plan.

    Raises:
        NotComputable: Another one stores the same, of which the script's own plan need not tell anything.
    """
    if sum(_stored(each) == _stored(spec) for each in specs) > 1:
        raise NotComputable(_SEVERAL)


def _stored(spec: StateSpec) -> tuple[StateLayout, list[str]] | None:
    return (spec.layout.stored, _words(spec.layout)) if isinstance(spec.layout, StateLayout) else None


def _of_script(side: Side, spec: StateSpec) -> tuple[Pipeline, Operator, StateLayout]:
    """The operator of the script's own plan that stores and means what the compiled plan tells of one."""
    if not isinstance(spec.layout, StateLayout):
        raise NotComputable(spec.layout.reason if spec.layout is not None else "it keeps nothing by key")
    if spec.layout.retracting:
        raise NotComputable("rows are taken back from it, and what was sent to it before is not in its tables")
    if problems := side.outputs[1]:
        raise NotComputable(f"the script is not understood: {problems[0].message}")
    told = list(_laid_out(side, any(state.time_to_live for state in spec.layout.states)))
    alike = [
        (pipeline, operator, layout)
        for pipeline, operator, layout in told
        if isinstance(layout, StateLayout) and layout.stored == spec.layout.stored
    ]
    found = {each[1]: each for each in alike if _is_of_the_same(*each[1:], spec.layout)}
    if not found and all(isinstance(layout, StateLayout) for _, _, layout in told):
        found = {each[1]: each for each in alike if _is_of_one_column(*each[1:], spec.layout)}
    if len(found) > 1:
        raise NotComputable(_SEVERAL)
    for sole in found.values():
        return sole
    reasons = {layout.reason for _, _, layout in told if isinstance(layout, LayoutUnknown)}
    raise NotComputable(reasons.pop() if len(reasons) == 1 else "the script's own plan has no operator that stores it")


def _laid_out(
    side: Side, time_to_live: bool
) -> Iterator[tuple[Pipeline, Operator, StateLayout | LayoutUnknown | None]]:
    """The operators of the script's own plan, each with how it stores what it keeps; None where nobody asks."""
    for place, output in side.outputs[0].items():
        for operator in operators(output):
            if operator.kind != OtherKind.UNION_ALL:
                asked = type(operator) in _QUERIES
                yield side.program.pipelines[place], operator, _layout(operator, time_to_live) if asked else None


def _layout(operator: Operator, time_to_live: bool) -> StateLayout | LayoutUnknown:
    """How an operator stores what it keeps, or why that is not told."""
    over_table = isinstance(operator.segments[0].origin, Source) and not operator.segments[0].functions
    try:
        if isinstance(operator, OverOperator) and over_table:
            return derive_aggregation(as_group_by(operator), time_to_live)
        if not isinstance(operator, AggregateOperator) or not _of_several(operator):
            return operator_layout(operator, Symbols(), time_to_live)
        return derive_aggregation(operator, time_to_live)
    except (LayoutNotDerived, NotComputable) as error:
        return LayoutUnknown(str(error))


def _of_several(operator: AggregateOperator) -> bool:
    """Whether it aggregates rows of several tables that are told, in windows those that follow one another."""
    if isinstance(operator.segment.origin, Source) or not _is_added_to(operator.segment):
        return False
    if operator.kind is AggregateKind.GROUP:
        return True
    sliced = operator.window is not None and operator.window.window.kind is not WindowKind.SESSION
    return operator.kind is AggregateKind.WINDOW and sliced and isinstance(operator.segment.origin, OtherOperator)


def _is_added_to(segment: StatelessSegment) -> bool:
    """Whether rows come from tables, of which some are joined, or follow one another, so that none is taken back."""
    origin = segment.origin
    if isinstance(origin, Source):
        return not segment.functions
    if isinstance(origin, JoinOperator):
        told = origin.form is JoinForm.REGULAR and origin.join == "INNER" and bool(origin.keys)
    else:
        told = isinstance(origin, OtherOperator) and origin.kind == OtherKind.UNION_ALL
    return told and not segment.functions and all(map(_is_added_to, origin.segments))  # type: ignore[union-attr]


def _is_of_the_same(operator: Operator, layout: StateLayout, compiled: StateLayout) -> bool:
    """Whether the fields of a layout are of the same columns as those that a compiled plan tells.

    That counts up the columns of one name of which a join puts out several, and calls those of a union as the first of
    its tables does.
    """
    (segment, *more) = operator.segments
    if more or isinstance(segment.origin, Source):
        return _words(layout) == _words(compiled)
    if isinstance(segment.origin, OtherOperator) and isinstance(operator, AggregateOperator):
        first = segment.origin.input_columns[0]

        def named(leaf: Expression) -> Expression:
            if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, ColumnOutput):
                return first[leaf.output.index]
            return leaf

        keys = tuple(transform(key, named) for key in operator.keys)
        calls = tuple(transform_aggregate(call, named) for call in operator.aggregates)
        layout = derive_aggregation(replace(operator, keys=keys, aggregates=calls), layout.states[0].time_to_live)
    # One key is the only one, whatever it is called; of several the order matters.
    keys_told = len(layout.key) > 1
    told, wanted = ([*_words(each), *(field.words for field in each.key if keys_told)] for each in (layout, compiled))
    alike = len(told) == len(wanted) and all(map(_counted_up, told, wanted))
    return alike and len({*told}) == len({*wanted}) == len({*zip(told, wanted, strict=True)})


def _is_of_one_column(operator: Operator, layout: StateLayout, compiled: StateLayout) -> bool:
    """Whether all calls over a union are over one of its columns, which a planner may call as the script does.

    That tells less than names do: it holds where nothing else of the script could be meant.
    """
    told, wanted = ("\n".join(_words(each)) for each in (layout, compiled))
    columns = {*re.findall(r"column \d+", told)}
    if not isinstance(operator.segments[0].origin, OtherOperator) or len(columns) != 1 or len(layout.key) > 1:
        return False
    first, *more = map(re.escape, told.split(columns.pop()))
    return re.fullmatch(first + r"(?P<name>\w+)" + r"(?P=name)".join(more), wanted) is not None


def _counted_up(name: str, planned: str) -> bool:
    """Whether a planner may call by the second name what the first one is."""
    parts, others = re.split(r"(\W+)", name), re.split(r"(\W+)", planned)
    return len(parts) == len(others) and all(
        other == part or (other.startswith(part) and other[len(part) :].isdecimal())
        for part, other in zip(parts, others, strict=True)
    )


def _words(layout: StateLayout) -> list[str]:
    """What the fields are of. Of a condition compiled plans know the column alone that it was computed into."""
    words = (field.words.partition(" FILTER ")[0] for state in layout.states for field in state.row)
    return [each.replace("SUM0(", "SUM(") for each in words]
