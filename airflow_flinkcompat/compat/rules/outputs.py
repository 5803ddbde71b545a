"""Rules about output columns, nesting, UNION ALL and operators that come or go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import NESTING, OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.engines.flink.ranking import is_number, stores_no_row
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    Verdict,
    VerdictsOnDemand,
    documented,
    inferred,
    measured,
    refused_at_submit,
    right,
    selecting,
    unknown,
    wrong,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import STATELESS, gathered_above, keeps_state
from airflow_flinkcompat.compat.rule_builders.projections import coming_or_going, on_vvr, seen_above
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import ACCESSES, Expression, called
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    RankOperator,
    Source,
    operators,
)
from airflow_flinkcompat.plan.origins import SourceColumn, leaves, window_field
from airflow_flinkcompat.plan.program import Program

WITHOUT_STATE = right(
    "stateless-column-added",
    "stateless-column-computed",
    "stateless-filter-added",
    "stateless-filter-changed",
    "stateless-filter-removed",
    note="nothing is stored",
)
IN_FILES = right(
    "file-sinks-column-computed",
    "file-sinks-column-computed-removed",
    "file-sinks-columns-swapped",
    "file-sinks-metric-computed",
    "file-sinks-window-start",
    note="a Calc between the aggregation and the files in both versions",
)


def projection_on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    """Verdict on a changed projection in front of the sink on open-source Flink.

    It has no effect if the sink has no state. If it has, the operators around it must stay the same: a Calc certainly
    precedes the files on both sides. Other sinks, user functions and projections of some operators were not measured. A
    query without state is judged by the states of its job.
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
    if nameless or (old == new and old in sinks.STATELESS_SINKS):
        return {"flink": WITHOUT_STATE} if all(isinstance(top, Source) for top in sinks.tops(pair)) else {}
    if old == new and old in sinks.SINKS_WITH_KNOWN_CHAIN and all(map(sinks.surely_projected, (pair.old, pair.new))):
        return {"flink": IN_FILES}
    declared = sinks.tables(pair)
    if any(table is not None and table.primary_key for table in declared):
        return _unknown("if a sink has a primary key, Flink may store the rows it receives, and these changed")
    return _unknown(f"sink connector {new or 'of an undeclared table'} was not measured with a changed projection")


def _event_times(pair: PipelinePair) -> str:
    """Reason why event-time columns at the sink make another job; "" if they do not."""
    old = _event_time_columns(pair.old, pair.old_program)
    new = _event_time_columns(pair.new, pair.new_program)
    if new > 1:
        return "Flink may refuse a query that emits several event-time columns to one sink"
    if old != new and set(sinks.connectors(pair)) & {*sinks.SINKS_WITH_KNOWN_CHAIN}:
        return "an event-time column adds an operator before the sink's writer, which changes the writer's id"
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
    return {"flink": unknown(reason)}


def _unmeasured(pair: PipelinePair) -> str:
    """Reason why no measurement covers this projection; "" if one does."""
    if not _measured_top(*sinks.tops(pair), pair) and _seen(pair) is None:
        kinds = " and ".join(dict.fromkeys(getattr(top, "kind", "a source") for top in sinks.tops(pair)))
        return f"a changed projection of {kinds} was not measured"
    if _prunes_otherwise(pair):
        return (
            "the source may read different partitions; it reads an added partition from the beginning, including "
            "old rows"
        )
    own = own_functions(part for side in (pair.old, pair.new) for part in (*side.columns, *side.segment.filters))
    return f"a projection with {', '.join(own)} was not measured" if own else ""


def own_functions(parts: Iterable[Expression]) -> list[str]:
    """Functions that are not Flink's own: a Python or asynchronous one is an operator of its own."""
    names = {call.function for call in called(*parts)}
    return sorted(name for name in names if functions.lookup(name) is None and name not in ACCESSES)


def _prunes_otherwise(pair: PipelinePair) -> bool:
    """True if a condition on a source's partition columns changed: such a source reads by it.

    It stores all that it has read, so an added partition is new to it.
    """
    chosen = (
        {condition for condition in output.segment.filters if _partitions(output, program) & _columns(condition)}
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program))
    )
    old, new = chosen
    return old != new


def _partitions(output: Output, program: Program) -> set[str]:
    origin = output.segment.origin
    found = program.table(origin.table) if isinstance(origin, Source) else None
    return set() if found is None else set(found.partitioned_by)


def _columns(condition: Expression) -> set[str]:
    return {leaf.column for leaf in leaves(condition) if isinstance(leaf, SourceColumn)}


def _measured_top(old: object, new: object, pair: PipelinePair) -> bool:
    """A windowed aggregation, or a source that is only projected and filtered.

    A condition on a source with a primary key may be planned into the operator that keeps its rows (measured:
    ``cd-normalize-where-change``).
    """
    if isinstance(old, Source) and isinstance(new, Source):
        read = (pair.old_program.table(old.table), pair.new_program.table(new.table))
        kept = any(table is None or table.primary_key for table in read)
        return not kept and not any(side.segment.functions or side.segment.windows for side in (pair.old, pair.new))
    return all(isinstance(top, AggregateOperator) and top.windowed for top in (old, new))


def computed_columns(output: Output) -> list[Expression]:
    """Outputs other than window fields and the number of a rank, which have rules of their own."""
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


@Rule(
    code="output-changed",
    title="Output columns changed above the state",
    vvr=documented(Outcome.COMPATIBLE, "Alias page; WHERE page: operators without state"),
    flink=right("w-add-window-start", "w-having-add", note="a Calc above the state"),
    rationale="Expressions over keys and metrics are computed at emission; nothing is stored for them.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount) * 100"),
    parts=("columns",),
    case_dependent=("vvr", "flink"),
    beside_operators=True,
)
def output_changed(pair: PipelinePair) -> Iterable[RuleMatch]:
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


INNER = "SELECT customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders"


@Rule(
    code="nested-otherwise",
    title="A query is nested differently",
    vvr=inferred(Outcome.COMPATIBLE, "both versions are equal after canonicalisation"),
    flink=unknown("Flink refused QUALIFY instead of a subquery, and a subquery below UNNEST"),
    rationale=(
        "Flink's planner merges a subquery, view or WITH query that only selects and filters into the outer query, "
        "as plans and restores confirm. It plans three forms as written, so state may find no operator: QUALIFY, a "
        "subquery below UNNEST, and a subquery that calls a non-deterministic or user-defined function."
    ),
    example=Example(
        f"SELECT customer, amount FROM ({INNER}) WHERE place <= 3;",
        "SELECT customer, amount FROM orders\n"
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) <= 3;",
    ),
    parts=(NESTING,),
)
def nested_otherwise(pair: PipelinePair) -> Iterable[RuleMatch]:
    if NESTING in pair.parts:
        yield RuleMatch(
            "the query is nested differently: its result is the same, but Flink may plan different operators",
            pair.claim(NESTING),
        )


UNION = OtherKind.UNION_ALL


def keeps_state_anywhere(pair: OperatorPair) -> bool:
    """True if anything between the sources and the sink stores state."""
    sides = (pair.pipeline.old, pair.pipeline.new)
    return gathered_above(pair) or any(o.kind not in STATELESS for side in sides for o in operators(side))


def added(pair: OperatorPair) -> Verdict:
    """Verdict on a further input after the others, which keeps their positions; it must share no source."""
    gone, come = (dict(side.attributes)["further inputs"] for side in (pair.old, pair.new))  # type: ignore[attr-defined]
    if gone or keeps_state_anywhere(pair):
        return refused_at_submit("ua-remove-last", "ua-stateless-remove", "ua-single-to-union")
    inputs = (*pair.new.segments, *(segment for segment, _ in come))
    tables = [segment.origin.table for segment in inputs if isinstance(segment.origin, Source)]
    alone = len(set(tables)) == len(inputs) and not any(segment.functions or segment.windows for segment in inputs)
    moved = sinks.stays(pair.pipeline) if pair.pipeline.new.sink else ""
    if moved or not alone:
        return unknown(moved or "measured with inputs that each read a separate table")
    return right("ua-stateless-add")


BRANCH = "SELECT customer, amount FROM orders"
OTHER = "SELECT region, amount FROM orders WHERE amount > 5"


@Rule(
    code="union-changed",
    title="A UNION ALL changed",
    vvr=documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
    flink=wrong("ua-reorder", "ua-remove-last"),
    rationale=(
        "A union keeps no state, but open-source Flink finds sources by their position. If inputs are reordered, "
        "their positions do not match and all data is read again."
    ),
    example=Example(f"{BRANCH}\nUNION ALL\n{OTHER};", f"{OTHER}\nUNION ALL\n{BRANCH};"),
    operators=(OtherOperator,),
    parts=("input order", "further inputs", "filters", "row"),
    case_dependent=("vvr",),
)
def union_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(isinstance(side, OtherOperator) and side.kind == UNION for side in (pair.old, pair.new)):
        return
    for difference in pair.differences:
        part = difference.part.partition(" of input ")[0]
        if part == "input order":
            yield RuleMatch(
                "the inputs of a UNION ALL are in a different order",
                (difference.key,),
                verdicts={
                    "vvr": documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
                    "flink": wrong("ua-reorder", "ua-reorder-filtered", "ua-stateless-reorder"),
                },
            )
        elif part == "further inputs":
            page = documented(Outcome.INCOMPATIBLE, "UNION ALL page: an input added or removed above state")
            free = inferred(Outcome.COMPATIBLE, "no downstream operator keeps state")
            yield RuleMatch(
                "inputs of a UNION ALL were added or removed",
                (difference.key,),
                f"{len(pair.old.segments) + len(difference.before)} inputs",
                f"{len(pair.new.segments) + len(difference.after)} inputs",
                verdicts={"vvr": page if gathered_above(pair) else free, "flink": added(pair)},
            )
        elif part in ("filters", "row"):
            below = wrong("ua-branch-filter-change", consequence=None) if keeps_state_anywhere(pair) else None
            vvr = documented(Outcome.INCOMPATIBLE, "WHERE page") if gathered_above(pair) else None
            yield RuleMatch(
                "the columns or filters of an input of a UNION ALL changed",
                (difference.key,),
                verdicts={
                    "vvr": vvr or inferred(Outcome.COMPATIBLE, "no downstream operator keeps state"),
                    "flink": below or unknown("a different input of a union was not measured"),
                },
            )


NOT_UNDERSTOOD = frozenset({OtherKind.QUERY, JoinForm.JOIN})
"""Operators for constructs that were not analysed: whether they have state is unknown."""
REFUSED = Consequence.REFUSED_AT_SUBMIT
GONE = refused_at_submit("li-removed", "lj-agg-removed")
INSERTED = refused_at_submit("rj-third-add", "tj-cast-right", "ua-single-to-union")
REPLACED = measured(Outcome.INCOMPATIBLE, "se-intersect-to-except")
LIMITED = wrong("li-added")
EMPTY = inferred(
    Outcome.INCOMPATIBLE,
    (
        "it starts empty, as an added LIMIT did (li-added): rows read earlier are missing from its results, unless "
        "Flink refuses the state of its sources"
    ),
)
NOTHING_KEPT = unknown("no operator keeps state; the effect on the sources was not measured")


def moved_on_flink(pair: PipelinePair) -> Verdict:
    """Verdict on moved operators: unmatched state is refused; one new to a stateless query starts empty."""
    if found := coming_or_going(pair):
        return found
    if any(map(keeps_state, (*pair.removed, *(operators.old for operators in pair.operators)))):
        if not pair.removed:
            return INSERTED
        return REPLACED if pair.added else GONE
    kinds = {operator.kind for operator in pair.added if keeps_state(operator)}
    if not kinds:
        return stateless.settled(pair, NOTHING_KEPT, *stateless.LOOKUP_CAME_OR_WENT)
    return LIMITED if kinds == {OtherKind.LIMIT} else EMPTY


def _kinds(operators: Iterable[Operator]) -> str:
    return ", ".join(operator.kind for operator in operators) or "none"


@Rule(
    code="operators-added-or-removed",
    title="A stateful operator was added or removed",
    vvr=unknown("no row covers an operator added or removed inside a query"),
    flink=GONE,
    rationale=(
        "Open-source Flink finds operators by their position in the topology. It refuses state whose operator was "
        "removed or moved. A stateful operator added to a stateless query restores and starts empty. VVR's pages "
        "cover only changes within an operator."
    ),
    example=Example("SELECT customer, amount FROM orders LIMIT 3;", "SELECT customer, amount FROM orders;"),
    parts=("operators",),
)
def operators_added_or_removed(pair: PipelinePair) -> Iterable[RuleMatch]:
    moved = (*pair.removed, *pair.added)
    # What could not be taken apart is told of as such (operator-not-covered).
    if "operators" not in pair.parts or any(operator.kind in NOT_UNDERSTOOD for operator in moved):
        return
    # What stands above reads the operator's columns in place of its input's.
    claims = pair.claim("operators", *(("columns", "filters") if coming_or_going(pair) else ()))
    what = "stateful operators" if any(map(keeps_state, moved)) else "operators"
    yield RuleMatch(
        f"{what} was added to or removed from the pipeline",
        claims,
        _kinds(pair.removed),
        _kinds(pair.added),
        verdicts={"flink": moved_on_flink(pair)},
    )
