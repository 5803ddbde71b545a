from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import flink
from airflow_flinkcompat.compat.change import Change, PipelinePair
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured
from airflow_flinkcompat.compat.rules.output_changed import sink_connector

UNKNOWN = {"flink": Verdict(Outcome.UNKNOWN, Basis.INFERRED, "this sink's state was not measured", Reason.NOT_COVERED)}


def on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    """Nothing, where both sinks keep no state."""
    return {} if all(connector in flink.STATELESS_SINKS for connector in sink_connector(pair)) else UNKNOWN


def find(change: Change) -> Iterable[Hit]:
    for pair in change.pipelines:
        if "sink" in pair.parts:
            old, new = pair.old.sink, pair.new.sink
            claims = [*pair.claim("sink")]
            claims += [d.key for d in change.parts("declared") if d.key.split("/")[1] in (old, new)]
            yield Hit(
                "results go to another table",
                tuple(claims),
                old or "a bare SELECT",
                new or "a bare SELECT",
                pair.old.span,
                pair.new.span,
                verdicts=on_flink(pair),
            )


SINK = "CREATE TABLE {0} (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"
QUERY = "INSERT INTO {0} SELECT customer, amount FROM orders;"
RULE = Rule(
    code="sink-changed",
    title="Another sink table",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Sink table page: name, connector and WITH under ignore-sink = true"),
        "flink": measured(Outcome.COMPATIBLE, "a print sink renamed: restored right"),
    },
    why="VVR's check leaves sinks out by default. Open-source Flink maps a sink's own state as well.",
    example=Example((SINK + QUERY).format("totals"), (SINK + QUERY).format("sums")),
    find=find,
    item="sink",
)
