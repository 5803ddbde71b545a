"""Rules over one kind of operator: the meaning of a change of each part, as rows of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_conditions, format_value
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch
from airflow_flinkcompat.compat.verdict import Verdict, compatible_engines, documented, refused, unknown, wrong
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Operator, OtherKind, OtherOperator

Ids = tuple[str, ...]
"""Ids of restores."""
Judge = Callable[[OperatorPair, Difference], Verdict]
STATELESS = frozenset({JoinForm.LOOKUP, OtherKind.UNION_ALL})
"""Kinds of operators that keep nothing."""
IGNORE = "table.optimizer.state-compatibility.ignore-filter"
IGNORED = {"vvr": documented(Outcome.COMPATIBLE, f"WHERE page: {IGNORE} = true")}
"""Verdict on a changed condition with that setting."""
NOTICED_ABOVE = {
    "vvr": unknown("a downstream operator keeps results that this one emitted before the change"),
    "flink": wrong(
        "lj-agg-key-lookup",
        "ga-nested-inner-mod",
        "ua-branch-filter-change",
        note="downstream operators keep the old results",
    ),
}
"""Verdict on a change that a stateful operator above notices."""


@dataclass(frozen=True)
class Row:
    """Meaning of a change of one part: a sentence, and the verdict of each engine or its function.

    ``quiet`` is true if the operator emits the same rows as before: its readers do not notice.
    """

    says: str
    vvr: Verdict | Judge
    flink: Verdict | Judge
    quiet: Callable[[Difference], bool] = lambda difference: False
    show: Callable[[Any], str] = field(default=format_value)


def parts_rule(
    code: str,
    title: str,
    kinds: Iterable[str],
    rows: Mapping[str, Row],
    *,
    vvr: Verdict,
    flink: Verdict,
    rationale: str,
    example: Example,
    of: type,
) -> Rule:
    """A rule over operators of these kinds, equal on both sides; ``rows`` are by part, whatever the input.

    ``of`` is the class of operators with these kinds. ``vvr`` and ``flink`` are the verdicts of the rule as a whole,
    which its example shows.
    """
    spoken = frozenset(kinds)

    @Rule(
        code=code,
        title=title,
        vvr=vvr,
        flink=flink,
        rationale=rationale,
        example=example,
        operators=(of,),
        parts=tuple(rows),
        # Operators above may have accumulated its output.
        case_dependent=compatible_engines(vvr=vvr, flink=flink),
    )
    def found(pair: OperatorPair) -> Iterable[RuleMatch]:
        if pair.old.kind != pair.new.kind or pair.new.kind not in spoken:
            return
        for difference in pair.differences:
            row = rows.get(difference.part.partition(" of input ")[0])
            if row is None:
                continue
            verdicts = {
                engine: judge if isinstance(judge, Verdict) else judge(pair, difference)
                for engine, judge in (("vvr", row.vvr), ("flink", row.flink))
            }
            if not row.quiet(difference):
                verdicts = {engine: noticed_above(pair, engine, verdict) for engine, verdict in verdicts.items()}
            yield RuleMatch(
                f"{pair.new.kind}: {row.says}",
                (difference.key,),
                *map(row.show, (difference.before, difference.after)),
                verdicts=verdicts,
            )

    return found


def noticed_above(pair: OperatorPair, engine: str, verdict: Verdict) -> Verdict:
    """Verdicts on a change that is right for the operator itself but not for a stateful one above it."""
    if verdict.outcome is not Outcome.COMPATIBLE or not gathered_above(pair):
        return verdict
    return NOTICED_ABOVE[engine]


def gathered_above(pair: OperatorPair) -> bool:
    """True if an operator with state is between this one and the sink."""
    above = (other for other in pair.pipeline.operators if pair.path.startswith(f"{other.path} > "))
    return any(keeps_state(other.new) for other in above)


def keeps_state(operator: Operator) -> bool:
    """True if an operator stores state; an asynchronous lookup's queue is judged separately."""
    return operator.kind not in STATELESS and not by_processing_time(operator)


def by_processing_time(operator: object) -> bool:
    """True for a sort by processing time alone, which stores nothing (``so-proc-field-add``)."""
    if not isinstance(operator, OtherOperator) or operator.kind != OtherKind.TEMPORAL_SORT:
        return False
    detail = dict(operator.attributes)
    return detail["clock"] == "proctime" and not detail["sort keys"]


def filters_row(page: str, flink: Verdict) -> Row:
    """Conditions on the operator's input: the vendor's switch makes a change of them compatible."""

    def on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
        ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
        return IGNORED["vvr"] if ignored else documented(Outcome.INCOMPATIBLE, page)

    return Row(
        "a condition on its input rows changed", on_vvr, flink, show=lambda value: format_conditions(value or ())
    )


def same_row_types(pair: OperatorPair, difference: Difference) -> bool:
    """True if an input's columns have equal types on both sides; the difference's part names the input."""
    place = int(difference.part.rpartition(" ")[2]) - 1
    types = [side.row_types for side in (pair.old, pair.new) if isinstance(side, JoinOperator | OtherOperator)]
    old, new = (tuple(map(str, each[place])) if place < len(each) else () for each in types)
    return old == new


def layout_judge(other_types: Ids, same_types: Ids) -> Judge:
    """Verdict on stored columns: other types are refused, equal types of other columns are misread."""

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        return wrong(*same_types) if same_row_types(pair, difference) else refused(*other_types)

    return judge
