"""Rules about statements and programs that Flink refuses or the check cannot read or judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import format_expressions, format_query
from airflow_flinkcompat.compat.changes.pairs import COLUMNS_BELOW, STEPS, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import (
    expressions,
    function_names,
    may_name,
    operations,
    tables_of,
    with_views,
    words,
)
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.compat.engines.flink import settings
from airflow_flinkcompat.compat.engines.flink.api_change import api_change_verdict
from airflow_flinkcompat.compat.engines.flink.table_api import merged
from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import ON_CONFLICT
from airflow_flinkcompat.compat.engines.flink.validation.query import Query, added_faults, faults
from airflow_flinkcompat.compat.engines.flink.validation.query import of_declarations as declaration_faults
from airflow_flinkcompat.compat.refusals import Refusal, old_style_refusals
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, TableApiCover, windowed
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Remedy, Verdict, expected, inferred, right, unknown
from airflow_flinkcompat.model import NormalForm, Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.nodes import Opaque, Sink
from airflow_flinkcompat.plan.operators import JoinForm, OtherKind
from airflow_flinkcompat.plan.program import REFUSALS, Problem
from airflow_flinkcompat.secrets.redact import shortened

_SETS = ("ADD", "ALTER", "BEGIN", "DROP", "EXECUTE", "LOAD", "REMOVE", "RESET", "SET", "STATEMENT", "UNLOAD", "USE")
"""First words of unread statements that may affect or contain other statements."""


def harmless_unread_messages(change: Change) -> frozenset[str]:
    """Messages about unread statements that are equal on both sides and cannot affect the change.

    An unread statement is a query, a declaration, or not SQL. A query outside a statement set is a separate job. The
    meaning of an unread statement changes only if the statement names a changed object. If the statement may name an
    object of a changed query, the effect is unknown, and no message is returned.
    """
    a, b = ([(problem.reason, problem.text) for problem in program.problems] for program in change.programs)
    texts = [problem for problem in change.programs[0].problems if problem.reason == "statement"]
    # Return early: most scripts have no unread statement, and the rest of this function visits all queries and views.
    if not texts or a != b or len(texts) != len(a) or any(map(_may_affect_others, texts)):
        return frozenset()
    names = _changed_names(change)
    if names is None:
        return frozenset()
    found = words(*(problem.text for problem in texts))
    for program in change.programs:
        found |= with_views(found, {name: text.normal for name, text in program.views})
    if any(may_name(found, name) for name in names):
        return frozenset()
    return frozenset(problem.message for program in change.programs for problem in program.problems)


def _may_affect_others(problem: Problem) -> bool:
    text = problem.text.text if isinstance(problem.text, NormalForm) else problem.text
    return text.lstrip().upper().startswith(_SETS)


def _changed_names(change: Change) -> frozenset[str] | None:
    """Names of changed objects and of objects in changed queries; None if a difference has no object name."""
    names: set[str] = set()
    for difference in change.script_differences:
        place, _, rest = difference.key.partition("/")
        if place == "table":
            names.add(rest.rpartition("/")[0])
        elif place in ("view", "function"):
            names.add(rest)
        elif place != "setting" or settings.depends_on_tables(rest):
            return None
    for pair in change.pipelines:
        if pair.changed:
            for output in (pair.old, pair.new):
                names |= {*tables_of(output), *function_names(tuple(expressions(output)))}
    return frozenset(names - {""})


RESTED = inferred(Outcome.COMPATIBLE, "separate rules compare filters and selected columns")
AS_IT_WAS = right(
    "wording-output-alias", "wording-window-alias", "wording-group-by-order", "wording-view", "wording-view-inserted"
)


def same_order(pair: PipelinePair) -> bool:
    """True if the common input columns of both sides have the same order."""
    for old, new in zip(*(side.input_columns for side in pair.query_forms), strict=False):
        if [column for column in old if column in new] != [column for column in new if column in old]:
            return False
    return True


def same_places(pair: PipelinePair) -> bool:
    """True if both sides have filters between the same Table API operations."""
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


@Rule(
    code="table-api-changed",
    title="The query uses different operations of the Table API",
    vvr=unknown("no page covers the Table API"),
    flink=unknown("the change is not among the measured changes"),
    rationale=(
        "Flink plans a Table API query differently from equivalent SQL. SQL removes unread columns, but the Table API "
        "does not. Below a window, a computed column therefore adds an operator unless a select removes the column. "
        "Flink finds state by the chain of operators. For SUM and AVG over rows, SQL stores COUNT and $SUM0, but the "
        "Table API does not, so Flink misreads the state. One aggregation by one key directly over a table restored "
        "correctly. Any other change is unknown."
    ),
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
    case_dependent=("vvr", "flink"),
    table_api_cover=TableApiCover.OWN,
)
def table_api_changed(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not any(pair.steps):
        return
    claims, verdict = pair.claim(STEPS, COLUMNS_BELOW), api_change_verdict(pair)
    if not claims and verdict is None:
        return
    old, new = (" > ".join(steps) or "SQL" for steps in pair.steps)
    if verdict is None:
        rest = AS_IT_WAS if same_places(pair) else merged(pair)
        said = "the conditions, columns or views between the operations of the Table API changed"
        yield RuleMatch(said, claims, old, new, verdicts={"vvr": RESTED, "flink": rest})
    elif not pair.moved:
        old, new = ("; ".join(map(format_expressions, side.input_columns)) for side in pair.query_forms)
        said = "the unread input columns of a Table API operation changed"
        order = (
            RESTED
            if same_order(pair)
            else unknown("on Flink, the order of the input columns determined the order of the keys")
        )
        yield RuleMatch(said, claims, old, new, verdicts={"vvr": order, "flink": verdict})
    elif all(pair.steps):
        said = "the query uses different operations of the Table API"
        yield RuleMatch(said, claims, old, new, verdicts={"flink": verdict})
    else:
        yield RuleMatch("the query moved between SQL and the Table API", claims, old, new, verdicts={"flink": verdict})


DEPLOYED = unknown("a refused program does not run, so the deployed program must be different", Reason.NOT_READ)
ON_VVR = unknown("no page covers the statement, but VVR is based on Flink", Reason.NOT_READ)
"""Verdict on statements that Flink refuses."""
SCRIPT_MAY_BE_REFUSED = unknown("it is unknown whether Flink accepts the proposed script")
OF_SQL = inferred(Outcome.INCOMPATIBLE, "the message comes from Flink's own check of the statement")
NAME_ON_VVR = inferred(Outcome.INCOMPATIBLE, "VVR is based on Flink and cannot find an unknown column or table")


def refusals_of_declarations(side: Side) -> Iterator[Refusal]:
    """Refusals of table and view declarations, without faults that Flink already reports for a query."""
    found = dict.fromkeys(declaration_faults(side.program))
    if not found:
        return
    queries = ((side.program.pipelines[place], output) for place, output in side.outputs[0].items())
    by_query = (faults(Query(pipeline, output, side.program, side.flink_line)) for pipeline, output in queries)
    reported = {fault.message for each in by_query for fault in each}
    for fault, span in found:
        if fault.message not in reported:
            yield Refusal(fault.message, span, "script", fault.of_name, certain=fault.certain)


def _refusals_of_added(change: Change) -> Iterator[Refusal]:
    """Refusals by Flink of the queries that the change adds."""
    for place, output in change.new.outputs[0].items():
        if any(output is each for each in change.added):
            pipeline = change.new.program.pipelines[place]
            for fault in faults(Query(pipeline, output, change.new.program, change.new.flink_line)):
                yield Refusal(fault.message, pipeline.span, "statement", fault.of_name, certain=fault.certain)


def program_verdicts(refusal: Refusal) -> Mapping[str, Verdict]:
    """Verdicts on a refusal that differ from the verdicts of the rule."""
    if not refusal.certain:
        return {"flink": SCRIPT_MAY_BE_REFUSED}
    found = {"flink": OF_SQL} if refusal.what in ("script", "statement") else {}
    return found | ({"vvr": NAME_ON_VVR} if refusal.of_name else {})


MINUTE_WINDOW = """\
minute = Tumble.over({}).on(col("order_time")).alias("w")
orders = t_env.from_path("orders")
orders.window(minute).group_by(col("w"), col("customer")).select(col("customer"), col("amount").sum).execute()
"""


@Rule(
    code="program-refused",
    title="Flink refuses the program",
    vvr=ON_VVR,
    flink=expected("each refusal was confirmed with PyFlink 2.3.0"),
    rationale=(
        "Flink's validator or planner refuses a window or an aggregate of the program. No job starts, with or without "
        "state. The finding names the remedy."
    ),
    example=Example(
        PROGRAM + MINUTE_WINDOW.format("lit(10).minutes"), PROGRAM + MINUTE_WINDOW.format("lit(10)"), language="python"
    ),
    level=Level.REST,
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
def program_refused(change: Change) -> Iterable[RuleMatch]:
    old, new = change.refusals
    if not change.unchanged:
        # An unchanged script still runs on its cluster, perhaps on an older Flink than the check assumes.
        new = (*new, *old_style_refusals(change.new))
    claims = change.claim("unread") if old or new else ()
    declared = tuple(refusals_of_declarations(change.new))
    known = {each.message for each in refusals_of_declarations(change.old)} if declared else ()
    new = (*new, *(each for each in declared if each.message not in known), *_refusals_of_added(change))
    for refusal in new:
        said = f"Flink {refusal.verb} the proposed {refusal.what}: {refusal.message}"
        if not refusal.of_session or ENGINE_FACTS[change.engine].takes_commands:
            yield RuleMatch(said, claims, after_span=refusal.span, verdicts=program_verdicts(refusal))
    for refusal in old:
        if not refusal.certain or refusal.of_session:
            continue
        yield RuleMatch(
            f"Flink refuses the deployed {refusal.what}: {refusal.message}",
            claims,
            before_span=refusal.span,
            verdicts={"vvr": DEPLOYED, "flink": DEPLOYED},
        )


LITERAL_MINUTE = """\
minute = Tumble.over(lit(1).minutes).on(col("order_time")).alias("w")
orders = t_env.from_path("orders").window(minute)
"""


@Rule(
    code="notation-not-run",
    title="The engine does not support this notation",
    vvr=unknown("VVR is based on Flink", Reason.VERSION),
    flink=unknown("Flink 2.3.0 refused the old string expressions", Reason.VERSION),
    rationale=(
        "The check understands the program, but this version of the engine cannot run it. Flink 1.16 removed string "
        "expressions, and FLIP-11 was never fully implemented. The running program must therefore be a different "
        "program."
    ),
    example=Example(
        PROGRAM + LITERAL_MINUTE + 'orders.group_by(col("w"), col("customer")).select(col("amount").sum).execute()\n',
        PROGRAM + LITERAL_MINUTE + 'orders.group_by("w, customer").select("amount.sum").execute()\n',
        versions=("8", "8"),
        language="python",
    ),
)
def notation_not_run(change: Change) -> Iterable[RuleMatch]:
    for side, which in ((change.old, "deployed"), (change.new, "proposed")):
        if found := side.not_run:
            what = "; ".join(dict.fromkeys(note.text for note in found))
            message = f"{side.engine} {side.version} does not support the {which} program: {what}"
            old, new = (found[0].span, None) if side is change.old else (None, found[0].span)
            yield RuleMatch(message, before_span=old, after_span=new)


_REFUSED = expected("confirmed with Flink's planner, 2.3.0")
STATEMENT_MAY_BE_REFUSED = unknown("it is unknown whether Flink accepts the proposed statement")
_REFUSED_TOTALS = "CREATE TABLE totals (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"


def statement_verdicts(fault: Fault) -> Mapping[str, Verdict]:
    """Verdicts on a fault that differ from the verdicts of the rule."""
    if not fault.certain:
        return {"flink": STATEMENT_MAY_BE_REFUSED}
    own = {"vvr": NAME_ON_VVR} if fault.of_name else {}
    return own | ({"flink": replace(_REFUSED, remedy=Remedy.ON_CONFLICT)} if fault.kind == ON_CONFLICT else {})


@Rule(
    code="statement-refused",
    title="Flink refuses the statement",
    vvr=ON_VVR,
    flink=_REFUSED,
    rationale=(
        "Flink refuses the new statement. Typical causes: the query's columns do not match the sink, the sink "
        "accepts only inserts, a declaration or call is invalid, or ON CONFLICT is missing (Flink 2.3 and later). "
        "No job starts, with or without state. If the deployed version has the same fault, the fault is reported only "
        "if it depends on the Flink version. The deployed job runs despite other faults."
    ),
    example=Example(
        _REFUSED_TOTALS + "INSERT INTO totals SELECT customer, amount FROM orders;",
        _REFUSED_TOTALS + "INSERT INTO totals SELECT customer, amount, item FROM orders;",
    ),
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
def statement_refused(pair: PipelinePair) -> Iterable[RuleMatch]:
    old = Query(pair.old_pipeline, pair.old, pair.old_program, pair.lines[0])
    new = Query(pair.new_pipeline, pair.new, pair.new_program, pair.lines[1])
    for fault in added_faults(old, new):
        said = "refuses" if fault.certain else "may refuse"
        yield RuleMatch(f"Flink {said} the proposed statement: {fault.message}", verdicts=statement_verdicts(fault))


MALFORMED = {
    "flink": inferred(
        Outcome.INCOMPATIBLE,
        (
            "Flink's parser refuses the statement. In public scripts, Flink 2.3.0 refused 290 of 302 statements that "
            "this check's grammar cannot read"
        ),
    ),
    "vvr": inferred(Outcome.INCOMPATIBLE, "VVR parses SQL with Flink's parser, which refuses the statement"),
}
_GRAMMAR_OF_BOTH = re.compile(
    r"(?:SELECT|WITH|INSERT|EXECUTE STATEMENT SET|CREATE (?:TEMPORARY )?(?:TABLE|VIEW))\b|[^\w\s]|\w+$", re.IGNORECASE
)
"""First words of statements for which VVR's documents show no syntax beyond Flink's grammar."""
_OWN_ON_VVR = re.compile(r"\b(?:MATCH_RECOGNIZE|EMIT|AS (?:TABLE|DATABASE))\b", re.IGNORECASE)
"""Clauses for which VVR's grammar has more syntax than Flink's grammar."""


def is_malformed(side: Side) -> bool:
    """True if a statement of a side is malformed in Flink's grammar and default dialect."""
    return any(each.kind is ObstacleKind.SYNTAX for each in obstacles(side))


def _has_common_grammar(problem: Problem) -> bool:
    """True if VVR and Flink have the same grammar for this kind of statement."""
    text = str(problem.text).strip()
    return _GRAMMAR_OF_BOTH.match(text) is not None and _OWN_ON_VVR.search(text) is None


@Rule(
    code="statement-not-read",
    title="A statement could not be read",
    vvr=unknown(reason=Reason.NOT_READ),
    flink=unknown(reason=Reason.NOT_READ),
    rationale=(
        "An unread statement may have any effect. If the check knows the whole grammar of this kind of statement, "
        "Flink's parser also refuses the proposed statement, and no job starts."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        "SELECT FROM WHERE;\n" + windowed("customer, SUM(amount)"),
        outcomes=dict.fromkeys(MALFORMED, Outcome.INCOMPATIBLE),
    ),
    level=Level.REST,
    case_dependent=("flink", "vvr"),
)
def statement_not_read(change: Change) -> Iterable[RuleMatch]:
    alike = harmless_unread_messages(change)
    deployed = {problem.text for problem in change.programs[0].problems}
    for i, program in enumerate(change.programs):
        for problem in program.problems:
            if problem.reason in REFUSALS or problem.message in alike:
                continue
            refused = i == 1 and problem.malformed and problem.text not in deployed and is_malformed(change.new)
            engines = ("flink", "vvr") if _has_common_grammar(problem) else ("flink",)
            yield RuleMatch(
                f"{'deployed' if i == 0 else 'proposed'} script: {problem.message}",
                change.claim("unread"),
                before_span=None if i else problem.span,
                after_span=problem.span if i else None,
                verdicts={engine: MALFORMED[engine] for engine in engines} if refused else {},
            )
    for problem in change.failures:
        yield RuleMatch(problem.message, (), before_span=problem.span)


def _message(pair: PipelinePair, kept_whole: list[Opaque | None]) -> str:
    query = format_query(pair.sink)
    if any(kept_whole):
        sides = zip(("deployed", "proposed"), kept_whole, strict=True)
        why = {side: node.reason for side, node in sides if node is not None}
        if len(set(why.values())) == 1 and len(why) == 2:
            return f"{query} changed, and neither version can be resolved: {why['deployed']}"
        return f"{query} cannot be resolved: " + "; ".join(f"{side} script: {reason}" for side, reason in why.items())
    kinds = " and ".join(sorted({_LABELS.get(operator.kind, operator.kind) for operator in pair.others}))
    parts = sorted({difference.part for each in pair.operators for difference in each.differences} | pair.parts)
    return shortened(f"{query} changed ({', '.join(parts)}) and contains {kinds}; such a change was not measured", 200)


_LABELS: dict[str, str] = {JoinForm.JOIN: "a join of an unknown kind"}


def unresolved(sink: Sink) -> Iterator[Opaque]:
    """Unresolved queries whose rows go to a sink."""
    return (each for each in sink.nodes if isinstance(each, Opaque) and each.kind == OtherKind.QUERY)


@Rule(
    code="operator-not-covered",
    title="A change around an operator without rules",
    vvr=unknown(),
    flink=unknown(),
    rationale=(
        "INTERSECT, EXCEPT, subqueries in conditions and unrecognized joins have state, often whole rows. Any "
        "difference in these operators or their chain may break the state."
    ),
    example=Example(
        "SELECT customer FROM orders INTERSECT SELECT region FROM orders;",
        "SELECT customer FROM orders INTERSECT SELECT item FROM orders;",
    ),
)
def operator_not_covered(pair: PipelinePair) -> Iterable[RuleMatch]:
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
