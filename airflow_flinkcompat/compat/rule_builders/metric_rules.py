"""The shape of the rules over metrics: what survives decides which of them speaks, each says only what is its own.

Metrics that no window holds have pages of their own: plain group aggregations and OVER aggregations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.aggregates import Fates, listed
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import (
    SAFE,
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import AggregateKind, OverOperator

PAGES = {AggregateKind.GROUP: "Group Aggregate page", OverOperator.KIND: "Over Aggregate page"}
"""The vendor's pages on metrics without a window, by the kind of operator."""


@dataclass(frozen=True)
class Unwindowed:
    """What is known of a rule over metrics on one kind of operator that has no window.

    Attributes:
        restores: Ids of the restores that were run of it on Flink.
        on_page: Whether the vendor's page of that kind has a row for it.
    """

    restores: tuple[str, ...] = ()
    on_page: bool = False


UNSEEN = Unwindowed()
"""Neither a page nor a restore speaks of it."""


def without_window(known: Unwindowed, vvr: Outcome, flink: Verdict, pair: OperatorPair) -> Mapping[str, Verdict]:
    """The verdicts of a rule over metrics where the operator has no window.

    Args:
        known: What is known of the rule on this kind of operator.
        vvr: What the window pages say.
        flink: What windows were measured to do.
        pair: The operator.

    Returns:
        A verdict for each engine.
    """
    page = PAGES[pair.new.kind]
    on_vvr = documented(vvr, page) if known.on_page else inferred(vvr, "as the window pages say")
    sides = [side for side in (pair.old, pair.new) if isinstance(side, OverOperator)]
    if len({tuple(call for call, _ in side.planned_calls) for side in sides}) == 1:
        return {"vvr": on_vvr, "flink": measured(Outcome.COMPATIBLE, "oa-mod-sum-avg")}
    if known.restores:
        return {"vvr": on_vvr, "flink": measured(flink.outcome, *known.restores)}
    ids = flink.evidence if flink.outcome in SAFE else ()
    return {"vvr": on_vvr, "flink": inferred(flink.outcome, "as windowed aggregations were", ids=ids)}


def metrics_rule(
    code: str,
    title: str,
    *,
    vvr: Outcome,
    rows: tuple[int, int],
    flink: Verdict,
    says: Callable[[Fates], str],
    rationale: str,
    example: Example,
    group: Unwindowed = UNSEEN,
    over: Unwindowed = UNSEEN,
    yields_to: str = "",
) -> Rule:
    """A rule that speaks where :attr:`Fates.codes` names it.

    Args:
        code: As for every rule.
        title: As for every rule.
        vvr: What its rows say on ``vvr``.
        rows: Its rows on the Window TVF page and on the Group Window Aggregate page.
        flink: The verdict on ``flink``, of windows.
        says: The message.
        rationale: As for every rule.
        example: As for every rule.
        group: What is known of it on a group aggregation.
        over: What is known of it on an OVER aggregation.
        yields_to: As for every rule.

    Returns:
        The rule.
    """
    meaning_without_window = {AggregateKind.GROUP: group, OverOperator.KIND: over}

    def find(pair: OperatorPair) -> Iterable[RuleMatch]:
        fates = pair.fates
        if fates is not None and code in fates.codes:
            old, new = (listed(side) or "no metric" for side in (fates.old, fates.new))
            verdicts = {} if pair.windowed else without_window(meaning_without_window[pair.new.kind], vvr, flink, pair)
            yield RuleMatch(says(fates), pair.claim("aggregates"), old, new, fates=fates.table, verdicts=verdicts)

    source = "Window TVF row {}; Group Window Aggregate row {}".format(*rows)
    verdicts = {"vvr": documented(vvr, source), "flink": flink}
    # Pages on metrics without a window lack some rows.
    elsewhere = not (group.on_page and over.on_page)
    safe = tuple(engine for engine, verdict in verdicts.items() if verdict.outcome is Outcome.COMPATIBLE)
    return Rule(
        code,
        title,
        RuleScope.OPERATOR,
        verdicts,
        rationale,
        example,
        find,
        case_dependent=safe if elsewhere else (),
        yields_to=yields_to,
    )


def became(changes: tuple[tuple[AggregateCall, AggregateCall], ...]) -> str:
    """``MAX(c) became MIN(c)``."""
    old, new = (listed(side) for side in zip(*changes, strict=True))
    return f"{old} became {new}"


def computed(operator: OverOperator) -> bool:
    """A SUM or AVG is computed behind the operator, and only then its input is cut to the columns that are read.

    Without any computed column the planner keeps all columns under an unbounded RANGE, and cuts them under ROWS
    (EXPLAIN; ``oa-del-first``).
    """
    return any(call.function == "$SUM0" for call, _ in operator.planned_calls)
