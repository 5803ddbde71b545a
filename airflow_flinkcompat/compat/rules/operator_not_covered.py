from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes.format import shortened
from airflow_flinkcompat.compat.changes.naming import into
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import Opaque, Sink, walk_nodes
from airflow_flinkcompat.plan.operators import JoinForm, OtherKind


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not pair.others or not pair.changed:
        return
    claims = [difference.key for difference in pair.differences if difference.part != "sink"]
    for operators in pair.operators:
        if operators.old in pair.others or operators.new in pair.others:
            claims += [difference.key for difference in operators.differences]
    found = [next(unresolved(pipeline.sink), None) for pipeline in (pair.old_pipeline, pair.new_pipeline)]
    spans = [None if node is None else node.span for node in found]
    if not any(found):
        spans[0] = pair.others[0].span
    yield RuleMatch(_message(pair, found), tuple(claims), before_span=spans[0], after_span=spans[1])


def _message(pair: PipelinePair, kept_whole: list[Opaque | None]) -> str:
    query = into(pair.sink)
    if any(kept_whole):
        sides = zip(("deployed", "proposed"), kept_whole, strict=True)
        why = {side: node.reason for side, node in sides if node is not None}
        if len(set(why.values())) == 1 and len(why) == 2:
            return f"{query} changed, and cannot be resolved on either side: {why['deployed']}"
        return f"{query} cannot be resolved: " + "; ".join(f"{side} script: {reason}" for side, reason in why.items())
    kinds = " and ".join(sorted({_LABELS.get(operator.kind, operator.kind) for operator in pair.others}))
    parts = sorted({difference.part for each in pair.operators for difference in each.differences} | pair.parts)
    return shortened(
        f"{query} changed ({', '.join(parts)}) with {kinds} in it, which was not restored across changes", 200
    )


_LABELS: dict[str, str] = {JoinForm.JOIN: "a join that is of no known kind"}


def unresolved(sink: Sink) -> Iterator[Opaque]:
    """The queries below a sink whose names could not be resolved, so that they are kept whole."""
    return (each for each in walk_nodes(sink) if isinstance(each, Opaque) and each.kind == OtherKind.QUERY)


RULE = Rule(
    code="operator-not-covered",
    title="A change around an operator without rules",
    scope=RuleScope.PIPELINE,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    rationale="INTERSECT and EXCEPT, subqueries in conditions and joins that cannot be matched keep state of their "
    "own, often whole rows; any difference in such an operator or in its chain may break it.",
    example=Example(
        "SELECT customer FROM orders INTERSECT SELECT region FROM orders;",
        "SELECT customer FROM orders INTERSECT SELECT item FROM orders;",
    ),
    find=find,
)
