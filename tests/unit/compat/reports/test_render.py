"""What people read of a report: text for a terminal and Markdown, for pairs that tell; widths, old reports, secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli.rules import judged
from airflow_flinkcompat.compat import (
    Outcome,
    Report,
    ReportContext,
    Side,
    check,
    render_markdown,
    render_text,
    report_rows,
)
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.compat.reports.advice import if_resumed, steps
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE, ENTRIES
from airflow_flinkcompat.compat.reports.sections import format_excerpt
from airflow_flinkcompat.compat.restore_verdict import graph_may_decide
from airflow_flinkcompat.compat.rule import Rule
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from tests.support.nightly import mostly_slow

TABLES = """\
CREATE TABLE orders (
  customer STRING, item STRING, region STRING, amount DECIMAL(10, 2), order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE customer_minutes (customer STRING, window_start TIMESTAMP(3), total DECIMAL(38, 2), n DECIMAL(38, 2))
  WITH ('connector' = 'blackhole');
CREATE TABLE region_hours (region STRING, total DECIMAL(38, 2)) WITH ('connector' = 'blackhole');
"""
METRICS = "SUM(amount), COUNT(item)"


def totals(metrics: str = METRICS, size: str = "'1' MINUTE", keys: str = "customer", where: str = "") -> str:
    return f"""\
INSERT INTO customer_minutes
SELECT customer, window_start, {metrics}
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL {size}))
{where}GROUP BY {keys}, window_start, window_end;
"""


def by_region(size: str = "'1' HOUR") -> str:
    return f"""\
INSERT INTO region_hours
SELECT region, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL {size}))
GROUP BY region, window_start, window_end;
"""


def top(direction: str) -> str:
    return f"""\
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total {direction}) AS place FROM (
    SELECT customer, window_start, window_end, SUM(amount) AS total
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))
    GROUP BY customer, window_start, window_end))
WHERE place <= 3;
"""


@dataclass(frozen=True)
class Pair:
    old: str
    new: str
    engine: str = "vvr"


LONG = ", ".join(f"SUM(CASE WHEN item = 'article number {i}' THEN amount END)" for i in range(6))
PAIRS = {
    "unchanged": Pair(totals(), totals(size="'60' SECOND").replace("SELECT", "SELECT -- once more\n")),
    "compatible": Pair(totals(), totals("SUM(amount) * 100, COUNT(item)"), "flink"),
    "partial": Pair(totals(), totals("SUM(amount), MAX(amount)")),
    "partial without a window": Pair(
        "SELECT customer, SUM(amount) FROM orders GROUP BY customer;",
        "SELECT customer, SUM(amount), MAX(amount) FROM orders GROUP BY customer;",
    ),
    "refused at restore": Pair(totals(), totals("SUM(amount), COUNT(item), MAX(amount)"), "flink"),
    "wrong rows": Pair(totals("MAX(item), COUNT(item)"), totals("MIN(item), COUNT(item)"), "flink"),
    "another key": Pair(totals(), totals(keys="region, customer")),
    "several INSERTs": Pair(totals() + by_region(), totals() + by_region("'2' HOUR")),
    "several INSERTs on Flink": Pair(totals() + by_region(), totals("SUM(amount), MAX(amount)") + by_region(), "flink"),
    "overruled findings": Pair(totals(), totals("SUM(amount), MAX(amount)", where="WHERE amount > 10\n")),
    "Top-N": Pair(top("DESC"), top("ASC")),
    "a setting": Pair(totals(), "SET 'table.exec.mini-batch.enabled' = 'true';\n" + totals(), "flink"),
    "a function of one's own": Pair(
        totals(),
        "CREATE TEMPORARY FUNCTION tidy AS 'com.example.Tidy';\n" + totals("tidy(SUM(amount)), COUNT(item)"),
        "flink",
    ),
    "unread": Pair(totals(), totals() + "SELECT FROM\n  WHERE;\n"),
    "undeclared": Pair(totals(), totals("SUM(amount), weigh(item)")),
    "long clauses": Pair(totals(LONG), totals(LONG.replace("amount END", "amount ELSE 0 END"))),
}


def report(pair: Pair) -> Report:
    found = check(
        Side(TABLES + pair.old, engine=pair.engine, source="orders_v1.sql"),
        Side(TABLES + pair.new, engine=pair.engine, source="orders_v2.sql"),
        with_other_engine=True,
    )
    return replace(found, tool_version="")


@pytest.mark.parametrize("name", PAIRS)
def test_text(snapshot: SnapshotAssertion, name: str) -> None:
    assert render_text(report(PAIRS[name]), 80) == snapshot


@pytest.mark.parametrize("name", PAIRS)
def test_markdown(snapshot: SnapshotAssertion, name: str) -> None:
    assert render_markdown(report(PAIRS[name])) == snapshot


@pytest.mark.parametrize("name", ["refused at restore", "several INSERTs on Flink", "overruled findings", "partial"])
def test_short_text(snapshot: SnapshotAssertion, name: str) -> None:
    assert render_text(report(PAIRS[name]), 80, verbose=False) == snapshot


@pytest.mark.parametrize("name", ["several INSERTs on Flink", "overruled findings"])
def test_rows(snapshot: SnapshotAssertion, name: str) -> None:
    assert report_rows(report(PAIRS[name])) == snapshot


def test_the_pairs_tell_of_every_outcome_on_both_engines() -> None:
    seen = {(pair.engine, report(pair).outcome) for pair in PAIRS.values()}
    assert {outcome for _, outcome in seen} == set(Outcome)
    assert {engine for engine, _ in seen} == {"vvr", "flink"}


# ---------------------------------------------------------------------------------------------- of any report
@pytest.mark.parametrize("width", mostly_slow([72, 80, 100, 120], 4))
@pytest.mark.parametrize("name", PAIRS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for line in render_text(report(PAIRS[name]), width).splitlines():
        assert len(line) <= width, line


@pytest.mark.parametrize("render", [render_text, render_markdown])
def test_what_to_do_next_is_never_cut(render: Callable[[Report], str]) -> None:
    """Thirty sources, each of which begins somewhere; a clause of thousands of characters ends between two words."""
    tables = "".join(
        f"CREATE TABLE a_rather_long_name_of_a_source_{i} (a STRING) WITH ('connector' = 'filesystem', 'path' = '/{i}',"
        " 'format' = 'csv');\n"
        for i in range(30)
    )
    union = " UNION ALL ".join(f"SELECT * FROM a_rather_long_name_of_a_source_{i}" for i in range(30))
    condition = " OR ".join(f"a = 'value number {i}'" for i in range(200))

    def side(key: str, where: str) -> Side:
        query = f"SELECT {key}, COUNT(*) FROM ({union}) WHERE {where} GROUP BY {key};"
        return Side(tables + query, engine="flink")

    found = check(side("a", "a <> ''"), side("UPPER(a)", condition))
    assert found.outcome is Outcome.INCOMPATIBLE
    shown = " ".join(render(found).split()).replace("\\", "")
    for step in steps(found):
        assert " ".join(step.text.split()) in shown
    assert max(len(step.text) for step in steps(found)) > 2000
    assert "..." not in shown
    assert "…" in shown, "a clause of that length is ended"


@given(st.text("ab -'", max_size=2000))
def test_a_long_clause_ends_between_two_words(text: str) -> None:
    whole, shown = " ".join(text.split()), format_excerpt(text)
    if shown != whole:
        assert len(whole) > 600
        begin = shown.removesuffix("…")
        assert begin.split() == whole.split()[: len(begin.split())] or " " not in whole[:600]


ONE_SIDED = {
    "deployment-added": "NEW DEPLOYMENT: ",
    "undeclared-function": "NEW DEPLOYMENT: ",
    "deployment-removed": "DELETED: ",
}
"""How a report begins where only one side has a script."""


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize("rule", mostly_slow(ENTRIES, 6), ids=lambda rule: rule.code)
def test_verdict_first_then_what_to_do_then_each_finding_with_its_page(rule: Rule, engine: str) -> None:
    found = judged(rule.code, engine)
    for text, heading in ((render_text(found), "What to do next"), (render_markdown(found), "### What to do next")):
        assert text.removeprefix("## ").startswith(ONE_SIDED.get(rule.code, found.outcome.value.upper()))
        _, _, findings = text.partition(heading)
        assert not any(finding.message in text.partition(heading)[0] for finding in found.deciding)
        for finding in found.deciding:
            assert f"flinkcompat rules {finding.rule}" in findings
        for finding in found.findings:
            assert finding.rule in findings
        for operator in found.operators:
            for metric, fate in operator.metrics:
                assert metric.replace("|", "\\|") in " ".join(findings.split())
                assert fate.value in findings
        assert findings.count("```") % 2 == 0


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize("rule", [rule for rule in ENTRIES if rule.code not in ONE_SIDED], ids=lambda rule: rule.code)
def test_steps_follow_the_outcome(rule: Rule, engine: str) -> None:
    found = judged(rule.code, engine)
    words = " ".join(step.text for step in steps(found))
    cannot_start = rule.code == "statement-not-read" or (
        rule.code in ("program-refused", "statement-refused") and engine == "flink"
    )
    if found.outcome is Outcome.INCOMPATIBLE:
        assert words.startswith("Correct the script" if cannot_start else "Do not resume.")
        assert "`resume`" not in words
    if found.outcome is not Outcome.COMPATIBLE:
        assert ("flinkcompat backfill" in str(steps(found))) is not cannot_start
    resumes = engine == "flink" and found.outcome is Outcome.INCOMPATIBLE and not cannot_start
    assert bool(if_resumed(found)) is resumes


@pytest.mark.parametrize("name", PAIRS)
def test_a_report_of_an_earlier_version_still_tells_its_findings(name: str) -> None:
    whole = report(PAIRS[name])
    old = replace(whole, sinks=(), operators=(), findings=tuple(replace(f, operator="") for f in whole.findings))
    for text in (render_text(old), render_markdown(old)):
        for finding in old.findings:
            assert finding.rule in text
        for metric, fate in (row for finding in old.deciding for row in finding.fates):
            assert metric in " ".join(text.split())
            assert fate.value in text


def test_what_stands_in_a_clause_cannot_break_a_table() -> None:
    pair = Pair(totals("MAX(item || '|' || '`x`'), COUNT(item)"), totals("MAX(item || '|*[x](y)<b>'), COUNT(item)"))
    lines = render_markdown(report(pair)).splitlines()
    columns = [line.replace("\\|", "").count("|") for line in lines if line.startswith("|")]
    assert set(columns) <= {3, 4}
    assert not any("<b>" in line.replace("\\<", "") for line in lines if "`" not in line)


# ---------------------------------------------------------------------------------------------- what to do next
PLANNER = "Ask Flink's own planner"
DOUBT = "If both jobs run at parallelism 1"


def advice(old: str, new: str) -> str:
    return " ".join(step.text for step in steps(report(Pair(old, new, "flink"))))


def test_the_planner_is_asked_only_where_plans_show_all_that_is_unknown() -> None:
    """A function of one's own and a setting nobody measured are in no plan."""
    asked = {rule.code: PLANNER in " ".join(s.text for s in steps(judged(rule.code, "flink"))) for rule in ENTRIES}
    assert any(asked.values())
    for code, offered in asked.items():
        unknown = [f for f in judged(code, "flink").deciding if f.outcome is Outcome.UNKNOWN]
        assert not offered or any(graph_may_decide(f, BY_CODE[f.rule]) for f in unknown)
    assert PLANNER not in advice(totals(), "SET 'table.exec.emit.early-fire.enabled' = 'true';\n" + totals())


def test_a_missing_parallelism_is_asked_for() -> None:
    words = advice(top("DESC"), top("ASC"))
    assert DOUBT in words
    assert "--set parallelism.default=1" in words
    assert PLANNER not in words
    at_one = "SET 'parallelism.default' = '1';\n"
    assert DOUBT not in advice(at_one + top("DESC"), at_one + top("ASC"))


PROGRAM = """\
from pyflink.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE t (a BIGINT) WITH ('connector' = 'kafka', 'format' = 'json')")
t_env.execute_sql("CREATE TABLE o (s BIGINT) WITH ('connector' = 'blackhole')")
t_env.execute_sql("INSERT INTO o SELECT {query}")
"""


@pytest.mark.parametrize(
    ("query", "commands"),
    [
        ("SUM(a) * 2 FROM t", ["flink stop", "flink run -d -s '<savepoint>' -py new.py"]),
        (
            "SUM(a) FROM t GROUP BY a + 1",
            ["flink stop", "flink run -d -py new.py", "flinkcompat backfill new.py \\", "  --from"],
        ),
        (
            "SUM(a) FROM t WHERE undeclared(a)",
            ["flink stop", "flink run -d -py new.py", "flinkcompat backfill new.py \\", "  --from"],
        ),
    ],
)
def test_a_program_is_started_by_flinks_own_client(query: str, commands: list[str]) -> None:
    """The SQL Gateway starts and plans none, nor does anything that takes source_offsets."""
    old, new = (
        Side(PROGRAM.replace("{query}", text), engine="flink", source=f"{name}.py", language="python")
        for name, text in (("old", "SUM(a) FROM t"), ("new", query))
    )
    told = steps(check(old, new))
    given = [line for step in told for line in step.commands]
    assert len(given) == len(commands)
    assert all(line.startswith(start) for line, start in zip(given, commands, strict=True)), given
    assert "source_offsets" not in "".join(step.text for step in told)


MIGRATIONS = Path(__file__).parents[3] / "fixtures" / "migrations"


def planned(case: str) -> tuple[Side, Side, Plans]:
    """Both sides of a migration's fixture, and their plans."""
    folder = MIGRATIONS / case
    texts = [[(folder / f"{side}.{kind}").read_text("utf-8") for side in ("old", "new")] for kind in ("sql", "json")]
    old, new = (Side(text, engine="flink") for text in texts[0])
    plans = [(read_plan(text),) for text in texts[1]]
    return old, new, (plans[0], plans[1])


@pytest.mark.parametrize("render", [render_text, render_markdown])
@pytest.mark.parametrize(
    ("case", "kept"),
    [
        ("a-metric-is-added-to-a-tumbling-window", MigrationExtent.PARTIAL),
        ("the-keys-of-a-group-aggregation-change-places", MigrationExtent.WHOLE),
    ],
)
def test_what_a_rewritten_savepoint_would_keep(
    case: str, kept: MigrationExtent, render: Callable[[Report], str], snapshot: SnapshotAssertion
) -> None:
    old, new, plans = planned(case)
    report = check(old, new, plans=plans)
    assert report.migration is not None
    assert report.migration.kept is kept
    page = render(report)
    begin = page.index(report.migration.headline)
    assert "\n\n".join(page[begin:].split("\n\n")[:2]) == snapshot
    assert Report.from_dict(report.to_dict()) == report


@pytest.mark.parametrize("render", [render_text, render_markdown])
def test_the_expected_downtime_follows_the_state(render: Callable[..., str]) -> None:
    old, new, plans = planned("the-keys-of-a-group-aggregation-change-places")
    report = check(old, new, plans=plans)
    known = ReportContext(downtime="Expected downtime: about 4 min for 12.0 GB of state.")
    assert report.migration is not None
    _, _, below = render(report, known=known).partition(report.migration.headline)
    assert known.downtime in " ".join(below.split())
    assert "Expected downtime" not in render(report)


def test_nothing_is_said_of_a_migration_without_need() -> None:
    old, _, plans = planned("a-metric-is-added-to-a-tumbling-window")
    assert check(old, old).migration is None
    assert "migration" not in check(old, old).to_dict()
    assert check(old, old, plans=(plans[0], plans[0])).migration is None


def test_of_several_jobs_a_migration_is_not_told() -> None:
    old, new, plans = planned("a-metric-is-added-to-a-tumbling-window")
    report = check(old, new, plans=((*plans[0], *plans[0]), (*plans[1], *plans[1])))
    assert report.migration is None
    assert len([warning for warning in report.warnings if "scripts with one job:" in warning]) == 1
