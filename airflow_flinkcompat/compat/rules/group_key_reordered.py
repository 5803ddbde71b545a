from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right
from airflow_flinkcompat.compat.engines.flink.table_api_same_form import GROUPED_ALIKE, grouped_alike
from airflow_flinkcompat.compat.rule import (
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and sides[0].keys != sides[1].keys and set(sides[0].keys) == set(sides[1].keys):
        yield RuleMatch(
            "the same keys stand in another order",
            pair.claim("keys", "key order"),
            format_group_by(sides[0]),
            format_group_by(sides[1]),
            verdicts=_verdicts(pair),
        )


def _verdicts(pair: OperatorPair) -> dict[str, Verdict]:
    if grouped_alike(pair):
        return {"vvr": NOT_SAID, "flink": right(*GROUPED_ALIKE)}
    return {} if pair.windowed else {"vvr": inferred(Outcome.INCOMPATIBLE, "as the window pages say")}


NOT_SAID = inferred(Outcome.UNKNOWN, "no page states the order in which the Table API groups")

RULE = Rule(
    code="group-key-reordered",
    title="Group keys changed places",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 12; Group Window Aggregate row 17"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "w-keys-reorder-difftype",
            "g-keys-swap",
            "g-keys-swap-sametype",
            "ga-keys-reorder-sametype",
        ),
    },
    rationale="The stored key is the row of keys in their order: in SQL that of GROUP BY, in the Table API that in "
    "which the columns come in, whatever the order in group_by.",
    example=grouping(
        "customer, region, SUM(amount)",
        "customer, region, window_start, window_end",
        "region, customer, window_start, window_end",
    ),
    find=find,
)
