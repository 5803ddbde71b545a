"""Engine ``flink``: queries of one statement set are one job, whose operator ids follow from the whole topology.

What comes or goes in one query renumbers what stands behind it in the others, and queries of one source are planned
together: which columns one of them reads decides about operators of the other (measured: ``ms-mod-stateless``).
"""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.plan.operators import Output, sources


def companions(pair: PipelinePair, change: Change) -> tuple[PipelinePair, ...]:
    """The other queries of the pair's job, on either side."""
    return tuple(
        other
        for other in change.pipelines
        if other is not pair
        and (
            other.old_pipeline.statement_set == pair.old_pipeline.statement_set is not None
            or other.new_pipeline.statement_set == pair.new_pipeline.statement_set is not None
        )
    )


def disturbs(pair: PipelinePair, change: Change) -> bool:
    """Whether a change of this query may renumber or replan operators of the other queries of its job."""
    if not pair.changed or not (others := companions(pair, change)):
        return False
    if not _same_topology(pair, change):
        return True
    return any(_planned_together(pair, other) for other in others)


def _same_topology(pair: PipelinePair, change: Change) -> bool:
    """True where no operator comes or goes between source and sink for sure."""
    if pair.removed or pair.added or not all(_same_place(operator, change) for operator in pair.operators):
        return False
    return pair.parts <= {"sink"} or (flink.surely_projected(pair.old) and flink.surely_projected(pair.new))


def _same_place(pair: OperatorPair, change: Change) -> bool:
    sides = pair.aggregations
    if not pair.differences:
        return True
    if sides is None:
        return False
    old, new = (flink.chain(side, program) for side, program in zip(sides, change.programs, strict=True))
    *_, calc = old
    legacy = sides[0].window is not None and sides[0].window.notation == "group window"
    return old == new and (legacy or calc is not None)


def _planned_together(pair: PipelinePair, other: PipelinePair) -> bool:
    """Whether both read one source and the change reaches what they have in common."""
    tables = ({source.table for side in (each.old, each.new) for source in sources(side)} for each in (pair, other))
    if not set.intersection(*tables):
        return False
    # Only the projection behind an aggregation differs, and the other query has another one on both sides.
    alone = _result(pair.old) != _result(other.old) and _result(pair.new) != _result(other.new)
    return any(operator.differences for operator in pair.operators) or not pair.operators or not alone


def _result(output: Output) -> tuple[object, ...]:
    return output.segment, output.columns
