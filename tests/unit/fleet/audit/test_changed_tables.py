"""A changed table takes the place of what jobs declare by its name, wherever and however they write it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.audit.changed_tables import (
    NotReplacedError,
    ReplacementTable,
    read_changed_tables,
    with_changed_tables,
)
from airflow_flinkcompat.fleet.audit.judging import audit_pair
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult
from airflow_flinkcompat.model import InputError, JobSpec, join_ddl
from airflow_flinkcompat.sql import ScriptError
from tests.support.cli.command import PROGRAM, QUERY, TABLES, V1

ORDERS, TOTALS = (each + ";\n" for each in TABLES.split(";\n")[:2])
BODY = """ (
  customer STRING, amount BIGINT, item STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time
) WITH ('connector' = 'kafka', 'topic' = 'other')"""


def changed(tmp_path: Path, ddl: str) -> tuple[ReplacementTable, ...]:
    file = tmp_path / "changed.sql"
    file.write_text(ddl, encoding="utf-8")
    return read_changed_tables(str(file))


@pytest.fixture
def orders(tmp_path: Path) -> tuple[ReplacementTable, ...]:
    return changed(tmp_path, f"-- as it would be\nCREATE TABLE orders{BODY};")


def test_in_the_place_of_the_scripts_own(orders: tuple[ReplacementTable, ...]) -> None:
    job = JobSpec(f"-- é comment\n{V1}", engine="flink")
    found, touched = with_changed_tables(job, orders)
    assert touched == ("orders",)
    assert found.script == f"-- é comment\nCREATE TABLE orders{BODY};\n{TOTALS}{QUERY}"


@pytest.mark.parametrize(
    "head",
    [
        "CREATE TEMPORARY TABLE IF NOT EXISTS orders",
        "create table\n  `orders` -- here\n",
        "CREATE TABLE default_catalog.default_database.orders",
        "USE CATALOG default_catalog;\nUSE default_database;\nCREATE TABLE orders",
    ],
)
def test_the_scripts_own_way_to_name_it_stays(orders: tuple[ReplacementTable, ...], head: str) -> None:
    script = ORDERS.replace("CREATE TABLE orders", head) + TOTALS + QUERY
    found, touched = with_changed_tables(JobSpec(script), orders)
    assert touched == ("orders",)
    name_end = head.rstrip().removesuffix("-- here").rstrip()
    assert found.script == f"{name_end}{BODY};\n{TOTALS}{QUERY}"


def test_another_database_has_another_table(orders: tuple[ReplacementTable, ...]) -> None:
    script = f"USE shop;\n{ORDERS}USE default_database;\n{ORDERS}{TOTALS}{QUERY}"
    found, _ = with_changed_tables(JobSpec(script), orders)
    assert found.script.count("'topic' = 'other'") == 1
    assert found.script.startswith(f"USE shop;\n{ORDERS}")


def test_in_a_database_of_its_own(tmp_path: Path) -> None:
    tables = changed(tmp_path, f"CREATE TABLE shop.orders{BODY}")
    found, touched = with_changed_tables(JobSpec(f"USE shop;\n{V1}"), tables)
    assert touched == ("shop.orders",)
    assert found.script.startswith(f"USE shop;\nCREATE TABLE orders{BODY};")
    assert with_changed_tables(JobSpec(V1), tables) == (JobSpec(V1), ())


def test_in_the_catalog(orders: tuple[ReplacementTable, ...]) -> None:
    job = JobSpec(QUERY, catalog=TABLES)
    found, touched = with_changed_tables(job, orders)
    assert touched == ("orders",)
    assert found == replace(job, catalog=f"CREATE TABLE orders{BODY};\n{TOTALS}")


def test_through_a_view_of_the_catalog_and_not_of_another(orders: tuple[ReplacementTable, ...]) -> None:
    catalog = f"{TABLES}CREATE VIEW v AS SELECT * FROM orders;\n"
    assert with_changed_tables(JobSpec("INSERT INTO totals SELECT customer, 1 FROM v", catalog=catalog), orders)[1]
    unused = JobSpec("INSERT INTO totals SELECT 'a', 1", catalog=catalog)
    assert with_changed_tables(unused, orders) == (unused, ())


def test_nobody_declares_it(orders: tuple[ReplacementTable, ...]) -> None:
    """What the table was is not known, so that nothing is compatible."""
    job = JobSpec(TOTALS + QUERY, engine="flink")
    found, touched = with_changed_tables(job, orders)
    assert touched == ("orders",)
    assert found.script == job.script
    assert "CREATE TABLE `orders`" in found.catalog
    row = audit_pair(AuditPair("orders", job, job), orders)
    assert (row.result, row.tables) == (AuditResult.UNKNOWN, ("orders",))


def test_a_job_without_it_is_unchanged(orders: tuple[ReplacementTable, ...]) -> None:
    job = JobSpec(V1.replace("orders", "clicks"), engine="flink")
    row = audit_pair(AuditPair("clicks", job, job), orders)
    assert (row.result, row.tables) == (AuditResult.COMPATIBLE, ())
    assert [cause.reason for cause in row.causes] == ["unchanged"]


def test_the_job_is_judged_over_the_changed_table(orders: tuple[ReplacementTable, ...]) -> None:
    job = JobSpec(V1, engine="flink")
    row = audit_pair(AuditPair("orders", job, job), orders)
    assert row.result is AuditResult.INCOMPATIBLE
    assert [cause.reason for cause in row.causes] == ["source-table-changed"]


def test_a_table_that_becomes_a_view(tmp_path: Path) -> None:
    views = changed(tmp_path, "CREATE VIEW orders AS SELECT * FROM raw")
    found, _ = with_changed_tables(JobSpec(V1), views)
    assert found.script.startswith("CREATE VIEW orders AS SELECT * FROM raw;\n")


def test_a_program_is_not_rewritten(tmp_path: Path) -> None:
    tables = changed(tmp_path, "CREATE TABLE o (a STRING) WITH ('connector' = 'print')")
    program = JobSpec(PROGRAM, language="python", engine="flink", source="job.py")
    with pytest.raises(NotReplacedError, match=r"job\.py: the program declares o,"):
        with_changed_tables(program, tables)
    row = audit_pair(AuditPair("job.py", program, program), tables)
    assert row.result is AuditResult.UNREADABLE
    assert [cause.reason for cause in row.causes] == ["table-in-program"]


OF_CATALOG = PROGRAM.replace("""t_env.execute_sql("CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')")\n""", "")
TABLE_O = "CREATE TABLE o (a STRING) WITH ('connector' = 'kafka', 'topic' = '{}')"


def test_a_program_over_tables_of_the_catalog_is_judged(tmp_path: Path) -> None:
    """Only what stands in the program's own text could not be replaced."""
    assert OF_CATALOG != PROGRAM
    known = {"language": "python", "engine": "flink", "source": "job.py", "variables": {"SINK": "print"}}
    program = JobSpec(OF_CATALOG, catalog=TABLE_O.format("a"), **known)
    tables = changed(tmp_path, TABLE_O.format("b"))
    found, touched = with_changed_tables(program, tables)
    assert (found.script, found.catalog, touched) == (program.script, TABLE_O.format("b"), ("o",))
    row = audit_pair(AuditPair("job.py", program, program), tables)
    assert (row.result, [each.reason for each in row.causes]) == (AuditResult.INCOMPATIBLE, ["source-table-changed"])
    undeclared = JobSpec(OF_CATALOG, **known)
    row = audit_pair(AuditPair("job.py", undeclared, undeclared), tables)
    assert (row.result, row.tables) == (AuditResult.UNKNOWN, ("o",)), "what it is now nobody says"


def test_a_program_that_does_not_use_it_is_unchanged(orders: tuple[ReplacementTable, ...]) -> None:
    program = JobSpec(PROGRAM, language="python", engine="flink", source="job.py", variables={"SINK": "print"})
    assert with_changed_tables(program, orders) == (program, ())


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("DROP TABLE orders", r"changed\.sql:1:1: a changed table must be a CREATE TABLE or CREATE VIEW"),
        (f"{ORDERS}{ORDERS}", r"changed\.sql:4:1: orders is declared twice"),
        ("CREATE TABLE orders (a STRUNG", r"changed\.sql:1:"),
    ],
)
def test_a_file_that_is_no_such_ddl(tmp_path: Path, ddl: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        changed(tmp_path, ddl)


def test_a_file_without_a_statement(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="contains no SQL statement"):
        changed(tmp_path, "-- nothing")


def test_places_are_told_in_the_files_of_the_catalog(orders: tuple[ReplacementTable, ...]) -> None:
    """Also behind a declaration that has other lines than it had."""
    first = TABLES.replace("CREATE TABLE orders (", "-- of the shop\nCREATE TABLE orders\n  (\n")
    assert first != TABLES
    catalog, sources = join_ddl([("ddl/tables.sql", first), ("ddl/more.sql", "\nCREATE TABLE more (a INT);")])
    found, _ = with_changed_tables(Side(QUERY, catalog=catalog, catalog_sources=sources), orders)
    assert isinstance(found, Side)
    places = {table.name: str(table.span) for table in found.program.tables}
    assert (places["orders"], places["more"]) == ("ddl/tables.sql:2:1", "ddl/more.sql:2:1")
