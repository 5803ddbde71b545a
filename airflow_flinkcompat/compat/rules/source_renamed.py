from collections.abc import Iterable

from airflow_flinkcompat.compat.change import Change, table_parts
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured

UNLIKE = {
    "flink": Verdict(
        Outcome.UNKNOWN, Basis.INFERRED, "the tables are not declared alike: not measured", Reason.NOT_COVERED
    )
}


def find(change: Change) -> Iterable[Hit]:
    tables = [{table.name: table for table in program.tables} for program in change.programs]
    seen = set()
    for pipeline in change.pipelines:
        for pair in (pipeline, *pipeline.operators):
            for difference in pair.differences:
                if difference.part.startswith("source") and difference.part != "source hints":
                    old, new = difference.before, difference.after
                    alike = (
                        old in tables[0] and new in tables[1] and table_parts(tables[0][old]) == table_parts(tables[1][new])
                    )
                    claims = [difference.key]
                    claims += [d.key for d in change.parts("declared") if d.key.split("/")[1] in (old, new)]
                    seen.add(difference.key)
                    yield Hit(
                        "another table is read",
                        tuple(claims),
                        str(old),
                        str(new),
                        difference.before_span,
                        difference.after_span,
                        verdicts={} if alike else UNLIKE,
                    )


RULE = Rule(
    code="source-renamed",
    title="Another source table",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Source table page: table renamed"),
        "flink": measured(Outcome.COMPATIBLE, "x-source-rename: the same declaration under another name"),
    },
    why="VVR finds a source's state by the table's name. Open-source Flink does not look at names.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE purchases (customer STRING, amount BIGINT, order_time TIMESTAMP(3),\n"
        "  WATERMARK FOR order_time AS order_time) WITH ('connector' = 'kafka', 'topic' = 'orders');\n"
        + windowed("customer, SUM(amount)").replace("TABLE orders", "TABLE purchases"),
    ),
    find=find,
)
