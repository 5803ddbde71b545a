"""Operators that Flink plans in front of a sink, kept, moved or replaced by a change."""

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
"""Sinks with state that were restored correctly under a changed projection (measured here)."""
PARALLELISM = "sink.parallelism"
_READ_PARALLELISM = "scan.parallelism"
UNDECLARED = "the sink is not declared, so the operators planned before it are unknown"
LIMITED = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})
"""Types whose values have a length."""


def tables(pair: PipelinePair) -> tuple[Table | None, Table | None]:
    """The sink's declaration before and after."""
    return pair.old_program.table(pair.old.sink), pair.new_program.table(pair.new.sink)


def written_elsewhere(old: Table, new: Table) -> bool:
    """Return whether the options name another place for results; a shared broker is the same place."""
    connector = new.option("connector")
    if old.option("connector") != connector:
        return True
    return any(
        old.option(key) != new.option(key)
        and not {*(old.option(key) or "").split(",")} & {*(new.option(key) or "").split(",")}
        for key in {*dict(old.options), *dict(new.options)}
        if _says_where(connector, key)
    )


def begins_empty(pair: PipelinePair) -> bool:
    """True if a sink that replaces rows by key is at another place, which has no former results.

    A job that resumes sends a key there only once it changes.
    """
    old, new = tables(pair)
    if old is None or new is None or not new.primary_key or not written_elsewhere(old, new):
        return False
    kept = any(_says_where(new.option("connector"), key) for key in dict(new.options))
    return kept and changes(pair.new.segment, pair.new_pipeline, pair.new_program) is not Known.NO


def _says_where(connector: str | None, key: str) -> bool:
    fact = registry.option(connector, TableUse.SINK, key)
    return fact is not None and fact.effect is OptionEffect.TARGET


def declared(change: Change) -> Iterator[tuple[Output, Table]]:
    """Every declared table a paired query reads or writes, with the query, on both sides."""
    for pair in change.pipelines:
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program)):
            names = {output.sink, *(source.table for source in sources(output))}
            yield from ((output, each) for each in program.tables if each.name in names)


@dataclass(frozen=True)
class Front:
    """The operators planned for a sink, except the projection before it.

    ``enforced`` are the columns whose values an operator of its own checks, with the checks; ``parallelism`` is the
    sink's if it is not the job's, which takes the sink out of the chain.
    """

    connector: str | None
    enforced: frozenset[tuple[str, str]]
    parallelism: str | None
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    materializer: Materializer


def fronts(pair: PipelinePair) -> tuple[Front | None, Front | None]:
    """Operators that Flink plans for the old and the new sink; None if its table is not declared."""
    before, after = materializers(pair)
    return (
        _front(pair.old, pair.old_pipeline, pair.old_program, before),
        _front(pair.new, pair.new_pipeline, pair.new_program, after),
    )


def connectors(pair: PipelinePair) -> tuple[str | None, str | None]:
    """Connectors of the sink before and after; None for a bare SELECT or an undeclared table."""
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
    """Parallelism of the sink by the hint after its name, else by its declaration."""
    declared = None if sink is None else sink.option(PARALLELISM)
    return dict(hint_options(output.hints, OPTIONS)).get(PARALLELISM, declared)


def chained(program: Program) -> bool:
    """Return whether any operators share a task."""
    key = "pipeline.operator-chaining.enabled"
    return all(settings.effective(dict(each.settings), key, "flink") != "false" for each in program.pipelines)


def at_own_parallelism(program: Program) -> frozenset[str]:
    """The tables that are read or written at another parallelism than the job's."""
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
    """Reason if nothing but the sink is uncertain; ``connector`` is None for a table of a catalog."""
    named = f"`{connector}`" if connector else "of a catalog's own connector"
    return f"keys, windows and metrics are unchanged by it; only the sink {named} was not measured"


def stays(pair: PipelinePair) -> str:
    """Reason why Flink may not keep the operators before a stateless sink; "" if it surely keeps them."""
    old, new = fronts(pair)
    if old is None or new is None:
        return UNDECLARED
    if old.connector != new.connector or not keeps_nothing(old.connector):
        return f"sink connector {new.connector} may keep its own state, which was not measured"
    return front_stays(pair)


def keeps_nothing(connector: str | None) -> bool:
    """Return whether the catalogue knows that a sink writes nothing into a savepoint."""
    return registry.sink(connector).state is SinkState.NONE


def front_stays(pair: PipelinePair, at_any_parallelism: bool = False) -> str:
    """Reason why Flink may not keep the operators before any sink; "" if it surely keeps them.

    ``at_any_parallelism``: True if a Calc precedes the sink on both sides; only that Calc is unchained.
    """
    old, new = fronts(pair)
    if old is None or new is None:
        return UNDECLARED
    windowed = all(isinstance(top, AggregateOperator) and top.windowed for top in result_origins(pair))
    if old.enforced != new.enforced and (not windowed or shares_its_job(pair)):
        return "a sink's NOT NULL columns and lengths were changed across a restore only after a windowed aggregation"
    if shares_its_job(pair) and bool(old.enforced or old.key) != bool(new.enforced or new.key):
        return (
            "an operator that checks for NULL was added or removed, which renumbers the operators of the job's "
            "other queries"
        )
    if old.parallelism != new.parallelism and not at_any_parallelism:
        return "the sink's parallelism differs from the job's, or the job's is not set: its chain may change"
    if _spread_without_a_key(pair):
        return "Flink plans no sink.parallelism for updating results without a primary key"
    if Materializer.NOT_KNOWN in (old.materializer, new.materializer) or old.materializer != new.materializer:
        return "results may be stored again before the sink, by its primary key"
    if old.key != new.key and not all(isinstance(top, AggregateOperator) for top in result_origins(pair)):
        return "the sink's primary key was changed across a restore only after an aggregation"
    return "" if old.partitions == new.partitions else "the sink is partitioned differently"


def _spread_without_a_key(pair: PipelinePair) -> bool:
    """Check if the sink has a new parallelism, even the job's, that needs a primary key it lacks."""
    before, sink = tables(pair)
    old, new = _own_parallelism(pair.old, before), _own_parallelism(pair.new, sink)
    if new is None or old == new or sink is None or sink.primary_key:
        return False
    read = (segment for segment in segments(pair.new) if isinstance(segment.origin, Source))
    return not (appends(pair.new.segment) and all(appends_only(segment, pair.new_program) for segment in read))


def chains_otherwise(pair: PipelinePair, change: Change) -> bool:
    """Check if the operators before a sink with its own parallelism may get other ids.

    Such a sink is chained to nothing: an operator added before it is chained to the previous operator instead, and ids
    depend on the number of chained operators. A Calc before the sink on both sides prevents this.
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
    """Return whether another query of its statement set runs in the same job, on either side."""
    sides = ((pair.old_pipeline, pair.old_program), (pair.new_pipeline, pair.new_program))
    return any(
        own.statement_set is not None and [p.statement_set for p in program.pipelines].count(own.statement_set) > 1
        for own, program in sides
    )


def result_origins(pair: PipelinePair) -> tuple[object, object]:
    """The origin of the results, before and after."""
    return pair.old.segment.origin, pair.new.segment.origin


def materializers(pair: PipelinePair) -> tuple[Materializer, Materializer]:
    """The operator that settles rows of one key in front of the sink, before and after."""
    before, after = tables(pair)
    return (
        materializer(pair.old, pair.old_pipeline, pair.old_program, before, pair.lines[0]),
        materializer(pair.new, pair.new_pipeline, pair.new_program, after, pair.lines[1]),
    )


def lack_clause(pair: PipelinePair) -> tuple[bool, bool]:
    """Return whether the line of Flink of each side surely refuses its INSERT for a missing ON CONFLICT."""
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
"""Restores across another clause or setting, under which the same materializer is planned."""
_SAME_ON_NEW_LINE: Mapping[Materializer, tuple[str, ...]] = {
    Materializer.NONE: ("upgrade-other-own-key-clause",),
    Materializer.UPSERT: ("upgrade-other-other-key-deduplicate", "upgrade-other-other-key-kept"),
}
_IGNORED = "the watermark materializer ignores the rows that the upsert materializer stored"


def settled_otherwise(pair: PipelinePair) -> tuple[str, Verdict]:
    """Judge the materializer in front of a sink after a changed clause, setting or line of Flink."""
    old, new = materializers(pair)
    if Materializer.NOT_KNOWN in (old, new):
        reason = "the script does not show whether a materializer stores rows before the sink"
        return "a materializer may store rows before its sink", unknown(reason)
    if old is new:
        words = "no materializer, before and after" if old is Materializer.NONE else f"the {old}, before and after"
        ids = (_SAME if pair.lines[0] == pair.lines[1] else _SAME_ON_NEW_LINE).get(old)
        same = right(*ids) if ids else unknown("no restore was run with it")
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

    The aggregation hands up its keys, aggregates and window fields in that order; only exactly that might need no Calc.
    """
    operator = output.segment.origin
    if not isinstance(operator, AggregateOperator):
        return False
    if output.segment.filters or output.segment.window_filters:
        return True
    handed_up = [*operator.keys, *operator.aggregates]
    columns = list(output.columns)
    for position, part in enumerate(handed_up):
        if position >= len(columns):
            return True
        column = columns[position]
        if not isinstance(column, OperatorColumn) or _meant(column) != part:
            return True
    return not all(_is_window(column) for column in columns[len(handed_up) :])


def _meant(column: OperatorColumn) -> Any:
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


def _is_window(column: Any) -> bool:
    return isinstance(column, OperatorColumn) and isinstance(_meant(column), WindowColumn)
