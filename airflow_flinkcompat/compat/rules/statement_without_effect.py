from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import shortened
from airflow_flinkcompat.compat.rule import UNCHANGED, Example, Rule, RuleMatch, RuleScope, TableApiCover, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan import OtherStatement, Program
from airflow_flinkcompat.plan.operators import Output, sources
from airflow_flinkcompat.sql import nodes

LOOKS = frozenset({"Describe", "Explain", "SetOption", "Show"})
"""Statements that only show something; SET without a key lists the settings."""


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("statement"):
        for place, fact in enumerate((difference.before, difference.after)):
            if isinstance(fact, OtherStatement) and (why := _without_effect(fact, place, change)):
                yield RuleMatch(
                    f"{shortened(str(fact))}: {why}",
                    (difference.key,),
                    "" if place else str(fact),
                    str(fact) if place else "",
                    difference.before_span,
                    difference.after_span,
                )


def _without_effect(fact: OtherStatement, place: int, change: Change) -> str:
    """Why a statement of one side does nothing to its queries; "" where it may."""
    kind, name = fact.subject
    if fact.kind in LOOKS:
        return "it only shows something"
    if kind == "DATABASE" and fact.kind == "CreateNamespace":
        return "a database that is there changes no query"
    if kind == "CATALOG" and fact.kind == "CreateNamespace":
        return "" if _uses_catalog(name, change) else "nothing is read from or written into this catalog"
    if kind not in ("TABLE", "VIEW") or change.may_be_used_unseen(name):
        return ""
    if fact.kind == "replaced":
        return _replaced(fact, place, change)
    used = name in change.used_tables
    if fact.kind == "Drop":
        return _drop(fact, place, change)
    return "" if used or kind == "VIEW" else "no query uses the table"


def _replaced(fact: OtherStatement, place: int, change: Change) -> str:
    """Why a declaration that another one replaces further down does nothing to the queries of both sides."""
    program = change.programs[place]
    if program.views:
        return ""  # one in between would hold what was declared first
    dropped = (each for each in program.other_statements if each.kind == "Drop" and each.subject == fact.subject)
    if not any(fact.subject[1] in drop.declared_before for drop in dropped):
        return ""  # Flink refuses a table that is there already
    if not fact.queries_before:
        return "the table is declared anew before the first query"
    used = _used_before(fact, place, change)
    return "" if used is None or fact.subject[1] in used else "only queries that came or went used it"


def _used_before(fact: OtherStatement, place: int, change: Change) -> set[str] | None:
    """The tables of the queries in front of a statement that both sides have; None where one is not taken apart."""
    pipelines = change.programs[place].pipelines[: fact.queries_before]
    stay = {id((pair.old_pipeline, pair.new_pipeline)[place]) for pair in change.pipelines}
    queries = (change.old, change.new)[place].outputs[0]
    before = [n for n, pipeline in enumerate(pipelines) if id(pipeline) in stay or n not in queries]
    return None if any(n not in queries for n in before) else {t for n in before for t in _tables(queries[n])}


def _tables(output: Output) -> set[str]:
    return {output.sink, *(source.table for source in sources(output))}


def _drop(fact: OtherStatement, place: int, change: Change) -> str:
    """Why a DROP does nothing to the queries of its side."""
    kind, name = fact.subject
    program = change.programs[place]
    if kind == "VIEW":
        known = name in fact.declared_before
        return "" if known and fact.queries_before < len(program.pipelines) else "no later query reads the view"
    if name not in change.tables_of_sides[place]:
        return "no query uses the table"
    if not _declared_by_options(program, name):
        return ""  # what a catalog keeps by itself goes with the table
    if fact.queries_before == len(program.pipelines):
        return "every query of the script was started before it"
    if name in fact.declared_before and not _declared_anew(fact, program):
        return ""
    used = _used_before(fact, place, change)
    views = fact.declared_before.intersection(view for view, _ in program.views)
    return "" if used is None or name in used or views else "the script declares the table itself, after it"


def _declared_anew(fact: OtherStatement, program: Program) -> bool:
    """Whether the table that a DROP takes away is declared again before the next query."""
    at = program.other_statements.index(fact)
    return any(
        each.kind == "replaced" and each.subject == fact.subject and each.queries_before == fact.queries_before
        for each in program.other_statements[at:]
    )


def _declared_by_options(program: Program, name: str) -> bool:
    """Whether a table is one that its options describe, so that dropping it drops no data."""
    return any(
        table.name == name and (table.option("connector") or table.option("connector.type")) for table in program.tables
    )


def _uses_catalog(name: str, change: Change) -> bool:
    """Whether a query of either side may find tables or functions in a catalog."""
    paths = {*change.used_tables, *change.used_functions}
    if any(path.replace("`", "").lower().startswith(f"{name.lower()}.") for path in paths):
        return True
    statements = (statement for side in (change.old, change.new) for statement in side.parsed.statements)
    current = any(isinstance(node, nodes.UseNamespace) for each in statements for node in each.nodes[:1])
    return current or change.may_be_used_unseen(name)


RULE = Rule(
    code="statement-without-effect",
    title="A statement came or went that does nothing to the queries",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "no query uses it"),
        "flink": inferred(Outcome.COMPATIBLE, "no job uses it", ids=UNCHANGED),
    },
    rationale="SHOW, DESCRIBE and EXPLAIN show something. CREATE DATABASE, and DROP of a table in front of its own "
    "declaration, make a script fit to run twice. A job is planned from what is declared where its query stands.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SHOW TABLES;\nCREATE DATABASE IF NOT EXISTS reports;\nDROP TABLE IF EXISTS spare;\n"
        + windowed("customer, SUM(amount)"),
    ),
    find=find,
    table_api_cover=TableApiCover.ALWAYS,
)
