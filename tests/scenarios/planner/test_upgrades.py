"""Unchanged scripts on the planners of two lines: what each ends in, whatever this package reads in them."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner.judgement import judge
from dev.measure import results
from dev.measure.measured import RIGHT, Restore, connectors, load
from tests.support.nightly import NIGHTLY, sample

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("planners")]

TABLES = """\
CREATE TABLE orders (k STRING, v BIGINT, d DOUBLE, t TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR t AS t) WITH (
  'connector' = '{}', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
CREATE TABLE totals (k STRING, x DOUBLE) WITH ('connector' = 'print');
CREATE TABLE kept (k STRING, x DOUBLE, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 'kept');
CREATE TABLE rates (k STRING, v BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'r', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json',
  'value.format' = 'json');
CREATE TABLE calls (k STRING, clock TIME(3)) WITH (
  'connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
"""
UPGRADES = [
    pair
    for pair in connectors()
    if pair.old_version and pair.is_unchanged and not pair.id.startswith("up-lookup")
    if NIGHTLY or (pair.old_version[:4], pair.version[:3]) == ("1.20", "2.3")
]
"""Unchanged scripts, without those that look rows up in a connector of the measurement's own."""
CHANGED = [
    pair
    for path in results.upgrades()
    for pair in load(str(path))
    if not pair.is_unchanged and (pair.old_version[:4], pair.version[:3]) == ("1.20", "2.3")
]


def upgraded(query: str, connector: str = "kafka") -> Report:
    script = f"{TABLES.format(connector)}{query};\n"
    old, new = (Side(script, engine="flink", engine_version=each, source="job.sql") for each in ("1.20", "2.3"))
    return judge(old, new, "always")


def ends(report: Report) -> tuple[Outcome, set[Consequence | None]]:
    return report.outcome, {each.consequence for each in report.deciding}


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO totals SELECT k, d FROM orders WHERE v IN (SELECT v + 1 FROM orders)",
        "INSERT INTO totals SELECT k, SUM(d) FROM orders GROUP BY GROUPING SETS ((k), ())",
        "SELECT k, COUNT(DISTINCT v) FILTER (WHERE d > 1) FROM orders GROUP BY CUBE (k, v)",
        "SELECT k, LAG(v) OVER (PARTITION BY k ORDER BY t) FROM orders",
    ],
)
def test_what_both_lines_plan_alike_is_compatible(query: str) -> None:
    report = upgraded(query)
    assert report.outcome is Outcome.COMPATIBLE, [each.message for each in report.deciding]
    assert {each.effect for each in report.restored} == {"right"}


@pytest.mark.parametrize(
    ("query", "consequence", "operator", "effect"),
    [
        (
            "INSERT INTO totals SELECT k, STDDEV_POP(d) FROM orders GROUP BY k",
            Consequence.REFUSED_AT_RESTORE, "GroupAggregate", "refused at restore",
        ),
        (
            "INSERT INTO totals SELECT k, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM "
            "orders) WHERE n = 1",
            Consequence.SILENTLY_WRONG, "Deduplicate", "silently wrong",
        ),
    ],
)  # fmt: skip
def test_state_that_the_new_line_does_not_read(
    query: str, consequence: Consequence, operator: str, effect: str
) -> None:
    report = upgraded(query)
    assert ends(report) == (Outcome.INCOMPATIBLE, {consequence})
    assert (operator, effect) in {(each.operator, each.effect) for each in report.restored}


@pytest.mark.parametrize(
    ("query", "operator", "keeps"),
    [
        (
            "INSERT INTO totals SELECT k, STDDEV_POP(d) FROM orders GROUP BY k",
            "group-aggregate", ("WELFORD_M2(d)", "COUNT(d)"),
        ),
        (
            "SELECT k, VAR_SAMP(v), SUM(v), AVG(v) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(t), INTERVAL '1' HOUR)) "
            "GROUP BY k, window_start, window_end",
            "global-window-aggregate", ("WELFORD_M2(v)", "COUNT(v)", "SUM(v)"),
        ),
        (
            "SELECT k, d, place FROM (SELECT k, d, ROW_NUMBER() OVER (ORDER BY d DESC, k) AS place "
            "FROM (SELECT k, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM "
            "orders) WHERE n = 1)) WHERE place <= 3",
            "rank", ("k", "d"),
        ),
        (
            "SELECT o.k, r.v FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON o.k = r.k",
            "temporal-join",
            ("left.k", "left.t", "right.k", "right.v", "right.t"),
        ),
        ("SELECT k, MAX(clock) FROM calls GROUP BY k", "group-aggregate", ("MAX(clock)",)),
    ],
)  # fmt: skip
def test_state_that_the_new_line_does_not_read_is_migrated_whole(
    query: str, operator: str, keeps: tuple[str, ...]
) -> None:
    report = upgraded(query)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert report.migration is not None
    assert report.migration.kept is MigrationExtent.WHOLE, report.migration.lines()
    assert [each.keeps for each in report.migration.operators if each.operator == operator] == [keeps]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, VAR_POP(CAST(v AS INT)) FROM orders GROUP BY k",
        "SELECT k, VAR_POP(CAST(v AS DECIMAL(10, 2))) FROM orders GROUP BY k",
        "SELECT k, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM orders) WHERE n = 1",
    ],
)
def test_state_that_no_migration_keeps(query: str) -> None:
    report = upgraded(query)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert report.migration is not None
    assert report.migration.kept is MigrationExtent.NONE


def test_what_only_the_new_line_refuses_is_incompatible() -> None:
    report = upgraded("INSERT INTO kept SELECT k, SUM(d) FROM orders GROUP BY k, v")
    assert ends(report) == (Outcome.INCOMPATIBLE, {Consequence.REFUSED_AT_SUBMIT})
    assert report.is_refused
    assert "ON CONFLICT" in report.deciding[0].message


def test_a_watermark_of_an_upsert_source_is_known_without_its_jar() -> None:
    """Flink 2.3 plans no normalization of such a source in a temporal join (restored)."""
    tables = "".join(
        f"CREATE TABLE {name} (k STRING, v BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t, PRIMARY KEY (k) NOT ENFORCED) "
        f"WITH ('connector' = 'upsert-kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = 'b:1', "
        f"'key.format' = 'json', 'value.format' = 'json');\n"
        for name in ("o", "rates")
    )
    script = f"{tables}SELECT o.k, rates.v FROM o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.t ON o.k = rates.k;\n"
    old, new = (Side(script, engine="flink", engine_version=each) for each in ("1.20", "2.3"))
    report = judge(old, new, "always")
    assert ends(report) == (Outcome.INCOMPATIBLE, {Consequence.REFUSED_AT_SUBMIT})
    assert "ChangelogNormalize" in {each.operator for each in report.restored if each.effect == "refused at submit"}


@pytest.mark.parametrize(
    "query",
    ["SELECT value FROM orders", "INSERT INTO kept SELECT k, d FROM orders ON CONFLICT DO NOTHING"],
    ids=["both lines", "the old line"],
)
def test_what_the_old_line_refuses_runs_in_no_job(query: str) -> None:
    with pytest.raises(InputError, match="refuses it"):
        upgraded(query)


def test_a_connector_without_a_release_is_refused_by_name() -> None:
    report = upgraded("INSERT INTO totals SELECT k, SUM(d) FROM orders GROUP BY k", "faker")
    assert ends(report) == (Outcome.INCOMPATIBLE, {Consequence.REFUSED_AT_SUBMIT})
    assert ("orders (read, faker)", "refused at submit") in {(each.operator, each.effect) for each in report.restored}


@pytest.mark.parametrize("pair", sample(UPGRADES, 6), ids=str)
def test_planners_alone_say_how_measured_restores_ended(pair: Restore) -> None:
    report = judge(*pair.sides(), "always")
    assert report.is_planned
    assert (report.outcome is Outcome.COMPATIBLE) is (pair.outcome == RIGHT)
    assert report.outcome is not Outcome.UNKNOWN


@pytest.mark.parametrize("pair", sample(CHANGED, 6), ids=str)
def test_a_change_with_an_upgrade_is_compatible_only_if_it_restored_right(pair: Restore) -> None:
    outcome = judge(*pair.sides(), "always").outcome
    assert outcome is not Outcome.COMPATIBLE or pair.outcome == RIGHT
    assert outcome is not Outcome.INCOMPATIBLE or pair.outcome != RIGHT
