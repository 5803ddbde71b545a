"""Rules about window start and end in keys, metrics and output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.ranking import is_number
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    TableApiCover,
    documented,
    expected,
    inferred,
    measured,
    right,
    selecting,
    unknown,
    windowed,
)
from airflow_flinkcompat.compat.rules.functions import kept_on_flink
from airflow_flinkcompat.compat.rules.outputs import computed_columns, projection_on_flink
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator

CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "w-agg-on-window-start")}


@Rule(
    code="window-field-aggregated",
    title="An aggregate over a window field",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 25"),
    flink=unknown("only unchanged aggregates over window fields were measured"),
    rationale="The window field becomes a regular input column of the aggregation.",
    example=replace(
        selecting("customer, SUM(amount)", "customer, SUM(amount), MAX(window_start)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    operators=(AggregateOperator,),
)
def window_field_aggregated(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_aggregates for side in sides)
    if old or new:
        yield RuleMatch(
            "a window field is aggregated",
            (),
            listed(old) or "none",
            listed(new) or "none",
            verdicts=kept_on_flink(pair.pipeline) if old == new else CHANGED,
        )


@Rule(
    code="window-field-computation-changed",
    title="An expression over window fields was added or deleted",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 18"),
    flink=expected("EXPLAIN: the window is materialised"),
    rationale="A computed window field is a regular column, so the aggregation no longer runs per window.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)", "customer, window_start + INTERVAL '1' SECOND, window_end"),
    ),
    operators=(AggregateOperator,),
)
def window_field_computation_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_computations for side in sides)
    if bool(old) != bool(new):
        yield RuleMatch(
            "an expression over a window field between the window and the GROUP BY was added or removed",
            pair.claim("keys", "window keys", "key order", "windowed", "kind"),
            format_expressions(old),
            format_expressions(new),
        )


COMPUTED_KEYS = "customer, window_start + INTERVAL '1' SECOND, window_end"


@Rule(
    code="window-field-computation-kept",
    title="An expression over window fields before and after",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 21"),
    flink=unknown("only unchanged expressions were measured"),
    rationale="VVR's check does not inspect expressions over window fields, changed or not.",
    example=Example(
        windowed("customer, SUM(amount)", COMPUTED_KEYS), windowed("customer, SUM(amount), window_end", COMPUTED_KEYS)
    ),
    operators=(AggregateOperator,),
)
def window_field_computation_kept(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_computations for side in sides)
    if old and new:
        yield RuleMatch(
            "an expression over a window field is in both versions",
            # Which computation it is: the document leaves that open too.
            pair.claim("keys", "key order") if set(old) ^ set(new) else (),
            format_expressions(old),
            format_expressions(new),
            verdicts=kept_on_flink(pair.pipeline),
        )


WINDOW_START_QUERY = "SELECT customer, SUM(amount), TUMBLE_START(order_time, INTERVAL '{0}' MINUTE)\nFROM orders\n"
GROUP_WINDOW = "GROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"


@Rule(
    code="window-field-mismatch",
    title="A window field of a different window",
    vvr=inferred(Outcome.COMPATIBLE, "a note: the documentation's own examples contain such fields"),
    flink=expected("the validator requires a matching call in the GROUP BY"),
    rationale=(
        "TUMBLE_START and similar functions refer to the window of the GROUP BY, so they cannot return a field of "
        "a different window."
    ),
    example=Example(WINDOW_START_QUERY.format(1) + GROUP_WINDOW, WINDOW_START_QUERY.format(2) + GROUP_WINDOW),
    operators=(AggregateOperator,),
)
def window_field_mismatch(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window.mismatched if side.window else () for side in sides)
    if old or new:
        yield RuleMatch(
            "a window field refers to a different window than the GROUP BY",
            pair.claim("window field calls"),
            ", ".join(map(str, old)) or "none",
            ", ".join(map(str, new)) or "none",
        )


def only_window_fields(pair: PipelinePair) -> bool:
    """True if only bare window fields were added to or removed from the output, rank numbers aside."""
    old, new = ([c for c in side.columns if not is_number(c)] for side in (pair.old, pair.new))
    return old != new and computed_columns(pair.old) == computed_columns(pair.new)


@Rule(
    code="window-field-output",
    title="A window field was added to or deleted from the output",
    vvr=documented(Outcome.COMPATIBLE, "Window TVF row 7; Group Window Aggregate row 7"),
    flink=right("w-add-window-start", "w-del-window-start", "g-add-wend"),
    rationale="Every window has its window fields; selecting them needs no state.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), window_start"),
    parts=("columns",),
    case_dependent=("flink",),
    table_api_cover=TableApiCover.ONE_WINDOW,
)
def window_field_output(pair: PipelinePair) -> Iterable[RuleMatch]:
    if pair.operators and not pair.others and only_window_fields(pair):
        yield RuleMatch(
            "only window fields were added to or removed from the output",
            pair.claim("columns"),
            format_expressions(pair.old.columns),
            format_expressions(pair.new.columns),
            verdicts=projection_on_flink(pair),
        )
