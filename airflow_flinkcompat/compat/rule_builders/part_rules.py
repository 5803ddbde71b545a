"""Builder of rules about one kind of operator; each row of a rule describes a change of one part."""

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
"""Identifiers of measured restores."""
Judge = Callable[[OperatorPair, Difference], Verdict]
STATELESS = frozenset({JoinForm.LOOKUP, OtherKind.UNION_ALL})
"""Kinds of operators without state."""
IGNORE = "table.optimizer.state-compatibility.ignore-filter"
IGNORED = {"vvr": documented(Outcome.COMPATIBLE, f"WHERE page: {IGNORE} = true")}
"""Verdict on a changed condition if ``IGNORE`` is true."""
NOTICED_ABOVE = {
    "vvr": unknown("a downstream operator keeps results that this operator emitted before the change"),
    "flink": wrong(
        "lj-agg-key-lookup",
        "ga-nested-inner-mod",
        "ua-branch-filter-change",
        note="downstream operators keep the old results",
    ),
}
"""Verdict on a change of the rows that a downstream stateful operator receives."""


@dataclass(frozen=True)
class Row:
    """A change of one operator part: a sentence and, per engine, a verdict or a function that returns one.

    ``quiet`` returns True if the operator emits the same rows as before, so that downstream operators are not affected.
    """

    sentence: str
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
    """Create a rule about operators that have one of ``kinds`` on both sides.

    ``rows`` maps each part to its row. A part has the same row for each input of an operator. ``of`` is the class of
    the operators. ``vvr`` and ``flink`` are the general verdicts of the rule, as its example shows them.
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
        # A downstream stateful operator may have stored rows that this operator emitted.
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
                verdicts = {
                    engine: verdict_with_state_above(pair, engine, verdict) for engine, verdict in verdicts.items()
                }
            yield RuleMatch(
                f"{pair.new.kind}: {row.sentence}",
                (difference.key,),
                *map(row.show, (difference.before, difference.after)),
                verdicts=verdicts,
            )

    return found


def verdict_with_state_above(pair: OperatorPair, engine: str, verdict: Verdict) -> Verdict:
    """Replace a compatible verdict with ``NOTICED_ABOVE`` if a stateful operator is downstream."""
    if verdict.outcome is not Outcome.COMPATIBLE or not has_state_above(pair):
        return verdict
    return NOTICED_ABOVE[engine]


def has_state_above(pair: OperatorPair) -> bool:
    """True if a stateful operator is between this operator and the sink."""
    above = (other for other in pair.pipeline.operators if pair.path.startswith(f"{other.path} > "))
    return any(keeps_state(other.new) for other in above)


def keeps_state(operator: Operator) -> bool:
    """True if an operator has state, apart from the queue of an asynchronous lookup."""
    return operator.kind not in STATELESS and not is_processing_time_sort(operator)


def is_processing_time_sort(operator: object) -> bool:
    """True for a sort by processing time alone, which stores nothing (``so-proc-field-add``)."""
    if not isinstance(operator, OtherOperator) or operator.kind != OtherKind.TEMPORAL_SORT:
        return False
    detail = dict(operator.attributes)
    return detail["clock"] == "proctime" and not detail["sort keys"]


def filters_row(page: str, flink: Verdict) -> Row:
    """The row for conditions on input rows. On VVR, a change is compatible if ``IGNORE`` is true."""

    def on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
        ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
        return IGNORED["vvr"] if ignored else documented(Outcome.INCOMPATIBLE, page)

    return Row(
        "a condition on the input rows changed", on_vvr, flink, show=lambda value: format_conditions(value or ())
    )


def same_row_types(pair: OperatorPair, difference: Difference) -> bool:
    """True if an input, numbered in the part of the difference, has equal column types on both sides."""
    place = int(difference.part.rpartition(" ")[2]) - 1
    types = [side.row_types for side in (pair.old, pair.new) if isinstance(side, JoinOperator | OtherOperator)]
    old, new = (tuple(map(str, each[place])) if place < len(each) else () for each in types)
    return old == new


def layout_judge(other_types: Ids, same_types: Ids) -> Judge:
    """Create a judge of stored columns: changed types are refused; new columns of equal types are misread."""

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        return wrong(*same_types) if same_row_types(pair, difference) else refused(*other_types)

    return judge
