"""Rules about renamed, undeclared or unused tables and views, and about statements without effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import LITERAL_ROWS, Difference, table_parts
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.query_form import tables_of
from airflow_flinkcompat.compat.engines.flink import settings, stateless
from airflow_flinkcompat.compat.rule import MINUTE, Example, Rule, RuleMatch, TableApiCover, windowed
from airflow_flinkcompat.compat.rule_builders.option_matches import judge_options
from airflow_flinkcompat.compat.rule_builders.table_options import OptionVerdict, uses_of
from airflow_flinkcompat.compat.verdict import UNCHANGED, Verdict, combined, documented, inferred, right, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import TableUse
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan import OtherStatement, Program
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import sources
from airflow_flinkcompat.secrets.redact import shortened
from airflow_flinkcompat.sql import nodes

RENAMED = right("x-source-rename", note="the same declaration under a different name")
UNLIKE = unknown("the declarations of the two tables differ, and such a change was not measured")
FOUND_BY_NAME = unknown(
    "the stored positions belong to the old table; their use for a different table was not measured"
)
SHARED = unknown(
    "a job scans a table once for all queries that read the table. An added or removed scan changes other operator "
    "ids (measured: read-twice-join-join-apart, read-twice-set-set-apart)"
)
READ_ONCE = inferred(Outcome.INCOMPATIBLE, "CommonExecValues: a bounded source of these rows")


def _literal(read: object) -> bool:
    """True if the input consists of literal rows in the script."""
    return isinstance(read, tuple) or read == LITERAL_ROWS


def other_reads(change: Change) -> Iterator[tuple[PipelinePair, Difference]]:
    """Differences where an operator or an output reads a different table."""
    for pipeline in change.pipelines:
        below = (difference for pair in pipeline.operators for difference in pair.differences)
        for difference in (*pipeline.differences, *below):
            if difference.part.startswith("source") and not difference.part.startswith("source hints"):
                yield pipeline, difference


def _judge_declaration(pair: PipelinePair, old: Table, new: Table) -> Verdict:
    """Verdict on a different source table. Stored positions contain neither table names nor columns."""
    if old.options != new.options:
        return UNLIKE
    return stateless.settled(pair, UNLIKE, *stateless.SOURCE_NAME)


def _name_selects_data(table: Table) -> bool:
    """True if the connector may find the data by the table name, as a catalog's connector does."""
    connector = table.option("connector")
    if connector is None:
        return table.option("connector.type") is None
    if connector not in registry.catalogue():
        return True
    table_name_option = registry.source(connector).table_name_option
    return bool(table_name_option) and table.option(table_name_option) is None


def _changes_scans(change: Change, pair: PipelinePair, names: tuple[str, str]) -> bool:
    """True if the job may scan more or fewer tables than before."""
    job = (pair, *change.companions(pair))
    readers = [[source.table for each in job for source in sources((each.old, each.new)[place])] for place in range(2)]
    moved = [found.count(name) for found, name in zip(readers, names, strict=True)]
    return moved[0] != moved[1] or names[1] in readers[0] or names[0] in readers[1]


def _judge_replacement(
    change: Change, pair: PipelinePair, old: Table | None, new: Table | None
) -> OptionVerdict | None:
    """Verdict on a replaced source table; None if the declarations of both tables are equal."""
    if old is None or new is None:
        return OptionVerdict("", UNLIKE)
    before, after = table_parts(old), table_parts(new)
    uses = [used for used in uses_of(change, old.name) if used.use is not TableUse.SINK]
    if any(map(_name_selects_data, (old, new))) and any(used.use is TableUse.SOURCE for used in uses):
        return OptionVerdict("the connector may find the data by the table name", FOUND_BY_NAME)
    if any(before[part] != after[part] for part in before if part != "options"):
        return OptionVerdict("", _judge_declaration(pair, old, new))
    found = judge_options(old.name, before["connector"], before["options"], after["options"], uses)
    return found and OptionVerdict(found.sentence, combined((found.verdict, RENAMED)))


@Rule(
    code="source-renamed",
    title="A different source table",
    vvr=documented(Outcome.INCOMPATIBLE, "Source table page (its summary): table renamed"),
    flink=RENAMED,
    rationale=(
        "VVR finds the state of a source by the table name. Open-source Flink ignores table names. However, if the "
        "options do not name the data, the connector finds the data by the table name. Positions in one table are "
        "then meaningless in a different table."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE purchases (customer STRING, amount BIGINT, order_time TIMESTAMP(3),\n"
        "  WATERMARK FOR order_time AS order_time) WITH ('connector' = 'kafka', 'topic' = 'orders');\n"
        + windowed("customer, SUM(amount)").replace("TABLE orders", "TABLE purchases"),
        outcomes={"flink": Outcome.UNKNOWN},
    ),
    parts=("source",),
    beside_operators=True,
    case_dependent=("flink",),
)
def source_renamed(change: Change) -> Iterable[RuleMatch]:
    tables = [{table.name: table for table in program.tables} for program in change.programs]
    for pair, difference in other_reads(change):
        if all(map(_literal, (difference.before, difference.after))):
            before, after = (shortened(format_value(rows)) for rows in (difference.before, difference.after))
            yield difference.match(
                "the literal rows changed: a job reads the rows of its script once and does not read new rows after a "
                "restore",
                before,
                after,
                verdicts={"flink": READ_ONCE, "vvr": READ_ONCE},
            )
            continue
        old, new = (tables[i].get(name) for i, name in enumerate((difference.before, difference.after)))
        names = (str(difference.before), str(difference.after))
        tables_read = isinstance(difference.before, str) and isinstance(difference.after, str)
        apart = tables_read and _changes_scans(change, pair, names)
        judged = (
            OptionVerdict("other queries of the job also read the table", SHARED)
            if apart
            else _judge_replacement(change, pair, old, new)
        )
        declared = (d.key for d in change.parts("declared") if d.key.split("/")[1] in names)
        yield difference.match(
            "a different table is read",
            *names,
            also=declared,
            verdicts={"flink": judged.verdict} if judged else {},
            notes={"flink": f": {judged.sentence}" if judged and judged.sentence else ""},
        )


def _replaced_tables(change: Change) -> set[str]:
    """Tables that replace each other in reads or writes; separate rules judge them."""
    read = [(difference.before, difference.after) for _, difference in other_reads(change)]
    written = [(pair.old.sink, pair.new.sink) for pair in change.pipelines if "sink" in pair.parts]
    return {name for names in (*read, *written) if all(names) for name in names if isinstance(name, str)}


@Rule(
    code="table-comes-with-its-use",
    title="A table's declaration was added or removed together with its queries",
    vvr=inferred(Outcome.COMPATIBLE, "judged in the queries that read or write the table"),
    flink=inferred(Outcome.COMPATIBLE, "judged in the queries that read or write the table", ids=UNCHANGED),
    rationale="Separate rules judge the queries that read or write the table.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
        "INSERT INTO totals\n" + windowed("customer, SUM(amount)"),
    ),
    parts=("declared",),
)
def table_comes_with_its_use(change: Change) -> Iterable[RuleMatch]:
    replaced = _replaced_tables(change)
    for difference in change.parts("declared"):
        name = difference.key.split("/")[1]
        old, new = (name in tables for tables in change.tables_of_sides)
        if old != new and (difference.before is not None) == old and name not in replaced:
            yield difference.match(
                f"the declaration of table {name} was added or removed together with its queries",
                name if old else "",
                name if new else "",
            )


UNDECLARED_MESSAGE = (
    "table {} is declared neither in the script nor in the catalog, so its column types are unknown. Pass the "
    "file with its DDL as --catalog, or set catalog in the project file"
)


def _tables_with_relevant_types(change: Change) -> set[str] | None:
    """Tables whose column types may affect the verdict; None for all tables.

    The types of a table do not matter if all queries that use the table are unchanged.
    """
    if change.parts("engine") or change.parts("insert order"):
        return None
    if any(settings.depends_on_tables(each.key.partition("/")[2]) for each in change.parts("setting")):
        return None
    differing = {
        each.key.split("/")[1]
        for each in change.script_differences
        if each.key.startswith("table/") and each.part != "options"
    }
    of_pairs = ((pair, tables_of(pair.old) | tables_of(pair.new)) for pair in change.pipelines)
    return {name for pair, tables in of_pairs if pair.changed or tables & differing for name in tables}


UNDECLARED_QUERY = (
    "SELECT customer, SUM(amount){0} FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid), INTERVAL '1' MINUTE))\n"
)
UNDECLARED_KEYS = "GROUP BY customer, window_start, window_end;"


@Rule(
    code="undeclared-table",
    title="A table without a declaration",
    vvr=inferred(Outcome.COMPATIBLE, "only a note: the check assumes that both versions have the same schema"),
    flink=unknown("pass the DDL as --catalog", Reason.UNDECLARED),
    rationale=(
        "The state layout depends on the column types. VVR's rules compare names and expressions; open-source "
        "Flink compares layouts."
    ),
    example=Example(
        UNDECLARED_QUERY.format("") + UNDECLARED_KEYS, UNDECLARED_QUERY.format(", window_start") + UNDECLARED_KEYS
    ),
    beside_operators=True,
)
def undeclared_table(change: Change) -> Iterable[RuleMatch]:
    declared = [{table.name for table in program.tables} for program in change.programs]
    names = [name for name in sorted(change.used_tables - {""}) if not all(name in tables for tables in declared)]
    if not names or change.parts("declared"):
        return
    deciding = _tables_with_relevant_types(change)
    for name in names:
        if deciding is None or name in deciding:
            yield RuleMatch(UNDECLARED_MESSAGE.format(name))


FUNCTION = {"flink": unknown("unused tables and views were measured, but unused functions were not")}


@Rule(
    code="unused-declaration",
    title="An unused declaration",
    vvr=inferred(Outcome.COMPATIBLE, "no query uses the declaration"),
    flink=right("declarations-unused-table"),
    rationale="The planner considers only the tables, views and functions that a query uses.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE spare (a INT) WITH ('connector' = 'print');\n" + windowed("customer, SUM(amount)"),
    ),
    parts=("table", "function"),
    case_dependent=("flink",),
    table_api_cover=TableApiCover.ALWAYS,
)
def unused_declaration(change: Change) -> Iterable[RuleMatch]:
    for difference in change.script_differences:
        place, _, name = difference.key.partition("/")
        table = name.rpartition("/")[0]
        if change.may_be_used_unseen(table if place == "table" else name):
            continue
        if place == "table" and table not in change.used_tables:
            yield RuleMatch(f"table {table} is declared but not used", (difference.key,))
        elif place == "function" and not any(change.uses_function(name)):
            yield RuleMatch(f"function {name} is declared but not used", (difference.key,), verdicts=FUNCTION)


@Rule(
    code="view-rewritten",
    title="A view was added, deleted, renamed or rewritten",
    vvr=documented(Outcome.COMPATIBLE, "Alias page: names do not affect state"),
    flink=right("x-view-rename", "x-inline-view", "x-projection-upstream"),
    rationale="The planner expands a view into the queries that read it. Only the resulting computation matters.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TEMPORARY VIEW recent AS SELECT customer, amount, order_time FROM orders;\n"
        + windowed("customer, SUM(amount)", source=MINUTE.replace("TABLE orders", "TABLE recent")),
    ),
    parts=("view",),
    table_api_cover=TableApiCover.ALWAYS,
)
def view_rewritten(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("view"):
        name = difference.key.partition("/")[2]
        if change.may_be_used_unseen(name):
            continue
        yield RuleMatch(
            f"the definition of view {name} changed; its effect is judged in the queries that read it",
            (difference.key,),
        )


LOOKS = frozenset({"Describe", "Explain", "SetOption", "Show"})
"""Statements that only display information; SET without a key lists the settings."""


def _no_effect_reason(fact: OtherStatement, place: int, change: Change) -> str:
    """Reason why a statement on one side does not affect the queries; "" if it may."""
    kind, name = fact.subject
    if fact.kind in LOOKS:
        return "the statement only displays information"
    if kind == "DATABASE" and fact.kind == "CreateNamespace":
        return "creating a database that exists changes no query"
    if kind == "CATALOG" and fact.kind == "CreateNamespace":
        return "" if _uses_catalog(name, change) else "no query reads from or writes into this catalog"
    if kind not in ("TABLE", "VIEW") or change.may_be_used_unseen(name):
        return ""
    if fact.kind == "replaced":
        return _replaced_reason(fact, place, change)
    used = name in change.used_tables
    if fact.kind == "Drop":
        return _drop_reason(fact, place, change)
    return "" if used or kind == "VIEW" else "no query uses the table"


def _replaced_reason(fact: OtherStatement, place: int, change: Change) -> str:
    """Reason why a declaration that the script later replaces does not affect queries; "" if it may."""
    program = change.programs[place]
    if program.views:
        return ""  # a view between the two declarations may use the first one
    dropped = (each for each in program.other_statements if each.kind == "Drop" and each.subject == fact.subject)
    if not any(fact.subject[1] in drop.declared_before for drop in dropped):
        return ""  # without a DROP, Flink refuses to declare an existing table
    if not fact.queries_before:
        return "the table is declared again before the first query"
    used = _tables_used_before(fact, place, change)
    return "" if used is None or fact.subject[1] in used else "only queries that were added or removed used the table"


def _tables_used_before(fact: OtherStatement, place: int, change: Change) -> set[str] | None:
    """Tables of the paired queries that precede a statement; None if such a query was not analyzed."""
    pipelines = change.programs[place].pipelines[: fact.queries_before]
    stay = {id((pair.old_pipeline, pair.new_pipeline)[place]) for pair in change.pipelines}
    queries = (change.old, change.new)[place].outputs[0]
    before = [n for n, pipeline in enumerate(pipelines) if id(pipeline) in stay or n not in queries]
    return None if any(n not in queries for n in before) else {t for n in before for t in tables_of(queries[n])}


def _drop_reason(fact: OtherStatement, place: int, change: Change) -> str:
    """Reason why a DROP does not affect the queries of the same side; "" if it may."""
    kind, name = fact.subject
    program = change.programs[place]
    if kind == "VIEW":
        known = name in fact.declared_before
        return "" if known and fact.queries_before < len(program.pipelines) else "no later query reads the view"
    if name not in change.tables_of_sides[place]:
        return "no query uses the table"
    if not _is_defined_by_options(program, name):
        return ""  # dropping the table may also drop data that the catalog stores
    if fact.queries_before == len(program.pipelines):
        return "all queries of the script start before this statement"
    if name in fact.declared_before and not _is_declared_again(fact, program):
        return ""
    used = _tables_used_before(fact, place, change)
    views = fact.declared_before.intersection(view for view, _ in program.views)
    return "" if used is None or name in used or views else "the script declares the table after this statement"


def _is_declared_again(fact: OtherStatement, program: Program) -> bool:
    """True if the script declares the dropped table again before the next query."""
    at = program.other_statements.index(fact)
    return any(
        each.kind == "replaced" and each.subject == fact.subject and each.queries_before == fact.queries_before
        for each in program.other_statements[at:]
    )


def _is_defined_by_options(program: Program, name: str) -> bool:
    """True if options define a table, so that DROP TABLE drops no data."""
    return any(
        table.name == name and (table.option("connector") or table.option("connector.type")) for table in program.tables
    )


def _uses_catalog(name: str, change: Change) -> bool:
    """True if a query of either side may find tables or functions in a catalog."""
    paths = {*change.used_tables, *change.used_functions}
    if any(path.replace("`", "").lower().startswith(f"{name.lower()}.") for path in paths):
        return True
    statements = (statement for side in (change.old, change.new) for statement in side.parsed.statements)
    current = any(isinstance(node, nodes.UseNamespace) for each in statements for node in each.nodes[:1])
    return current or change.may_be_used_unseen(name)


@Rule(
    code="statement-without-effect",
    title="A statement without effect on queries was added or removed",
    vvr=inferred(Outcome.COMPATIBLE, "no query uses the statement"),
    flink=inferred(Outcome.COMPATIBLE, "no job uses the statement", ids=UNCHANGED),
    rationale=(
        "SHOW, DESCRIBE and EXPLAIN only display information. CREATE DATABASE, and DROP of a table before its "
        "declaration, allow a script to run twice. A job is planned from the declarations that precede its query."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        "SHOW TABLES;\nCREATE DATABASE IF NOT EXISTS reports;\nDROP TABLE IF EXISTS spare;\n"
        + windowed("customer, SUM(amount)"),
    ),
    parts=("statement",),
    table_api_cover=TableApiCover.ALWAYS,
)
def statement_without_effect(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("statement"):
        for place, fact in enumerate((difference.before, difference.after)):
            if isinstance(fact, OtherStatement) and (why := _no_effect_reason(fact, place, change)):
                yield difference.match(
                    f"{shortened(str(fact))}: {why}", "" if place else str(fact), str(fact) if place else ""
                )
