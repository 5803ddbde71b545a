"""What was measured on programs, and what is near it and was not: the first is recognised, the second stays unknown."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from airflow_flinkcompat.compat import Report, Side, check, render_text

CSV = "'connector' = 'filesystem', 'path' = '/in', 'format' = 'csv'"
COLUMNS = "a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3)"
PLAIN = f"CREATE TABLE t ({COLUMNS}) WITH ({CSV})"
MARKED = f"CREATE TABLE t ({COLUMNS}, WATERMARK FOR ts AS ts) WITH ({CSV})"
CLOCKED = f"CREATE TABLE t ({COLUMNS}, pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ({CSV})"
BY_C = CLOCKED.replace("FOR ts AS ts", "FOR ts AS TO_TIMESTAMP(c)")
THREE = CLOCKED.replace(COLUMNS, "a STRING, b BIGINT, ts TIMESTAMP(3)")
KAFKA = CLOCKED.replace(CSV, "'connector' = 'kafka', 'topic' = 't', 'format' = 'json'")
PROGRAM = '''\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Session, Slide, Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
{settings}
t_env.execute_sql("""{source}""")
t_env.execute_sql("CREATE TABLE s ({sink}) WITH ('connector' = 'print')")
w = {window}.alias("w")
t = {query}
t.execute_insert("s")
'''
SUM = 'col("w").start, col("b").sum'
MINUTE = 'Tumble.over(lit(1).minutes).on(col("ts"))'


def program(
    query: str, source: str, sink: str = "a STRING, n BIGINT", window: str = MINUTE, settings: str = ""
) -> Side:
    text = PROGRAM.format(
        query=f't_env.from_path("t").{query}', source=source, sink=sink, window=window, settings=settings
    )
    return Side(text, engine="flink", language="python")


def script(query: str, source: str, sink: str = "a STRING, n BIGINT") -> Side:
    text = f"{source};\nCREATE TABLE s ({sink}) WITH ('connector' = 'print');\nINSERT INTO s {query}"
    return Side(text, engine="flink")


def said(old: Side, new: Side) -> tuple[str, Report]:
    report = check(old, new)
    return str(report.outcome), report


@dataclass(frozen=True)
class Windowed:
    """A window behind operations, grouped by keys."""

    before: str
    keys: str = "a"
    source: str = CLOCKED
    window: str = MINUTE
    select: str = SUM
    settings: str = ""

    def side(self) -> Side:
        keys = "".join(f', col("{key}")' for key in self.keys)
        shown = ", ".join(f'col("{key}")' for key in sorted(self.keys))
        columns = "".join(f"{key} STRING, " for key in sorted(self.keys))
        query = f'{self.before}window(w).group_by(col("w"){keys}).select({shown}, {self.select})'
        return program(query, self.source, f"{columns}ws TIMESTAMP(3), n BIGINT", self.window, self.settings)


def select(columns: str) -> str:
    return f"select({', '.join(f'col({name!r})' for name in columns.split())})."


B, D = 'filter(col("b") > 2).', 'filter(col("d") > 1).'
NARROW = select("a b ts")
COMPATIBLE = {
    "another order": (Windowed(select("a b ts")), Windowed(select("ts b a"))),
    "one column more": (Windowed(select("a b ts")), Windowed(select("a b c ts"))),
    "two filters are one": (Windowed(B + D), Windowed('filter((col("b") > 2) & (col("d") > 1)).')),
    "a filter moves across a select": (Windowed(B + NARROW), Windowed(NARROW + B)),
    "keys in another order in group_by": (Windowed("", "ac"), Windowed("", "ca")),
    "so behind a select": (Windowed(select("a c b ts"), "ac"), Windowed(select("a c b ts"), "ca")),
}
UNKNOWN = {
    "the source may read less": (Windowed(select("a b ts"), source=KAFKA), Windowed(select("ts b a"), source=KAFKA)),
    "nothing computed, so one select may be none": (
        Windowed(select("a b c d ts"), source=MARKED),
        Windowed(select("a b ts"), source=MARKED),
    ),
    "one column twice stays a projection": (
        Windowed(select("a b ts")),
        Windowed('select(col("a"), col("b"), col("b").alias("again"), col("ts")).'),
    ),
    "all columns are read, so an order is a projection": (
        Windowed(select("a b ts"), source=THREE),
        Windowed(select("ts b a"), source=THREE),
    ),
    "the watermark needs a column": (
        Windowed(select("a b ts"), source=BY_C),
        Windowed(select("a b c ts"), source=BY_C),
    ),
    "two keys and one column more": (Windowed(select("a c b ts"), "ac"), Windowed(select("a c b d ts"), "ac")),
    "behind a filter": (Windowed(B + select("a b ts")), Windowed(B + select("ts b a"))),
    "computed in the select": (
        Windowed('select(col("a"), col("b"), col("ts"), (col("d") + 1).alias("x")).'),
        Windowed('select(col("ts"), col("b"), col("a"), (col("d") + 1).alias("x")).'),
    ),
    "by a function": (
        Windowed('filter(col("c").upper_case == "X").' + D),
        Windowed('filter((col("c").upper_case == "X") & (col("d") > 1)).'),
    ),
    "another option decides": (
        Windowed(B + D, settings='t_env.get_config().set("table.optimizer.reuse-source-enabled", "false")'),
        Windowed(
            'filter((col("b") > 2) & (col("d") > 1)).',
            settings='t_env.get_config().set("table.optimizer.reuse-source-enabled", "false")',
        ),
    ),
}
WRONG = {
    "two keys change places in a select": (Windowed(select("a c b ts"), "ac"), Windowed(select("c a b ts"), "ac")),
    "and in group_by": (Windowed(select("a c b ts"), "ac"), Windowed(select("c a b ts"), "ca")),
}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_measured_within_the_table_api(name: str) -> None:
    for old, new in (COMPATIBLE[name], COMPATIBLE[name][::-1]):
        outcome, report = said(old.side(), new.side())
        assert outcome == "compatible", render_text(report)


@pytest.mark.parametrize("name", UNKNOWN)
def test_near_it_and_not_measured(name: str) -> None:
    for old, new in (UNKNOWN[name], UNKNOWN[name][::-1]):
        outcome, report = said(old.side(), new.side())
        assert outcome == "unknown", render_text(report)


@pytest.mark.parametrize("name", WRONG)
def test_keys_that_come_in_otherwise_are_wrong(name: str) -> None:
    outcome, report = said(*(side.side() for side in WRONG[name]))
    assert outcome == "incompatible", render_text(report)
    assert any("wrong" in str(finding.consequence) for finding in report.deciding), render_text(report)


NOT_ALIKE = {
    "SQL reads what a select reads": ("", NARROW, "compatible"),
    "all columns are read: SQL puts the time first": ("THREE", NARROW, "unknown"),
    "and so without a select": ("THREE", "", "incompatible"),
    "without computed columns too": ("THREE BARE", "", "unknown"),
    "from kafka": ("THREE KAFKA", NARROW, "unknown"),
    "the watermark needs a column that SQL drops": ("BY_C BARE", "", "unknown"),
}


@pytest.mark.parametrize("name", NOT_ALIKE)
def test_windows_that_move_between_sql_and_the_table_api(name: str) -> None:
    which, before, expected = NOT_ALIKE[name]
    source = THREE if "THREE" in which else BY_C if "BY_C" in which else CLOCKED
    if "BARE" in which:
        source = source.replace(", pt AS PROCTIME()", "")
    if "KAFKA" in which:
        source = source.replace(CSV, "'connector' = 'kafka', 'topic' = 't', 'format' = 'json'")
    old = program(f'{before}window(w).group_by(col("w"), col("a")).select(col("a"), col("b").sum)', source)
    new = script("SELECT a, SUM(b) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), a", source)
    for sides in ((old, new), (new, old)):
        outcome, report = said(*sides)
        assert outcome == expected, render_text(report)


GROUPED = 'group_by(col("a")).select(col("a"), {})'
GROUPS = {
    ("SUM", PLAIN, ""): "compatible",
    ("MAX", PLAIN, ""): "compatible",
    ("MIN", PLAIN, ""): "unknown",
    ("AVG", PLAIN, ""): "unknown",
    ("COUNT", PLAIN, ""): "unknown",
    ("SUM", PLAIN, "a b"): "unknown",
    ("SUM", MARKED, ""): "incompatible",
    ("MAX", MARKED, ""): "incompatible",
    ("AVG", MARKED, ""): "incompatible",
    ("COUNT", MARKED, ""): "compatible",
    ("COUNT", MARKED.replace("a STRING", "a STRING NOT NULL"), ""): "unknown",
    ("SUM", MARKED, "a b"): "compatible",
    ("SUM", MARKED, "a b c"): "unknown",
    ("SUM", MARKED, "b a"): "unknown",
    ("MAX", MARKED, "a b"): "unknown",
    ("COUNT", MARKED, "a b"): "unknown",
    ("SUM", CLOCKED, "a b"): "unknown",
    ("SUM", MARKED.replace(COLUMNS, "a STRING, b BIGINT, ts AS CAST(a AS TIMESTAMP(3))"), ""): "unknown",
}


@pytest.mark.parametrize(("function", "source", "columns"), GROUPS)
def test_aggregations_that_move_between_sql_and_the_table_api(function: str, source: str, columns: str) -> None:
    call = "lit(1).count" if function == "COUNT" else f'col("b").{function.lower()}'
    old = program((select(columns) if columns else "") + GROUPED.format(call), source)
    new = script(f"SELECT a, {function}({'*' if function == 'COUNT' else 'b'}) FROM t GROUP BY a", source)
    for sides in ((old, new), (new, old)):
        outcome, report = said(*sides)
        assert outcome == GROUPS[function, source, columns], render_text(report)


def test_two_calls_that_were_measured_apart_are_unknown_together() -> None:
    sink = "a STRING, n BIGINT, m BIGINT"
    old = program(GROUPED.format('col("b").sum, col("b").max'), PLAIN, sink)
    outcome, report = said(old, script("SELECT a, SUM(b), MAX(b) FROM t GROUP BY a", PLAIN, sink))
    assert outcome == "unknown", render_text(report)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ("", "compatible"),
        ('\nt_env.create_temporary_view("v", t)\nt = t_env.sql_query("SELECT * FROM v")', "unknown"),
        ('\nt = t.select(col("a"), col("n"))', "unknown"),
    ],
)
def test_a_query_inserted_as_a_table(more: str, outcome: str) -> None:
    query = "SELECT a, SUM(b) AS n FROM t GROUP BY a"
    new = program("", MARKED)
    text = new.script.replace('t_env.from_path("t").', f't_env.sql_query("{query}"){more}')
    found, report = said(script(query, MARKED), Side(text, engine="flink", language="python"))
    assert found == outcome, render_text(report)
