"""A change as pairs of queries, stateful operators and declarations, with all differences.

This module does not judge. A difference is one named part of a pair whose old and new values are unequal. The parts of
all pairs together contain the whole plan, so two sides without differences have the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.compat.changes.differences import Difference, declared_differences, operator_parts
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, Pairing, PipelinePair, pair_queries
from airflow_flinkcompat.compat.changes.query_form import (
    expressions,
    function_names,
    may_name,
    tables_of,
    with_views,
    words,
)
from airflow_flinkcompat.compat.refusals import Refusal, refusals
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.plan.nodes import Clause, Opaque, Table
from airflow_flinkcompat.plan.operators import Output, operators, sources
from airflow_flinkcompat.plan.origins import SourceColumn, leaves
from airflow_flinkcompat.plan.program import ELSEWHERE, INVALID, REFUSED_NAME, Problem, Program
from airflow_flinkcompat.sql.normal_form import normal_form, normal_words


@dataclass(frozen=True)
class Change:
    """The deployed and the proposed side of a job, paired."""

    old: Side
    new: Side

    @property
    def engine(self) -> str:
        return self.new.engine

    @property
    def versions(self) -> tuple[str, str]:
        return self.old.version, self.new.version

    @cached_property
    def is_upgrade(self) -> bool:
        """True if only the version of the engine changes."""
        return self.new.upgrades(self.old)

    @cached_property
    def programs(self) -> tuple[Program, Program]:
        return self.old.program, self.new.program

    @cached_property
    def refusals(self) -> tuple[tuple[Refusal, ...], tuple[Refusal, ...]]:
        """Flink's refusals of each side, without refusals that both sides share."""
        wrong = [
            {each.message for each in program.problems if each.reason in (REFUSED_NAME, INVALID)}
            | {each.message for each in program.absences}
            for program in self.programs
        ]
        old, new = (
            tuple(each for each in refusals(program) if each.message not in wrong[0] & wrong[1])
            for program in self.programs
        )
        return old, new

    @cached_property
    def unchanged(self) -> bool:
        """True if statements, settings, functions, engine and version are equal after normalization."""
        a, b = self.programs
        if (self.old.engine, self.old.version) != (self.new.engine, self.new.version):
            return False
        if any(problem.reason in ELSEWHERE for problem in (*a.problems, *b.problems)):
            # The same words may have a different meaning: a program may read values from outside the script.
            return False
        if any(self.refusals) or self.old.not_run or self.new.not_run:
            return False
        if a.problems or b.problems:
            # An unread statement may use anything, even a setting after the last query or an unused view.
            return a == b and not self.differences and not self.failures
        return not self.differences and not self.failures

    @cached_property
    def same_statements(self) -> bool:
        """True if both scripts contain the same statements in normal form; Flink then plans equal jobs."""
        old, new = (
            [
                normal_words(each.text) if each.tree is None else normal_form(each.tree)
                for each in side.parsed.statements
            ]
            for side in (self.old, self.new)
        )
        return old == new

    @property
    def _outputs(self) -> tuple[Mapping[int, Output], Mapping[int, Output]]:
        return self.old.outputs[0], self.new.outputs[0]

    @property
    def failures(self) -> tuple[Problem, ...]:
        """Problems of pipelines whose operators could not be resolved."""
        return (*self.old.outputs[1], *self.new.outputs[1])

    @cached_property
    def _pairing(self) -> Pairing:
        return pair_queries(*self._outputs)

    @cached_property
    def pipelines(self) -> tuple[PipelinePair, ...]:
        a, b = self.programs
        old, new = self._outputs
        names = [new[j].sink or "query" for _, j in self._pairing.pairs]
        first = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
        lines = self.old.flink_line, self.new.flink_line
        places = (name if first[name] == n else f"{name} ({n + 1})" for n, name in enumerate(names))
        return tuple(
            PipelinePair(new[j].sink, place, a.pipelines[i], b.pipelines[j], old[i], new[j], a, b, lines)
            for (i, j), place in zip(self._pairing.pairs, places, strict=True)
        )

    def pipelines_into(self, sink: str | None) -> Sequence[PipelinePair]:
        """The paired queries that write into a sink."""
        return () if sink is None else self._by_sink.get(sink, ())

    def pipelines_about(self, sink: str | None) -> Sequence[PipelinePair]:
        """The paired queries that write into a sink; all paired queries if the sink is None."""
        return self.pipelines if sink is None else self.pipelines_into(sink)

    @cached_property
    def _by_sink(self) -> Mapping[str, Sequence[PipelinePair]]:
        found: dict[str, list[PipelinePair]] = {}
        for pair in self.pipelines:
            found.setdefault(pair.sink, []).append(pair)
        return found

    def position(self, pair: PipelinePair) -> int:
        """The position of a pair among the queries of the proposed script, from 0."""
        return self._positions[id(pair.new_pipeline)]

    @cached_property
    def _positions(self) -> dict[int, int]:
        """Positions of the queries of the proposed script, by identity because two queries may be equal."""
        return {id(pipeline): n for n, pipeline in enumerate(self.programs[1].pipelines)}

    @property
    def own_jobs(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """True for each query in ``removed`` and ``added`` that is a separate job.

        A query is a separate job unless its statement set also contains a paired or an ambiguous query.
        """
        found = []
        alone = (self._pairing.removed, self._pairing.added)
        for program, places in zip(self.programs, alone, strict=True):
            sets = [pipeline.statement_set for pipeline in program.pipelines]
            shared = {number for n, number in enumerate(sets) if n not in places}
            found.append(tuple(sets[n] is None or sets[n] not in shared for n in places))
        return found[0], found[1]

    @property
    def removed(self) -> tuple[Output, ...]:
        """Outputs of queries that only the deployed side has."""
        return tuple(self._outputs[0][i] for i in self._pairing.removed)

    @property
    def added(self) -> tuple[Output, ...]:
        return tuple(self._outputs[1][j] for j in self._pairing.added)

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """Sinks with several queries that cannot be paired unambiguously."""
        return self._pairing.ambiguous

    def companions(self, pair: PipelinePair) -> tuple[PipelinePair, ...]:
        """The other queries that share a job with a pair, on either side."""
        return tuple(
            other
            for other in self.pipelines
            if other is not pair
            and (
                other.old_pipeline.statement_set == pair.old_pipeline.statement_set is not None
                or other.new_pipeline.statement_set == pair.new_pipeline.statement_set is not None
            )
        )

    @property
    def _statement_sets(self) -> tuple[list[int | None], list[int | None]]:
        """Per side, each pair's statement set as the position of the set's first pair; None without a set."""
        old = [pair.old_pipeline.statement_set for pair in self.pipelines]
        new = [pair.new_pipeline.statement_set for pair in self.pipelines]
        first_of_old, first_of_new = ([None if n is None else side.index(n) for n in side] for side in (old, new))
        return first_of_old, first_of_new

    @cached_property
    def script_differences(self) -> tuple[Difference, ...]:
        """Differences that belong to no single pipeline: settings, declarations, other statements and INSERTs."""
        declared = declared_differences(*self.programs, self.engine, self._pairing.pairs)
        beside = self._unused_keys if declared else frozenset()
        found = [each for each in declared if each.key.removesuffix(f"/{each.part}") not in beside]
        if self.removed or self.added:
            found.append(Difference("inserts", "inserts", tuple(self.removed), tuple(self.added)))
        if self.ambiguous:
            found.append(Difference("pairing", "pairing", self.ambiguous, self.ambiguous))
        order = [self.position(pair) for pair in self.pipelines]
        if order != sorted(order):
            found.append(Difference("insert order", "insert order", None, None))
        found += split_shared_operators(self.pipelines)
        for pair, *sets in zip(self.pipelines, *self._statement_sets, strict=True):
            if sets[0] != sets[1]:
                found.append(Difference(f"{pair.place}/statement set", "statement set", sets[0], sets[1]))
        if self.versions[0] != self.versions[1] or self.old.engine != self.new.engine:
            found.append(
                Difference(
                    "engine", "engine", f"{self.old.engine} {self.versions[0]}", f"{self.new.engine} {self.versions[1]}"
                )
            )
        return tuple(found)

    @property
    def _unused_keys(self) -> frozenset[str]:
        """Keys of the catalog tables, views and functions that serve only other jobs."""
        if self.failures or any(program.problems for program in self.programs):
            return frozenset()
        tables = (name for name in self._unused_tables if not self.may_be_used_unseen(name))
        return frozenset((*(f"table/{name}" for name in tables), *self._unused_views_and_functions))

    @property
    def _unused_tables(self) -> frozenset[str]:
        catalogs = [side.tables_of_catalog for side in (self.old, self.new)]
        own = [
            {table.name for table in program.tables} - names
            for program, names in zip(self.programs, catalogs, strict=True)
        ]
        return (catalogs[0] | catalogs[1]) - own[0] - own[1] - self.used_tables

    @property
    def _unused_views_and_functions(self) -> Iterator[str]:
        """Keys of views and functions that neither script names; empty for a program, which may compute names."""
        sides = (self.old, self.new)
        if any(side.language != "sql" for side in sides):
            return
        found = words(*(side.script for side in sides))
        for program in self.programs:
            found |= with_views(found, {name: text.normal for name, text in program.views})
        for program in self.programs:
            yield from (f"view/{name}" for name, _ in program.views if not may_name(found, name))
            names = (function.name.lower() for function in program.functions)
            yield from (
                f"function/{name}" for name in names if not (may_name(found, name) or any(self.uses_function(name)))
            )

    @cached_property
    def operators(self) -> tuple[OperatorPair, ...]:
        """Each operator pair once, even if several queries of one job share its operator."""
        first: dict[tuple[int, int], OperatorPair] = {}
        for pair, *places in zip(*_readers(self.pipelines), strict=True):
            first.setdefault((places[0], places[1]), pair)
        return tuple(first.values())

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """All differences between both sides."""
        found = list(self.script_differences)
        for pipeline in self.pipelines:
            found += pipeline.differences
            for pair in pipeline.operators:
                found += pair.differences
        return tuple(found)

    @cached_property
    def tables_of_sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of the tables that the pipelines of each side read or write."""
        old, new = (frozenset[str]().union(*map(tables_of, side.values())) for side in self._outputs)
        return old, new

    @property
    def used_tables(self) -> frozenset[str]:
        """Names of the tables that any pipeline of either side reads or writes."""
        return self.tables_of_sides[0] | self.tables_of_sides[1]

    @cached_property
    def declared_on_one_side(self) -> frozenset[str]:
        """Names of tables that both sides use but only one of them declares."""
        declared = [{table.name for table in program.tables} for program in self.programs]
        return (self.tables_of_sides[0] & self.tables_of_sides[1]) & (declared[0] ^ declared[1])

    @cached_property
    def with_shared_declarations(self) -> Change | None:
        """The same change with ``declared_on_one_side`` declared on both sides; None if that is impossible."""
        texts = [side.declarations(self.declared_on_one_side) for side in (self.old, self.new)]
        if {*texts[0], *texts[1]} != self.declared_on_one_side:
            return None
        old, new = (
            side.with_catalog(theirs[name] for name in sorted(theirs))
            for side, theirs in ((self.old, texts[1]), (self.new, texts[0]))
        )
        alike = Change(old, new)
        # A catalog declaration does not help if a script contains a refused one, such as an invalid LIKE.
        return None if alike.declared_on_one_side else alike

    @cached_property
    def source_tables(self) -> frozenset[str]:
        """Names of the tables that either side reads."""
        return frozenset(
            source.table for outputs in self._outputs for output in outputs.values() for source in sources(output)
        )

    def tables(self, name: str) -> list[Table]:
        """The declarations of a table on both sides, the deployed declaration first."""
        return [table for program in self.programs for table in program.tables if table.name == name]

    @cached_property
    def opaque(self) -> tuple[Opaque, ...]:
        """Query constructs of either side that were not resolved."""
        return tuple(
            node
            for program in self.programs
            for pipeline in program.pipelines
            for node in pipeline.sink.nodes
            if isinstance(node, Opaque)
        )

    @cached_property
    def _unresolved(self) -> frozenset[str]:
        """All words of unresolved constructs and unread statements, and of the views that they may use."""
        texts: list[object] = []
        for node in self.opaque:
            texts += [
                clause.form if isinstance(clause, Clause) else clause
                for clause in (node.text, *dict(node.clauses).values())
            ]
        texts += [problem.text for program in self.programs for problem in program.problems]
        found = words(*texts)
        for program in self.programs:
            found |= with_views(found, {name: text.normal for name, text in program.views}) if found else found
        return found

    def may_be_used_unseen(self, name: str) -> bool:
        """True if an unresolved construct or unread statement of either side may use a name."""
        return may_name(self._unresolved, name)

    @cached_property
    def _functions_by_side(self) -> tuple[frozenset[str], ...]:
        found = []
        for program, outputs in zip(self.programs, self._outputs, strict=True):
            names: set[str] = set()
            for output in outputs.values():
                for operator in operators(output):
                    names |= set(function_names(tuple(operator_parts(operator).values())))
                names |= set(function_names(tuple(expressions(output))))
            for table in program.tables:
                names |= set(function_names(tuple(e for _, e in table.computed)))
                if table.watermark is not None:
                    names |= set(function_names((table.watermark.expression,)))
            found.append(frozenset(names))
        return tuple(found)

    @property
    def used_functions(self) -> frozenset[str]:
        """Lower-case names of the functions that queries, computed columns and watermarks of either side call."""
        return self._functions_by_side[0] | self._functions_by_side[1]

    def uses_function(self, name: str) -> tuple[bool, bool]:
        """True for each side that calls a function; a call may omit the catalog and database."""
        names = {name.lower(), name.lower().rpartition(".")[2]}
        old, new = (bool(names & used) for used in self._functions_by_side)
        return old, new

    def used_columns(self, table: str) -> frozenset[str]:
        """The columns of a table that resolved expressions of either side read."""
        return frozenset(
            leaf.column
            for outputs in self._outputs
            for output in outputs.values()
            if table in {source.table for source in sources(output)}
            for expression in expressions(output)
            for leaf in leaves(expression)
            if isinstance(leaf, SourceColumn)
        )

    def claim(self, *keys: str) -> tuple[str, ...]:
        """The keys of the script differences in some parts."""
        return tuple(d.key for d in self.script_differences if d.part in keys)

    def parts(self, part: str) -> tuple[Difference, ...]:
        """The script differences in one part."""
        return tuple(d for d in self.script_differences if d.part == part)


def split_shared_operators(pipelines: Iterable[PipelinePair]) -> Iterable[Difference]:
    """Differences for operators that several queries share on only one side.

    Flink plans equal operators within a job only once. For example, two INSERTs that read the same columns of a view
    share the aggregation in the view. If the INSERTs read different columns, Flink plans two aggregations (measured).
    """
    pairs, old, new = _readers(pipelines)
    for n, pair in enumerate(pairs):
        if old[n] != new[n]:
            before, after = (_format_reader(pair, pairs[place]) for place in (old[n], new[n]))
            yield Difference(f"{pair.path}/sharing", "sharing", before, after, pair.old.span, pair.new.span)


def _format_reader(pair: OperatorPair, first: OperatorPair) -> str:
    own, other = (f"{each.new.kind} into {each.pipeline.sink or 'a bare SELECT'}" for each in (pair, first))
    return own if pair is first else f"{own}, the same as {other}"


def _readers(pipelines: Iterable[PipelinePair]) -> tuple[Sequence[OperatorPair], list[int], list[int]]:
    """All operator pairs and, per side, the position of the first equal operator in the same job."""
    pairs = [operator for pipeline in pipelines for operator in pipeline.operators]
    if len(pairs) == 1:
        return pairs, [0], [0]
    old: dict[Any, int] = {}
    new: dict[Any, int] = {}
    places = [
        (
            old.setdefault((_job(pair, pair.pipeline.old_pipeline.statement_set), pair.old), n),
            new.setdefault((_job(pair, pair.pipeline.new_pipeline.statement_set), pair.new), n),
        )
        for n, pair in enumerate(pairs)
    ]
    return pairs, [place for place, _ in places], [place for _, place in places]


def _job(pair: OperatorPair, statement_set: int | None) -> int | str:
    """Identifier of an INSERT's job: its statement set, or the INSERT itself outside of a set."""
    return pair.pipeline.place if statement_set is None else statement_set
