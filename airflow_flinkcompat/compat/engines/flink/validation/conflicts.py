"""Whether Flink asks an INSERT for ON CONFLICT: the query's upsert key against the sink's primary key.

The condition is that of ``FlinkChangelogModeInferenceProgram`` (2.3.0), each kind of query asked of its planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.engines.flink.validation.changelog import changes
from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.compat.engines.flink.validation.tables import value_format
from airflow_flinkcompat.connectors import FORMATS, Known
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
    Source,
    StatelessSegment,
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
REQUIRED = "table.exec.sink.require-on-conflict"
_MATERIALIZE = "table.exec.sink.upsert-materialize"
_FIRST = (2, 3)
"""The first line of Flink that asks for the clause."""
REMEDY = (
    "add ON CONFLICT DO DEDUPLICATE (the latest row of a key stays), DO NOTHING (the first row stays) or DO ERROR (the "
    f"job fails) to the end of the INSERT, or set {REQUIRED} = false"
)
"""What a script does about it. DO NOTHING and DO ERROR ask for a watermark of every source."""
_OTHER_VALUES = frozenset({"UPPER", "LOWER", "TRIM", "SUBSTRING", "SUBSTR", "CONCAT", "ABS", "MOD", "DATE_FORMAT"})
"""Functions that no planner simplifies to their argument, and that keep no key."""
_ORDERED = frozenset({"<", "<=", ">", ">=", "<>", "LIKE", "IS NOT NULL", "IS NULL"})
"""Conditions that give no column a constant value."""
_Key = frozenset[object]


def faults(output: Output, pipeline: Pipeline, program: Program, sink: Table, line: str | None) -> Iterator[Fault]:
    """Find out whether a line of Flink refuses an INSERT for a missing ON CONFLICT.

    Args:
        output: The query, resolved.
        pipeline: The INSERT.
        program: The script, which declares the tables.
        sink: The table that is written.
        line: The line of Flink, ``major.minor``; None where it is not known.

    Yields:
        At most one fault, uncertain where the upsert key cannot be derived.
    """
    if not sink.primary_key or not asks(line) or not _clause_required(output, dict(pipeline.settings)):
        return
    updates, upserted = changes(output.segment, pipeline, program), _upserted(sink)
    if updates is Known.NO:
        upserted = connectors.sink(sink.option("connector")).upserts_appended if upserted is not Known.NO else Known.NO
    if upserted is Known.NO:
        return
    differs = _differs(output, program, sink)
    if differs is Known.NO:
        return
    certain = differs is Known.YES and upserted is Known.YES and updates is not Known.NOT_KNOWN
    names = ", ".join(sink.primary_key)
    yield Fault(
        ON_CONFLICT,
        f"PRIMARY KEY ({names}) of sink {sink.name} {'is not' if certain else 'may not be'} the upsert key of the "
        f"query, and Flink {line} then asks for ON CONFLICT; {REMEDY}",
        certain,
        by_line=True,
    )


def asks(line: str | None) -> bool:
    """Return whether a line of Flink asks for ON CONFLICT.

    Args:
        line: The line, ``major.minor``; None where it is not known.

    Returns:
        True from Flink 2.3 on.
    """
    try:
        return line is not None and tuple(map(int, line.split(".")[:2])) >= _FIRST
    except ValueError:
        return False


def _clause_required(output: Output, given: Mapping[str, str]) -> bool:
    if given.get("execution.runtime-mode", "").lower() in ("batch", "automatic"):
        return False
    if any(name == ON_CONFLICT for name, _ in output.hints):
        return False
    if settings.effective(given, _MATERIALIZE, "flink") != "AUTO":
        return False
    return settings.effective(given, REQUIRED, "flink") == "true"


def _upserted(sink: Table) -> Known:
    """Whether Flink sends updates to a sink by its primary key alone."""
    facts = connectors.sink(sink.option("connector"))
    format = FORMATS.get(value_format(sink))
    if format is not None and format.appends is Known.NO and facts.upserts is not Known.YES:
        return Known.NO  # a format of changes takes the row before an update as well
    if Known.YES in (facts.upserts, facts.updates):
        return Known.YES
    return Known.NO if facts.upserts is facts.updates is Known.NO else Known.NOT_KNOWN


def _differs(output: Output, program: Program, sink: Table) -> Known:
    """Whether no upsert key of the query lies within the sink's primary key."""
    held = _held(output, sink)
    if held is None or output.segment.functions:
        return Known.NOT_KNOWN
    keys, every = _upsert_keys(output.segment, program)
    below = {leaf for part in _equalities(output.segment) for leaf in leaves(part)}
    if any(_output(leaf) in key for leaf in below for key in keys):
        return Known.NOT_KNOWN  # a key equal to a constant may be planned as the constant
    if any(key <= held for key in keys):
        return Known.NO
    if not every or any(_may_keep(value, keys) for value in held):
        return Known.NOT_KNOWN
    return Known.YES


def _held(output: Output, sink: Table) -> frozenset[object] | None:
    """What the columns of the primary key hold; None where the statement does not fill them one by one."""
    if output.partition:
        return None
    names = output.insert_columns or [column.name for column in sink.written]
    columns = dict(zip(names, output.columns, strict=False))
    if any(name not in columns for name in sink.primary_key):
        return None
    return frozenset(_output(columns[name]) for name in sink.primary_key)


def _output(value: Expression) -> object:
    return value.output if isinstance(value, OperatorColumn) else untyped(value) if isinstance(value, Leaf) else value


def _may_keep(value: object, keys: frozenset[_Key]) -> bool:
    """Whether the planner may see a key in a computed value: a cast keeps it, and a condition may be decided."""
    if not isinstance(value, FunctionCall) or value.function in _OTHER_VALUES:
        return False
    return any(_output(leaf) in key for leaf in leaves(value) for key in keys)


def _equalities(segment: StatelessSegment) -> Iterator[Expression]:
    yield from (each for each in segment.filters if isinstance(each, FunctionCall) and each.function not in _ORDERED)


def _upsert_keys(segment: StatelessSegment, program: Program) -> tuple[frozenset[_Key], bool]:
    """The upsert keys of a stretch's input, and whether these are all."""
    none: frozenset[_Key] = frozenset()
    match segment.origin:
        case Source(table=name):
            found = next((each for each in program.tables if each.name == name), None)
            if found is None or not found.declared:
                return none, False
            key = frozenset(SourceColumn(0, each, type=UNKNOWN) for each in found.primary_key)
            return (frozenset({key}) if key else none), True
        case AggregateOperator(kind=AggregateKind.WINDOW):
            return none, True
        case AggregateOperator(kind=AggregateKind.GROUP_WINDOW) as operator:
            return _of_group_window(operator)
        case AggregateOperator(kind=AggregateKind.GROUP) as operator:
            return _of_aggregation(operator)
        case RankOperator(kind=RankKind.DEDUPLICATION) as operator:
            return frozenset({frozenset(PassedOutput(0, each) for each in operator.partition)}), False
        case RankOperator(kind=RankKind.TOP_N) as operator:
            return _of_top_n(operator, program)
        case RankOperator(kind=RankKind.WINDOW_TOP_N, number_read=False):
            return none, True
        case OverOperator() as operator:
            return none, _keyless(operator.segment, program)
        case JoinOperator(join="INNER" | "LEFT" | "RIGHT" | "FULL") as operator:
            # A key of one side holds only where the other side has one, too.
            return none, _keyless(operator.segments[0], program) or (
                operator.form is JoinForm.REGULAR and _keyless(operator.segments[1], program)
            )
        case OtherOperator(kind=OtherKind.UNION_ALL):
            return none, True
    return none, False


def _keyless(segment: StatelessSegment, program: Program) -> bool:
    return _upsert_keys(segment, program) == (frozenset(), True)


def _of_group_window(operator: AggregateOperator) -> tuple[frozenset[_Key], bool]:
    keys, _ = _of_aggregation(operator)
    bounds = (WindowField.START, WindowField.END)
    return frozenset(key | {WindowColumn(bound, type=UNKNOWN)} for key in keys for bound in bounds), False


def _of_aggregation(operator: AggregateOperator) -> tuple[frozenset[_Key], bool]:
    constant = {leaf for part in _equalities(operator.segment) for leaf in leaves(part)}
    key = frozenset(KeyOutput(each) for each in operator.keys)
    plain = not operator.repeated_keys and not any(isinstance(each, Literal) for each in operator.keys)
    plain = plain and not any(leaf in constant for each in operator.keys for leaf in leaves(each))
    if not plain or operator.grouping_sets is not None:
        return frozenset(), False
    return frozenset({key}), True


def _of_top_n(operator: RankOperator, program: Program) -> tuple[frozenset[_Key], bool]:
    partition = frozenset(PassedOutput(0, each) for each in operator.partition)
    appended = _keyless(operator.segment, program)
    if operator.first == operator.last == 1:
        return (frozenset({partition}) if appended else frozenset()), False
    numbered = frozenset({partition | {RankNumber()}})
    return (numbered if operator.number_read else frozenset()), appended and not operator.constant_key
