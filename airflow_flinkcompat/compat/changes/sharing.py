"""Operators that several queries of one job read.

Flink plans equal ones once (measured: two INSERTs that read the same columns of a view share its aggregation, different
columns give two).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair


def unique_operators(pipelines: Iterable[PipelinePair]) -> tuple[OperatorPair, ...]:
    """Every operator pair, each once, however many queries read it on both sides."""
    first: dict[tuple[int, int], OperatorPair] = {}
    for pair, *places in zip(*_readers(pipelines), strict=True):
        first.setdefault((places[0], places[1]), pair)
    return tuple(first.values())


def split_shared_operators(pipelines: Iterable[PipelinePair]) -> Iterable[Difference]:
    """Operators that queries share on one side and not on the other."""
    pairs, old, new = _readers(pipelines)
    for n, pair in enumerate(pairs):
        if old[n] != new[n]:
            before, after = (_format_reader(pair, pairs[place]) for place in (old[n], new[n]))
            yield Difference(f"{pair.path}/sharing", "sharing", before, after, pair.old.span, pair.new.span)


def _format_reader(pair: OperatorPair, first: OperatorPair) -> str:
    return pair.path if pair is first else f"{pair.path}, the same as {first.path}"


def _readers(pipelines: Iterable[PipelinePair]) -> tuple[Sequence[OperatorPair], list[int], list[int]]:
    """Every operator pair, and on both sides the place of the first that is the same operator of the same job."""
    pairs = [operator for pipeline in pipelines for operator in pipeline.operators]
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
    """A statement set is one job; an INSERT outside of any is one by itself."""
    return pair.pipeline.place if statement_set is None else statement_set
