from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.flink.ranking import right
from airflow_flinkcompat.compat.flink.within import GROUPED_ALIKE, grouped_alike
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.shapes.examples import grouping


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations
    if sides is not None and sides[0].keys != sides[1].keys and set(sides[0].keys) == set(sides[1].keys):
        yield Hit(
            "the same keys stand in another order",
            pair.claim("keys", "key order"),
            group_by(sides[0]),
            group_by(sides[1]),
            verdicts=_verdicts(pair),
        )


def _verdicts(pair: OperatorPair) -> dict[str, Verdict]:
    if grouped_alike(pair):
        return {"vvr": NOT_SAID, "flink": right(*GROUPED_ALIKE)}
    return {} if pair.windowed else {"vvr": inferred(Outcome.INCOMPATIBLE, "as the window pages say")}


NOT_SAID = inferred(Outcome.UNKNOWN, "no page says in which order the Table API groups")

RULE = Rule(
    code="group-key-reordered",
    title="Group keys changed places",
    scope=Scope.OPERATOR,
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
    why="The stored key is the row of keys in their order: in SQL that of GROUP BY, in the Table API that in which the "
    "columns come in, whatever the order in group_by.",
    example=grouping(
        "customer, region, SUM(amount)",
        "customer, region, window_start, window_end",
        "region, customer, window_start, window_end",
    ),
    find=find,
)
