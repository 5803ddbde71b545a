from collections import Counter
from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.references import expressions
from airflow_flinkcompat.compat.rule import Example, PlanCover, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import Expression, Literal, walk
from airflow_flinkcompat.plan.operators import Output
from airflow_flinkcompat.plan.origins import leaves

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "IN", "LIKE", "IS NULL", "IS NOT NULL"})
CONDITIONS = COMPARISONS | {"AND", "OR", "NOT", "CASE", "IF", "COALESCE"}


def _decided(part: Expression) -> bool:
    """A condition over constants only, compared with NULL, or joined with TRUE or FALSE."""
    function = getattr(part, "function", None)
    if function not in CONDITIONS:
        return False
    args = getattr(part, "args", ())
    if function in COMPARISONS:
        nulls = any(isinstance(arg, Literal) and arg.value is None for arg in args)
        return nulls or all(isinstance(leaf, Literal) for leaf in leaves(part))
    return any(isinstance(arg, Literal) and isinstance(arg.value, bool) for arg in args)


def doubtful(output: Output) -> list[Expression]:
    """Conditions that the planner may decide while it plans, dropping what then reads nothing."""
    found = [part for whole in expressions(output) for part in walk(whole) if _decided(part)]
    filters = output.segment.filters
    found += [part for part in filters if isinstance(part, Literal)]
    # Several comparisons of one value with constants may contradict each other.
    compared: Counter[Expression] = Counter()
    for part in filters:
        args = [arg for arg in getattr(part, "args", ()) if not isinstance(arg, Literal)]
        if getattr(part, "function", None) in COMPARISONS and len(args) == 1:
            compared[args[0]] += 1
    return found + [value for value, times in compared.items() if times > 1]


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not pair.changed:
        return
    old, new = (doubtful(side) for side in (pair.old, pair.new))
    if old or new:
        yield RuleMatch(
            "a condition may be decided while the query is planned, which drops what then reads nothing",
            (),
            format_expressions(old),
            format_expressions(new),
        )


RULE = Rule(
    code="constant-condition",
    title="A condition the planner may decide",
    scope=RuleScope.PIPELINE,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    rationale="The planner folds constants: a condition that is always false removes its source and state from the "
    "job, one that is always true removes what it guards.",
    example=Example(
        windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)").replace(";", "\nHAVING 1 = 0;")
    ),
    find=find,
    plan_cover=PlanCover.ALWAYS,
)
