"""Programs under the rules: what is the same, each kind of change, moves between notations, and what is not read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import ENGINES, InputError, Outcome, Report, Side, check

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "table_api"
GIVEN = {"TOPIC": "web", "minutes": "5"}
SQL = """\
CREATE TABLE orders (
    customer STRING, amount BIGINT, item STRING, order_time TIMESTAMP(3), other_time TIMESTAMP(3),
    WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE totals (customer STRING, begins TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
SET 'table.local-time-zone' = 'UTC';
INSERT INTO totals
"""
LEGACY = """
SELECT customer, TUMBLE_START(order_time, INTERVAL '10' MINUTE), SUM(amount) AS total FROM orders WHERE amount > 0
GROUP BY TUMBLE(order_time, INTERVAL '10' MINUTE), customer;
"""
TVF = """
SELECT customer, window_start, SUM(amount) AS total
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '10' MINUTE)) WHERE amount > 0
GROUP BY window_start, window_end, customer;
"""


def side(text: str, engine: str, variables: dict[str, str] | None = None) -> Side:
    given = GIVEN if variables is None else variables
    return Side(text, engine=engine, source="job.py", language="python", variables=given)


def judged(name: str, engine: str, *edits: tuple[str, str]) -> Report:
    """The report on a program and the same program with texts replaced."""
    old = new = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    for before, after in edits:
        assert before in new
        new = new.replace(before, after)
    return check(side(old, engine), side(new, engine))


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("name", ["tumble", "rows", "views"])
def test_an_unchanged_program_is_compatible(name: str, engine: str) -> None:
    assert [finding.rule for finding in judged(name, engine).findings] == ["unchanged"]


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("tumble", [('"w"', '"window"')]),
        ("tumble", [('.alias("total")', '.alias("sum")')]),
        ("tumble", [("lit(10).minutes", "lit(600).seconds")]),
        ("tumble", [('group_by(col("w"), orders.customer)', 'group_by(col("customer"), col("w"))')]),
        ("tumble", [("def build", "def run"), ("    build()", "    run()")]),
        ("views", [("VISIT_GAP = 30", "VISIT_GAP = 15 * 2")]),
    ],
)  # fmt: skip
def test_other_words_for_the_same_are_no_change(name: str, edits: list[tuple[str, str]], engine: str) -> None:
    assert [finding.rule for finding in judged(name, engine, *edits).findings] == ["unchanged"]


SLIDE = [
    ("Tumble.over(lit(10).minutes)", "Slide.over(lit(10).minutes).every(lit(5).minutes)"),
    ("import T", "import Slide, T"),
]
SESSION = [("Tumble.over", "Session.with_gap"), ("import Tumble", "import Session")]


@pytest.mark.parametrize(
    ("name", "edits", "vvr", "flink"),
    [
        ("tumble", [("lit(10).minutes", "lit(20).minutes")], "incompatible", "incompatible"),
        ("tumble", SLIDE, "incompatible", "incompatible"),
        ("tumble", SESSION, "incompatible", "incompatible"),
        ("tumble", [('on(col("order_time"))', 'on(col("other_time"))')], "incompatible", "not compatible"),
        ("tumble", [("orders.customer)", "orders.item)"), ('col("customer"),', 'col("item"),')],
         "incompatible", "incompatible"),
        ("tumble", [('col("amount").sum', 'col("amount").max')], "incompatible", "incompatible"),
        ("rows", [("row_interval(2)", "row_interval(3)")], "incompatible", "not compatible"),
        ("tumble", [('orders.filter(col("amount") > 0)\n        ', "orders")], "not compatible", "not compatible"),
        ("tumble", [('filter(col("amount") > 0)', 'filter(col("amount") > 0).select(col("customer"), col("amount"), '
                     'col("order_time"))')], "unknown", "unknown"),
        ("tumble", [("STRING, amount BIGINT,", "STRING, amount BIGINT, added INT,")], "compatible", "unknown"),
        ("views", [("lit(minutes)", "lit(2 * minutes)")], "incompatible", "incompatible"),
        ("views", [("VISIT_GAP = 30", "VISIT_GAP = 31")], "incompatible", "incompatible"),
        ("rows", [("row_interval(2)", "row_interval(1)")], "incompatible", "incompatible"),
        ("rows", [("row_interval(50)", "row_interval(60)")], "incompatible", "incompatible"),
        ("rows", [("Slide.over(row_interval(50)).every(row_interval(10))", "Tumble.over(row_interval(50))"),
                  ("Over, Slide", "Over, Tumble")], "incompatible", "incompatible"),
        ("rows", [('col("amount").sum.over', 'col("amount").avg.over')], "not compatible", "not compatible"),
    ],
)  # fmt: skip
def test_each_kind_of_change(name: str, edits: list[tuple[str, str]], vvr: str, flink: str) -> None:
    for engine, expected in (("vvr", vvr), ("flink", flink)):
        outcome = judged(name, engine, *edits).outcome.value
        assert outcome != expected[4:] if expected.startswith("not ") else outcome == expected, (engine, outcome)


@pytest.mark.parametrize(
    ("query", "vvr", "flink"),
    [(LEGACY, Outcome.UNKNOWN, Outcome.UNKNOWN), (TVF, Outcome.UNKNOWN, Outcome.INCOMPATIBLE)],
    ids=["legacy", "tvf"],
)
def test_a_move_between_sql_and_the_table_api_is_judged(query: str, vvr: Outcome, flink: Outcome) -> None:
    text = (PROGRAMS / "tumble.py").read_text(encoding="utf-8")
    for engine, expected in (("vvr", vvr), ("flink", flink)):
        script = Side(SQL + query, engine=engine, source="job.sql")
        for pair in ((side(text, engine), script), (script, side(text, engine))):
            report = check(*pair)
            assert report.outcome is expected
            assert "table-api-changed" in {finding.rule for finding in report.findings}


def test_sql_moved_into_a_program_stays_sql() -> None:
    statements = (SQL + LEGACY).strip().rstrip(";").split(";\n")
    body = "".join(f'\nt_env.execute_sql("""{text.strip()}""")' for text in statements)
    text = (
        "from pyflink.table import *\nt_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())" + body
    )
    for engine in ENGINES:
        report = check(Side(SQL + LEGACY, engine=engine), side(text, engine))
        assert [finding.rule for finding in report.findings] == ["unchanged"]


def test_a_script_written_as_a_program_is_read_is_another_notation_all_the_same() -> None:
    """The trees of a program are never shared with a script that holds the same text."""
    program = side((PROGRAMS / "tumble.py").read_text(encoding="utf-8"), "vvr")
    script = ";\n".join(statement.text for statement in program.parsed.statements)
    assert check(program, Side(script)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_is_not_read_is_never_compatible_even_unchanged(engine: str) -> None:
    for name in ("unread", "hostile"):
        report = judged(name, engine)
        assert report.outcome in (Outcome.UNKNOWN, Outcome.INCOMPATIBLE)
        assert "statement-not-read" in {finding.rule for finding in report.findings}
        assert {finding.rule for finding in report.deciding} <= {"statement-not-read", "program-refused"}


def test_what_only_the_environment_knows_is_never_equal_to_something_else() -> None:
    """Given on one side it may be another topic; named on both it counts as the same, and that is told."""
    text = (PROGRAMS / "views.py").read_text(encoding="utf-8")
    named, given = side(text, "flink", {"minutes": "5"}), side(text, "flink", {"minutes": "5", "TOPIC": "web"})
    assert check(named, given).outcome is not Outcome.COMPATIBLE
    report = check(named, side(text, "flink", {"minutes": "5"}))
    assert report.outcome is Outcome.COMPATIBLE
    (said,) = (each for each in report.warnings if "TOPIC" in each)
    assert "are assumed to be equal on both sides" in said
    assert "--var" in said


def test_what_the_environment_gives_is_part_of_what_is_compared() -> None:
    text = (PROGRAMS / "views.py").read_text(encoding="utf-8")
    old, new = side(text, "vvr"), side(text, "vvr", {**GIVEN, "minutes": "10"})
    assert check(old, new).outcome is Outcome.INCOMPATIBLE
    assert old.sha256 != new.sha256 != Side(text).sha256


def test_plans_and_variables_are_for_what_they_are_for() -> None:
    program = side((PROGRAMS / "tumble.py").read_text(encoding="utf-8"), "flink")
    with pytest.raises(InputError, match="only to SQL scripts"):
        check(program, program, plans=((), ()))
    with pytest.raises(InputError, match="variables are only for programs"):
        Side("SELECT 1", variables={"A": "1"})
    with pytest.raises(InputError, match="language 'scala'"):
        Side("SELECT 1", language="scala")


def test_a_check_of_sql_loads_no_front_end() -> None:
    code = (
        "import sys\nfrom airflow_flinkcompat.compat import Side, check\nsql = 'INSERT INTO s SELECT a FROM t'\n"
        "check(Side(sql), Side(sql))\nprint([name for name in sys.modules if '.frontends.' in name])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "[]"
