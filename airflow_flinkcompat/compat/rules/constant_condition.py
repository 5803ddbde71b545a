from collections.abc import Iterable, Sequence, Set
from decimal import Decimal

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.references import expressions
from airflow_flinkcompat.compat.rule import Example, PlanCover, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.operators import Output, segments, sources
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.satisfiable import may_be_decided

_TESTS = frozenset({"IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS NULL", "IS NOT NULL"})
COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "IN", "LIKE"}) | _TESTS
CONDITIONS = COMPARISONS | {"AND", "OR", "NOT", "CASE", "IF", "COALESCE"}


def _decided(part: Expression, never_null: Set[str]) -> bool:
    """A condition over constants only, on NULL or on what never is, on twice the same, or joined with TRUE or FALSE."""
    if not isinstance(part, FunctionCall) or part.function not in CONDITIONS:
        return False
    function, args = part.function, part.args
    if function in COMPARISONS:
        nulls = any(isinstance(arg, Literal) and arg.value is None for arg in args)
        tested = function in _TESTS and any(_filled(arg, never_null) for arg in args)
        same = function != "IN" and len(set(args)) < len(args)
        return nulls or tested or same or all(isinstance(leaf, Literal) for leaf in leaves(part))
    return any(isinstance(arg, Literal) and isinstance(arg.value, bool) for arg in args)


def _filled(part: Expression, never_null: Set[str]) -> bool:
    """Whether a value may never be NULL: a column that is declared so, or what is computed of such alone."""
    match part:
        case SourceColumn():
            return part.column in never_null
        case Literal():
            return part.value is not None
        case FunctionCall():
            some = any if part.function in ("COALESCE", "IFNULL") else all
            return bool(part.args) and some(_filled(arg, never_null) for arg in part.args)
        case OperatorColumn(output=AggregateCall(function="COUNT")):
            return True
        case OperatorColumn(output=PassedOutput(column=column)):
            return _filled(column, never_null)
    return False


def doubtful(output: Output, program: Program) -> list[Expression]:
    """Conditions that the planner may decide while it plans, dropping what then reads nothing.

    Args:
        output: A query.
        program: What declares its tables.

    Returns:
        Each condition once, or the value of which several together may ask what is never so.
    """
    read = {source.table for source in sources(output)}
    tables = [table for table in program.tables if table.name in read]
    never_null = {column.name for table in tables for column in table.columns if not column.type.nullable}
    never_null.update(name for table in tables for name in table.primary_key)
    found = [part for whole in expressions(output) for part in walk(whole) if _decided(part, never_null)]
    for segment in segments(output):
        filters = segment.filters
        found += [part for part in filters if isinstance(part, Literal)]
        inner = [part for whole in filters for part in walk(whole) if isinstance(part, FunctionCall)]
        anded = [part.args for part in inner if part.function == "AND"]
        denied = [part.args[0] for part in inner if part.function == "NOT"]
        neither = [part.args for part in denied if isinstance(part, FunctionCall) and part.function == "OR"]
        for together in (filters, *anded, *neither):
            found += _contradictory(together)
        if filters and may_be_decided(filters, lambda part: _filled(part, never_null)):
            found += filters
    return list(dict.fromkeys(found))


def _contradictory(together: Iterable[Expression]) -> list[Expression]:
    """The values of which conditions that are to hold together ask several things, and what is asked for both ways."""
    compared: dict[Expression, list[Expression]] = {}
    every = set(together)
    denied = [part.args[0] for part in every if isinstance(part, FunctionCall) and part.function == "NOT"]
    for part in (*every, *denied):
        args = [arg for arg in getattr(part, "args", ()) if not isinstance(arg, Literal)]
        if getattr(part, "function", None) in COMPARISONS and len(args) == 1:
            compared.setdefault(args[0], []).append(part)
        elif isinstance(part, SourceColumn):
            compared.setdefault(part, []).append(part)
    asked = [value for value, parts in compared.items() if len(parts) > 1 and not _holds_of_some(parts, denied)]
    return asked + [part for part in denied if part in every]


def _holds_of_some(parts: Sequence[Expression], denied: Sequence[Expression]) -> bool:
    """Whether comparisons of one value with constants certainly leave some values, and do not leave all.

    It is told of values that are all excluded, and of a range between two numbers.
    """
    bounds: dict[str, list[float]] = {"<": [], ">": []}
    for part in parts:
        match part:
            case FunctionCall("<>", (_, Literal())) if part not in denied:
                pass
            case FunctionCall("<" | "<=" | ">" | ">=" as sign, (_, Literal(int() | float() | Decimal() as number))) if (
                part not in denied and not isinstance(number, bool)
            ):
                bounds[sign[0]].append(float(number))
            case _:
                return False
    excluded = any(isinstance(part, FunctionCall) and part.function == "<>" for part in parts)
    if excluded and (bounds["<"] or bounds[">"]):
        return False
    return not (bounds["<"] and bounds[">"]) or max(bounds[">"]) < min(bounds["<"])


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not pair.changed:
        return
    old, new = doubtful(pair.old, pair.old_program), doubtful(pair.new, pair.new_program)
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
