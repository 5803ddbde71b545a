from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.ranking import is_number, stores_no_row
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.rule import (
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    VerdictsOnDemand,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.projections import on_vvr, seen_above
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import ACCESSES, Expression, FunctionCall, walk
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, RankOperator, Source, operators
from airflow_flinkcompat.plan.origins import SourceColumn, leaves, window_field
from airflow_flinkcompat.plan.program import Program

STATELESS = measured(
    Outcome.COMPATIBLE,
    "stateless-column-added",
    "stateless-column-computed",
    "stateless-filter-added",
    "stateless-filter-changed",
    "stateless-filter-removed",
    note="nothing is stored",
)
IN_FILES = measured(
    Outcome.COMPATIBLE,
    "file-sinks-column-computed",
    "file-sinks-column-computed-removed",
    "file-sinks-columns-swapped",
    "file-sinks-metric-computed",
    "file-sinks-window-start",
    note="a Calc between the aggregation and the files on both sides",
)


def projection_on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    """What a change of the projection in front of the sink means on open-source Flink.

    Nothing, where the sink keeps no state. Where it does, the operators around it must stay the same: a Calc stands in
    front of the files on both sides for sure. Other sinks, functions of one's own and projections of some operators
    were not measured. A query that keeps nothing itself is judged by the states of its job.
    """
    if reason := _event_times(pair):
        return _unknown(reason)
    found = _projection_on_flink(pair)
    verdict = found.get("flink")
    return found if verdict is None else {"flink": stateless.settled(pair, verdict, *stateless.OUTPUT)}


def _projection_on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    if reason := _unmeasured(pair):
        return _unknown(reason)
    nameless = not pair.old.sink and not pair.new.sink
    if (seen := _seen(pair)) is not None:
        # Updates may be kept once more, or whole rows, in front of any other sink.
        moved = "" if nameless else sinks.stays(pair)
        return _unknown(moved) if moved else {"flink": seen}
    old, new = sinks.connectors(pair)
    if nameless or (old == new and old in flink.STATELESS_SINKS):
        return {"flink": STATELESS} if all(isinstance(top, Source) for top in sinks.tops(pair)) else {}
    if old == new and old in flink.SINKS_WITH_KNOWN_CHAIN and all(map(flink.surely_projected, (pair.old, pair.new))):
        return {"flink": IN_FILES}
    declared = sinks.table(pair.old_program, pair.old.sink), sinks.table(pair.new_program, pair.new.sink)
    if any(table is not None and table.primary_key for table in declared):
        return _unknown("where a sink has a primary key, Flink may keep the rows that go to it, and these changed")
    return _unknown(f"sink connector {new or 'of an undeclared table'} was not measured with a changed projection")


def _event_times(pair: PipelinePair) -> str:
    """Why columns of event time that come to the sink make another job of it; "" where they do not."""
    old = _event_time_columns(pair.old, pair.old_program)
    new = _event_time_columns(pair.new, pair.new_program)
    if new > 1:
        return "Flink may not plan a query that hands several columns of event time to one sink"
    if old != new and set(sinks.connectors(pair)) & {*flink.SINKS_WITH_KNOWN_CHAIN}:
        return "a column of event time brings an operator in front of the sink's writer, which then gets another id"
    return ""


def _event_time_columns(output: Output, program: Program) -> int:
    origin = output.segment.origin
    read = origin.table if isinstance(origin, Source) else ""
    times = {table.watermark.column for table in program.tables if table.name == read and table.watermark is not None}
    return sum(
        window_field(column) is WindowField.TIME or (isinstance(column, SourceColumn) and column.column in times)
        for column in output.columns
    )


def _unknown(reason: str) -> Mapping[str, Verdict]:
    return {"flink": inferred(Outcome.UNKNOWN, reason)}


def _unmeasured(pair: PipelinePair) -> str:
    """Why no measurement speaks of this projection; "" where one does."""
    if not _measured_top(*sinks.tops(pair), pair) and _seen(pair) is None:
        kinds = " and ".join(dict.fromkeys(getattr(top, "kind", "a source") for top in sinks.tops(pair)))
        return f"another projection of {kinds} was not measured"
    if _prunes_otherwise(pair):
        return "other partitions may be read: one that comes is read from its beginning, rows of before included"
    own = own_functions(part for side in (pair.old, pair.new) for part in (*side.columns, *side.segment.filters))
    return f"a projection with {', '.join(own)} was not measured" if own else ""


def own_functions(parts: Iterable[Expression]) -> list[str]:
    """Functions that are not Flink's own: a Python or asynchronous one is an operator of its own."""
    calls = {part.function for whole in parts for part in walk(whole) if isinstance(part, FunctionCall)}
    return sorted(name for name in calls if functions.lookup(name) is None and name not in ACCESSES)


def _prunes_otherwise(pair: PipelinePair) -> bool:
    """Whether a condition on columns by which a source is partitioned changed: such a source reads by it.

    What it stores is what it has read, so that a partition that comes is new to it.
    """
    chosen = (
        {condition for condition in output.segment.filters if _partitions(output, program) & _columns(condition)}
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program))
    )
    old, new = chosen
    return old != new


def _partitions(output: Output, program: Program) -> set[str]:
    origin = output.segment.origin
    found = sinks.table(program, origin.table) if isinstance(origin, Source) else None
    return set() if found is None else set(found.partitioned_by)


def _columns(condition: Expression) -> set[str]:
    return {leaf.column for leaf in leaves(condition) if isinstance(leaf, SourceColumn)}


def _measured_top(old: object, new: object, pair: PipelinePair) -> bool:
    """A windowed aggregation, or a source that is only projected and filtered.

    A condition on a source with a primary key may be planned into the operator that keeps its rows (measured:
    ``cd-normalize-where-change``).
    """
    if isinstance(old, Source) and isinstance(new, Source):
        read = (sinks.table(pair.old_program, old.table), sinks.table(pair.new_program, new.table))
        kept = any(table is None or table.primary_key for table in read)
        return not kept and not any(side.segment.functions or side.segment.windows for side in (pair.old, pair.new))
    return all(isinstance(top, AggregateOperator) and top.windowed for top in (old, new))


def computed_columns(output: Output) -> list[Expression]:
    """What an output shows besides window fields and the number of a rank, which have rules of their own."""
    return [column for column in output.columns if window_field(column) is None and not is_number(column)]


def _seen(pair: PipelinePair) -> Verdict | None:
    old, new = sinks.tops(pair)
    if isinstance(old, RankOperator) and isinstance(new, RankOperator):
        programs = pair.old_program, pair.new_program
        added_alone = all(map(flink_ranking.appends_only, (old.segment, new.segment), programs))
        if (stores_no_row(old) or stores_no_row(new)) and not added_alone:
            return None  # where rows are taken back, whole rows are kept by another operator
        shown = [[column for column in side.columns if not is_number(column)] for side in (pair.old, pair.new)]
        return flink_ranking.projected(old, new, only_number=shown[0] == shown[1])
    return seen_above(pair)


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "columns" not in pair.parts or pair.others:
        return
    if computed_columns(pair.old) == computed_columns(pair.new) and pair.operators:
        return
    above = " above the state" if operators(pair.old) or operators(pair.new) else ""
    yield RuleMatch(
        f"the output computes its columns differently{above}",
        pair.claim("columns"),
        format_expressions(pair.old.columns),
        format_expressions(pair.new.columns),
        verdicts=VerdictsOnDemand(
            flink=lambda: projection_on_flink(pair).get("flink"), vvr=lambda: on_vvr(pair).get("vvr")
        ),
    )


RULE = Rule(
    code="output-changed",
    title="Output columns changed above the state",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Alias page; WHERE page: operators without state"),
        "flink": measured(Outcome.COMPATIBLE, "w-add-window-start", "w-having-add", note="a Calc above the state"),
    },
    rationale="Expressions over keys and metrics are computed when a result leaves; nothing is stored for them.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount) * 100"),
    find=find,
    case_dependent=("vvr", "flink"),
    beside_operators=True,
)
