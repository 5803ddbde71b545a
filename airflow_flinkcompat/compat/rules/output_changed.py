from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import flink
from airflow_flinkcompat.compat.clauses import values
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, Verdict, documented, measured
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import Call, walk
from airflow_flinkcompat.plan.operators import AggregateOperator
from airflow_flinkcompat.plan.origins import window_field


def sink_connector(pair: PipelinePair) -> tuple[str | None, str | None]:
    """The sink's connector on both sides; None for the nameless sink of a bare SELECT or an undeclared table."""
    old, new = (
        next((t.option("connector") for t in program.tables if t.name == output.sink), None)
        for program, output in ((pair.old_program, pair.old), (pair.new_program, pair.new))
    )
    return old, new


def projection_on_flink(pair: PipelinePair) -> Mapping[str, Verdict]:
    """What a change of the projection in front of the sink means on open-source Flink.

    Nothing, where the sink keeps no state. Where it does, its operator must stay the same: a Calc in front of it
    on both sides for sure. Other sinks, functions of one's own and aggregations without a window were not measured.
    """
    old, new = sink_connector(pair)
    if reason := _unmeasured(pair):
        return {"flink": Verdict(Outcome.UNKNOWN, Basis.INFERRED, reason, Reason.NOT_COVERED)}
    nameless = not pair.old.sink and not pair.new.sink
    if nameless or (old == new and old in flink.STATELESS_SINKS):
        return {}
    if old == new and old in flink.SINKS_WITH_KNOWN_CHAIN:
        if flink.surely_projected(pair.old) and flink.surely_projected(pair.new):
            return {"flink": Verdict(Outcome.COMPATIBLE, Basis.MEASURED, "a filesystem sink behind another projection")}
        source = "whether a Calc stands in front of the sink cannot be told on both sides"
    else:
        source = f"sink connector {new or 'of an undeclared table'} was not measured with a changed projection"
    return {"flink": Verdict(Outcome.UNKNOWN, Basis.INFERRED, source, Reason.NOT_COVERED)}


def _unmeasured(pair: PipelinePair) -> str:
    """Why no measurement speaks of this projection; "" where one does."""
    tops = [side.region.origin for side in (pair.old, pair.new)]
    if not all(isinstance(top, AggregateOperator) and top.windowed for top in tops):
        return "only projections of a windowed aggregation were measured"
    shown = (part for side in (pair.old, pair.new) for part in (*side.columns, *side.region.filters))
    calls = {part.function for whole in shown for part in walk(whole) if isinstance(part, Call)}
    own = sorted(name for name in calls if functions.lookup(name) is None and name not in PLAIN)
    # A Python or asynchronous function is an operator of its own.
    return f"a projection with {', '.join(own)} was not measured" if own else ""


PLAIN = frozenset({"FIELD", "ITEM"})
"""Ways of reaching into a value that the function catalogue does not list."""


def find(pair: PipelinePair) -> Iterable[Hit]:
    if "columns" not in pair.parts or pair.others:
        return
    old, new = ([c for c in side.columns if window_field(c) is None] for side in (pair.old, pair.new))
    if old == new and pair.operators:
        return
    yield Hit(
        "the output computes its columns differently above the state",
        pair.claim("columns"),
        values(pair.old.columns),
        values(pair.new.columns),
        verdicts=projection_on_flink(pair),
    )


RULE = Rule(
    code="output-changed",
    title="Output columns changed above the state",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Alias page; WHERE page: operators without state"),
        "flink": measured(Outcome.COMPATIBLE, "w-add-window-start, w-having-add: a Calc above the aggregation"),
    },
    why="Expressions over keys and metrics are computed when a result leaves; nothing is stored for them.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount) * 100"),
    find=find,
)
