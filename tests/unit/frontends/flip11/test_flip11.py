"""FLIP-11's notation and the old string expressions: what they say in SQL, what is not read and where, bounded work."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.frontends.flip11 import parse_table
from airflow_flinkcompat.frontends.pyflink.reader import parse_program
from airflow_flinkcompat.frontends.table_api.expression_sql import sql
from airflow_flinkcompat.frontends.table_api.expression_text import strings
from airflow_flinkcompat.frontends.table_api.values import Expr, NotRead, Value
from airflow_flinkcompat.sql import Script, ScriptError, parse_script

DDL = """\
CREATE TABLE tab (a STRING, b BIGINT, c BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
"""
MINUTES = "INTERVAL '600.000' SECOND(10, 3)"
WINDOWED = f"SELECT `a`, SUM(`b`) AS `total` FROM `tab` GROUP BY TUMBLE(`ts`, {MINUTES}), `a`"
HEAD = """\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.window import Over, Session, Slide, Tumble
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t = t_env.from_path("t")
"""


def read(body: str, ddl: str = DDL) -> Script:
    return parse_table(ddl + body, "job.table")


def said(body: str) -> list[str]:
    """The statements behind the DDL, of a text that is read whole."""
    script = read(body)
    assert script.unread == ()
    return [statement.text for statement in script.statements[1:]]


def unread(body: str, ddl: str = "") -> list[tuple[str, str]]:
    return [(str(each.span).partition(":")[2], each.reason) for each in read(body, ddl).unread]


@pytest.mark.parametrize(
    "body",
    [
        "tab.groupBy('a).window(Tumble over 10.minutes on 'rowtime as 'w).select('a, 'b.sum as 'total)",
        "tab\n  .groupBy(\u2018a)  // as printed\n  .window(Tumble over 10.minutes on \u2018rowtime as \u2018w)\n"
        "  .select(\u2018a, \u2018b.sum as \u2018total)",
        "val w = Tumble over 10.minutes on 'ts as 'w\n"
        "val res = tab.window(w).groupBy('w, 'a).select('a, 'b.sum as 'total)",
        'tab.window(Tumble over 10.minutes on $"ts" as $"w").groupBy($"w", $"a").select($"a", $"b".sum as "total")',
        'tab.window(Tumble.over(lit(10).minutes()).on($("ts")).as("w")).groupBy($("w"), $("a"))'
        '.select($("a"), $("b").sum().as("total"));',
        'GroupWindow w = Tumble.over("10.minutes").on("ts").as("w");\n'
        'Table res = tab.window(w).groupBy("w, a").select("a, b.sum as total");',
        'import org.apache.flink.table.api._\nval orders = tEnv.from("tab")\n'
        "orders window (Tumble over 600.seconds on 'ts as 'w) groupBy ('w, 'a) select ('a, 'b.sum as 'total)",
        "val size: Int = 10\nval `my w` = Tumble over size.minutes on 'ts as 'x\n"
        "tab.window(`my w`).groupBy('a, 'x).select('a, 'b.sum as 'total).execute()",
    ],
    ids=["flip", "printed", "val", "scala", "java", "strings", "infix", "names"],
)
def test_every_notation_of_a_window_is_one_query(body: str) -> None:
    assert said(body) == [WINDOWED]


@pytest.mark.parametrize(
    ("body", "sql"),
    [
        ("tab.filter('a === \"x\" && 'b > 3 || !'c.isNull)",
         "SELECT * FROM `tab` WHERE ((((`a` = 'x') AND (`b` > 3)) OR (NOT (`c` IS NULL))))"),
        ("tab.where('b + 'c * 2 - 1 >= -5 && 'a !== \"it's\")",
         "SELECT * FROM `tab` WHERE (((((`b` + (`c` * 2)) - 1) >= (-5)) AND (`a` <> 'it''s')))"),
        ("tab.select('b cast DataTypes.STRING() as 'text, 'b.cast(Types.LONG), 'a.upperCase, 3L, 1.5)",
         "SELECT CAST(`b` AS STRING) AS `text`, CAST(`b` AS BIGINT), UPPER(`a`), CAST(3 AS BIGINT), (1.5E0) "
         "FROM `tab`"),
        ('tab.filter($("b").plus($("c")).isGreater(3).and($("a").isEqual("x"))).execute().await();',
         "SELECT * FROM `tab` WHERE ((((`b` + `c`) > 3) AND (`a` = 'x')))"),
        ("tab.groupBy('a).select('a, 'b.count.distinct)", "SELECT `a`, COUNT(DISTINCT `b`) FROM `tab` GROUP BY `a`"),
        ("tab.select('a).unionAll(tab.select('a)).insertInto(\"s\").execute()",
         "INSERT INTO `s` (SELECT `a` FROM `tab`) UNION ALL (SELECT `a` FROM `tab`)"),
        ("tEnv.executeSql(\"INSERT INTO s SELECT a FROM tab\")", "INSERT INTO s SELECT a FROM tab"),
        ('tEnv.executeSql("INSERT INTO s " +\n  "SELECT a " + "FROM tab");', "INSERT INTO s SELECT a FROM tab"),
        ('tEnv.executeSql("""INSERT INTO s\n    |SELECT a\n    |FROM tab""".stripMargin)',
         "INSERT INTO s\nSELECT a\nFROM tab"),
        ("tab.window(Over partitionBy 'a orderBy 'ts preceding 5.rows as 'w).select('b.sum over 'w as 'total)",
         "SELECT SUM(`b`) OVER (PARTITION BY `a` ORDER BY `ts` ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS `total` "
         "FROM `tab`"),
        ("tab.rowWindow(SessionRows withGap 10.minutes on 'rowtime as 'w).select('b.sum over 'w)",
         f"SELECT SUM(`b`) OVER (PARTITION BY SESSION(`ts`, {MINUTES}) ORDER BY `ts` "
         "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM `tab`"),
    ],
)  # fmt: skip
def test_what_a_text_says_in_sql(body: str, sql: str) -> None:
    assert said(body) == [sql]


@pytest.mark.parametrize(
    ("body", "at", "reason"),
    [
        ("tab.select('a", "1:14", ") is missing here"),
        ("tab.select('a, )", "1:16", "an expression is missing"),
        ("tab.select('a) + 1", "1:1", "not a constant"),
        ("x = #1\ntab.select('a).execute()", "1:5", "a character that is not supported"),
        ('tab.select("a, b.sum +")', "1:5", "at character 11 of an old string expression"),
        ('tab.select("a\n).execute()', "1:12", "never closed"),
        ("/* tab.select('a)", "1:1", "never closed"),
        ("object Job {\n}", "1:1", "write the statements without it"),
        ("val (a, b) = (1, 2)", "1:5", "write val name ="),
        ("tab.select('a == 1)", "1:12", "write === or !=="),
        ("tab.select('c')", "1:12", "a single character"),
        ('tab.select(s"a")', "1:12", "put together"),
        ("tab.toAppendStream", "1:5", "to_append_stream of a table is not supported"),
        ("tab.window(w).groupBy('w).select('b.sum)", "1:5", "window of a table"),
        ("val w = # broken\ntab.window(w).groupBy('w).select('b.sum)", "1:9", "a character"),
        ("val x = tab.select('a)\nval y = tab.select('b)", "1:1", "one of several tables"),
        ("tab.groupBy('a)", "1:1", "neither binds a name nor is a query"),
        ("tab.rowWindow(SlideRows preceding 5.rows preceding 5.rows as 'w)", "1:42", "no preceding"),
        ("tab.select('a, 3000000000)", "1:16", "beyond 32 bits"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_reported_with_its_place(body: str, at: str, reason: str) -> None:
    found = unread(body)
    assert found[0][0] == at
    assert reason in found[0][1]


def test_one_line_that_is_not_read_leaves_the_others() -> None:
    script = read('val x = #\ntab.select(\'a).insertInto("s")\nx.insertInto("r")')
    assert [statement.text for statement in script.statements[1:]] == ["INSERT INTO `s` SELECT `a` FROM `tab`"]
    assert [(each.span.line, each.reason) for each in script.unread] == [
        (2, "a character that is not supported"),
        (4, "x was not read where it was created"),
    ]


def test_a_name_may_be_bound_again_by_what_it_was() -> None:
    assert said("var t = tab.filter('b > 1)\nt = t.select('a)") == ["SELECT `a` FROM `tab` WHERE ((`b` > 1))"]


def test_execute_of_old_starts_one_insert() -> None:
    assert len(said('tab.select(\'a).insertInto("s")\nenv.execute("job")')) == 1
    found = unread('tab.select(\'a).insertInto("s")\ntab.insertInto("r")\nenv.execute("job")')
    assert found == [("3:5", "execute starts all inserts as one job: write them as a statement set")]


def test_a_program_in_java_with_its_environment() -> None:
    script = read(
        "import org.apache.flink.table.api.*;\n"
        "StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();\n"
        "env.setParallelism(2);\n"
        "EnvironmentSettings settings = EnvironmentSettings.newInstance().inBatchMode().build();\n"
        "TableEnvironment tEnv = TableEnvironment.create(settings);\n"
        'tEnv.getConfig().set("table.exec.state.ttl", "1 h");\n'
        'Table orders = tEnv.from("tab");\n'
        'tEnv.createTemporaryView("v", orders.filter($("b").isNotNull()));\n'
        "StatementSet jobs = tEnv.createStatementSet();\n"
        'jobs.addInsert("s", orders.select($("a"))).addInsert("r", tEnv.sqlQuery("SELECT a FROM v"));\n'
        "jobs.execute();\n"
    )
    assert script.unread == ()
    assert [statement.text for statement in script.statements[1:5]] == [
        "SET 'parallelism.default' = '2'",
        "SET 'execution.runtime-mode' = 'batch'",
        "SET 'table.exec.state.ttl' = '1 h'",
        "CREATE TEMPORARY VIEW `v` AS SELECT * FROM `tab` WHERE ((`b` IS NOT NULL))",
    ]
    assert script.statements[5].text.startswith("EXECUTE STATEMENT SET BEGIN\nINSERT INTO `s` SELECT `a` FROM `tab`")


def test_a_table_that_nothing_inserts_is_no_query_beside_one_that_is() -> None:
    body = 'val rest = tab.select(\'b)\ntEnv.executeSql("INSERT INTO s SELECT a FROM tab")'
    assert said(body) == ["INSERT INTO s SELECT a FROM tab"]


def test_sql_in_front_keeps_its_place() -> None:
    script = read("-- how it is said in SQL\nSET 'a' = 'b''; c';\ntab.select('a)")
    assert [str(statement.span) for statement in script.statements] == [
        "job.table:1:1",
        "job.table:3:1",
        "job.table:4:1",
    ]
    assert [statement.placed for statement in script.statements] == [True, True, False]


def test_sql_inside_keeps_its_place() -> None:
    script = read('val t = 1\ntEnv.executeSql("SELECT a FROM tab")')
    assert [(str(each.span), each.placed) for each in script.statements[1:]] == [("job.table:3:18", True)]


def test_names_may_come_from_outside() -> None:
    body = DDL + "tab.window(Tumble over size.minutes on 'ts as 'w).groupBy('w).select('b.sum)"
    assert "'420.000'" in parse_table(body, given={"size": "7"}).statements[-1].text
    assert parse_table(body).unread
    report = check(*(Side(body, language="table", variables={"size": size}) for size in ("7", "8")))
    assert report.outcome is Outcome.INCOMPATIBLE


def test_the_keyword_is_the_event_time_of_a_table_of_the_catalog() -> None:
    body = "tab.window(Tumble over 10.minutes on 'rowtime as 'w).groupBy('w, 'a).select('a, 'b.sum as 'total)"
    assert parse_table(body, catalog=parse_script(DDL)).statements[-1].text == WINDOWED
    by_catalog, by_itself = Side(body, catalog=DDL, language="table"), Side(DDL + body, language="table")
    assert by_catalog.program.pipelines[0].sink.input == by_itself.program.pipelines[0].sink.input


def test_the_keyword_goes_with_the_column() -> None:
    window = ".window(Tumble over 10.minutes on 'rowtime as 'w).groupBy('w).select('b.sum)"
    assert "TUMBLE(`t`" in said(f"tab.filter('b > 1).select('b, 'ts as 't){window}")[0]
    assert "TUMBLE(`ts`" in said(f"tab.select('*){window}".replace("'*", '"*"'))[0]
    (reason,) = (each.reason for each in read(f"tab.select('b){window}").unread)
    assert reason.startswith("a select omits the time column")


@pytest.mark.parametrize("text", ["", "  \n // nothing\n", "import a.b._", "val w = Tumble over 10.rows"])
def test_a_text_without_a_query_is_a_clear_error(text: str) -> None:
    with pytest.raises(ScriptError, match=r"job\.table: contains no program"):
        parse_table(text, "job.table")


@pytest.mark.parametrize("text", ["x" * 1_000_001, "tab.select('a)\ud800"], ids=["long", "surrogate"])
def test_what_is_no_text_is_a_clear_error(text: str) -> None:
    with pytest.raises(ScriptError, match=r"job\.table"):
        parse_table(text, "job.table")


# ------------------------------------------------------------------------------------------- old string expressions
@pytest.mark.parametrize(
    ("body", "sql"),
    [
        ("t.select(\"a, b.sum as total\").execute()", "SELECT `a`, SUM(`b`) AS `total` FROM `t`"),
        ("t.filter(\"a > 3 && b = 'x'\").execute()", "SELECT * FROM `t` WHERE (((`a` > 3) AND (`b` = 'x')))"),
        # && and || bind alike.
        ("t.where('a || b && c').execute()", "SELECT * FROM `t` WHERE (((`a` OR `b`) AND `c`))"),
        ("t.where('!a.isNull && -b * 2 <> \"it\"\"s\"').execute()",
         "SELECT * FROM `t` WHERE (((NOT (`a` IS NULL)) AND (((- `b`) * 2) <> 'it\"s')))"),
        ("t.select('cast(a, STRING), a.cast(LONG) as b, count(1) AS n, *').execute()",
         "SELECT CAST(`a` AS STRING), CAST(`a` AS BIGINT) AS `b`, COUNT(1) AS `n`, * FROM `t`"),
        ("t.group_by('a, b').select('a, b, c.count.distinct, c.max + 1.5').execute()",
         "SELECT `a`, `b`, COUNT(DISTINCT `c`), (MAX(`c`) + (1.5E0)) FROM `t` GROUP BY `a`, `b`"),
        ("t.window(Slide.over('10.minutes').every('5.minutes').on('ts').alias('w')).group_by('w, a')"
         ".select('a, b.sum, w.start').execute()",
         "SELECT `a`, SUM(`b`), HOP_START(`ts`, INTERVAL '300.000' SECOND(10, 3), INTERVAL '600.000' SECOND(10, 3)) "
         "FROM `t` GROUP BY HOP(`ts`, INTERVAL '300.000' SECOND(10, 3), INTERVAL '600.000' SECOND(10, 3)), `a`"),
        ("t.window(Tumble.over('10.rows').on('pt').alias('w')).group_by('w').select('b.sum').execute()",
         "SELECT SUM(`b`) FROM `t` GROUP BY TUMBLE(`pt`, ROW_INTERVAL(10))"),
        ("t.over_window(Over.partition_by('a').order_by('ts').preceding('unbounded_range').alias('w'))"
         ".select('b.sum over w as total').execute()",
         "SELECT SUM(`b`) OVER (PARTITION BY `a` ORDER BY `ts` RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) "
         "AS `total` FROM `t`"),
        ("u = t_env.from_path('u')\nt.join(u, 'a = d').select('a').execute()",
         "SELECT `a` FROM (SELECT * FROM (SELECT * FROM `t`) JOIN (SELECT * FROM `u`) ON (`a` = `d`))"),
    ],
)  # fmt: skip
def test_old_string_expressions(body: str, sql: str) -> None:
    script = parse_program(HEAD + body, "job.py")
    assert script.unread == ()
    assert [statement.text for statement in script.statements] == [sql]
    assert [note.last for note in script.notes if "old string" in note.text] == ["1.15"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a +", "at character 4 of an old string expression: an expression is missing"),
        ("a = b = c", "at character 7 of an old string expression: a comparison of a comparison"),
        ("a b", "at character 3 of an old string expression: the expression continues"),
        ("a, ", "at character 4 of an old string expression"),
        ("'x", "never closed"),
        ("a.?(1, 2)", "is not supported"),
        ("Null(INT)", "is not supported"),
        ("a.cast(MAP(INT, INT))", "is not supported"),
        ("", "an expression is missing"),
        ("(" * 100 + "a" + ")" * 100, "nested too deeply"),
        ("-" * 100 + "a", "nested too deeply"),
        ("1.5.minutes", "not a whole number"),
    ],
)
def test_what_is_not_read_of_an_old_string(text: str, reason: str) -> None:
    (found,) = (each.reason for each in parse_program(f"{HEAD}t.select({text!r}).execute()", "job.py").unread)
    assert found.startswith("at character")
    assert reason in found


def test_several_names_in_one_text_mean_another_thing_to_every_version() -> None:
    (found,) = (each.reason for each in parse_program(f"{HEAD}t.alias('a, b').execute()", "job.py").unread)
    assert "current Flink reads one column" in found


def test_several_texts_are_not_one_old_string() -> None:
    (found,) = (each.reason for each in parse_program(f"{HEAD}t.select('a', 'b').execute()", "job.py").unread)
    assert "write an old string expression as one text" in found


@pytest.mark.parametrize(
    ("engine", "version", "outcome"),
    [
        ("flink", "2.3", Outcome.UNKNOWN),
        ("flink", "1.16", Outcome.UNKNOWN),
        ("flink", None, Outcome.UNKNOWN),
        ("vvr", "8", Outcome.UNKNOWN),
        ("vvr", "8.0.5", Outcome.UNKNOWN),
        ("vvr", "99", Outcome.UNKNOWN),
        ("vvr", "6", Outcome.COMPATIBLE),
        ("vvr", None, Outcome.COMPATIBLE),
    ],
)
def test_a_version_without_old_strings_never_runs_them_compatibly(
    engine: str, version: str | None, outcome: Outcome
) -> None:
    text = HEAD + "t.select('a, b').execute_insert('s')"
    side = Side(text, engine=engine, engine_version=version, language="python")
    report = check(side, side)
    assert report.outcome is outcome
    assert ("notation-not-run" in {finding.rule for finding in report.findings}) is (outcome is Outcome.UNKNOWN)
    assert any("old string expressions (Flink up to 1.15 only" in line for line in report.warnings)


def test_texts_and_expressions_are_one_query_where_both_run() -> None:
    old = HEAD + "t.filter('a > 3').select('a, b').execute_insert('s')"
    new = HEAD + "t.filter(t.a > 3).select(t.a, t.b).execute_insert('s')"
    table = "t.filter('a > 3).select('a, 'b).insertInto(\"s\")"
    sides = [Side(old, language="python"), Side(new, language="python"), Side(table, language="table")]
    for a in sides:
        assert [finding.rule for b in sides for finding in check(a, b).findings] == ["unchanged"] * 3


# ------------------------------------------------------------------------------------------- any text, any expression
def _method(owner: Any, name: str, args: Any) -> Value:
    raise NotRead(name)


def _function(name: str, args: Any) -> Value:
    raise NotRead(name)


SCALA = [["||"], ["&&"], ["===", "!=="], ["<", ">", "<=", ">="], ["+", "-"], ["*", "/", "%"]]
STRINGS = [["||", "&&"], ["=", "<>", "<", ">", "<=", ">="], ["+", "-"], ["*", "/", "%"]]
MEANS = {"||": "OR", "&&": "AND", "===": "=", "!==": "<>"}
Written = tuple[str, int, Expr]
"""A text, how strongly its outermost operator binds, and what it means."""


def written(levels: list[list[str]], column: str) -> st.SearchStrategy[Written]:
    """Expressions with no more brackets than they need."""
    names = st.from_regex(r"[a-z]{3}_[0-9]", fullmatch=True)
    leaves = st.one_of(
        names.map(lambda name: (column.format(name), 99, Expr("column", (name,)))),
        st.integers(0, 2**31 - 1).map(lambda number: (str(number), 99, Expr("sql", (str(number),)))),
        st.text("ab '\u00e4").map(lambda text: (f'"{text}"', 99, Expr("sql", ("'" + text.replace("'", "''") + "'",)))),
    )

    def infix(parts: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
        return st.tuples(st.sampled_from([(op, i) for i, ops in enumerate(levels) for op in ops]), parts, parts).map(
            join
        )

    def join(given: tuple[tuple[str, int], Written, Written]) -> Written:
        (operator, level), left, right = given
        # To the left an operator of the same strength needs none, but where strings take one comparison alone.
        alone = levels is STRINGS and level == 1
        texts = [
            text if strength > level or (strength == level and side == 0 and not alone) else f"({text})"
            for side, (text, strength, _) in enumerate((left, right))
        ]
        return f" {operator} ".join(texts), level, Expr("infix", (MEANS.get(operator, operator), left[2], right[2]))

    def negated(parts: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
        return parts.map(lambda part: (f"!({part[0]})", 98, Expr("prefix", ("NOT", part[2]))))

    return st.recursive(leaves, lambda parts: infix(parts) | negated(parts), max_leaves=12)


@given(written(STRINGS, "{}"))
def test_old_strings_mean_what_was_written(case: Written) -> None:
    text, _, expr = case
    assert strings(text, _method, _function) == (expr,)


@given(written(SCALA, "'{}") | written(SCALA, '$"{}"'), st.sampled_from(["'x", '"x"', '$"x"']))
def test_notation_means_what_was_written(case: Written, name: str) -> None:
    text, _, expr = case
    assume('" + "' not in text)  # two texts are put together where they are read
    assert said(f"tab.select({text} as {name})") == [f"SELECT {sql(expr)} AS `x` FROM `tab`"]


PIECES = """
tab ( ) . , ; ' " ` 'a 'b.sum "a,b" 10.minutes Tumble over on as val w = select groupBy window rowWindow /* */ // $ $"a"
&& === ! - 1.5 3L { } execute insertInto \u2018a \u00e4 # CREATE TABLE SET 'x'='y'; \\ \"\"\" -- rows over("10.rows")
"""


@given(st.one_of(st.lists(st.sampled_from([*PIECES.split(), "\n"]), max_size=40).map(" ".join), st.text(max_size=80)))
def test_any_text_is_read_or_reported_at_a_place_inside_of_it(text: str) -> None:
    try:
        script = parse_table(text, "job.table")
    except ScriptError:
        return
    assert script.statements or script.unread
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for each in script.unread:
        assert 1 <= each.span.line <= len(lines)
        assert 1 <= each.span.column <= len(lines[each.span.line - 1]) + 1


@given(st.text(st.sampled_from("ab1.,()'\"=<>!&|+-*/? \n?"), max_size=40))
def test_any_string_is_expressions_or_a_reason(text: str) -> None:
    with contextlib.suppress(NotRead):
        assert all(isinstance(each, Expr) for each in strings(text, _method, _function))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 200_000,
        "-" * 200_000 + "1",
        "tab" + ".select('a)" * 20_000,
        "1 + " * 50_000 + "1",
        '"' + '\\"' * 200_000,
        "/*" * 200_000,
        '"""' * 100_001,
        "val x = tab\n" + "val x = x.unionAll(x)\n" * 60 + "x.execute()",
        "1" * 500_000 + "x",
        "tab.select('a)\n" * 30_000,
        "'" * 300_000,
        "`" * 300_000,
        "a " * 300_000,
        "tEnv.executeSql(\"SELECT 1" + "-" * 150_000 + "\")\n" * 4,
    ],
    ids=["brackets", "signs", "chain", "sums", "escapes", "comments", "blocks", "doubling", "digits", "statements",
         "symbols", "names", "words", "texts"],
)  # fmt: skip
def test_work_is_bounded(text: str) -> None:
    before = time.process_time()
    with contextlib.suppress(ScriptError):
        assert parse_table(text, "job.table").unread
    assert time.process_time() - before < 5
