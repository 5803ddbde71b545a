"""ON CONFLICT: INSERTs that require or forbid the clause, and the planned materializer.

The upsert key of the query is compared with the primary key of the sink. The conditions are those of
``FlinkChangelogModeInferenceProgram`` (2.3.0), and were checked with its planner for each kind of query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.changelog import changes, undescribed_source
from airflow_flinkcompat.compat.engines.flink.validation.tables import value_format
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.model.engine import line_numbers, line_of
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Leaf, Literal, untyped
from airflow_flinkcompat.plan.nodes import Table, WindowField
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankKind,
    RankOperator,
    Rows,
    Source,
    StatelessSegment,
    operators,
    segments,
)
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    SourceColumn,
    WindowColumn,
    leaves,
)
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import UNKNOWN

ON_CONFLICT = "ON CONFLICT"
"""The name of the clause, and the kind of the fault if the clause is missing."""


REQUIRED = "table.exec.sink.require-on-conflict"


_MATERIALIZE = "table.exec.sink.upsert-materialize"


_FIRST = (2, 3)
"""The first line of Flink that supports and requires ON CONFLICT."""


_WITHOUT_RETRACTIONS = (2, 2)
"""The first line of Flink that plans no materializer for a sink that also accepts UPDATE_BEFORE rows."""


_AT_WATERMARKS = ("ERROR", "NOTHING")
"""ON CONFLICT strategies for which an operator before the sink keeps rows until the watermark."""


REMEDY = (
    "add ON CONFLICT DO DEDUPLICATE (keeps the latest row of a key), DO NOTHING (keeps the first row) or DO ERROR "
    f"(fails the job) to the end of the INSERT, or set {REQUIRED} = false"
)
"""The remedy for a missing ON CONFLICT. DO NOTHING and DO ERROR need a watermark on every source."""


_OTHER_VALUES = frozenset({"UPPER", "LOWER", "TRIM", "SUBSTRING", "SUBSTR", "CONCAT", "ABS", "MOD", "DATE_FORMAT"})
"""Functions that the planner never simplifies to their argument, and that preserve no key."""


_ORDERED = frozenset({"<", "<=", ">", ">=", "<>", "LIKE", "IS NOT NULL", "IS NULL"})
"""Conditions that do not fix a column to a constant value."""


_Key = frozenset[object]


class Materializer(StrEnum):
    """The stateful operator that Flink plans between a query and a keyed sink.

    ``UPSERT`` is SinkUpsertMaterializer, ``WATERMARK`` WatermarkCompactingSinkMaterializer.
    """

    NONE = "none"
    UPSERT = "upsert materializer"
    WATERMARK = "watermark materializer"
    NOT_KNOWN = "not known"


class _Mode(StrEnum):
    """The kinds of changes that a sink requires from a query."""

    APPEND = "inserts only"
    UPSERT = "updates by key"
    RETRACT = "updates with the row before the update"
    NOT_KNOWN = "not known"


def strategy(output: Output) -> str | None:
    """The strategy in ON CONFLICT DO, in capitals; None without the clause."""
    return next((text.upper() for name, text in output.hints if name == ON_CONFLICT), None)


def conflict_faults(
    output: Output, pipeline: Pipeline, program: Program, sink: Table, line: str | None
) -> Iterator[Fault]:
    """Faults of a present or a missing ON CONFLICT clause on a line of Flink (``major.minor``).

    A fault is uncertain if the upsert key cannot be derived.
    """
    if strategy(output) is not None:
        yield from _clause_faults(output, pipeline, program, sink, line)
    elif sink.primary_key and requires_clause(line) and _clause_required(dict(pipeline.settings)):
        yield from _missing(output, pipeline, program, sink, line)


def _clause_faults(
    output: Output, pipeline: Pipeline, program: Program, sink: Table, line: str | None
) -> Iterator[Fault]:
    clause = f"ON CONFLICT DO {strategy(output)}"
    if (line is not None and not requires_clause(line)) or _in_batch(dict(pipeline.settings)):
        return
    updates = changes(output.segment, pipeline, program)
    mode = _mode(sink, updates)
    if mode is _Mode.RETRACT or (mode is _Mode.APPEND and updates is not Known.YES):
        received = "only inserts" if mode is _Mode.APPEND else "the row before an update too"
        yield Fault(
            "an ON CONFLICT for a sink without keyed updates",
            (
                f"{clause} is for sinks that accept updates by key, but sink {sink.name} ({sink.option('connector')}) "
                f"receives {received} here; remove the clause"
            ),
        )
    if strategy(output) in _AT_WATERMARKS and (without := list(_without_watermark(output, program))):
        yield Fault(
            "an ON CONFLICT without a watermark",
            (
                f"{clause} requires a watermark on every source, but {', '.join(without)} has none; declare WATERMARK "
                f"FOR a time column, or use DO DEDUPLICATE"
            ),
        )


def _missing(output: Output, pipeline: Pipeline, program: Program, sink: Table, line: str | None) -> Iterator[Fault]:
    updates = changes(output.segment, pipeline, program)
    mode, differs = _mode(sink, updates), _differs(output, program, sink)
    if mode in (_Mode.APPEND, _Mode.RETRACT) or differs is Known.NO:
        return
    certain = differs is Known.YES and mode is _Mode.UPSERT
    names = ", ".join(sink.primary_key)
    yield Fault(
        ON_CONFLICT,
        (
            f"PRIMARY KEY ({names}) of sink {sink.name} {'is not' if certain else 'may not be'} the upsert key "
            f"of the query, so Flink {line} requires ON CONFLICT; {REMEDY}"
        ),
        certain,
        by_line=True,
        undescribed="" if certain else sink.name if mode is _Mode.NOT_KNOWN else undescribed_source(output, program),
    )


def materializer(
    output: Output, pipeline: Pipeline, program: Program, sink: Table | None, line: str | None
) -> Materializer:
    """The operator that Flink plans before a sink to resolve several rows with one primary key."""
    if not output.sink:
        return Materializer.NONE
    if sink is None:
        return Materializer.NOT_KNOWN
    given = dict(pipeline.settings)
    mode = settings.effective(given, _MATERIALIZE, "flink")
    if not sink.primary_key or mode == "NONE" or _in_batch(given):
        return Materializer.NONE
    updates = changes(output.segment, pipeline, program)
    if updates is Known.NO and settings.enabled_fires(pipeline):
        updates = Known.NOT_KNOWN
    taken, planned = _mode(sink, updates), Materializer.UPSERT
    if strategy(output) in _AT_WATERMARKS:
        planned = Materializer.WATERMARK
    if taken is _Mode.RETRACT and line is not None and _version(line) < _WITHOUT_RETRACTIONS:
        taken = _Mode.NOT_KNOWN
    if mode == "FORCE":
        return {_Mode.RETRACT: Materializer.NONE, _Mode.NOT_KNOWN: Materializer.NOT_KNOWN}.get(taken, planned)
    overwrites = strategy(output) == "DEDUPLICATE" or not requires_clause(line)
    if taken in (_Mode.APPEND, _Mode.RETRACT) or (updates is Known.NO and overwrites):
        return Materializer.NONE
    differs = _differs(output, program, sink)
    if differs is Known.NO:
        return Materializer.NONE
    certain = differs is Known.YES and taken is _Mode.UPSERT and (updates is Known.YES or not overwrites)
    return planned if certain else Materializer.NOT_KNOWN


def requires_clause(line: str | None) -> bool:
    """True if a line of Flink requires ON CONFLICT."""
    return line is not None and _version(line) >= _FIRST


def _version(line: str) -> tuple[int, ...]:
    try:
        return line_numbers(line_of(line))
    except ValueError:
        return ()


def _in_batch(given: Mapping[str, str]) -> bool:
    return given.get("execution.runtime-mode", "").lower() in ("batch", "automatic")


def _clause_required(given: Mapping[str, str]) -> bool:
    if _in_batch(given) or settings.effective(given, _MATERIALIZE, "flink") != "AUTO":
        return False
    return settings.effective(given, REQUIRED, "flink") == "true"


def _without_watermark(output: Output, program: Program) -> Iterator[str]:
    """The declared tables that Flink scans for a query and that have no watermark."""
    joins = (each for each in operators(output) if isinstance(each, JoinOperator) and each.form is JoinForm.LOOKUP)
    looked_up = {id(join.segments[1]) for join in joins}
    if any(
        all(isinstance(leaf, Literal) for leaf in leaves(part)) for each in segments(output) for part in each.filters
    ):
        return  # a constant condition may remove the source
    read = (each.origin for each in segments(output) if id(each) not in looked_up)
    scanned = {origin.table for origin in read if isinstance(origin, Source)}
    for table in program.tables:
        if table.name in scanned and table.declared and table.watermark is None:
            yield table.name


def _mode(sink: Table, updates: Known) -> _Mode:
    """The kinds of changes that a sink requires; ``updates`` is Known.YES if the query updates results."""
    facts = registry.sink(sink.option("connector"))
    format = FORMATS.get(value_format(sink))
    if format is not None and format.appends is Known.NO and facts.upserts is Known.NO:
        return _Mode.RETRACT
    if facts.upserts is facts.updates is Known.NO:
        return _Mode.APPEND
    if facts.upserts is not Known.YES and facts.updates is not Known.YES:
        return _Mode.NOT_KNOWN
    if updates is Known.YES and (facts.upserts is Known.YES or facts.upserts_appended is not Known.NOT_KNOWN):
        return _Mode.UPSERT
    return {
        Known.YES: _Mode.UPSERT,
        Known.NO: _Mode.APPEND if updates is Known.NO else _Mode.NOT_KNOWN,
        Known.NOT_KNOWN: _Mode.NOT_KNOWN,
    }[facts.upserts_appended]


def _differs(output: Output, program: Program, sink: Table) -> Known:
    """Known.YES if the sink's primary key contains no upsert key of the query."""
    held = _primary_key_values(output, sink)
    if held is None or output.segment.functions:
        return Known.NOT_KNOWN
    keys, every = _upsert_keys(output.segment, program)
    below = {leaf for part in _equalities(output.segment) for leaf in leaves(part)}
    if any(_output(leaf) in key for leaf in below for key in keys):
        return Known.NOT_KNOWN  # the planner may replace a key that equals a constant
    if any(key <= held for key in keys):
        return Known.NO
    if not every or any(_may_keep(value, keys) for value in held):
        return Known.NOT_KNOWN
    return Known.YES


def _primary_key_values(output: Output, sink: Table) -> frozenset[object] | None:
    """The expressions for the primary key's columns; None if the INSERT does not fill each column."""
    if output.partition:
        return None
    names = output.insert_columns or [column.name for column in sink.written]
    columns = dict(zip(names, output.columns, strict=False))
    if any(name not in columns for name in sink.primary_key):
        return None
    return frozenset(_output(columns[name]) for name in sink.primary_key)


def _output(value: object) -> object:
    """A column as the upstream operator emits it, without its type and place in the script."""
    match value:
        case OperatorColumn(output=output):
            return _output(output)
        case PassedOutput(input=side, column=column):
            return side, _output(column)
        case Leaf():
            return untyped(value)
    return value


def _may_keep(value: object, keys: frozenset[_Key]) -> bool:
    """True if the planner may find a key in a computed value, such as a cast or a constant CASE."""
    if not isinstance(value, FunctionCall) or value.function in _OTHER_VALUES:
        return False
    return any(_output(leaf) in key for leaf in leaves(value) for key in keys)


def _equalities(segment: StatelessSegment) -> Iterator[Expression]:
    yield from (each for each in segment.filters if isinstance(each, FunctionCall) and each.function not in _ORDERED)


def _upsert_keys(segment: StatelessSegment, program: Program) -> tuple[frozenset[_Key], bool]:
    """The upsert keys of a segment's input, and True if the list of keys is complete."""
    none: frozenset[_Key] = frozenset()
    match segment.origin:
        case Rows():
            return none, True
        case Source(table=name):
            found = program.table(name)
            if found is None or not found.declared:
                return none, False
            key = frozenset(SourceColumn(0, each, type=UNKNOWN) for each in found.primary_key)
            return (frozenset({key}) if key else none), True
        case AggregateOperator() as operator:
            return _of_aggregation(operator, program)
        case RankOperator(kind=RankKind.DEDUPLICATION) as operator:
            return frozenset({_passed(operator.partition)}), False
        case RankOperator(kind=RankKind.TOP_N) as operator:
            return _of_top_n(operator, program)
        case RankOperator(kind=RankKind.WINDOW_TOP_N, number_read=False):
            return none, True
        case OverOperator() as operator:
            return none, _keyless(operator.segment, program)
        case JoinOperator(form=JoinForm.REGULAR, join="INNER" | "LEFT" | "RIGHT" | "FULL") as operator:
            return _of_join(operator, program)
        case JoinOperator(join="INNER" | "LEFT" | "RIGHT" | "FULL") as operator:
            return none, _keyless(operator.segments[0], program)
    return none, isinstance(segment.origin, OtherOperator) and segment.origin.kind is OtherKind.UNION_ALL


def _keyless(segment: StatelessSegment, program: Program) -> bool:
    return _upsert_keys(segment, program) == (frozenset(), True)


def _passed(columns: Iterable[Expression]) -> _Key:
    return frozenset((0, _output(each)) for each in columns)


def _of_join(operator: JoinOperator, program: Program) -> tuple[frozenset[_Key], bool]:
    """The upsert keys of a regular join, and True if the list of keys is complete.

    Only keys that contain the join columns can become keys of the result. A key of one side is a key of the result
    under two conditions: the other side is unique by the join columns, and no outer join replaces the first side by
    NULL. A key of the left side and a key of the right side together are always a key of the result.
    """
    sides = [_upsert_keys(segment, program) for segment in operator.segments]
    if any(each == (frozenset(), True) for each in sides):
        return frozenset(), True
    every = all(complete for _, complete in sides)
    # The planner may replace columns that an upstream join equates, or a column by an expression over it.
    every &= not any(
        keys and isinstance(segment.origin, JoinOperator)
        for (keys, _), segment in zip(sides, operator.segments, strict=True)
    )
    every &= not any(isinstance(_output(each), FunctionCall) for pair in operator.keys for each in pair)
    equated = [frozenset(_output(pair[side]) for pair in operator.keys) for side in (0, 1)]
    for side, segment in enumerate(operator.segments):
        constant = {_output(leaf) for part in _equalities(segment) for leaf in leaves(part)}
        every &= not constant
        if any(constant & key for key in (*sides[side][0], equated[side])):
            return frozenset(), False
    routed: list[list[_Key]] = [[], []]
    for side, (keys, _) in enumerate(sides):
        routed[side] = [frozenset((side, each) for each in key) for key in keys if equated[side] <= key]
    found = {left | right for left in routed[0] for right in routed[1]}
    for side, padded in enumerate((("RIGHT", "FULL"), ("LEFT", "FULL"))):
        if operator.join not in padded and any(key <= equated[1 - side] for key in sides[1 - side][0]):
            found |= {*routed[side]}
    return frozenset(found), every


def _of_aggregation(operator: AggregateOperator, program: Program) -> tuple[frozenset[_Key], bool]:
    """The upsert keys of an aggregation: its grouping keys, or a smaller key of unique input rows.

    The planner removes an aggregation over unique rows if it only has SUM, MIN and MAX without a filter (2.3.0).
    """
    if operator.kind is AggregateKind.WINDOW:
        return frozenset(), True
    constant = {leaf for part in _equalities(operator.segment) for leaf in leaves(part)}
    plain = not operator.repeated_keys and not any(isinstance(each, Literal) for each in operator.keys)
    plain = plain and not any(leaf in constant for each in operator.keys for leaf in leaves(each))
    if not plain or operator.grouping_sets is not None:
        return frozenset(), False
    whole = frozenset(KeyOutput(each) for each in operator.keys)
    if operator.kind is AggregateKind.GROUP_WINDOW:
        bounds = (WindowField.START, WindowField.END)
        return frozenset(whole | {WindowColumn(bound, type=UNKNOWN)} for bound in bounds), False
    below, every = _upsert_keys(operator.segment, program)
    by_column = {_output(each): KeyOutput(each) for each in operator.keys}
    if below and isinstance(operator.segment.origin, JoinOperator):
        return frozenset({whole}), False  # rows of a join may be unique by other keys
    removed = all(each.function in ("SUM", "MIN", "MAX") and each.filter is None for each in operator.aggregates)
    reduced = {frozenset(by_column[each] for each in key) for key in below if removed and key <= by_column.keys()}
    return frozenset({whole, *reduced}), every


def _of_top_n(operator: RankOperator, program: Program) -> tuple[frozenset[_Key], bool]:
    partition = _passed(operator.partition)
    appended = _keyless(operator.segment, program)
    if operator.first == operator.last == 1:
        return (frozenset({partition}) if appended else frozenset()), False
    numbered = frozenset({partition | {RankNumber()}})
    return (numbered if operator.number_read else frozenset()), appended and not operator.constant_key
