from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import COLUMNS_BELOW, STEPS, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import operations
from airflow_flinkcompat.compat.engines.flink.api_change import api_change_verdict
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured
from airflow_flinkcompat.compat.engines.flink.table_api_same_form import merged
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, TableApiCover, inferred
from airflow_flinkcompat.model import Outcome, Reason

RESTED = inferred(Outcome.COMPATIBLE, "filters and selected columns are compared by their own rules")
AS_IT_WAS = right(
    "wording-output-alias", "wording-window-alias", "wording-group-by-order", "wording-view", "wording-view-inserted"
)


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    claims, verdict = pair.claim(STEPS, COLUMNS_BELOW), api_change_verdict(pair)
    if not claims and verdict is None:
        return
    old, new = (" > ".join(steps) or "SQL" for steps in pair.steps)
    if verdict is None:
        rest = AS_IT_WAS if same_places(pair) else merged(pair)
        said = "other conditions, columns or views between the operations of the Table API"
        yield RuleMatch(said, claims, old, new, verdicts={"vvr": RESTED, "flink": rest})
    elif not pair.moved:
        old, new = ("; ".join(map(format_expressions, side.input_columns)) for side in pair.query_forms)
        said = "other columns that nobody reads come into an operation of the Table API"
        order = RESTED if same_order(pair) else unmeasured("on Flink, such an order decided over that of the keys")
        yield RuleMatch(said, claims, old, new, verdicts={"vvr": order, "flink": verdict})
    elif all(pair.steps):
        said = "the query goes through other operations of the Table API"
        yield RuleMatch(said, claims, old, new, verdicts={"flink": verdict})
    else:
        yield RuleMatch("the query moved between SQL and the Table API", claims, old, new, verdicts={"flink": verdict})


def same_order(pair: PipelinePair) -> bool:
    """Whether the columns that come in on both sides come in the same order."""
    for old, new in zip(*(side.input_columns for side in pair.query_forms), strict=False):
        if [column for column in old if column in new] != [column for column in new if column in old]:
            return False
    return True


def same_places(pair: PipelinePair) -> bool:
    """Whether filters stand between the same operations on both sides, both made through the Table API."""
    old, new = (operations(steps, filters=True) for steps in pair.steps)
    return old == new and all(pair.steps)


PROGRAM = '''\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("""
    CREATE TABLE orders (
        customer STRING, amount BIGINT, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time
    ) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json')""")
'''
RULE = Rule(
    code="table-api-changed",
    title="The query goes through other operations of the Table API",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no page speaks of it", Reason.NOT_COVERED),
        "flink": inferred(Outcome.UNKNOWN, "not among the moves that were measured", Reason.NOT_COVERED),
    },
    rationale="Flink plans the Table API otherwise than SQL that says the same. SQL leaves out columns that nobody "
    "reads, the Table API does not: what a table computes stays as an operator of its own below a window unless a "
    "select in front leaves it out, and with the chain of operators goes where state is found again. SQL keeps COUNT "
    "and $SUM0 of SUM and AVG over rows, the Table API does not: such state is misread. What was restored right is one "
    "aggregation by one key, straight from a table; whatever else moves is unknown.",
    example=Example(
        PROGRAM
        + """\
minute = Tumble.over(lit(1).minutes).on(col("order_time")).alias("w")
orders = t_env.from_path("orders")
orders.window(minute).group_by(col("w"), col("customer")).select(col("customer"), col("amount").sum).execute()
""",
        PROGRAM
        + '''\
t_env.execute_sql("""
    SELECT customer, SUM(amount) FROM orders
    GROUP BY TUMBLE(order_time, INTERVAL '1' MINUTE), customer""")
''',
        language="python",
    ),
    find=find,
    case_dependent=("vvr", "flink"),
    table_api_cover=TableApiCover.OWN,
)
