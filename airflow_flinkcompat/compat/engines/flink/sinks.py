"""Engine ``flink``: the operators that Flink plans before a sink, and the effect of changes on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.query_form import OPTIONS, hint_options
from airflow_flinkcompat.compat.engines.flink.ranking import appends_only
from airflow_flinkcompat.compat.engines.flink.validation.changelog import changes
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import (
    ON_CONFLICT,
    Materializer,
    conflict_faults,
    materializer,
)
from airflow_flinkcompat.compat.verdict import Verdict, refused_at_submit, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, OptionEffect, SinkState, TableUse
from airflow_flinkcompat.plan.nodes import Scan, Table
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    Output,
    Source,
    appends,
    segments,
    sources,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, WindowColumn
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import MAX_LENGTH

SINKS_WITH_KNOWN_CHAIN = ("filesystem",)
"""Connectors of sinks with state that were restored correctly after a changed projection (measured)."""
PARALLELISM = "sink.parallelism"
_READ_PARALLELISM = "scan.parallelism"
UNDECLARED = "the sink is not declared, so the operators before it are unknown"
LIMITED = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})
"""Types with a length."""


def tables(pair: PipelinePair) -> tuple[Table | None, Table | None]:
    """The sink's declarations on the old and on the new side."""
    return pair.old_program.table(pair.old.sink), pair.new_program.table(pair.new.sink)


def location_changed(old: Table, new: Table) -> bool:
    """True if the options name a different location for results. Lists with a common broker are equal."""
    connector = new.option("connector")
    if old.option("connector") != connector:
        return True
    return any(
        old.option(key) != new.option(key)
        and not {*(old.option(key) or "").split(",")} & {*(new.option(key) or "").split(",")}
        for key in {*dict(old.options), *dict(new.options)}
        if _is_location(connector, key)
    )


def begins_empty(pair: PipelinePair) -> bool:
    """True if a sink that replaces rows by key moves to a location without former results.

    A resumed job writes the result for a key to the new location only when this result changes.
    """
    old, new = tables(pair)
    if old is None or new is None or not new.primary_key or not location_changed(old, new):
        return False
    kept = any(_is_location(new.option("connector"), key) for key in dict(new.options))
    return kept and changes(pair.new.segment, pair.new_pipeline, pair.new_program) is not Known.NO


def _is_location(connector: str | None, key: str) -> bool:
    fact = registry.option(connector, TableUse.SINK, key)
    return fact is not None and fact.effect is OptionEffect.TARGET


def declared(change: Change) -> Iterator[tuple[Output, Table]]:
    """Every declared table that a paired query reads or writes, with the query, on both sides."""
    for pair in change.pipelines:
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program)):
            names = {output.sink, *(source.table for source in sources(output))}
            yield from ((output, each) for each in program.tables if each.name in names)


@dataclass(frozen=True)
class Front:
    """The operators planned for a sink, without the projection before it.

    ``enforced`` are the columns whose values a separate operator checks, with the checks. ``parallelism`` is the sink's
    parallelism if it differs from the job's; the sink is then not chained.
    """

    connector: str | None
    enforced: frozenset[tuple[str, str]]
    parallelism: str | None
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    materializer: Materializer


def fronts(pair: PipelinePair) -> tuple[Front | None, Front | None]:
    """The operators for the old and the new sink; None for an undeclared table."""
    before, after = materializers(pair)
    return (
        _front(pair.old, pair.old_pipeline, pair.old_program, before),
        _front(pair.new, pair.new_pipeline, pair.new_program, after),
    )


def connectors(pair: PipelinePair) -> tuple[str | None, str | None]:
    """The old and the new connector of the sink; None for a bare SELECT or an undeclared table."""
    old, new = (None if front is None else front.connector for front in fronts(pair))
    return old, new


def _front(output: Output, pipeline: Pipeline, program: Program, planned: Materializer) -> Front | None:
    sink = program.table(output.sink)
    if sink is None:
        return None
    given, own = dict(pipeline.settings), _own_parallelism(output, sink)
    return Front(
        sink.option("connector"),
        frozenset(_enforced(sink, settings.effective(given, "table.exec.sink.type-length-enforcer", "flink"))),
        None if own == settings.effective(given, "parallelism.default", "flink") else own,
        sink.primary_key,
        sink.partitioned_by,
        planned,
    )


def _own_parallelism(output: Output, sink: Table | None) -> str | None:
    """The parallelism of the sink by its hint, or else by its declaration."""
    declared = None if sink is None else sink.option(PARALLELISM)
    return dict(hint_options(output.hints, OPTIONS)).get(PARALLELISM, declared)


def chained(program: Program) -> bool:
    """True if operator chaining is enabled."""
    key = "pipeline.operator-chaining.enabled"
    return all(settings.effective(dict(each.settings), key, "flink") != "false" for each in program.pipelines)


def at_own_parallelism(program: Program) -> frozenset[str]:
    """The tables that are read or written with a different parallelism than the job's."""
    found = set()
    for pipeline in program.pipelines:
        of_job = settings.effective(dict(pipeline.settings), "parallelism.default", "flink")
        used = [(pipeline.sink.table, pipeline.sink.hints, PARALLELISM)]
        for node in pipeline.sink.nodes:
            if isinstance(node, Scan):
                used.append((node.table, node.hints, _READ_PARALLELISM))
        for each, hints, key in used:
            if each is not None and dict(hint_options(hints, OPTIONS)).get(key, each.option(key)) not in (None, of_job):
                found.add(each.name)
    return frozenset(found)


def _enforced(sink: Table, lengths: str | None) -> Iterator[tuple[str, str]]:
    for column in sink.columns:
        if not column.type.nullable and column.name not in sink.primary_key:
            yield column.name, "NOT NULL"
        if lengths != "IGNORE" and column.type.parameters != (MAX_LENGTH,) and column.type.name in LIMITED:
            yield column.name, str(replace(column.type, nullable=True))


def only_the_sink(connector: str | None) -> str:
    """Reason for doubt if only the sink was not measured; ``connector`` is None for a catalog's table."""
    named = f"`{connector}`" if connector else "of a catalog's own connector"
    return f"the change does not affect keys, windows and metrics, but the sink {named} was not measured"


def stays(pair: PipelinePair) -> str:
    """Reason why Flink may change the operators before a stateless sink; "" if it certainly keeps them."""
    old, new = fronts(pair)
    if old is None or new is None:
        return UNDECLARED
    if old.connector != new.connector or not keeps_nothing(old.connector):
        return f"sink connector {new.connector} may have state that was not measured"
    return front_stays(pair)


def keeps_nothing(connector: str | None) -> bool:
    """True if, by the catalogue, a sink writes nothing to a savepoint."""
    return registry.sink(connector).state is SinkState.NONE


def front_stays(pair: PipelinePair, at_any_parallelism: bool = False) -> str:
    """Reason why Flink may change the operators before a sink; "" if it certainly keeps them.

    ``at_any_parallelism`` is True if a Calc precedes the sink on both sides. With such a Calc, a changed parallelism
    only unchains the Calc.
    """
    old, new = fronts(pair)
    if old is None or new is None:
        return UNDECLARED
    windowed = all(isinstance(top, AggregateOperator) and top.windowed for top in result_origins(pair))
    if old.enforced != new.enforced and (not windowed or shares_its_job(pair)):
        return "changes to a sink's NOT NULL columns and lengths were measured only after a windowed aggregation"
    if shares_its_job(pair) and bool(old.enforced or old.key) != bool(new.enforced or new.key):
        return (
            "an operator that checks for NULL is added or removed, which renumbers the operators of the job's other "
            "queries"
        )
    if old.parallelism != new.parallelism and not at_any_parallelism:
        return (
            "the sink's parallelism differs from the job's parallelism, or the job's parallelism is not set: the "
            "sink's chain may change"
        )
    if _spread_without_a_key(pair):
        return "Flink does not support sink.parallelism for updating results without a primary key"
    if Materializer.NOT_KNOWN in (old.materializer, new.materializer) or old.materializer != new.materializer:
        return "results may be stored again before the sink, by its primary key"
    if old.key != new.key and not all(isinstance(top, AggregateOperator) for top in result_origins(pair)):
        return "the sink's primary key was changed across a restore only after an aggregation"
    return "" if old.partitions == new.partitions else "the sink is partitioned differently"


def _spread_without_a_key(pair: PipelinePair) -> bool:
    """True if the sink sets a new parallelism for updating results but lacks the required primary key."""
    before, sink = tables(pair)
    old, new = _own_parallelism(pair.old, before), _own_parallelism(pair.new, sink)
    if new is None or old == new or sink is None or sink.primary_key:
        return False
    read = (segment for segment in segments(pair.new) if isinstance(segment.origin, Source))
    return not (appends(pair.new.segment) and all(appends_only(segment, pair.new_program) for segment in read))


def chain_may_change(pair: PipelinePair, change: Change) -> bool:
    """True if operators before a sink with a separate parallelism may get different ids.

    A sink with a separate parallelism is not chained. An operator that is added before this sink is instead chained to
    the operator upstream. Operator ids depend on the number of chained operators. If a Calc precedes the sink on both
    sides, the ids do not change.
    """
    sides = (pair.old, pair.new)
    if all(_own_parallelism(*side) is None for side in zip(sides, tables(pair), strict=True)):
        return False
    enforced = {None if front is None else front.enforced for front in fronts(pair)}
    if len(enforced) == 1 and all(map(surely_projected, sides)):
        return False
    names = {name for side in sides for name in (side.sink, *(source.table for source in sources(side)))}
    declared_otherwise = any(
        difference.part != "options" and difference.key.startswith(tuple(f"table/{name}/" for name in names))
        for difference in change.script_differences
    )
    return len(enforced) > 1 or declared_otherwise or not pair.parts <= {"sink", "sink hints"}


def shares_its_job(pair: PipelinePair) -> bool:
    """True if, on either side, the query's job also runs other queries."""
    sides = ((pair.old_pipeline, pair.old_program), (pair.new_pipeline, pair.new_program))
    return any(
        own.statement_set is not None and [p.statement_set for p in program.pipelines].count(own.statement_set) > 1
        for own, program in sides
    )


def result_origins(pair: PipelinePair) -> tuple[object, object]:
    """The operator or source from which the sink's results come, on the old and on the new side."""
    return pair.old.segment.origin, pair.new.segment.origin


def materializers(pair: PipelinePair) -> tuple[Materializer, Materializer]:
    """The materializers before the old and before the new sink."""
    before, after = tables(pair)
    return (
        materializer(pair.old, pair.old_pipeline, pair.old_program, before, pair.lines[0]),
        materializer(pair.new, pair.new_pipeline, pair.new_program, after, pair.lines[1]),
    )


def lack_clause(pair: PipelinePair) -> tuple[bool, bool]:
    """True for each side whose line of Flink certainly refuses the INSERT for a missing ON CONFLICT."""
    before, after = tables(pair)
    return (
        _lacks_clause(pair.old, pair.old_pipeline, pair.old_program, before, pair.lines[0]),
        _lacks_clause(pair.new, pair.new_pipeline, pair.new_program, after, pair.lines[1]),
    )


def _lacks_clause(output: Output, pipeline: Pipeline, program: Program, sink: Table | None, line: str | None) -> bool:
    found = () if sink is None else conflict_faults(output, pipeline, program, sink, line)
    return any(each.kind == ON_CONFLICT and each.certain for each in found)


_SAME: Mapping[Materializer, tuple[str, ...]] = {
    Materializer.NONE: (
        "sinks-conflict-own-key-deduplicate",
        "sinks-conflict-own-key-error",
        "sinks-conflict-own-key-changed",
    ),
    Materializer.UPSERT: ("sm-clause-dropped", "sinks-conflict-deduplicate-added"),
    Materializer.WATERMARK: (
        "sinks-conflict-nothing-to-error",
        "sinks-conflict-error-to-nothing",
        "upsert-sink-windows-tumble-conflict-error",
    ),
}
"""Restores with a changed clause or setting but the same materializer."""
_SAME_ON_NEW_LINE: Mapping[Materializer, tuple[str, ...]] = {
    Materializer.NONE: ("upgrade-other-own-key-clause",),
    Materializer.UPSERT: ("upgrade-other-other-key-deduplicate", "upgrade-other-other-key-kept"),
}
_IGNORED = "the watermark materializer ignores the rows that the upsert materializer stored"


def materializer_verdict(pair: PipelinePair) -> tuple[str, Verdict]:
    """Judge the materializer before a sink after a change of the clause, of a setting or of Flink's line."""
    old, new = materializers(pair)
    if Materializer.NOT_KNOWN in (old, new):
        reason = "the script does not determine the materializer before the sink"
        return "a materializer may store rows before its sink", unknown(reason)
    if old is new:
        words = "no materializer on either side" if old is Materializer.NONE else f"the {old} on both sides"
        ids = (_SAME if pair.lines[0] == pair.lines[1] else _SAME_ON_NEW_LINE).get(old)
        same = right(*ids) if ids else unknown("no restore with this materializer was measured")
        return f"Flink plans {words}", same
    if (old, new) == (Materializer.UPSERT, Materializer.WATERMARK):
        ids = ("sm-conflict-error-uniq", "sinks-conflict-deduplicate-to-nothing")
        return _IGNORED, wrong(*ids)
    if new is Materializer.NONE:
        words, ids = f"Flink no longer plans the {old}", ("upsert-sink-windows-tumble-conflict-deduplicate",)
    elif old is Materializer.NONE:
        words, ids = f"Flink plans the {new} in addition", ("upsert-sink-latest-tumble-conflict-nothing",)
    else:
        words, ids = f"Flink plans the {new} instead of the {old}", ("sinks-conflict-nothing-to-deduplicate",)
    return words, refused_at_submit(*ids)


def surely_projected(output: Output) -> bool:
    """True if a Calc is certainly planned between the last aggregation and the sink.

    The aggregation emits its keys, aggregates and window fields in this order. Only an output with exactly these
    columns may need no Calc.
    """
    operator = output.segment.origin
    if not isinstance(operator, AggregateOperator):
        return False
    if output.segment.filters or output.segment.window_filters:
        return True
    emitted = [*operator.keys, *operator.aggregates]
    columns = list(output.columns)
    for position, part in enumerate(emitted):
        if position >= len(columns):
            return True
        column = columns[position]
        if not isinstance(column, OperatorColumn) or _emitted(column) != part:
            return True
    return not all(_is_window(column) for column in columns[len(emitted) :])


def _emitted(column: OperatorColumn) -> Any:
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


def _is_window(column: Any) -> bool:
    return isinstance(column, OperatorColumn) and isinstance(_emitted(column), WindowColumn)
