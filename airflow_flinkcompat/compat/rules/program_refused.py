from collections.abc import Iterable, Iterator, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.engines.flink.validation import Query, faults
from airflow_flinkcompat.compat.engines.flink.validation import of_declarations as declaration_faults
from airflow_flinkcompat.compat.refusals import Refusal, of_old_style
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rules.table_api_changed import PROGRAM
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS

DEPLOYED = inferred(Outcome.UNKNOWN, "what Flink refuses does not run: another program is deployed", Reason.NOT_READ)

ON_VVR = inferred(Outcome.UNKNOWN, "no page speaks of it; VVR is made of Flink", Reason.NOT_READ)
"""What Flink refuses, whatever it is."""
MAY_BE = inferred(Outcome.UNKNOWN, "whether Flink accepts the proposed script is not known")
OF_SQL = inferred(Outcome.INCOMPATIBLE, "the words of Flink's own check of the statement")
NAME_ON_VVR = inferred(Outcome.INCOMPATIBLE, "VVR is made of Flink and has no other columns or tables to find")


def find(change: Change) -> Iterable[RuleMatch]:
    old, new = change.refusals
    if not change.unchanged:
        # The same script goes on wherever it runs today, on an older line say that the check was not told.
        new = (*new, *of_old_style(change.new))
    claims = change.claim("unread") if old or new else ()
    known = {each.message for each in of_declarations(change.old)}
    new = (*new, *(each for each in of_declarations(change.new) if each.message not in known), *_added(change))
    for refusal in new:
        said = f"Flink {refusal.verb} the proposed {refusal.what}: {refusal.message}"
        if not refusal.of_session or ENGINE_FACTS[change.engine].takes_commands:
            yield RuleMatch(said, claims, after_span=refusal.span, verdicts=verdicts(refusal))
    for refusal in old:
        if not refusal.certain or refusal.of_session:
            continue
        yield RuleMatch(
            f"Flink refuses the deployed {refusal.what}: {refusal.message}",
            claims,
            before_span=refusal.span,
            verdicts={"vvr": DEPLOYED, "flink": DEPLOYED},
        )


def of_declarations(side: Side) -> Iterator[Refusal]:
    """Find what Flink refuses where tables and views are declared, and what no query of the script is refused for.

    Args:
        side: A side of a change.

    Yields:
        A refusal for each fault.
    """
    found = dict.fromkeys(declaration_faults(side.program))
    if not found:
        return
    queries = ((side.program.pipelines[place], output) for place, output in side.outputs[0].items())
    told = {
        fault.message
        for pipeline, output in queries
        for fault in faults(Query(pipeline, output, side.program, side.flink_line))
    }
    for fault, span in found:
        if fault.message not in told:
            yield Refusal(fault.message, span, "script", fault.of_name, certain=fault.certain)


def _added(change: Change) -> Iterator[Refusal]:
    """Refusals of queries that the deployed script does not have."""
    for place, output in change.new.outputs[0].items():
        if any(output is each for each in change.added):
            pipeline = change.new.program.pipelines[place]
            for fault in faults(Query(pipeline, output, change.new.program, change.new.flink_line)):
                yield Refusal(fault.message, pipeline.span, "statement", fault.of_name, certain=fault.certain)


def verdicts(refusal: Refusal) -> Mapping[str, Verdict]:
    """Return the verdicts on a refusal where they are not those of the rule.

    Args:
        refusal: What Flink refuses, or may refuse.

    Returns:
        A verdict for each engine that has one of its own.
    """
    if not refusal.certain:
        return {"flink": MAY_BE}
    found = {"flink": OF_SQL} if refusal.what in ("script", "statement") else {}
    return found | ({"vvr": NAME_ON_VVR} if refusal.of_name else {})


MINUTE = """\
minute = Tumble.over({}).on(col("order_time")).alias("w")
orders = t_env.from_path("orders")
orders.window(minute).group_by(col("w"), col("customer")).select(col("customer"), col("amount").sum).execute()
"""
RULE = Rule(
    code="program-refused",
    title="Flink refuses the program",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": ON_VVR,
        "flink": expected("each rule was seen with PyFlink 2.3.0"),
    },
    rationale="A window or an aggregate is written in a way that Flink's validator or planner turns down: with state "
    "or without it no job comes of it. The finding says what to write instead.",
    example=Example(PROGRAM + MINUTE.format("lit(10).minutes"), PROGRAM + MINUTE.format("lit(10)"), language="python"),
    find=find,
    level=Level.REST,
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
