"""What Flink refuses of a program, rule by rule, beside the nearest program that it takes; and the silent traps.

The rules are FLIP-11's V1 to V3 as PyFlink 2.3.0 has them. The cases are data: ``tests/fixtures/table_api/invalid``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat import ENGINES, Outcome, Report, Side, check, render_text
from tests.support.nightly import mostly_slow

FOLDER = Path(__file__).parents[3] / "fixtures" / "table_api" / "invalid"
HEAD = '''\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import *
from pyflink.table.window import Over, Session, Slide, Tumble
t_env = TableEnvironment.create(EnvironmentSettings.in_{mode}_mode())
t_env.execute_sql("""CREATE TABLE t (
    a STRING, b BIGINT, w INT, ts TIMESTAMP(3), o TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka')""")
t_env.execute_sql("CREATE TABLE u (b BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'kafka')")
t_env.execute_sql("CREATE TABLE s (c BIGINT) WITH ('connector' = 'print')")
t, u = t_env.from_path("t"), t_env.from_path("u")
'''
CASES: dict[str, dict[str, Any]] = {
    f"{file.stem}/{name}": case
    for file in sorted(FOLDER.glob("*.toml"))
    for name, case in tomllib.loads(file.read_text(encoding="utf-8")).items()
}
RULE = "program-refused"


def unchanged(body: str, engine: str, mode: str = "streaming", version: str | None = None) -> Report:
    """The report on a program that stays as it is."""
    text = HEAD.replace("{mode}", mode) + body.strip() + "\n"
    old, new = (Side(text, engine=engine, engine_version=version, source=s, language="python") for s in ("old", "job"))
    return check(old, new)


def mode_of(case: str) -> str:
    return "batch" if case.startswith("batch/") else "streaming"


@pytest.mark.parametrize("case", CASES)
def test_what_flink_refuses_is_refused_with_place_reason_and_remedy(case: str, snapshot: SnapshotAssertion) -> None:
    for engine, expected in (("flink", Outcome.INCOMPATIBLE), ("vvr", Outcome.UNKNOWN)):
        report = unchanged(CASES[case]["wrong"], engine, mode_of(case))
        assert report.outcome is expected
        refused = [f for f in report.findings if f.rule == RULE and f.after_span is not None]
        assert [(f.outcome, f.overruled_by) for f in refused] == [(expected, "")]
    (finding,) = refused
    assert finding.after_span is not None
    said = f"{finding.after_span}: {finding.message}"
    assert said.startswith("job:1")
    assert "; " in said
    assert "(Flink: " in said or case == "windows/size-rows-zero"
    assert said == snapshot


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("case", mostly_slow(tuple(CASES), 6))
def test_the_nearest_program_that_flink_takes_is_read_whole(case: str, engine: str) -> None:
    report = unchanged(CASES[case]["right"], engine, mode_of(case))
    assert [finding.rule for finding in report.findings] == ["unchanged"]


def test_the_whole_report(snapshot: SnapshotAssertion) -> None:
    case = CASES["windows/size-plain-number"]
    head = HEAD.replace("{mode}", "streaming")
    sides = [Side(head + case[key], engine="flink", source="job.py", language="python") for key in ("right", "wrong")]
    assert render_text(check(*sides)) == snapshot


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ('t.window(Tumble.over(lit(1.5).minutes).on(t.ts).alias("x")).group_by(col("x")).select(t.b.sum).execute()',
         "lit(1.5).minutes is 60000 ms to Flink, which drops the fraction without a word: write lit(1).minutes if that "
         "is meant, else lit(90).seconds"),
        ('t.over_window(Over.order_by(t.ts).preceding(lit(2.25).hours).alias("x")).select(t.b.sum.over(col("x"))).execute()',
         "lit(2.25).hours is 7200000 ms to Flink, which drops the fraction without a word: write lit(2).hours if that "
         "is meant, else lit(135).minutes"),
        ('t.window(Tumble.over(lit(5).minutes).on(t.ts).alias("w")).group_by(col("w")).select(t.b.sum).execute()',
         "the window w has the name of a column of its table: "
         "FLIP-11 requires a unique name, but Flink 2.3 uses the window if both are possible; use a different alias"),
        ('t.group_by(t.a).select(t.b.sum).execute()', None),
        ('t.select(t.b.sum).execute()', None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_flink_takes_without_a_word_is_noted(body: str, note: str | None, engine: str) -> None:
    report = unchanged(body, engine)
    assert report.outcome is Outcome.COMPATIBLE
    (_, warning) = report.warnings
    place, _, text = warning.partition(": ")
    assert place.startswith("job:11:")
    if note is None:
        assert text.startswith("aggregates without a window: FLIP-11 refuses them")
    else:
        assert text == note


def test_a_column_called_rowtime_is_a_column_today() -> None:
    body = HEAD.replace("{mode}", "streaming").replace("ts TIMESTAMP(3), o", "rowtime TIMESTAMP(3), o")
    body = body.replace("FOR ts AS ts", "FOR rowtime AS rowtime")
    body += (
        't.window(Tumble.over(lit(5).minutes).on(t.rowtime).alias("x")).group_by(col("x")).select(t.b.sum).execute()'
    )
    report = check(*(Side(body, engine="flink", source="job.py", language="python") for _ in range(2)))
    assert report.outcome is Outcome.COMPATIBLE
    assert report.warnings == (
        "job.py:5:22: t has a column named rowtime: FLIP-11 treats rowtime as a keyword, Flink 2.3 as a regular "
        "column; rename the column",
    )


def test_the_fraction_that_is_dropped_is_dropped_in_the_plan_as_well() -> None:
    head = HEAD.replace("{mode}", "streaming")
    body = 't.window(Tumble.over({}).on(t.ts).alias("x")).group_by(col("x")).select(t.b.sum).execute()'
    sides = [Side(head + body.format(size), language="python") for size in ("lit(1.5).minutes", "lit(1).minutes")]
    assert [finding.rule for finding in check(*sides).findings] == ["unchanged"]


def test_another_deployed_program_than_the_one_stated_is_not_taken_for_state() -> None:
    case = CASES["windows/size-plain-number"]
    head = HEAD.replace("{mode}", "streaming")
    sides = [Side(head + case[key], engine="flink", language="python") for key in ("wrong", "right")]
    report = check(*sides)
    assert report.outcome is not Outcome.COMPATIBLE
    assert any(f.rule == RULE and f.message.startswith("Flink refuses the deployed program") for f in report.findings)


def test_a_window_that_is_refused_is_not_refused_once_more_where_it_is_used() -> None:
    body = 'x = Tumble.over(lit(10)).on(t.ts).alias("x")\nt.window(x).group_by(col("x")).select(t.b.sum).execute()'
    report = unchanged(body, "flink")
    found = [f for f in report.findings if f.after_span is not None and f.rule == RULE]
    assert len(found) == 1
    assert not [f for f in report.findings if f.after_span is not None and f.rule == "statement-not-read"]


def test_columns_of_a_table_nobody_declares_are_not_judged() -> None:
    body = 'v = t_env.from_path("v")\nx = Tumble.over(lit(5).minutes).on(v.ts).alias("x")\n'
    body += 'v.window(x).group_by(col("x")).select(v.b.sum).execute()'
    assert RULE not in {finding.rule for finding in unchanged(body, "flink").findings}
