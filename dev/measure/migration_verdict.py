"""Output of a job restored from a rewritten savepoint, compared with the new SQL from scratch.

Which columns go on is told by the scripts alone: a column of the new query that the old one had too, resolved to
columns of sources, goes on. So what a migration claims is not asked here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, transform, walk
from airflow_flinkcompat.plan.nodes import WindowField, WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    StatelessSegment,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import ColumnOutput, KeyOutput, OperatorColumn, PassedOutput, WindowColumn
from airflow_flinkcompat.plan.types import UNKNOWN, DataType
from dev.measure.results import net, parts

_NOTHING = frozenset({"null", "NULL", "", "None", "0"})
"""Printed form of a metric without rows."""
_FILLER = "f"
_ROUNDED = re.compile(r"-?\d+\.\d{13,}(?:E-?\d+)?")
PRINTED = "Printed"
"""Name for the rows of a bare query."""


@dataclass(frozen=True)
class Columns:
    """The columns of one sink by their origin.

    Attributes:
        kept: Places of those that go on, in the old rows and in the new ones.
        keys: Of these, places in the new rows of those that are no metrics.
        metrics: Places of the metrics that begin now, but for those over a join.
        values: Places of columns that stored rows have not.
        made: Places of metrics that are made of what was stored for others: an average of a sum and a count.
        mixed: Another query writes into the sink too, which the old script had not.
    """

    kept: tuple[tuple[int, int], ...]
    keys: tuple[int, ...]
    metrics: tuple[int, ...]
    values: tuple[int, ...]
    made: tuple[int, ...] = ()
    mixed: bool = False

    @property
    def whole(self) -> bool:
        """True if all columns of the new rows are kept."""
        return not (self.metrics or self.values)

    @property
    def begins(self) -> bool:
        """True if metrics begin and none continues."""
        return bool(self.metrics) and tuple(place for _, place in self.kept) == self.keys


@dataclass(frozen=True)
class Runs:
    """Output of each run before and after the savepoint.

    Attributes:
        printed: The old SQL, before.
        restored: The new SQL from the rewritten savepoint, after.
        before: The new SQL from scratch, before.
        expected: The same, after.
        alone: The new SQL that has seen the rows after alone.
    """

    printed: Sequence[str]
    restored: Sequence[str]
    before: Sequence[str]
    expected: Sequence[str]
    alone: Sequence[str]

    def of(self, sink: str) -> Runs:
        """Those of one sink."""
        return self._only(lambda row: parts(row)[0] == sink)

    def without_fillers(self) -> Runs:
        """Rows without those of the filler key, whose number depends on the number of subtasks."""
        return self._only(lambda row: _FILLER not in _read(row)[1])

    def _only(self, wanted: Callable[[str], bool]) -> Runs:
        return Runs(*([row for row in rows if wanted(row)] for rows in vars(self).values()))


@dataclass(frozen=True)
class Judgement:
    """The verdict on all rows: their faults, the number of keys, and whether they prove anything."""

    fault: str
    keys: int
    told: bool


def judged(runs: Runs, old: Side, new: Side) -> Judgement:
    """Output of a restored job, compared with the columns that continue according to the scripts."""
    faults, count, told = [], 0, False
    for sink, columns in columns_of(old, new).items():
        own = runs.of(sink)
        later_alone = columns is not None or begins_with(old, new, sink)
        if wrong := fault(own, columns, later_alone):
            faults.append(f"{sink}: {wrong}")
        told = told or matters(own, columns)
        count += keys(own, columns)
    return Judgement("; ".join(faults), count, told)


def columns_of(old: Side, new: Side) -> dict[str, Columns | None]:
    """Columns of each sink of the new script by their kept parts; None: the old script lacks this sink."""
    before, after = (list(outputs.values()) for outputs in Change(old, new)._outputs)
    found: dict[str, Columns | None] = {}
    for output in after:
        alike = [each for each in before if each.sink == output.sink]
        told = {_columns(each, output) for each in alike}
        best = max(told, key=lambda columns: len(columns.kept)) if told else None
        if best is not None and sum(each.sink == output.sink for each in after) > len(alike):
            best = replace(best, mixed=True)
        found[_place(new, output.sink)] = best
    return found


def begins_with(old: Side, new: Side, place: str) -> bool:
    """True if a new sink receives rows of an already read source, and so only those after the switch."""
    change = Change(old, new)
    before, after = change._outputs
    known = {source.table for output in before.values() for source in sources(output)}
    wanted = {s.table for output in after.values() if _place(new, output.sink) == place for s in sources(output)}
    return bool(wanted & known)


def _place(side: Side, sink: str) -> str:
    """Name for the rows of a sink: its table, its topic or its folder."""
    table = next((each for each in side.program.tables if each.name == sink), None)
    if table is None:
        return sink or PRINTED
    named = table.option("topic") or table.option("table-name")
    folder = table.option("path", "") if table.option("connector") == "filesystem" else ""
    return named or (folder or sink).rstrip("/").rpartition("/")[2]


def _columns(old: Output, new: Output) -> Columns:
    old, new = (
        replace(output, columns=tuple(_resolved(column, output.segment) for column in output.columns))
        for output in (old, new)
    )
    known, wanted = _typed(old), _typed(new)
    kept = tuple((known.index(column), place) for place, column in enumerate(wanted) if column in known)
    places = {place for _, place in kept}
    metrics = _metrics(new.columns)
    begun = set(range(len(new.columns))) - places
    made = {place for place in begun & metrics if _is_made_of(new.columns[place], old.columns)}
    begun -= made
    if any(isinstance(each, JoinOperator) for each in operators(new)):
        begun -= metrics  # later rows meet stored ones there: no run from scratch tells what such a metric counts
    begun -= {place for place in begun & metrics if _counts_results(new.columns[place])}  # nor here, of stored ones
    moving = {place for place, column in enumerate(new.columns) if _is_start(column)} if _in_sessions(new) else set()
    return Columns(
        kept,
        tuple(sorted(places - metrics - moving)),
        tuple(sorted(begun & metrics)),
        tuple(sorted(begun - metrics)),
        tuple(sorted(made)),
    )


def _resolved(column: Expression, segment: StatelessSegment) -> Expression:
    """The column with the columns of tables in place of the numbers that a union gives to its own."""

    def leaf(each: Expression) -> Expression:
        if not isinstance(each, OperatorColumn) or not isinstance(segment.origin, Operator):
            return each
        below = segment.origin
        match each.output:
            case ColumnOutput(index=index) if isinstance(below, OtherOperator) and below.kind == OtherKind.UNION_ALL:
                inputs = zip(below.input_columns, below.segments, strict=True)
                return FunctionCall("UNION ALL", tuple(_resolved(row[index], part) for row, part in inputs), each.type)
            case AggregateCall() as call:
                args = tuple(_resolved(argument, below.segments[0]) for argument in call.args)
                wanted = None if call.filter is None else _resolved(call.filter, below.segments[0])
                return replace(each, output=replace(call, args=args, filter=wanted))
            case KeyOutput(key=key):
                return replace(each, output=KeyOutput(_resolved(key, below.segments[0])))
            case PassedOutput(input=side, column=passed):
                return replace(each, output=PassedOutput(side, _resolved(passed, below.segments[side])))
        return each

    return transform(column, leaf)


def _calls(column: Expression) -> Iterator[AggregateCall]:
    for part in walk(column):
        if isinstance(part, OperatorColumn) and isinstance(part.output, AggregateCall):
            yield part.output


def _is_made_of(column: Expression, old: Sequence[Expression]) -> bool:
    """True if Flink stores the parts of this metric for the old metrics (sum and count for an average)."""
    stored = {(call.function, call.args, call.distinct, call.filter) for each in old for call in _calls(each)}

    def known(call: AggregateCall, *functions: str) -> bool:
        return all((each, call.args, call.distinct, call.filter) in stored for each in functions)

    calls = list(_calls(column))
    return bool(calls) and all(
        known(call, "SUM", "COUNT")
        if call.function == "AVG"
        else call.function in ("SUM", "COUNT") and known(call, "AVG")
        for call in calls
    )


def _counts_results(column: Expression) -> bool:
    """True if it is a metric over the results of another aggregation, directly or indirectly."""
    return any(_holds_result(argument) for call in _calls(column) for argument in call.args)


def _holds_result(column: Expression) -> bool:
    passed = (part.output for part in walk(column) if isinstance(part, OperatorColumn))
    return _is_metric(column) or any(isinstance(each, PassedOutput) and _holds_result(each.column) for each in passed)


def _typed(output: Output) -> list[tuple[Expression, DataType]]:
    """The columns with their types: a sum of another type is another metric, in which nothing stored fits."""
    types = output.types or (UNKNOWN,) * len(output.columns)
    return [(column, replace(type, nullable=True)) for column, type in zip(output.columns, types, strict=True)]


def _in_sessions(output: Output) -> bool:
    windows = (each.window for each in operators(output) if isinstance(each, AggregateOperator) and each.window)
    return any(each.window.kind is WindowKind.SESSION for each in windows)


def _is_start(column: Expression) -> bool:
    """True if it is where a window begins: a session has begun with rows that a later start does not see."""
    return any(
        isinstance(part, OperatorColumn)
        and isinstance(part.output, KeyOutput)
        and isinstance(part.output.key, WindowColumn)
        and part.output.key.field is WindowField.START
        for part in walk(column)
    )


def _metrics(columns: Sequence[Expression]) -> set[int]:
    """Positions of metrics; for a DISTINCT without aggregates, those of the aggregation below."""
    called = {place for place, column in enumerate(columns) if _is_metric(column)}
    return called or {place for place, column in enumerate(columns) if any(map(_is_metric, _keys(column)))}


def _keys(column: Expression) -> Iterator[Expression]:
    for part in walk(column):
        if isinstance(part, OperatorColumn) and isinstance(part.output, KeyOutput):
            yield part.output.key


def _is_metric(column: Expression) -> bool:
    return next(_calls(column), None) is not None


def fault(runs: Runs, columns: Columns | None, later_rows_alone: bool = True) -> str:
    """Fault in the rows of one sink; "" if there is none."""
    if columns is None:
        wanted = [*runs.alone] if later_rows_alone else [*runs.before, *runs.expected]
        return "" if net(runs.restored) == net(wanted) else "a new sink holds other rows"
    if columns.mixed:
        known = {*map(str, runs.expected), *map(str, runs.alone)}
        return next((f"{row} stands in no run from scratch" for row in runs.restored if row not in known), "")
    old, new = zip(*columns.kept, strict=True) if columns.kept else ((), ())
    restored, expected = (_shown(rows, new) for rows in (runs.restored, runs.expected))
    if restored != expected:
        # Where no metric of a sink goes on, its operator may begin anew with the rows after the switch.
        if columns.begins and net(runs.restored) == net(runs.alone):
            return ""
        # Where one of both fires early only all rows together tell what the sink holds in the end.
        held = _shown(runs.printed, old) + restored, _shown(runs.before, new) + expected
        if _left(held[0]) != _left(held[1]):
            return "what goes on differs from a run over all rows"
    return _made_fault(runs, columns) or _metrics_fault(runs, columns) or _values_fault(runs, columns, new)


def matters(runs: Runs, columns: Columns | None) -> bool:
    """True if the kept columns prove that state was restored, and not only that rows are right."""
    if columns is None:
        return False
    places = [new for _, new in columns.kept]
    return _shown(runs.expected, places) != _shown(runs.alone, places)


def keys(runs: Runs, columns: Columns | None) -> int:
    """Number of keys, or rows, that the restored job emitted."""
    places = range(99) if columns is None else columns.keys
    return len({tuple(_taken(values, places)) for _, values in map(_read, runs.restored)})


def _made_fault(runs: Runs, columns: Columns) -> str:
    """Metrics made of stored ones equal those of a run over all rows."""
    restored, expected = (_last(rows, columns.keys, columns.made) for rows in (runs.restored, runs.expected))
    for key, found in restored.items():
        if found != expected.get(key):
            return (
                f"what is made of stored metrics is {found} for {', '.join(key)}, and not {expected.get(key, 'none')}"
            )
    return ""


def _metrics_fault(runs: Runs, columns: Columns) -> str:
    """Fault in new metrics, which must equal a run over the rows after the switch; "" if they do."""
    restored, alone = (_last(rows, columns.keys, columns.metrics) for rows in (runs.restored, runs.alone))
    for key, found in restored.items():
        right = found == alone[key] if key in alone else _NOTHING.issuperset(found)
        if not right:
            return f"metrics of {', '.join(key)} begin as {found}, and not as {alone.get(key, 'nothing')}"
    return ""


def _last(rows: Iterable[str], keys: Sequence[int], metrics: Sequence[int]) -> dict[tuple[str, ...], list[str]]:
    """The last value of these metrics by key."""
    found = {}
    for kind, values in map(_read, rows):
        if kind.startswith("+") and metrics:
            found[tuple(_taken(values, keys))] = _taken(values, metrics)
    return found


def _values_fault(runs: Runs, columns: Columns, kept: Sequence[int]) -> str:
    """Fault in an added column, which must be right, or NULL in rows stored before; "" if there is none."""
    if not columns.values:
        return ""
    right, later = (
        {(tuple(_taken(values, kept)), tuple(_taken(values, columns.values))) for _, values in map(_read, rows)}
        for rows in ((*runs.before, *runs.expected), runs.alone)
    )
    known = {key for key, _ in later}
    # A key may come of stored rows and of later ones: of as many as these do not make, the stored ones are part.
    of_stored = _shown((*runs.before, *runs.expected), kept)
    of_stored.subtract(_shown(runs.alone, kept))
    left = _shown(runs.restored, (*kept, *columns.values))
    for kind, values in map(_read, runs.restored):
        key, found = tuple(_taken(values, kept)), tuple(_taken(values, columns.values))
        lacks = any(value in _NOTHING for value in found)
        stored_before = lacks and (key not in known or left[key + found] <= of_stored[key])
        # Each side of a join may have been stored separately.
        stored_before = stored_before and any(
            key == whole
            and all(value in _NOTHING or value == other for value, other in zip(found, others, strict=True))
            for whole, others in right
        )
        if kind.startswith("+") and (key, found) not in right and not stored_before:
            return f"columns that come to {', '.join(key)} are {', '.join(found)}"
    return ""


def _shown(rows: Iterable[str], places: Sequence[int]) -> Counter[tuple[str, ...]]:
    """Final count of each row of these columns, without those that cancel out."""
    found: Counter[tuple[str, ...]] = Counter()
    for kind, values in map(_read, rows):
        found[tuple(_taken(values, places))] += 1 if kind.startswith("+") else -1
    return Counter({row: count for row, count in found.items() if count})


def _left(counts: Mapping[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    return {row: count for row, count in counts.items() if count}


def _taken(values: Sequence[str], places: Iterable[int]) -> list[str]:
    return [values[place] for place in places if place < len(values)]


def _read(row: str) -> tuple[str, list[str]]:
    """The kind of a change and its values, with 13 digits of a DOUBLE: the others depend on an order."""
    _, kind, values = parts(row)
    return kind, [_ROUNDED.sub(lambda match: f"{float(match[0]):.13g}", each) for each in _values(values[1:-1])]


def _values(text: str) -> Iterator[str]:
    """The values of a printed row, a line of CSV, a record of JSON or a row of a table."""
    if record := re.search(r"(?:.*: )?(\{.*\})", text):
        yield from map(str, json.loads(record[1]).values())
    elif ", " in text:
        yield from text.split(", ")
    else:
        yield from text.removeprefix("(").removesuffix(")").split(",")
