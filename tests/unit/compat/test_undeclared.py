"""A table or function that nobody declares is in doubt only where it decides over something that changed."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.compat.checker import IN_BATCH, NO_INSERT

TOTALS = "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"
OTHER = "INSERT INTO others SELECT region, MAX(amount) FROM payments GROUP BY region;\n"
BATCH = "SET 'table.exec.mini-batch.enabled' = 'true';\nSET 'table.exec.mini-batch.allow-latency' = '1 s';\n"
SIZE = "SET 'table.exec.mini-batch.size' = '{}';\n"
PRINT = "CREATE TABLE others (region STRING, most BIGINT) WITH ('connector' = '{}');\n"


def judged(old: str, new: str) -> Report:
    return check(old, new, "flink")


def fired(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BATCH + SIZE.format(10) + TOTALS, BATCH + SIZE.format(500) + TOTALS),
        (TOTALS, "SET 'pipeline.name' = 'totals';\n" + TOTALS),
        (TOTALS, "SHOW TABLES;\n" + TOTALS),
        (TOTALS, TOTALS + OTHER),
    ],
)
def test_a_query_that_stays_as_it_is_needs_no_types(old: str, new: str) -> None:
    report = judged(old, new)
    assert "undeclared-table" not in fired(report)
    assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TOTALS, TOTALS.replace("SUM", "MAX")),
        (TOTALS, TOTALS.replace("FROM orders", "FROM orders WHERE amount > 0")),
        (TOTALS, "SET 'table.exec.state.ttl' = '1 h';\n" + TOTALS),
        (TOTALS, "SET 'parallelism.default' = '2';\n" + TOTALS),
        (TOTALS, "SET 'table.local-time-zone' = 'UTC';\n" + TOTALS),
        (PRINT.format("print") + OTHER, PRINT.format("blackhole") + OTHER),
        (PRINT.format("print") + OTHER, PRINT.format("print").replace("BIGINT", "INT") + OTHER),
        (TOTALS + OTHER, OTHER + TOTALS),
    ],
)
def test_what_types_decide_over_is_in_doubt(old: str, new: str) -> None:
    for report in (judged(old, new), judged(new, old)):
        assert "undeclared-table" in fired(report)
        assert report.outcome is not Outcome.COMPATIBLE


TABLES = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
CALLED = TABLES + "INSERT INTO totals SELECT customer, weighted(amount, customer) FROM orders GROUP BY customer;\n"


def test_an_undeclared_aggregate_that_is_called_as_before_keeps_what_it_kept() -> None:
    report = judged(CALLED, "SET 'pipeline.name' = 'totals';\n" + CALLED)
    assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    "new",
    [
        CALLED.replace("weighted(amount, customer)", "weighted(customer, amount)"),
        CALLED.replace("weighted", "weighted_too"),
        CALLED.replace("GROUP BY", "WHERE amount > 0 GROUP BY"),
        CALLED.replace("weighted(amount, customer)", "weighted(amount, customer) + SUM(amount)"),
        CALLED.replace("SELECT customer", "SELECT UPPER(customer)"),
    ],
)
def test_beside_a_change_of_its_query_an_undeclared_aggregate_is_in_doubt(new: str) -> None:
    assert judged(CALLED, new).outcome is not Outcome.COMPATIBLE
    assert judged(new, CALLED).outcome is not Outcome.COMPATIBLE


# --- what cannot be read ---------------------------------------------------------------------------------------------

WRITTEN = TABLES + "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"
RENAMED = WRITTEN.replace("INTO totals SELECT", "INTO totals (customer, total) SELECT")
SPARE = "CREATE TABLE spare (x INT) WITH ('connector' = 'print');\n"


@pytest.mark.parametrize("unread", ["SELECT * FROM %s;\n", "CREATE TABLE t (a INT,) WITH ('k' = 'v');\n"])
def test_what_is_unread_alike_on_both_sides_is_no_doubt_where_nothing_changed_reaches_it(unread: str) -> None:
    report = judged(unread + WRITTEN, unread + SPARE + WRITTEN)
    assert fired(report) == {"unused-declaration"}
    assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SELECT FROM spare;\n" + WRITTEN, "SELECT FROM spare;\n" + SPARE + WRITTEN),
        ("CREATE TABLE t (a INT,);\n" + WRITTEN, "CREATE TABLE t (b INT,);\n" + SPARE + WRITTEN),
        ("SET 'a' = = 'b';\n" + WRITTEN, "SET 'a' = = 'b';\n" + SPARE + WRITTEN),
        ("SELECT FROM x;\n" + WRITTEN, "SELECT FROM x;\nSET 'table.exec.state.ttl' = '1 h';\n" + WRITTEN),
        ("SELECT FROM x;\n" + WRITTEN, "SELECT FROM x;\n" + WRITTEN + WRITTEN.replace("INTO totals", "INTO more")),
        ("CREATE VIEW spares AS SELECT * FROM spare;\nSELECT FROM spares;\n" + WRITTEN,
         "CREATE VIEW spares AS SELECT * FROM spare;\nSELECT FROM spares;\n" + SPARE + WRITTEN),
    ],
)  # fmt: skip
def test_what_is_unread_and_may_be_reached_is_a_doubt(old: str, new: str) -> None:
    for report in (judged(old, new), judged(new, old)):
        assert report.outcome is not Outcome.COMPATIBLE
        assert "statement-not-read" in fired(report)


# --- the catalog of many jobs ----------------------------------------------------------------------------------------

OTHERS = SPARE.replace("spare", "theirs")


def with_catalogs(old: str, new: str, *scripts: str) -> Report:
    """A change of the catalog, and of the script where two are given."""
    return check(*(Side(sql, catalog=ddl, engine="flink") for sql, ddl in zip(scripts, (old, new), strict=True)))


@pytest.mark.parametrize(
    ("old", "new"), [(SPARE, ""), (SPARE, SPARE.replace("INT", "BIGINT")), (OTHERS + SPARE, SPARE.replace("x", "y"))]
)
def test_tables_of_the_catalog_that_no_query_uses_are_no_change_of_the_job(old: str, new: str) -> None:
    for each in ((old, new), (new, old)):
        assert fired(with_catalogs(*each, WRITTEN, WRITTEN)) == {"unchanged"}


@pytest.mark.parametrize(
    ("old", "new", "scripts"),
    [
        (SPARE, "", (WRITTEN, SPARE.replace("INT", "BIGINT") + WRITTEN)),  # the script declares it now
        (SPARE, SPARE.replace("INT", "BIGINT"), ("SELECT FROM spare;\n" + WRITTEN,) * 2),  # not read, and may use it
        (TABLES, TABLES.replace("BIGINT", "INT"), (TOTALS, TOTALS)),
    ],
)
def test_what_a_query_may_use_or_a_script_declares_stays_a_change(old: str, new: str, scripts: tuple[str, str]) -> None:
    assert "unchanged" not in fired(with_catalogs(old, new, *scripts))


VIEW = "CREATE VIEW theirs AS SELECT customer FROM orders WHERE amount > 1;\n"
OVER = "CREATE VIEW over_theirs AS SELECT customer FROM theirs;\n"
FUNCTION = "CREATE FUNCTION graded AS 'jobs.Graded';\n"
TWICE = "INSERT INTO totals SELECT customer, graded(amount) FROM orders;\n"


@pytest.mark.parametrize("beside", [VIEW, VIEW + OVER, FUNCTION, VIEW + FUNCTION])
def test_views_and_functions_of_the_catalog_that_no_query_uses_are_no_change_of_the_job(beside: str) -> None:
    other = beside.replace("> 1", "> 2").replace("jobs.", "work.")
    for old, new in ((beside, other), ("", beside), (beside, "")):
        assert fired(with_catalogs(TABLES + old, TABLES + new, TOTALS, TOTALS)) == {"unchanged"}


@pytest.mark.parametrize(
    ("old", "new", "script"),
    [
        (VIEW, VIEW.replace("> 1", "> 2"), TOTALS.replace("orders", "(SELECT customer, 1 AS amount FROM theirs)")),
        (
            VIEW + OVER,
            VIEW.replace("> 1", "> 2") + OVER,
            TOTALS.replace("orders", "(SELECT customer, 1 AS amount FROM over_theirs)"),
        ),
        (FUNCTION, FUNCTION.replace("jobs", "work"), TWICE),
        (FUNCTION, FUNCTION.replace("jobs", "work"), FUNCTION.replace("jobs", "our") + TOTALS),
        (
            FUNCTION + VIEW.replace("amount > 1", "graded(amount)"),
            FUNCTION.replace("jobs", "work") + VIEW.replace("amount > 1", "graded(amount)"),
            TOTALS.replace("orders", "(SELECT customer, 1 AS amount FROM theirs)"),
        ),
    ],
)
def test_views_and_functions_that_a_query_uses_stay_a_change(old: str, new: str, script: str) -> None:
    assert "unchanged" not in fired(with_catalogs(TABLES + old, TABLES + new, script, script))


def test_selects_without_an_insert_are_no_deployed_job() -> None:
    old, new = "SELECT * FROM orders;\nSELECT a FROM orders;\n", "SELECT * FROM orders;\nSELECT b FROM orders;\n"
    assert any(NO_INSERT in each for each in judged(old, new).warnings)
    assert not any(NO_INSERT in each for each in judged(old, old).warnings)
    assert not any(NO_INSERT in each for each in judged(old + TOTALS, new + TOTALS).warnings)


def test_a_batch_job_has_no_savepoint_to_resume_from() -> None:
    batch = "SET 'execution.runtime-mode' = 'batch';\n"
    assert any(IN_BATCH in each for each in judged(batch + TOTALS, batch + TOTALS.replace("amount", "price")).warnings)
    assert not any(IN_BATCH in each for each in judged(TOTALS, batch + TOTALS).warnings)
