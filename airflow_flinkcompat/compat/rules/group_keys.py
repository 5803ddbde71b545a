"""Rules about grouping keys, grouping sets and window fields in keys, metrics and output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_flinkcompat.compat.changes.differences import listed
from airflow_flinkcompat.compat.changes.format import format_expressions, format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink.ranking import is_number
from airflow_flinkcompat.compat.engines.flink.table_api import GROUPED_ALIKE, grouped_alike
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, TableApiCover, grouping, selecting, windowed
from airflow_flinkcompat.compat.rule_builders.projections import projected_columns, projection_on_flink
from airflow_flinkcompat.compat.rules.functions import unchanged_on_flink
from airflow_flinkcompat.compat.verdict import (
    Verdict,
    documented,
    expected,
    inferred,
    measured,
    refused_at_submit,
    right,
    unknown,
    wrong,
)
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators import AggregateOperator
from airflow_flinkcompat.plan.origins import describe, uses_window_field

BOUNDS = frozenset({WindowField.START, WindowField.END})


@Rule(
    code="window-bounds-in-keys-changed",
    title="Both window bounds were added to or removed from the GROUP BY",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 19"),
    flink=measured(Outcome.INCOMPATIBLE, "w-groupby-only-ws-to-both"),
    rationale=(
        "With both bounds, Flink plans a window aggregation. With one bound, Flink plans an unbounded aggregation "
        "over windowed rows."
    ),
    example=grouping("customer, SUM(amount)", "customer, window_start", "customer, window_start, window_end"),
    operators=(AggregateOperator,),
    parts=("window keys",),
)
def window_bounds_in_keys_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    old, new = (side.window_keys for side in sides)
    if (old >= BOUNDS) != (new >= BOUNDS):
        yield RuleMatch(
            "the GROUP BY has both window_start and window_end in only one version",
            pair.claim("window keys", "key order", "windowed", "kind"),
            *map(format_group_by, sides),
        )


def _plain(side: AggregateOperator) -> set[object]:
    return {key for key in side.keys if not uses_window_field(key)}


@Rule(
    code="group-key-changed",
    title="A group key was added, deleted or computed differently",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 11; Group Window Aggregate row 13"),
    flink=measured(Outcome.INCOMPATIBLE, "w-mod-key-sametype", "w-mod-key-othercol", "g-add-key", "ga-key-othercol"),
    rationale="Flink finds state by its key. Values stored under a different key belong to a different group.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_start, window_end", "customer, region, window_start, window_end"
    ),
    operators=(AggregateOperator,),
    parts=("keys", "window keys"),
)
def group_key_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None:
        return
    old, new = (_plain(side) for side in sides)
    bounds = [side.window_keys & BOUNDS for side in sides]
    swapped = len(bounds[0]) == len(bounds[1]) == 1 and bounds[0] != bounds[1]
    if old != new or (swapped and "notation" not in pair.parts):
        gone = ", ".join(sorted(describe(key) for key in old - new))
        come = ", ".join(sorted(describe(key) for key in new - old))
        what = (
            " and ".join(filter(None, (gone and f"{gone} left", come and f"{come} joined")))
            or "a window bound changed in"
        )
        yield RuleMatch(
            f"{what} the group keys",
            pair.claim("keys", "key order", *(("window keys",) if swapped else ())),
            *map(format_group_by, sides),
            verdicts={} if pair.windowed else {"vvr": documented(Outcome.INCOMPATIBLE, "Group Aggregate page")},
        )


def _verdicts(pair: OperatorPair) -> dict[str, Verdict]:
    if grouped_alike(pair):
        return {"vvr": NOT_SAID, "flink": right(*GROUPED_ALIKE)}
    return {} if pair.windowed else {"vvr": inferred(Outcome.INCOMPATIBLE, "per the window pages")}


NOT_SAID = unknown("no page documents the order of group keys in the Table API")


@Rule(
    code="group-key-reordered",
    title="Group keys were reordered",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 12; Group Window Aggregate row 17"),
    flink=measured(
        Outcome.INCOMPATIBLE,
        "w-keys-reorder-difftype",
        "g-keys-swap",
        "g-keys-swap-sametype",
        "ga-keys-reorder-sametype",
    ),
    rationale=(
        "The stored key is a row that contains the group keys in order. SQL uses the order in GROUP BY. The Table API "
        "uses the order of the input columns, regardless of the order in group_by."
    ),
    example=grouping(
        "customer, region, SUM(amount)",
        "customer, region, window_start, window_end",
        "region, customer, window_start, window_end",
    ),
    operators=(AggregateOperator,),
    parts=("keys",),
)
def group_key_reordered(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and sides[0].keys != sides[1].keys and set(sides[0].keys) == set(sides[1].keys):
        yield RuleMatch(
            "the same keys are in a different order",
            pair.claim("keys", "key order"),
            *map(format_group_by, sides),
            verdicts=_verdicts(pair),
        )


@Rule(
    code="grouping-sets-changed",
    title="GROUPING SETS, CUBE or ROLLUP added or deleted",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 20"),
    flink=refused_at_submit("ga-grouping-sets", note="an Expand operator is added"),
    rationale=(
        "Each grouping set forms separate groups. An additional key in the state distinguishes the grouping sets."
    ),
    example=grouping(
        "customer, SUM(amount)",
        "customer, window_start, window_end",
        "window_start, window_end, GROUPING SETS ((customer), ())",
    ),
    operators=(AggregateOperator,),
    parts=("grouping sets",),
)
def grouping_sets_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None:
        return
    old, new = (side.grouping_sets is not None for side in sides)
    if old != new:
        word = "left" if old else "came in"
        # Grouping sets combine keys; the other rules about keys cover only a plain GROUP BY.
        claims = pair.claim("grouping sets", "windowed", "kind")
        before, after = (format_group_by(side) for side in sides)
        verdicts = {} if pair.windowed else {"vvr": unknown("no page covers grouping sets without a window")}
        yield RuleMatch(f"GROUPING SETS, CUBE or ROLLUP {word}", claims, before, after, verdicts=verdicts)


OTHERS = {"flink": wrong("wc-grouping-sets-drop-one")}
SETS = "window_start, window_end, ROLLUP (customer)"


@Rule(
    code="grouping-sets-kept",
    title="GROUPING SETS, CUBE or ROLLUP before and after",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 26"),
    flink=unknown("grouping sets were not measured together with another change"),
    rationale="VVR's check does not inspect grouping sets, even unchanged grouping sets.",
    example=Example(windowed("customer, SUM(amount)", SETS), windowed("customer, SUM(amount), window_start", SETS)),
    operators=(AggregateOperator,),
)
def grouping_sets_kept(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None or any(side.grouping_sets is None for side in sides):
        return
    yield RuleMatch(
        "GROUPING SETS, CUBE or ROLLUP are in both versions",
        pair.claim("grouping sets"),
        *map(format_group_by, sides),
        verdicts=OTHERS if "grouping sets" in pair.parts else unchanged_on_flink(pair.pipeline),
    )


KEYS_OF_STATE = {"flink": inferred(Outcome.INCOMPATIBLE, "EXPLAIN: the fields of a materialized window are group keys")}


@Rule(
    code="window-key-reordered",
    title="Window keys changed places",
    vvr=documented(Outcome.COMPATIBLE, "Window TVF row 9; Group Window Aggregate row 8"),
    flink=right("w-windowkeys-swap"),
    rationale="Flink stores window keys separately from the group key. Only the order of the other keys matters.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_end, window_start", "window_start, customer, window_end"
    ),
    operators=(AggregateOperator,),
    parts=("key order",),
    case_dependent=("flink",),
    yields_to="ranked-window-key-reordered",
)
def window_key_reordered(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "key order" not in pair.parts or "keys" in pair.parts or "window keys" in pair.parts:
        return
    if "notation" not in pair.parts:
        claims = pair.claim("key order")
        verdicts = {} if all(side.windowed for side in sides) else KEYS_OF_STATE
        yield RuleMatch("only window keys moved", claims, *map(format_group_by, sides), verdicts=verdicts)


@Rule(
    code="window-time-key",
    title="window_time was added to or removed from the keys",
    vvr=unknown("no row names window_time as a key"),
    flink=right("w-add-window-time", note="the keys of the state stay the same"),
    rationale=(
        "window_time is derived from window_end, so it does not split groups. No page documents whether VVR's check "
        "considers this."
    ),
    example=grouping(
        "customer, SUM(amount)", "customer, window_start, window_end", "customer, window_start, window_end, window_time"
    ),
    operators=(AggregateOperator,),
    parts=("window keys",),
)
def window_time_key(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    if sides[0].window_keys ^ sides[1].window_keys == {WindowField.TIME}:
        yield RuleMatch(
            "window_time was added to or removed from the keys",
            pair.claim("window keys", "key order"),
            *map(format_group_by, sides),
        )


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
            verdicts=unchanged_on_flink(pair.pipeline) if old == new else CHANGED,
        )


@Rule(
    code="window-field-computation-changed",
    title="An expression over window fields was added or deleted",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 18"),
    flink=expected("EXPLAIN: the window is materialized"),
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
            *map(format_expressions, (old, new)),
        )


COMPUTED_KEYS = "customer, window_start + INTERVAL '1' SECOND, window_end"


@Rule(
    code="window-field-computation-kept",
    title="An expression over window fields before and after",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 21"),
    flink=unknown("only unchanged expressions were measured"),
    rationale="VVR's check does not inspect expressions over window fields, even unchanged expressions.",
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
            # The document does not distinguish between different computations.
            pair.claim("keys", "key order") if set(old) ^ set(new) else (),
            *map(format_expressions, (old, new)),
            verdicts=unchanged_on_flink(pair.pipeline),
        )


WINDOW_START_QUERY = "SELECT customer, SUM(amount), TUMBLE_START(order_time, INTERVAL '{0}' MINUTE)\nFROM orders\n"
GROUP_WINDOW = "GROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"


@Rule(
    code="window-field-mismatch",
    title="A window field of a different window",
    vvr=inferred(Outcome.COMPATIBLE, "only a note: examples in the documentation contain such fields"),
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
    """True if only bare window fields were added to or removed from the output, apart from rank numbers."""
    old, new = ([c for c in side.columns if not is_number(c)] for side in (pair.old, pair.new))
    return old != new and projected_columns(pair.old) == projected_columns(pair.new)


@Rule(
    code="window-field-output",
    title="A window field was added to or deleted from the output",
    vvr=documented(Outcome.COMPATIBLE, "Window TVF row 7; Group Window Aggregate row 7"),
    flink=right("w-add-window-start", "w-del-window-start", "g-add-wend"),
    rationale="Every window has window fields, and selecting them needs no state.",
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
            *map(format_expressions, (pair.old.columns, pair.new.columns)),
            verdicts={"flink": projection_on_flink(pair)},
        )
