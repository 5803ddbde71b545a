"""What a PyFlink program stands for: its statements in their place, what is not read and why, and bounded work."""

from __future__ import annotations

import ast
import contextlib
import re
import time
from pathlib import Path

import pytest

from airflow_flinkcompat.frontends.pyflink.reader import parse_program
from airflow_flinkcompat.sql import Script, ScriptError

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "table_api"
GIVEN = {"TOPIC": "web", "minutes": "5"}
HEAD = """\
import os, sys
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import *
from pyflink.table.window import Over, Session, Slide, Tumble
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t = t_env.from_path("t")
"""


def program(name: str) -> str:
    return (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


def read(body: str, **given: str) -> Script:
    return parse_program(HEAD + body, "job.py", given)


def said(body: str, **given: str) -> list[str]:
    """The statements of a program that is read whole."""
    script = read(body, **given)
    assert script.unread == ()
    assert [statement.error for statement in script.statements] == [None] * len(script.statements)
    return [statement.text for statement in script.statements]


def reasons(body: str) -> list[str]:
    return [unread.reason for unread in read(body).unread]


@pytest.mark.parametrize("name", ["tumble", "rows", "views"])
def test_whole_programs_are_read_whole(name: str) -> None:
    script = parse_program(program(name), name, GIVEN)
    assert script.unread == ()
    assert all(statement.tree is not None for statement in script.statements)


def marked(name: str) -> list[tuple[str, int, str]]:
    """One program for each statement of a fixture that has a marker: that statement and those without one."""
    text = program(name)
    lines = text.split("\n")
    marks = {n: m[1] for n, line in enumerate(lines, 1) if (m := re.search(r"# unread: (.+)$", line))}
    spans = {n: range(node.lineno - 1, node.end_lineno or 0) for node in ast.parse(text).body for n in marks
             if node.lineno <= n <= (node.end_lineno or 0)}  # fmt: skip
    others = {n: {at for other in spans if other != n for at in spans[other]} for n in marks}
    return [
        ("\n".join("" if at in others[n] else line for at, line in enumerate(lines)), n, why)
        for n, why in marks.items()
    ]


@pytest.mark.parametrize(("text", "line", "reason"), [*marked("unread"), *marked("hostile")])
def test_a_statement_that_is_not_read_is_reported_with_its_line_and_reason(text: str, line: int, reason: str) -> None:
    (unread,) = parse_program(text, "job.py").unread
    assert unread.span.line == line
    assert reason in unread.reason


def test_a_hostile_program_is_not_run_and_answers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = time.process_time()
    for text, _, _ in marked("hostile"):
        parse_program(text, "hostile.py")
    assert time.process_time() - before < 5
    assert list(tmp_path.iterdir()) == []


NESTED = "def f0(): pass\n" + "".join(f"def f{n + 1}():\n    f{n}(); f{n}()\n" for n in range(40)) + "f40()\n"
DOUBLED = "for _ in [0] + [0]: pass\n" + "u = t\n" + "u = u.union_all(u)\n" * 40 + "u.execute_insert('s')\n"
WIDE = "".join(f"def g{n}(x): return x\n" for n in range(500)) + "".join(
    f"while len(os.listdir()): g{n}(g{n - 1})\n" for n in range(1, 500)
)


@pytest.mark.parametrize(
    "body",
    [
        NESTED,
        DOUBLED,
        "x = " + "-" * 20_000 + "1\nt.execute_insert('s')",
        "x = " + "1 + " * 20_000 + "1\nt.execute_insert('s')",
        "for a in list: pass\n" * 5_000,
        WIDE,
        "d = {}\n" + "".join("d = {'a': d, 'b': d}\nprint(len(d))\n" for _ in range(300)),
        "t_env.execute_sql('SELECT 1' + '-- x' * 1000)\n" * 2_000,
    ],
    ids=["calls", "doubling", "signs", "sums", "loops", "mentions", "dictionaries", "texts"],
)
@pytest.mark.slow
def test_work_is_bounded(body: str) -> None:
    before = time.process_time()
    with contextlib.suppress(ScriptError):
        parse_program(HEAD + body, "job.py")
    assert time.process_time() - before < 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "job.py:1: is not Python"),
        ("x = 1\0", "cannot be read as Python|is not Python"),
        ("x = 1\n" * 200_000, "is longer than"),
        ("(" * 100_000, "is not Python|nested too deeply"),
    ],
)
def test_what_is_no_program_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_program(text, "job.py")


def test_sql_keeps_its_place_in_the_source() -> None:
    text = program("tumble")
    script = parse_program(text, "tumble.py")
    lines = text.split("\n")
    for statement in script.statements:
        if statement.placed:
            span = statement.span
            assert lines[span.line - 1][span.column - 1 :].startswith(statement.text.split("\n")[0])
    assert [statement.placed for statement in script.statements] == [False, True, True, False]
    assert str(script.statements[-1].span) == "tumble.py:29:5"


def test_sql_that_cannot_be_read_names_the_place_in_the_program() -> None:
    script = read(
        "t_env.execute_sql('''\n  SELECT FROM WHERE\n''')\nx = 'FROM WHERE'\nt_env.execute_sql(f'SELECT {x}')"
    )
    assert [str(statement.error).split(": ")[0] for statement in script.statements] == ["job.py:8:3", "job.py:11:1"]


@pytest.mark.parametrize(
    ("body", "sql"),
    [
        ("t.execute_insert('s', overwrite=True)", "INSERT OVERWRITE `s` SELECT * FROM `t`"),
        ("t.filter(t.a > 1.5).where(~(t.b == 'it''s')).execute()",
         "SELECT * FROM `t` WHERE ((`a` > (1.5E0))) AND (((`b` = 'its') IS NOT TRUE))"),
        ("t.select(t.a.cast(DataTypes.BIGINT()).alias('b'), t.b.is_null, lit(True)).execute()",
         "SELECT CAST(`a` AS BIGINT) AS `b`, (`b` IS NULL), TRUE FROM `t`"),
        ("t.group_by(t.a).select(t.a, t.b.count.distinct).execute()",
         "SELECT `a`, COUNT(DISTINCT `b`) FROM `t` GROUP BY `a`"),
        ("keys = [col('a'), col('b')]\nt.group_by(*keys).select(*keys).execute()",
         "SELECT `a`, `b` FROM `t` GROUP BY `a`, `b`"),
        ("t.window(Session.with_gap(lit(1).hour).on(t.ts).alias('w')).group_by(t.a, col('w'))"
         ".select(col('w').end, col('w').rowtime, lit(1).count + 1).execute()",
         "SELECT SESSION_END(`ts`, INTERVAL '3600.000' SECOND(10, 3)), "
         "SESSION_ROWTIME(`ts`, INTERVAL '3600.000' SECOND(10, 3)), (COUNT(1) + 1) FROM `t` "
         "GROUP BY SESSION(`ts`, INTERVAL '3600.000' SECOND(10, 3)), `a`"),
        ("t.over_window(Over.partition_by(t.a).order_by(t.ts).preceding(lit(5).minutes).alias('w'))"
         ".select(t.b.sum.over(col('w'))).execute()",
         "SELECT SUM(`b`) OVER (PARTITION BY `a` ORDER BY `ts` RANGE BETWEEN INTERVAL '300.000' SECOND(10, 3) "
         "PRECEDING AND CURRENT ROW) FROM `t`"),
        ("t_env.get_config().get_configuration().set_boolean('a.b', True)", "SET 'a.b' = 'true'"),
        ("def job(table, size=5):\n    return table.select(lit(size))\njob(table=t, size=7).execute()",
         "SELECT 7 FROM `t`"),
        ("name = 't'\nsql = 'SELECT %s, %d' % (name, 3) + ' FROM {}'.format(name)\nt_env.execute_sql(sql)",
         "SELECT t, 3 FROM t"),
        ("t_env.execute_sql('SELECT ' + ', '.join([f'{k} AS {v}' for k, v in ()] or ['1']))", "SELECT 1"),
        ("t_env.execute_sql(f\"SELECT '{os.getenv('TOPIC')}'\")", "SELECT 'web'"),
        ("t_env.execute_sql('SELECT ' + sys.argv[1])", None),
    ],
)  # fmt: skip
def test_what_a_program_says_in_sql(body: str, sql: str | None) -> None:
    """None: what it would come to is not known, and so it is reported."""
    if sql is None:
        (reason,) = reasons(body)
        assert reason.startswith("the SQL is unknown")
    else:
        assert said(body, TOPIC="web") == [sql]


@pytest.mark.parametrize(
    "body",
    [
        "v = t_env.from_path('v')\nt_env.drop_temporary_view('v')\nt_env.create_temporary_view('v', t)\nv.execute()",
        "v = t_env.from_path('v')\nt_env.use_database('other')\nv.execute()",
        "jobs = t_env.create_statement_set()\njobs.add_insert('s', t)\n"
        "t_env.execute_sql('DROP TABLE s')\njobs.execute()",
    ],
)
def test_a_table_from_before_its_names_changed_is_not_read(body: str) -> None:
    assert any("declared again" in reason for reason in reasons(body))


@pytest.mark.parametrize(
    "body",
    [
        "def f():\n    if os.sep: return\n    t.execute_insert('s')\nf()",
        "try:\n    raise ValueError\nexcept ValueError:\n    t.execute_insert('s')",
        "try:\n    t.execute_insert('s')\nexcept Exception:\n    t.execute_insert('r')",
        "TableEnvironment.create = None",
        "x = [t]\nsorted(x)",
        "from helpers import *\nrun()",
        "import atexit\ndef f(): t.execute_insert('s')\natexit.register(f)",
        "u = t if os.sep else t_env.from_path('u')\nu.execute_insert('s')",
        "os.sep or t.execute_insert('s')",
        "match os.sep:\n    case '/': t.execute_insert('s')",
        "class Job:\n    t.custom('s')",
        "with t.execute().collect() as rows: t_env.custom()",
    ],
)
def test_what_may_touch_tables_is_reported(body: str) -> None:
    assert reasons(body)


@pytest.mark.parametrize(
    "body",
    [
        "import logging, json\nlogging.basicConfig(level=logging.INFO)\nconfig = json.loads('{}')\nprint(config, t)",
        "if len(sys.argv) < 2:\n    print('usage')\n    sys.exit(1)",
        "def unused():\n    while True: t_env.whatever()",
        "with open('x') as file:\n    text = file.read()",
        "os.environ['JAVA_HOME'] = '/usr'",
        "t.print_schema()\nt_env.list_tables()",
    ],
)
def test_what_cannot_touch_tables_is_no_finding(body: str) -> None:
    assert said(body + "\nt.execute_insert('s')")[-1] == "INSERT INTO `s` SELECT * FROM `t`"


@pytest.mark.slow
def test_what_a_program_makes_counts_as_work() -> None:
    (unread,) = read('for i in range(10000):\n    range(10000)\nt.execute_insert("s")\n').unread
    assert "not read further: reading it takes more than 200000 steps" in unread.reason


def test_time_is_bounded_whatever_a_step_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_flinkcompat.frontends.pyflink.expressions.SECONDS_LIMIT", 0.0)
    (unread,) = read('t.execute_insert("s")').unread
    assert "not read further: reading it takes more than 0 s" in unread.reason
