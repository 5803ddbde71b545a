"""A change, paired once: sinks, stateful operators and declarations of both sides, and every difference between them.

Nothing here judges. A difference is what is unequal in one named part of a pair; the parts of a pair together hold
everything the plan holds, so a change without differences is no change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from airflow_flinkcompat.compat.aggregates import Fates, fates
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.plan.expressions import AggregateCall, Call, Expression, InputRef, transform
from airflow_flinkcompat.plan.nodes import Opaque, Table, walk_nodes
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    Operator,
    OtherOperator,
    Output,
    Region,
    Rows,
    Source,
    TooLarge,
    operators,
    sources,
    view,
)
from airflow_flinkcompat.plan.origins import FunctionColumn, KeyOutput, OperatorColumn, SourceColumn, leaves, meaning
from airflow_flinkcompat.plan.program import Pipeline, Problem, Program
from airflow_flinkcompat.sql import Span


@dataclass(frozen=True)
class Difference:
    """One part of a pair that is not equal on both sides. ``key`` is unique in a change: where it stands, which
    part.
    """

    key: str
    part: str
    before: Any
    after: Any
    before_span: Span | None = None
    after_span: Span | None = None


def _differences(
    place: str, old: Mapping[str, Any], new: Mapping[str, Any], spans: tuple[Any, Any]
) -> tuple[Difference, ...]:
    return tuple(
        Difference(f"{place}/{part}", part, old.get(part), new.get(part), *spans)
        for part in dict.fromkeys((*old, *new))
        if old.get(part) != new.get(part) and not (part in _ORIGIN and (part in old) != (part in new))
    )


_ORIGIN = ("source", "source hints")
"""Parts a region has only above a table; where an operator took its place, the pairing says so."""


def _region_parts(region: Region) -> dict[str, Any]:
    origin = region.origin
    parts: dict[str, Any] = {
        "filters": region.filters,
        "window filters": region.window_filters,
        "filters above the session window": region.filters_above_session,
        "table functions": region.functions,
        "query hints": region.hints,
    }
    if isinstance(origin, Source):
        parts |= {"source": origin.table, "source hints": origin.hints}
    elif isinstance(origin, Rows):
        parts |= {"source": origin.rows, "source hints": ()}
    elif origin is None:
        parts |= {"source": "literal rows", "source hints": ()}
    return parts


def operator_parts(operator: Operator) -> dict[str, Any]:
    """Everything an operator holds, by part; a lower operator is a pair of its own."""
    if isinstance(operator, OtherOperator):
        parts: dict[str, Any] = {"kind": operator.kind, **dict(operator.detail)}
        for i, region in enumerate(operator.regions):
            parts |= {f"{part} of input {i + 1}": value for part, value in _region_parts(region).items()}
            parts[f"windows of input {i + 1}"] = region.windows
        return parts
    window = operator.window
    return {
        **_region_parts(operator.region),
        "kind": operator.kind,
        "windowed": operator.windowed,
        "window": window
        and (
            window.window.kind,
            window.window.size,
            window.window.slide,
            window.window.gap,
            window.window.normalised_offset,
        ),
        "offset": window and window.window.offset,
        "time": window and window.time,
        "clock": window and window.time_attribute,
        "notation": window and window.notation,
        "session keys": window and window.partition_by,
        "lower windows": operator.region.windows[:-1] if window in operator.region.windows else operator.region.windows,
        "keys": operator.keys,
        "window keys": operator.window_keys,
        "key order": operator.key_order,
        "repeated keys": operator.repeated_keys,
        "window field calls": window and window.mismatched,
        "aggregates": operator.aggregates,
        "grouping sets": operator.grouping_sets,
    }


def output_parts(output: Output) -> dict[str, Any]:
    """Everything above the topmost stateful operator, by part."""
    return {
        **_region_parts(output.region),
        "windows": output.region.windows,
        "columns": output.columns,
        "sink": output.sink,
        "insert columns": output.insert_columns,
        "partition": output.partition,
        "overwrite": output.overwrite,
        "sink hints": output.hints,
    }


@dataclass(frozen=True)
class OperatorPair:
    """The same operator on both sides, by its place below a sink; ``path`` reads ``sink > 1 > 2``."""

    path: str
    old: Operator
    new: Operator
    pipeline: PipelinePair = field(compare=False, repr=False)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        spans = (self.old.span, self.new.span)
        return _differences(self.path, operator_parts(self.old), operator_parts(self.new), spans)

    @property
    def parts(self) -> frozenset[str]:
        """The names of the parts that differ."""
        return frozenset(difference.part for difference in self.differences)

    @property
    def aggregations(self) -> tuple[AggregateOperator, AggregateOperator] | None:
        """Both sides where both are aggregations."""
        if isinstance(self.old, AggregateOperator) and isinstance(self.new, AggregateOperator):
            return self.old, self.new
        return None

    @property
    def windowed(self) -> tuple[AggregateOperator, AggregateOperator] | None:
        """Both sides where both are aggregations and at least one runs on a window."""
        pair = self.aggregations
        return pair if pair is not None and (pair[0].window or pair[1].window) else None

    @property
    def fates(self) -> Fates | None:
        """What becomes of the metrics of a windowed aggregation."""
        return None if self.windowed is None else fates(*self.windowed)

    def claim(self, *parts: str) -> tuple[str, ...]:
        """The keys of the differences in these parts."""
        return tuple(difference.key for difference in self.differences if difference.part in parts)


@dataclass(frozen=True)
class PipelinePair:
    """The same sink on both sides, with its paired operators and those that have no partner."""

    sink: str
    old_pipeline: Pipeline
    new_pipeline: Pipeline
    old: Output
    new: Output
    old_program: Program = field(repr=False)
    new_program: Program = field(repr=False)

    @cached_property
    def _matched(self) -> tuple[tuple[OperatorPair, ...], tuple[Operator, ...], tuple[Operator, ...]]:
        pairs: list[OperatorPair] = []
        removed: list[Operator] = []
        added: list[Operator] = []

        def below(old: Region, new: Region, path: str) -> None:
            a, b = old.origin, new.origin
            old_operator = a if isinstance(a, AggregateOperator | OtherOperator) else None
            new_operator = b if isinstance(b, AggregateOperator | OtherOperator) else None
            if old_operator is None or new_operator is None or not _alike(old_operator, new_operator):
                removed.extend(_all(old_operator))
                added.extend(_all(new_operator))
                return
            pairs.append(OperatorPair(path, old_operator, new_operator, self))
            regions = list(zip(old_operator.regions, new_operator.regions, strict=False))
            for i, (one, other) in enumerate(regions):
                below(one, other, f"{path} > {i + 1}")
            for extra in old_operator.regions[len(regions) :]:
                removed.extend(_all(extra.origin))
            for extra in new_operator.regions[len(regions) :]:
                added.extend(_all(extra.origin))

        below(self.old.region, self.new.region, f"{self.sink or 'query'} > 1")
        return tuple(pairs), tuple(removed), tuple(added)

    @property
    def operators(self) -> tuple[OperatorPair, ...]:
        return self._matched[0]

    @property
    def removed(self) -> tuple[Operator, ...]:
        return self._matched[1]

    @property
    def added(self) -> tuple[Operator, ...]:
        return self._matched[2]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Differences above the operators, and one for operators that come or go."""
        spans = (self.old.span, self.new.span)
        found = _differences(self.sink or "query", output_parts(self.old), output_parts(self.new), spans)
        if self.removed or self.added:
            old, new = (tuple(operator.kind for operator in side) for side in (self.removed, self.added))
            found += (Difference(f"{self.sink or 'query'}/operators", "operators", old, new, *spans),)
        return found

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(difference.part for difference in self.differences)

    @property
    def changed(self) -> bool:
        """Whether anything differs anywhere between source and sink."""
        return bool(self.differences) or any(pair.differences for pair in self.operators)

    @property
    def stateful(self) -> bool:
        return bool(self.operators or self.added or self.removed)

    @property
    def others(self) -> tuple[Operator, ...]:
        """Operators of either side that have no rules of their own."""
        every = (*operators(self.old), *operators(self.new))
        return tuple(o for o in every if isinstance(o, OtherOperator) or o.window is None)

    @property
    def regions(self) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
        """All stateless stretches of both sides."""
        return _regions(self.old), _regions(self.new)

    def claim(self, *parts: str) -> tuple[str, ...]:
        return tuple(difference.key for difference in self.differences if difference.part in parts)


def _alike(old: Operator, new: Operator) -> bool:
    """Aggregations pair with aggregations of any kind; other constructs only with their own kind."""
    if isinstance(old, AggregateOperator) or isinstance(new, AggregateOperator):
        return isinstance(old, AggregateOperator) and isinstance(new, AggregateOperator)
    return old.kind == new.kind and len(old.regions) == len(new.regions)


def _all(origin: Source | Operator | Rows | None) -> tuple[Operator, ...]:
    if not isinstance(origin, AggregateOperator | OtherOperator):
        return ()
    return (origin, *(found for region in origin.regions for found in _all(region.origin)))


def _regions(output: Output) -> tuple[Region, ...]:
    return (output.region, *(region for operator in operators(output) for region in operator.regions))


@dataclass(frozen=True)
class Change:
    """The deployed side against the proposed side, paired."""

    old: Side
    new: Side

    @property
    def engine(self) -> str:
        return self.new.engine

    @property
    def versions(self) -> tuple[str, str]:
        return self.old.version, self.new.version

    @cached_property
    def programs(self) -> tuple[Program, Program]:
        return self.old.program, self.new.program

    @cached_property
    def unchanged(self) -> bool:
        """Both sides equal after canonicalisation: every statement, setting, function, engine and version."""
        a, b = self.programs
        if (self.old.engine, self.old.version) != (self.new.engine, self.new.version):
            return False
        if a.problems or b.problems:
            # What was not read may look at anything, a setting after the last query or a view nobody else reads too.
            return a == b and not self.differences and not self.failures
        return not self.differences and not self.failures

    @cached_property
    def _outputs(self) -> tuple[dict[int, Output], dict[int, Output], tuple[Problem, ...]]:
        found: list[dict[int, Output]] = []
        failures: list[Problem] = []
        for program in self.programs:
            outputs: dict[int, Output] = {}
            for i, pipeline in enumerate(program.pipelines):
                try:
                    outputs[i] = view(pipeline.sink)
                except TooLarge as error:
                    failures.append(Problem("too-large", str(error), "", pipeline.span))
            found.append(outputs)
        return found[0], found[1], tuple(failures)

    @property
    def failures(self) -> tuple[Problem, ...]:
        """Pipelines that could not be unfolded."""
        return self._outputs[2]

    @cached_property
    def _paired(self) -> tuple[tuple[PipelinePair, ...], tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
        """Pairs; indexes of removed and added pipelines; sinks whose pairing is ambiguous."""
        a, b = self.programs
        old, new, _ = self._outputs
        left, right = dict(old), dict(new)
        matches: list[tuple[int, int]] = []
        ambiguous: list[str] = []
        for i, output in old.items():  # identical first
            twin = next((j for j, other in right.items() if other == output), None)
            if twin is not None:
                matches.append((i, twin))
                del left[i], right[twin]
        for name in dict.fromkeys(output.sink for output in left.values()):
            ours = [i for i, output in left.items() if output.sink == name]
            theirs = [j for j, output in right.items() if output.sink == name]
            if not theirs:
                continue
            if len(ours) == len(theirs) == 1:
                matches.append((ours[0], theirs[0]))
                del left[ours[0]], right[theirs[0]]
            else:
                ambiguous.append(name)
        if len(left) == len(right) == 1 and not ambiguous:
            # One query left on each side: its sink changed.
            matches.append((next(iter(left)), next(iter(right))))
            left, right = {}, {}
        pairs = tuple(
            PipelinePair(new[j].sink, a.pipelines[i], b.pipelines[j], old[i], new[j], a, b) for i, j in sorted(matches)
        )
        return pairs, tuple(left), tuple(right), tuple(ambiguous)

    @property
    def pipelines(self) -> tuple[PipelinePair, ...]:
        return self._paired[0]

    @property
    def removed(self) -> tuple[Output, ...]:
        """Outputs only the deployed side has."""
        return tuple(self._outputs[0][i] for i in self._paired[1])

    @property
    def added(self) -> tuple[Output, ...]:
        return tuple(self._outputs[1][j] for j in self._paired[2])

    @property
    def ambiguous(self) -> tuple[str, ...]:
        return self._paired[3]

    @property
    def _statement_sets(self) -> tuple[list[int | None], list[int | None]]:
        """For every pair, on both sides, which pair is the first of its statement set; None outside of any."""
        old = [pair.old_pipeline.statement_set for pair in self.pipelines]
        new = [pair.new_pipeline.statement_set for pair in self.pipelines]
        first_of_old, first_of_new = ([None if n is None else side.index(n) for n in side] for side in (old, new))
        return first_of_old, first_of_new

    @cached_property
    def script_differences(self) -> tuple[Difference, ...]:
        """Differences that belong to no single pipeline: settings, declarations, other statements, INSERTs that
        come or go.
        """
        a, b = self.programs
        found: list[Difference] = []
        for key in sorted({k for p in (a, b) for k in _settings(p)}):
            before, after = _settings(a).get(key), _settings(b).get(key)
            if before != after:
                found.append(Difference(f"setting/{key}", "setting", before, after))
        found += _tables(a, b)
        found += _named("view", dict(a.views), dict(b.views))
        found += _named(
            "function",
            {f.name.lower(): (f.kind, f.language, f.definition) for f in a.functions},
            {f.name.lower(): (f.kind, f.language, f.definition) for f in b.functions},
        )
        found += _statements(a, b)
        if (self.removed or self.added) and not self.ambiguous:
            found.append(Difference("inserts", "inserts", tuple(self.removed), tuple(self.added)))
        if self.ambiguous:
            found.append(Difference("pairing", "pairing", self.ambiguous, self.ambiguous))
        if _order(self) != sorted(_order(self)):
            found.append(Difference("insert order", "insert order", None, None))
        for pair, *sets in zip(self.pipelines, *self._statement_sets, strict=True):
            if sets[0] != sets[1]:
                found.append(Difference(f"{pair.sink}/statement set", "statement set", sets[0], sets[1]))
        if self.versions[0] != self.versions[1] or self.old.engine != self.new.engine:
            found.append(
                Difference(
                    "engine",
                    "engine",
                    f"{self.old.engine} {self.versions[0]}",
                    f"{self.new.engine} {self.versions[1]}",
                )
            )
        return tuple(found)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every difference between the sides."""
        found = list(self.script_differences)
        for pipeline in self.pipelines:
            found += pipeline.differences
            for pair in pipeline.operators:
                found += pair.differences
        return tuple(found)

    @cached_property
    def used_tables(self) -> frozenset[str]:
        """Names of the tables any pipeline of either side reads or writes."""
        names: set[str] = set()
        for outputs in self._outputs[:2]:
            for output in outputs.values():
                names |= {source.table for source in sources(output)} | {output.sink}
        return frozenset(names)

    @cached_property
    def source_tables(self) -> frozenset[str]:
        """Names of the tables that are read."""
        return frozenset(
            source.table for outputs in self._outputs[:2] for output in outputs.values() for source in sources(output)
        )

    @cached_property
    def opaque(self) -> tuple[Opaque, ...]:
        """Constructs of either side that were kept whole."""
        return tuple(
            node
            for program in self.programs
            for pipeline in program.pipelines
            for node in walk_nodes(pipeline.sink)
            if isinstance(node, Opaque)
        )

    @cached_property
    def used_functions(self) -> frozenset[str]:
        """Lower-case names of everything any query or computed column of either side calls."""
        names: set[str] = set()
        for program, outputs in zip(self.programs, self._outputs[:2], strict=True):
            for output in outputs.values():
                for operator in operators(output):
                    if isinstance(operator, AggregateOperator):
                        names |= {call.function.lower() for call in operator.aggregates}
                    else:
                        names |= set(_words(operator.detail))
                names |= set(_words(tuple(expressions(output))))
            for table in program.tables:
                names |= set(_words(tuple(e for _, e in table.computed)))
                if table.watermark is not None:
                    names |= set(_words((table.watermark.expression,)))
        return frozenset(names)

    def uses_function(self, name: str) -> bool:
        """Whether anything calls a declared function; a call may leave out the database the declaration names."""
        return bool({name.lower(), name.lower().rpartition(".")[2]} & self.used_functions)

    def used_columns(self, table: str) -> frozenset[str]:
        """The columns of a table that any resolved expression of either side reads."""
        return frozenset(
            leaf.column
            for outputs in self._outputs[:2]
            for output in outputs.values()
            if table in {source.table for source in sources(output)}
            for expression in expressions(output)
            for leaf in leaves(expression)
            if isinstance(leaf, SourceColumn)
        )

    def claim(self, *keys: str) -> tuple[str, ...]:
        """The keys of script differences in these parts."""
        return tuple(d.key for d in self.script_differences if d.part in keys)

    def parts(self, part: str) -> tuple[Difference, ...]:
        """The script differences of one part."""
        return tuple(d for d in self.script_differences if d.part == part)


def _settings(program: Program) -> dict[str, str]:
    """The settings in force where the queries stand; where they differ from query to query, all values in order."""
    if not program.pipelines:
        return dict(program.settings)
    per_query = [dict(pipeline.settings) for pipeline in program.pipelines]
    keys = {key for settings in per_query for key in settings}
    values = {key: [settings.get(key, "(unset)") for settings in per_query] for key in keys}
    return {key: found[0] if len(set(found)) == 1 else " / ".join(found) for key, found in values.items()}


def _order(change: Change) -> list[int]:
    """Positions of the paired pipelines on the new side, in the old side's order."""
    positions = {id(pipeline): i for i, pipeline in enumerate(change.programs[1].pipelines)}
    return [positions[id(pair.new_pipeline)] for pair in change.pipelines]


def _named(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(f"{kind}/{name}", kind, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _statements(a: Program, b: Program) -> list[Difference]:
    """Statements that are no query and declare nothing the plan models, and those that could not be read."""
    found = []
    old, new = ([(f.kind, f.text, f.after) for f in p.facts] for p in (a, b))
    if old != new:
        gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
        for kind, text, _ in gone:
            found.append(Difference(f"statement/-{kind} {text}", "statement", text, None))
        for kind, text, _ in come:
            found.append(Difference(f"statement/+{kind} {text}", "statement", None, text))
        if not gone and not come:
            found.append(Difference("statement/order", "statement", "the same statements", "in another order"))
    problems_old, problems_new = ([(q.reason, q.text) for q in p.problems] for p in (a, b))
    if problems_old != problems_new:
        found.append(Difference("unread", "unread", tuple(problems_old), tuple(problems_new)))
    return found


def table_parts(table: Table) -> dict[str, Any]:
    """Everything a table declares, by part."""
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
        # A computed column moved among the others changes nothing but SELECT *, which the pipelines show.
        "order": tuple(column.name for column in table.columns),
    }


def _named_columns(value: Expression, table: Table) -> Expression:
    """An expression over a table's row with its columns by name: a place among the columns says nothing."""

    def leaf(part: Expression) -> Expression:
        if isinstance(part, InputRef):
            return SourceColumn(0, table.columns[part.index].name, type=part.type)
        return part

    return meaning(transform(value, leaf))


def _tables(a: Program, b: Program) -> list[Difference]:
    old, new = ({table.name: table for table in p.tables} for p in (a, b))
    found: list[Difference] = []
    for name in sorted({*old, *new}):
        if name in old and name in new:
            spans = (old[name].span, new[name].span)
            found += _differences(f"table/{name}", table_parts(old[name]), table_parts(new[name]), spans)
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


def _words(value: Any) -> Iterable[str]:
    """The function names in any resolved value."""
    if isinstance(value, tuple | frozenset):
        for part in value:
            yield from _words(part)
    elif isinstance(value, Call):
        yield value.function.lower()
        yield from _words(value.args)
    elif isinstance(value, AggregateCall):
        yield value.function.lower()
        yield from _words((*value.args, value.filter))
    elif isinstance(value, FunctionColumn):
        yield from _words(value.call)
    elif isinstance(value, OperatorColumn):
        yield from _words(value.output)
    elif isinstance(value, KeyOutput):
        yield from _words(value.key)


def expressions(output: Output) -> Iterable[Any]:
    """Every resolved expression between the sources and the sink."""
    yield from output.columns
    for region in _regions(output):
        yield from region.filters | region.window_filters
        for call, _ in region.functions:
            yield call
        for window in region.windows:
            yield window.time
            yield from window.partition_by
    for operator in operators(output):
        if isinstance(operator, AggregateOperator):
            yield from operator.keys
            for aggregate in operator.aggregates:
                yield from aggregate.args
                if aggregate.filter is not None:
                    yield aggregate.filter
            if operator.window is not None:
                yield operator.window.time
        else:
            yield from (value for name, value in operator.detail if name == "row" for value in value)


__all__ = [
    "Change",
    "Difference",
    "OperatorPair",
    "PipelinePair",
    "expressions",
    "operator_parts",
    "output_parts",
]
