"""``flinkcompat backfill``: its dry run and bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.cli.command import V1, Run, save


@pytest.mark.parametrize("what", ["table", "sink"])
def test_a_backfill_s_places_are_given_once(run: Run, what: str) -> None:
    pytest.importorskip("pyspark")
    save(ok=V1)
    result = run("backfill", "ok.sql", f"--{what}", "orders=/a", f"--{what}", "orders=/b")
    assert (result.code, result.err) == (2, f"flinkcompat: {what} orders is set twice, to different values\n")


@pytest.mark.parametrize("what", ["table", "sink"])
@pytest.mark.parametrize("pair", ["x", "=file:///x"])
def test_a_backfill_s_places_are_asked_for_by_their_name(run: Run, what: str, pair: str) -> None:
    pytest.importorskip("pyspark")
    save(ok=V1)
    result = run("backfill", "ok.sql", f"--{what}", pair)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"flinkcompat: {what} {pair!r} is not of the form NAME=URI\n"


WINDOWED = """\
CREATE TABLE orders (ts TIMESTAMP(3), price INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE totals (ws TIMESTAMP(3), we TIMESTAMP(3), total INT)
  WITH ('connector' = 'filesystem', 'path' = '/out', 'format' = 'csv');
INSERT INTO totals SELECT window_start, window_end, SUM(price)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end;
"""


def test_a_dry_run_of_a_backfill_needs_no_spark_and_writes_the_hand_over(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    save(ok=WINDOWED)
    given = ("--sink", "totals=/else", "--boundary", "2026-01-02", "--hand-over", "over.json", "--late", "drop")
    result = run("backfill", "ok.sql", "--dry-run", *given)
    assert (result.code, result.err) == (0, "")
    assert "aggregate   SUM(price) GROUP BY window_start, window_end" in result.out
    record = json.loads(Path("over.json").read_text(encoding="utf-8"))
    assert record["schema"] == "flinkcompat-handover/1"
    assert record["sources"][0]["live_from"] == "2026-01-01 23:59:55"
    refused = "flinkcompat: backfill needs packages that are not installed (pyspark)"
    assert run("backfill", "ok.sql", *given).err.startswith(refused)


def test_what_it_needs_to_know_is_taken_of_the_project_file(run: Run) -> None:
    tables, _, query = WINDOWED.rpartition("INSERT")
    save(ok=f"INSERT{query}", tables=tables)
    assert "ok.sql" in run("backfill", "ok.sql", "--dry-run").err, "its tables are declared nowhere"
    Path("flinkcompat.toml").write_text(
        'catalog = "tables.sql"\n[deployments.totals]\nscript = "ok.sql"\n'
        'settings = { "table.local-time-zone" = "Asia/Tokyo" }\n',
        encoding="utf-8",
    )
    result = run("backfill", "ok.sql", "--dry-run", "--sink", "totals=/else")
    assert result.code == 0, result.err
    assert result.err == (
        "flinkcompat: By flinkcompat.toml, deployment totals: settings table.local-time-zone; catalog tables.sql.\n"
    )
    assert "aggregate   SUM(price) GROUP BY window_start, window_end" in result.out
    assert run("backfill", "ok.sql", "--dry-run", "--config", "/dev/null").code == 2
    assert "deployment 'total' is unknown" in run("backfill", "ok.sql", "--deployment", "total", "--dry-run").err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--boundary", "2026-01-02 00:01"), "cuts a window: use 2026-01-02 00:00:00 or 2026-01-02 00:10:00"),
        (("--boundary", "2026-01-02"), "--sink totals=URI"),
        (("--boundary", "2026-01-02", "--to", "2026-01-03"), "omit --to, or omit --boundary"),
        (("--hand-over", "x.json"), "need --boundary"),
        (("--allow-incomplete",), "need --boundary"),
        (("--journal", "/x"), "needs --chunk"),
        (("--chunk", "1d"), "require a range with both ends"),
        (("--chunk", "soon"), "'soon' is not a duration"),
        (("--chunk", "1s", "--from", "2026-01-01", "--to", "2026-01-02"), "must be at least 10min long"),
        (("--from", "yesterday"), "'yesterday' is not a time"),
        (("--late", "sometimes"), "'sometimes' is not one of"),
    ],
)
def test_a_backfill_that_cannot_be_is_exit_2(run: Run, args: tuple[str, ...], words: str) -> None:
    save(ok=WINDOWED)
    result = run("backfill", "ok.sql", "--dry-run", *args)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert "Traceback" not in result.err


def test_a_backfill_reads_what_lies_beside_a_program(run: Run) -> None:
    ddl = "CREATE TABLE {} (a STRING, b INT) WITH ('connector' = 'filesystem', 'path' = '/{}', 'format' = 'csv')"
    Path("tables.py").write_text(f'DDL = ["""{ddl.format("o", "in")}""", """{ddl.format("s", "out")}"""]\n')
    Path("job.py").write_text(
        "from pyflink.table import EnvironmentSettings, TableEnvironment\n"
        "from tables import DDL\n"
        "t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        "for ddl in DDL:\n    t_env.execute_sql(ddl)\n"
        't_env.from_path("o").execute_insert("s")\n'
    )
    planned = run("backfill", "job.py", "--dry-run")
    assert (planned.err, planned.code) == ("", 0)
    assert "/out" in planned.out
    Path("tables.py").unlink()
    unread = run("backfill", "job.py", "--dry-run")
    assert unread.code == 2
    assert "job.py:4:1: it is unknown how often this loop runs" in unread.err


PROJECT = """
[deployments.totals]
script = "ok.sql"
[deployments.totals.backfill]
sinks = { totals = "/else" }
from_ = "2026-01-01"
to = "2026-01-02"
late = "drop"
conn_id = "spark_of_airflow"
spark = { conf = {} }
"""


def said(run: Run, *options: str) -> str:
    result = run("backfill", "ok.sql", "--dry-run", *options)
    assert result.code == 0, result.err
    return result.out


def test_the_table_of_the_project_file_says_what_the_task_is_told(run: Run) -> None:
    save(ok=WINDOWED)
    given = ("--sink", "totals=/else", "--from", "2026-01-01", "--to", "2026-01-02", "--late", "drop")
    by_options, bare = said(run, *given), said(run)
    Path("flinkcompat.toml").write_text(PROJECT, encoding="utf-8")
    result = run("backfill", "ok.sql", "--dry-run")
    assert (result.code, result.out) == (0, by_options)
    assert result.err.endswith(
        "flinkcompat: By flinkcompat.toml: deployment 'totals': backfill: sinks, from_, to, late.\n"
    )
    assert by_options != bare == said(run, "--config", "/dev/null"), "the table says something"


def test_options_go_before_the_table(run: Run) -> None:
    save(ok=WINDOWED)
    given = ("--sink", "totals=/third", "--boundary", "2026-01-03", "--late", "include")
    wanted = said(run, *given, "--from", "2026-01-01")
    Path("flinkcompat.toml").write_text(PROJECT, encoding="utf-8")
    assert said(run, *given) == wanted, "a boundary is where it ends, whatever the file says of the end"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'from_ = "{{ data_interval_start }}"',
            "backfill.from_: is a template, which only Airflow renders",
        ),
        ("sinks = 'x'", "backfill.sinks: a table is needed"),
        ("tables = { orders = 1 }", "backfill.tables.orders: a text is needed"),
        ("to = 2026-01-02", "backfill.to: a text is needed"),
        ("allow_incomplete = 'yes'", "backfill.allow_incomplete: true or false is needed"),
        ("late = 'never'", "late is 'never'. Write include or drop"),
        ("journal = '/j'", "--journal needs --chunk: add it"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(run: Run, line: str, words: str) -> None:
    save(ok=WINDOWED)
    text = f"[deployments.totals]\nscript = 'ok.sql'\n[deployments.totals.backfill]\n{line}\n"
    Path("flinkcompat.toml").write_text(text, encoding="utf-8")
    result = run("backfill", "ok.sql", "--dry-run")
    assert (result.code, words in result.err) == (2, True), result.err
    if "template" in words:
        assert result.err.endswith("pass its value with --from\n")
        assert run("backfill", "ok.sql", "--dry-run", "--from", "2026-01-01").code == 0
