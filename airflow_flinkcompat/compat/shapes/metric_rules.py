"""The shape of the rules over metrics: what survives decides which of them speaks, each says only what is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from airflow_flinkcompat.compat.changes.aggregates import Fates, listed
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented
from airflow_flinkcompat.compat.shapes.metric_pages import PAGES, without_window
from airflow_flinkcompat.plan.expressions import AggregateCall


def metrics_rule(
    code: str,
    title: str,
    *,
    vvr: Outcome,
    rows: tuple[int, int],
    flink: Verdict,
    says: Callable[[Fates], str],
    why: str,
    example: Example,
) -> Rule:
    """A rule that speaks where :attr:`Fates.codes` names it.

    ``rows`` are its rows on the Window TVF page and on the Group Window Aggregate page; ``says`` gives the message.
    """

    def find(pair: OperatorPair) -> Iterable[Hit]:
        fates = pair.fates
        if fates is not None and code in fates.codes:
            old, new = (listed(side) or "no metric" for side in (fates.old, fates.new))
            verdicts = {} if pair.windowed else without_window(code, vvr, pair)
            yield Hit(says(fates), pair.claim("aggregates"), old, new, fates=fates.table(), verdicts=verdicts)

    source = "Window TVF row {}; Group Window Aggregate row {}".format(*rows)
    verdicts = {"vvr": documented(vvr, source), "flink": flink}
    # Pages on metrics without a window lack some rows.
    elsewhere = not all(code in page.rows for page in PAGES.values())
    safe = tuple(engine for engine, verdict in verdicts.items() if verdict.outcome is Outcome.COMPATIBLE)
    return Rule(code, title, Scope.OPERATOR, verdicts, why, example, find, by_case=safe if elsewhere else ())


def became(changes: tuple[tuple[AggregateCall, AggregateCall], ...]) -> str:
    """``MAX(c) became MIN(c)``."""
    old, new = (listed(side) for side in zip(*changes, strict=True))
    return f"{old} became {new}"
