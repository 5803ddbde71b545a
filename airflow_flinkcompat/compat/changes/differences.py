"""Parts of operators, tables and settings, their differences, and the fates of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.rule import Fate, RuleMatch
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, InputRef, transform
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinOperator,
    Operator,
    OtherOperator,
    Output,
    OverOperator,
    RankOperator,
    Rows,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import SourceColumn, describe, normalize
from airflow_flinkcompat.plan.program import Program


@dataclass(frozen=True)
class Difference:
    """A part that differs between the sides of a pair; ``key``, its place and part, is unique in a change."""

    key: str
    part: str
    before: Any
    after: Any
    before_span: Span | None = None
    after_span: Span | None = None

    def match(self, message: str, before: str, after: str, also: Iterable[str] = (), **more: Any) -> RuleMatch:
        """Create a rule match for this difference; ``also`` are the keys of other claimed differences."""
        own, before_span, after_span = (self.key, *also), self.before_span, self.after_span
        return RuleMatch(message, own, before, after, before_span=before_span, after_span=after_span, **more)


def differences_of(
    place: str, old: Mapping[str, Any], new: Mapping[str, Any], spans: tuple[Any, Any]
) -> tuple[Difference, ...]:
    return tuple(
        Difference(f"{place}/{part}", part, old.get(part), new.get(part), *spans)
        for part in dict.fromkeys((*old, *new))
        if old.get(part) != new.get(part) and not (part in _ORIGIN and (part in old) != (part in new))
    )


LITERAL_ROWS = "literal rows"
"""Name of the input of a query that reads no table."""
_ORIGIN = ("source", "source hints")
"""Parts of a segment that reads a table; the pairing reports an operator that replaces the table."""


def _segment_parts(segment: StatelessSegment) -> dict[str, Any]:
    origin = segment.origin
    parts: dict[str, Any] = {
        "filters": segment.filters,
        "window filters": segment.window_filters,
        "filters above the session window": segment.filters_above_session,
        "table functions": segment.functions,
        "query hints": segment.hints,
    }
    if isinstance(origin, Source):
        parts |= {"source": origin.table, "source hints": origin.hints}
    elif isinstance(origin, Rows):
        parts |= {"source": origin.rows, "source hints": ()}
    elif origin is None:
        parts |= {"source": LITERAL_ROWS, "source hints": ()}
    return parts


def operator_parts(operator: Operator) -> dict[str, Any]:
    """Everything that an operator contains, by part, without the upstream operators."""
    if isinstance(operator, AggregateOperator):
        return _aggregate_parts(operator)
    if isinstance(operator, OtherOperator):
        own = dict(operator.attributes)
    else:
        names = (field.name for field in fields(operator) if field.compare and field.name not in _BELOW)
        own = {name.replace("_", " "): getattr(operator, name) for name in names}
    parts = {"kind": operator.kind, **own}
    if isinstance(operator, RankOperator):
        lower = operator.segment.windows[:-1]
        return {**parts, **_segment_parts(operator.segment), **_window_parts(operator.assigned), "lower windows": lower}
    if not isinstance(operator, JoinOperator | OtherOperator):
        (segment,) = operator.segments
        return {**parts, **_segment_parts(segment), "windows": segment.windows}
    for i, segment in enumerate(operator.segments):
        parts |= {f"{part} of input {i + 1}": value for part, value in _segment_parts(segment).items()}
        parts[f"windows of input {i + 1}"] = segment.windows
    return parts | {f"row of input {i + 1}": row for i, row in enumerate(operator.rows)}


_BELOW = ("segment", "segments", "rows")
"""Fields of an operator that contain its inputs, which become separate parts."""


def _window_parts(window: AssignedWindow | None) -> dict[str, Any]:
    return {
        "window": window
        and (
            window.window.kind,
            window.window.size,
            window.window.slide,
            window.window.gap,
            window.window.normalised_offset,
            window.window.measure,
        ),
        "offset": window and window.window.offset,
        "time": window and window.time,
        "clock": window and window.time_attribute,
        "notation": window and window.notation,
        "session keys": window and window.partition_by,
        "window field calls": window and window.mismatched,
    }


def _aggregate_parts(operator: AggregateOperator) -> dict[str, Any]:
    window = operator.window
    return {
        **_segment_parts(operator.segment),
        "kind": operator.kind,
        "windowed": operator.windowed,
        **_window_parts(window),
        "lower windows": operator.segment.windows[:-1]
        if window in operator.segment.windows
        else operator.segment.windows,
        "keys": operator.keys,
        "window keys": operator.window_keys,
        "key order": operator.key_order,
        "repeated keys": operator.repeated_keys,
        "aggregates": operator.aggregates,
        "metrics nobody reads": operator.pruned_inputs,
        "metrics written twice": operator.repeated_calls,
        "grouping sets": operator.grouping_sets,
    }


def output_parts(output: Output) -> dict[str, Any]:
    """Everything between the last stateful operator and the sink, by part."""
    return {
        **_segment_parts(output.segment),
        "windows": output.segment.windows,
        "columns": output.columns,
        "sink": output.sink,
        "insert columns": output.insert_columns,
        "partition": output.partition,
        "overwrite": output.overwrite,
        "sink hints": output.hints,
    }


def table_parts(table: Table) -> dict[str, Any]:
    """Everything that a table declares, by part."""
    options = dict(table.options)
    connector = options.pop("connector", None)
    computed = {name: _named_columns(value, table) for name, value in table.computed}
    mark = table.watermark
    return {
        "columns": table.physical + tuple(name for name, _, _ in table.metadata),
        "types": {c.name: str(c.type) for c in table.columns if c.name not in computed},
        "computed": computed,
        "metadata": table.metadata,
        "watermark": mark and replace(mark, expression=_named_columns(mark.expression, table)),
        "primary key": table.primary_key,
        "partitions": table.partitioned_by,
        "connector": connector,
        "options": options,
        # Moving a computed column affects only SELECT *, which the pipelines compare.
        "order": tuple(column.name for column in table.columns),
    }


def _named_columns(value: Expression, table: Table) -> Expression:
    """An expression over the row of a table, with columns by name instead of by position."""

    def leaf(part: Expression) -> Expression:
        if isinstance(part, InputRef):
            return SourceColumn(0, table.columns[part.index].name, type=part.type)
        return part

    return normalize(transform(value, leaf))


def declared_differences(
    a: Program, b: Program, engine: str, pairs: Sequence[tuple[int, int]] = ()
) -> tuple[Difference, ...]:
    """All differences of settings and declarations; ``pairs`` are the positions of the paired queries."""
    return (
        *_settings_changed(a, b, engine, pairs),
        *_tables(a, b),
        *_named("view", dict(a.views), dict(b.views)),
        *_named("function", _functions(a), _functions(b)),
        *_statements(a, b),
        *([Difference("opaque", "opaque", a.opaque, b.opaque)] if a.opaque != b.opaque else []),
    )


def _settings_changed(a: Program, b: Program, engine: str, pairs: Sequence[tuple[int, int]]) -> list[Difference]:
    """Settings whose effective values differ.

    If each query may be a separate job, settings of added and removed queries are not compared.
    """
    seen = [[effective_settings(program, [pair[n] for pair in pairs]) for n, program in enumerate((a, b))]]
    if ENGINE_FACTS[engine].one_deployment:
        seen.append([effective_settings(program) for program in (a, b)])
    found: dict[str, Difference] = {}
    for old, new in seen:
        for key in sorted({*old, *new}):
            if settings.effective(old, key, engine) != settings.effective(new, key, engine):
                found.setdefault(key, Difference(f"setting/{key}", "setting", old.get(key), new.get(key)))
    return list(found.values())


def _functions(program: Program) -> dict[str, Any]:
    return {f.name.lower(): (f.kind, f.language, f.definition) for f in program.functions}


def effective_settings(program: Program, places: Sequence[int] = ()) -> dict[str, str]:
    """The settings of all queries, or of those at ``places``; " / " joins different values of one key."""
    if not program.pipelines:
        return _by_name(program.settings)
    read = [program.pipelines[place] for place in places] or program.pipelines
    per_query = [_by_name(pipeline.settings) for pipeline in read]
    keys = {key for each in per_query for key in each}
    values = {key: [each.get(key, "(unset)") for each in per_query] for key in keys}
    return {key: found[0] if len(set(found)) == 1 else " / ".join(found) for key, found in values.items()}


def _by_name(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {settings.name(key): value for key, value in given}


def _named(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(f"{kind}/{name}", kind, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _statements(a: Program, b: Program) -> list[Difference]:
    """Differences of the statements outside the plan, and of the statements that were not read."""
    found = []
    old, new = ([(f.kind, f.text, f.after) for f in p.other_statements] for p in (a, b))
    if old != new:
        facts = {(f.kind, f.text, f.after): f for p in (a, b) for f in p.other_statements}
        gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
        for each in gone:
            key = f"statement/-{each[0]} {each[1]}"
            found.append(Difference(key, "statement", facts[each], None, facts[each].span))
        for each in come:
            key = f"statement/+{each[0]} {each[1]}"
            found.append(Difference(key, "statement", None, facts[each], None, facts[each].span))
        if not gone and not come:
            found.append(Difference("statement/order", "statement", "the same statements", "in a different order"))
    problems_old, problems_new = ([(q.reason, q.text) for q in p.problems] for p in (a, b))
    if problems_old != problems_new:
        found.append(Difference("unread", "unread", tuple(problems_old), tuple(problems_new)))
    return found


def _tables(a: Program, b: Program) -> list[Difference]:
    old, new = ({table.name: table for table in p.tables} for p in (a, b))
    found: list[Difference] = []
    for name in sorted({*old, *new}):
        if name in old and name in new:
            if old[name] == new[name]:
                continue
            spans = (old[name].span, new[name].span)
            found += differences_of(f"table/{name}", table_parts(old[name]), table_parts(new[name]), spans)
        else:
            found.append(
                Difference(
                    f"table/{name}/declared",
                    "declared",
                    old.get(name),
                    new.get(name),
                    old[name].span if name in old else None,
                    new[name].span if name in new else None,
                )
            )
    return found


@dataclass(frozen=True)
class MetricFates:
    """Old and new metrics of one operator, grouped by fate. ``old`` and ``new`` contain no duplicates."""

    old: tuple[AggregateCall, ...]
    new: tuple[AggregateCall, ...]

    @cached_property
    def kept(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.old if call in self.new)

    @cached_property
    def dropped(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.old if call not in self.new)

    @cached_property
    def added(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.new if call not in self.old)

    @cached_property
    def codes(self) -> frozenset[str]:
        """Codes of the rules that apply to this change, as in the rows of the vendor's documents.

        If a DISTINCT metric is added, deleted, modified or moved among the DISTINCT metrics, a separate rule applies.
        """
        if self.old == self.new:
            return frozenset() if self.old else frozenset({"no-aggregates"})
        distinct = {"distinct-aggregate-changed"} if _distinct(self.old) != _distinct(self.new) else set()
        if not self.old:
            return frozenset({"first-aggregate-added", *distinct})
        if not self.new:
            return frozenset({"all-aggregates-deleted", *distinct})
        if not self.kept:
            # The documents have a separate row for a single remaining metric with an old function over a new input.
            one = len(self.new) == 1 and self.new[0].function in {call.function for call in self.old}
            return frozenset({"only-aggregate-changed" if one else "aggregates-replaced", *distinct})
        return frozenset(distinct or self._partly())

    def _partly(self) -> set[str]:
        """Codes for a change that keeps at least one metric and leaves the DISTINCT metrics unchanged."""
        if not self.added:
            return {"aggregate-deleted" if self.dropped else "aggregate-reordered"}
        if not self.dropped:
            return {"aggregate-added"}
        found = {"aggregate-modified"} if self.function_changes else set()
        found |= {"aggregate-input-changed"} if self.input_changes else set()
        if not len(self.replacements()) == len(self.added) == len(self.dropped):
            found.add("aggregate-added-and-deleted")
        return found

    @property
    def changed(self) -> bool:
        """True if the metrics changed by more than their order; the vendor counts this as one changed item."""
        return bool(self.codes - {"no-aggregates", "aggregate-reordered"})

    def replacements(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Pairs of a dropped and an added metric with the same arguments, or else with the same function."""
        left = list(self.added)
        found = []
        for old in self.dropped:
            twins = [new for new in left if new.args == old.args] or [n for n in left if n.function == old.function]
            if twins:
                left.remove(twins[0])
                found.append((old, twins[0]))
        return tuple(found)

    @property
    def function_changes(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Old and new metrics whose function changed while the input is the same."""
        return tuple((a, b) for a, b in self.replacements() if a.args == b.args)

    @property
    def input_changes(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Old and new metrics whose input changed while the function is the same."""
        return tuple((a, b) for a, b in self.replacements() if a.args != b.args)

    @cached_property
    def table(self) -> tuple[tuple[str, Fate], ...]:
        """The text and the fate of each metric, for the report."""
        rows = [(describe(call), Fate.KEPT) for call in self.kept]
        rows += [(describe(call), Fate.DROPPED) for call in self.dropped]
        return (*rows, *((describe(call), Fate.FROM_ZERO) for call in self.added))


def fates(old: AggregateOperator | OverOperator, new: AggregateOperator | OverOperator) -> MetricFates:
    """The fates of the metrics of two paired operators."""
    return MetricFates(old.aggregates, new.aggregates)


def listed(calls: Iterable[AggregateCall]) -> str:
    """Format metrics as a list in SQL."""
    return ", ".join(describe(call) for call in calls)


def _distinct(calls: tuple[AggregateCall, ...]) -> tuple[AggregateCall, ...]:
    return tuple(call for call in calls if call.distinct)
