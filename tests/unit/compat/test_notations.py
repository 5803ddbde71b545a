"""Near misses of what was measured between SQL and the Table API: one thing more, and it is not called compatible."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side, check, render_text
from dev.measure.pairs import PROGRAM_HEAD
from dev.measure.results import stated_consequence

FILES = "'connector' = 'filesystem', 'path' = 'file:///rows', 'format' = 'csv'"
COLUMNS = "a STRING, b BIGINT, c STRING, ts TIMESTAMP(3)"
MARK = "WATERMARK FOR ts AS ts"
TABLE = f"CREATE TABLE orders ({COLUMNS}, {MARK}) WITH ({FILES})"
CLOCKED = f"CREATE TABLE orders ({COLUMNS}, pt AS PROCTIME(), {MARK}) WITH ({FILES})"
SINK = "CREATE TABLE totals (a STRING, begins TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print')"
WINDOW = 'w = Tumble.over(lit(1).minutes).on(col("ts")).alias("w")\nt = t_env.from_path("orders")\n'
GROUPED = 't = t.window(w).group_by(col("w"), col("a")).select(col("a"), col("w").start, col("b").sum)\n'
INSERT = 't.execute_insert("totals")\n'
SELECT = 't = t.select(col("a"), col("b"), col("ts"))\n'
API = WINDOW + GROUPED + INSERT
BEHIND_SELECT = WINDOW + SELECT + GROUPED + INSERT
LENGTH = "INTERVAL '1' MINUTE"
LEGACY = f"INSERT INTO totals SELECT a, TUMBLE_START(ts, {LENGTH}), SUM(b) FROM orders GROUP BY TUMBLE(ts, {LENGTH}), a"
OVER = """\
w = Over.partition_by(col("a")).order_by(col("ts")).preceding(row_interval(2)).alias("w")
t = t_env.from_path("orders").over_window(w).select(col("a"), col("ts"), col("b").max.over(col("w")))
"""
OVER_SQL = (
    "INSERT INTO totals SELECT a, ts, MAX(b) OVER "
    "(PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders"
)
Edits = tuple[tuple[str, str], ...]


def program(body: str, *given: str, settings: dict[str, str] | None = None) -> Side:
    declared = "".join(f't_env.execute_sql("""{each}""")\n' for each in given)
    return Side(PROGRAM_HEAD + declared + body, settings or {}, engine="flink", source="job.py", language="python")


def script(query: str, *given: str, settings: dict[str, str] | None = None) -> Side:
    return Side(";\n".join((*given, query)), settings or {}, engine="flink", source="job.sql")


def both_ways(api: Side, sql: Side) -> list[Report]:
    return [check(api, sql), check(sql, api)]


@pytest.mark.parametrize(
    ("body", "query", "table"),
    [
        (API, LEGACY, TABLE),
        (BEHIND_SELECT, LEGACY, CLOCKED),
        (OVER + INSERT, OVER_SQL, TABLE),
    ],
)
def test_what_was_measured_is_compatible(body: str, query: str, table: str) -> None:
    for report in both_ways(program(body, table, SINK), script(query, table, SINK)):
        assert report.outcome is Outcome.COMPATIBLE, render_text(report)


def test_behind_a_select_only_files_in_csv_were_measured() -> None:
    table = TABLE.replace("filesystem", "kafka")
    for report in both_ways(program(BEHIND_SELECT, table, SINK), script(LEGACY, table, SINK)):
        assert report.outcome is Outcome.UNKNOWN, render_text(report)


@pytest.mark.parametrize(
    "edits",
    [
        (("filesystem", "kafka"),),
        (("'csv'", "'raw'"),),
        (("c STRING,", "c STRING, m BIGINT METADATA VIRTUAL,"),),
        (("WATERMARK FOR ts AS ts", "late AS ts, WATERMARK FOR late AS late"), ('on(col("ts"))', 'on(col("late"))'),
         ("(ts, INTERVAL", "(late, INTERVAL")),
        (('col("w"), col("a")).', 'col("w"), col("a"), col("c")).'), (", a", ", a, c")),
        (('col("b").sum', '(col("b") + 1).sum'), ("SUM(b)", "SUM(b + 1)")),
        (('col("b").sum', 'col("b").stddev_pop'), ("SUM(b)", "STDDEV_POP(b)")),
        (('col("w").start, col("b").sum', 'col("b").sum, col("w").start'),
         ("TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b)", "SUM(b), TUMBLE_START(ts, INTERVAL '1' MINUTE)"),
         ("begins TIMESTAMP(3), total BIGINT", "total BIGINT, begins TIMESTAMP(3)")),
        (('col("w").start, col("b").sum)', 'col("w").start, col("b").sum + 1)'), ("SUM(b)", "SUM(b) + 1")),
        (("execute_insert", 'filter(col("_c2") > 1).execute_insert'),),
    ],
)  # fmt: skip
def test_one_thing_more_than_was_measured_is_not(edits: Edits) -> None:
    def edited(text: str) -> str:
        for old, new in edits:
            text = text.replace(old, new)
        return text

    given = tuple(map(edited, (TABLE, SINK)))
    assert edited(API + LEGACY + "".join((TABLE, SINK))) != API + LEGACY + "".join((TABLE, SINK))
    for report in both_ways(program(edited(API), *given), script(edited(LEGACY), *given)):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('select(col("a"), col("b"), col("ts"))', 'select(col("a"), col("b"), col("c"), col("ts"))'),
        ('select(col("a"), col("b"), col("ts"))', 'select(col("ts"), col("b"), col("a"))'),
        ('select(col("a"), col("b"), col("ts"))', 'select(col("a"), col("b"), col("ts"), col("pt"))'),
        ('select(col("a"), col("b"), col("ts"))', 'select(col("a"), (col("b") + 0).alias("b"), col("ts"))'),
    ],
)
def test_only_a_select_of_just_what_is_needed_was_measured(old: str, new: str) -> None:
    body = BEHIND_SELECT.replace(old, new)
    assert body != BEHIND_SELECT
    for report in both_ways(program(body, CLOCKED, SINK), script(LEGACY, CLOCKED, SINK)):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


@pytest.mark.parametrize(
    "settings", [{"table.exec.mini-batch.enabled": "true"}, {"execution.runtime-mode": "batch"}], ids=str
)
def test_only_queries_planned_as_by_default_were_measured(settings: dict[str, str]) -> None:
    for report in both_ways(
        program(API, TABLE, SINK, settings=settings), script(LEGACY, TABLE, SINK, settings=settings)
    ):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


def test_only_queries_that_are_jobs_of_their_own_were_measured() -> None:
    other = "INSERT INTO totals SELECT a, ts, b FROM orders"
    jobs = f't_env.create_statement_set().add_insert("totals", t).add_insert_sql("{other}").execute()\n'
    together = f"EXECUTE STATEMENT SET BEGIN {LEGACY}; {other}; END"
    for report in both_ways(program(WINDOW + GROUPED + jobs, TABLE, SINK), script(together, TABLE, SINK)):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


@pytest.mark.parametrize(
    "edits",
    [
        ((".max.over", ".min.over"), ("MAX(b)", "MIN(b)")),
        (("row_interval(2)", "UNBOUNDED_ROW"), ("2 PRECEDING", "UNBOUNDED PRECEDING")),
        (('from_path("orders")', 'from_path("orders").filter(col("b") > 1)'),
         ("FROM orders", "FROM orders WHERE b > 1")),
        (('from_path("orders")', 'from_path("orders").select(col("ts"), col("b"), col("a"))'),),
        (('col("b").max.over(col("w"))', 'col("b").max.over(col("w")) + col("b")'), ("MAX(b)", "b + MAX(b)")),
        (('partition_by(col("a"))', 'partition_by(col("a"), col("c"))'), ("PARTITION BY a", "PARTITION BY a, c")),
        (("WATERMARK", "x AS b + 1, WATERMARK"),),
    ],
)  # fmt: skip
def test_one_thing_more_over_rows_is_not_compatible(edits: Edits) -> None:
    texts = [OVER + INSERT, OVER_SQL, TABLE]
    edited = list(texts)
    for old, new in edits:
        edited = [text.replace(old, new) for text in edited]
    assert edited != texts
    body, query, table = edited
    for report in both_ways(program(body, table, SINK), script(query, table, SINK)):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


VIEW = "CREATE TEMPORARY VIEW needed AS SELECT a, b, ts FROM orders"
OF_VIEW = API.replace('"orders"', '"needed"')
OF_QUERY = API.replace('from_path("orders")', 'sql_query("SELECT a, b, ts FROM orders")')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (program(API, CLOCKED, SINK), program(BEHIND_SELECT, CLOCKED, SINK)),
        (program(API, TABLE, SINK), program(API, CLOCKED, SINK)),
        (program(API, CLOCKED, VIEW, SINK), program(OF_VIEW, CLOCKED, VIEW, SINK)),
    ],
    ids=["select", "column computed", "view of what is needed"],
)
def test_what_is_computed_below_comes_or_goes(old: Side, new: Side) -> None:
    """The columns a window of the Table API is given decide, whoever leaves them out."""
    for report in both_ways(old, new):
        assert report.outcome is Outcome.INCOMPATIBLE, render_text(report)
        assert stated_consequence(report) is Consequence.REFUSED_AT_SUBMIT


def test_a_view_or_a_query_in_sql_below_a_window_is_not_taken_for_the_table() -> None:
    for other in (program(OF_QUERY, CLOCKED, SINK), program(OF_VIEW, CLOCKED, VIEW, SINK)):
        for report in both_ways(program(API, CLOCKED, SINK), other):
            assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


def test_sql_in_a_program_is_sql() -> None:
    """A legacy window within ``sql_query`` is none of the Table API, whatever stands around it."""
    query = LEGACY.removeprefix("INSERT INTO totals ")
    inside = program(f't_env.sql_query("{query}").execute_insert("totals")\n', CLOCKED, SINK)
    for report in both_ways(program(API, CLOCKED, SINK), inside):
        assert report.outcome is Outcome.INCOMPATIBLE, render_text(report)
    for report in both_ways(program(API, TABLE, SINK), program(inside.script.replace(CLOCKED, TABLE))):
        assert report.outcome is not Outcome.INCOMPATIBLE, render_text(report)


def test_windows_in_both_notations_are_nothing_that_was_measured() -> None:
    cascade = WINDOW + GROUPED.replace('col("w").start', 'col("w").rowtime.alias("ts")').replace(
        'col("b").sum', 'col("b").sum.alias("b")'
    )
    query = LEGACY.removeprefix("INSERT INTO totals ").replace("orders", "minutes")
    top = 't_env.create_temporary_view("minutes", t)\n'
    mixed = program(cascade + top + f't_env.sql_query("{query}").execute_insert("totals")\n', TABLE, SINK)
    api = program(cascade + GROUPED + INSERT, TABLE, SINK)
    for report in both_ways(mixed, api):
        assert report.outcome is not Outcome.COMPATIBLE, render_text(report)


JOINED = """\
other = t_env.sql_query("SELECT a AS id, b AS much FROM orders")
t = t_env.from_path("needed").join(other, col("a") == col("id")).select(col("a"), col("ts"), col("much"))
"""


def test_columns_nobody_reads_count_below_a_join_too() -> None:
    whole = VIEW.replace("a, b, ts", "*")
    sides = [program(JOINED + INSERT, CLOCKED, view, SINK) for view in (whole, VIEW)]
    for report in both_ways(sides[0], sides[1]):
        assert report.outcome is Outcome.UNKNOWN, render_text(report)
