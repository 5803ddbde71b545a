from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import flink
from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.compat.parts import table_parts
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured
from airflow_flinkcompat.compat.rules.output_changed import sink_connector

UNKNOWN = {"flink": Verdict(Outcome.UNKNOWN, Basis.INFERRED, "this sink's state was not measured", Reason.NOT_COVERED)}

IGNORE = "table.optimizer.state-compatibility.ignore-sink"
CHECKED = Verdict(Outcome.UNKNOWN, Basis.DOCUMENT, f"Sink table page: {IGNORE} = false", Reason.DOCUMENTED)
MEASURED_OPTIONS = frozenset({"print-identifier", "standard-error"})
"""Options of a stateless sink that leave the job's topology alone; sink.parallelism does not."""


def not_null(types: Mapping[str, str]) -> set[str]:
    """The columns of a table that take no NULL: Flink checks that in an operator of its own."""
    return {name for name, kind in types.items() if kind.endswith("NOT NULL")}


def on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    """Nothing, where both sinks keep no state and no operator in front of them comes or goes."""
    connectors = sink_connector(pair)
    if connectors[0] != connectors[1] or connectors[0] not in flink.STATELESS_SINKS:
        return UNKNOWN
    tables = (
        next(table for table in program.tables if table.name == output.sink)
        for program, output in ((pair.old_program, pair.old), (pair.new_program, pair.new))
    )
    old, new = (table_parts(table) for table in tables)
    same = all(old[part] == new[part] for part in ("primary key", "partitions", "metadata", "computed"))
    options = {key for key in {*old["options"], *new["options"]} if old["options"].get(key) != new["options"].get(key)}
    alike = same and options <= MEASURED_OPTIONS and not_null(old["types"]) == not_null(new["types"])
    return {} if alike else UNKNOWN


def sink_state_checked(change: Change) -> Verdict | None:
    """Unknown where ignore-sink is off on either side: then a sink counts as stateful, by rows that are not known."""
    on = [
        dict(pipeline.settings).get(IGNORE, "true").lower()
        for program in change.programs
        for pipeline in program.pipelines
    ]
    return CHECKED if "false" in on else None


def find(change: Change) -> Iterable[Hit]:
    for pair in change.pipelines:
        if "sink" in pair.parts:
            old, new = pair.old.sink, pair.new.sink
            claims = [*pair.claim("sink")]
            claims += [d.key for d in change.parts("declared") if d.key.split("/")[1] in (old, new)]
            checked = sink_state_checked(change)
            yield Hit(
                "results go to another table",
                tuple(claims),
                old or "a bare SELECT",
                new or "a bare SELECT",
                pair.old.span,
                pair.new.span,
                verdicts={**on_flink(pair), **({} if checked is None else {"vvr": checked})},
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
)
