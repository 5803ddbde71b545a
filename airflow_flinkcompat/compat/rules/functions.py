"""Rules about user-defined functions and table functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import listed
from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import MINUTE, Example, Level, Rule, RuleMatch, windowed
from airflow_flinkcompat.compat.verdict import (
    UNCHANGED,
    Verdict,
    documented,
    inferred,
    refused_at_submit,
    right,
    unknown,
)
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan import Program, functions
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall, called
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, operators
from airflow_flinkcompat.plan.origins import OperatorColumn, leaves


def aggregates_in(output: Output, language: str) -> list[AggregateCall]:
    """All aggregate calls in a pipeline whose function has a language."""
    return [
        call
        for operator in operators(output)
        if isinstance(operator, AggregateOperator)
        for call in operator.aggregates
        if call.language == language
    ]


PYTHON_FUNCTION = "CREATE TEMPORARY FUNCTION weighted AS 'metrics.weighted' LANGUAGE PYTHON;\n"


@Rule(
    code="python-aggregate",
    title="A Python aggregate function (UDAF)",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 24; Group Window Aggregate row 22"),
    flink=unknown("Python aggregates were not measured"),
    rationale=(
        "The accumulator of a Python function consists of opaque bytes. Only the function itself can interpret these "
        "bytes."
    ),
    example=Example(
        PYTHON_FUNCTION + windowed("customer, SUM(amount)"),
        PYTHON_FUNCTION + windowed("customer, SUM(amount), weighted(amount)"),
    ),
    level=Level.OPAQUE,
)
def python_aggregate(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "python" not in pair.languages:
        return
    old, new = (aggregates_in(side, "python") for side in (pair.old, pair.new))
    if old or new:
        yield RuleMatch(
            "a Python aggregate function is used: the check cannot inspect its state",
            (),
            listed(old) or "none",
            listed(new) or "none",
        )


JAVA_FUNCTION = "CREATE TEMPORARY FUNCTION weighted AS 'com.example.Weighted';\n"


@Rule(
    code="user-aggregate",
    title="A Java or Scala aggregate function",
    vvr=inferred(Outcome.COMPATIBLE, "treated as a regular aggregate, by reading the documentation"),
    flink=unknown("user-defined aggregates were not measured", Reason.OPAQUE),
    rationale=(
        "VVR treats a declared Java or Scala function like any other aggregate. On open-source Flink, the state of "
        "such a function was not measured."
    ),
    example=Example(
        JAVA_FUNCTION + windowed("customer, weighted(amount)"),
        JAVA_FUNCTION + windowed("customer, weighted(amount), window_start"),
    ),
)
def user_aggregate(pair: PipelinePair) -> Iterable[RuleMatch]:
    if pair.languages.isdisjoint({"java", "scala"}):
        return
    old, new = ([*aggregates_in(side, "java"), *aggregates_in(side, "scala")] for side in (pair.old, pair.new))
    if (old or new) and pair.changed:
        yield RuleMatch("a Java or Scala aggregate function is used", (), listed(old) or "none", listed(new) or "none")


OPERATORS = frozenset({"FIELD", "ITEM", "VALUES", "ROW", "ARRAY", "MAPCONSTRUCTOR", "MULTISETCONSTRUCTOR"})
"""Names of calls that the plan itself uses and no function catalogue lists."""


def is_known(call: FunctionCall | AggregateCall, program: Program) -> bool:
    """True if a function is in Flink's function catalogue or declared."""
    name = call.function
    declared = (function.name.lower() for function in program.functions)
    return functions.lookup(name) is not None or name in OPERATORS or name.lower() in declared


def undeclared_calls(program: Program, output: Output) -> list[FunctionCall]:
    """Undeclared calls over an aggregation that read no metric, so that the function may be an aggregate."""
    if not isinstance(output.segment.origin, AggregateOperator):
        return []
    return [
        call
        for call in called(*output.columns, *output.segment.filters, *output.segment.window_filters)
        if not is_known(call, program)
        and not any(
            isinstance(leaf, OperatorColumn) and isinstance(leaf.output, AggregateCall) for leaf in leaves(call)
        )
    ]


def _undeclared_aggregates(program: Program, output: Output) -> list[AggregateCall | FunctionCall]:
    return [*aggregates_in(output, "undeclared"), *undeclared_calls(program, output)]


CALLED_AS_BEFORE = inferred(
    Outcome.COMPATIBLE, "the query is the same in both versions, and so is its state", ids=UNCHANGED
)


@Rule(
    code="undeclared-aggregate",
    title="An aggregate function without a declaration",
    vvr=unknown(reason=Reason.OPAQUE),
    flink=unknown(reason=Reason.OPAQUE),
    rationale="The function may be a Python function, whose state the check cannot inspect, or a Java function.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), weighted(amount)")),
    level=Level.OPAQUE,
    case_dependent=("flink",),
)
def undeclared_aggregate(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = _undeclared_aggregates(pair.old_program, pair.old), _undeclared_aggregates(pair.new_program, pair.new)
    if old or new:
        names = ", ".join(sorted({call.function for call in (*old, *new)}))
        yield RuleMatch(
            f"no declaration for {names}: pass, for example, --function {names.split(', ')[0]}=aggregate:java",
            (),
            *map(format_expressions, (old, new)),
            verdicts={} if pair.changed else {"flink": CALLED_AS_BEFORE},
        )


COMES_OR_GOES = {
    "vvr": inferred(Outcome.COMPATIBLE, "judged in the queries that call the function"),
    "flink": inferred(Outcome.COMPATIBLE, "judged in the queries that call the function", ids=UNCHANGED),
}
TIDY_FUNCTION = "CREATE TEMPORARY FUNCTION tidy AS 'com.example.{0}';\n"


@Rule(
    code="function-changed",
    title="The declaration of a used function changed",
    vvr=documented(Outcome.UNKNOWN, "Overview: verify a changed UDF dependency manually", Reason.OPAQUE),
    flink=unknown(reason=Reason.OPAQUE),
    rationale="The check knows only the name of a function, not its code.",
    example=Example(
        TIDY_FUNCTION.format("Tidy") + windowed("customer, MAX(tidy(item))"),
        TIDY_FUNCTION.format("Tidier") + windowed("customer, MAX(tidy(item))"),
    ),
    parts=("function",),
)
def function_changed(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("function"):
        name = difference.key.partition("/")[2]
        used = change.uses_function(name)
        if not any(used):
            continue
        declared = difference.before is not None, difference.after is not None
        # If a side calls a function without declaring it, the function is built in or from a catalog.
        with_its_calls = declared == used
        what = (
            "was added or removed together with its calls"
            if with_its_calls
            else "was added or removed, but queries still call the function"
        )
        yield RuleMatch(
            f"function {name} {'is declared differently' if all(declared) else what}",
            (difference.key,),
            "" if difference.before is None else str(difference.before[2]),
            "" if difference.after is None else str(difference.after[2]),
            verdicts=COMES_OR_GOES if with_its_calls and not all(declared) else {},
        )


def unchanged_on_flink(pipeline: PipelinePair) -> Mapping[str, Verdict]:
    """Verdict on a clause of an unchanged pipeline, which restores correctly; empty after a change."""
    if pipeline.changed:
        return {}
    return {"flink": right(*UNCHANGED, note="an unchanged pipeline")}


CAME_OR_WENT = {"flink": refused_at_submit("w-unnest-add")}


@Rule(
    code="table-function",
    title="A table function (UDTF)",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 23"),
    flink=unknown("only unchanged table functions were measured"),
    rationale="The check does not know the rows that the function emits for an input row.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)", source=MINUTE + ",\n  LATERAL TABLE(split(item)) AS part(word)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    level=Level.OPAQUE,
)
def table_function(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = ([call for segment in side for call, _ in segment.functions] for side in pair.segments)
    if not old and not new:
        return
    same = old == new
    claims = pair.claim("table functions") + tuple(
        key for operators in pair.operators for key in operators.claim("table functions")
    )
    known = pair.stateful and not pair.others and not (old and new)
    word = "is in both versions" if same else "was added" if not old else "was deleted" if not new else "changed"
    yield RuleMatch(
        f"a table function {word}: the check cannot inspect the function",
        claims,
        *map(format_expressions, (old, new)),
        verdicts=unchanged_on_flink(pair) if same else CAME_OR_WENT if known else {},
    )
