"""Tables of a script, and the script with stand-ins."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.flink.script_tables import ScriptTables
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.flink.tables import Substitutes

ORDERS = (
    "CREATE TABLE orders (who STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', "
    "'properties.group.id' = 'live');"
)
TOTALS = "CREATE TABLE totals (who STRING PRIMARY KEY NOT ENFORCED, total BIGINT) WITH ('connector' = 'jdbc');"
INSERT = "INSERT INTO totals SELECT who, SUM(amount) FROM orders GROUP BY who;"


def read(script: str) -> ScriptTables:
    return ScriptTables(prepare(script, "jobs.sql"), {})


def names(script: str) -> tuple[list[str], list[str]]:
    tables = read(script).tables
    return [path[2] for path in tables.sinks], sorted(path[2] for path in tables.sources)


def test_stand_ins_are_statements_of_the_script(snapshot: SnapshotAssertion) -> None:
    """A source is replaced where it is declared, and a sink under its name in the INSERT."""
    found = read(
        f"""{ORDERS} USE shop; CREATE TEMPORARY TABLE copies (LIKE_ INT, at TIMESTAMP(3) METADATA) WITH (
        'connector' = 'print'); USE default_database; {TOTALS}
        CREATE VIEW paid AS SELECT * FROM orders;
        BEGIN STATEMENT SET; {INSERT.replace("FROM orders", "FROM paid")}
        INSERT INTO shop.copies SELECT 1, CURRENT_TIMESTAMP FROM paid; END;"""
    )
    stand_ins = Substitutes(found, "private")
    stand_ins.check(found.tables, stops=True)
    stand_ins.put(found.tables, rows="file:///rows")
    assert found.script({"pipeline.name": "it's a trial"}) == snapshot
    assert [(each.path[2], each.key, [*each.columns]) for each in stand_ins.sinks(found.tables)] == [
        ("totals", ("who",), ["who", "total"]),
        ("copies", (), ["LIKE_", "at"]),
    ]


def test_stand_ins_of_upserts_follow_their_jar() -> None:
    """The clause or FORCE shows that the plan has a materializer, or that only a sink of upserts is admitted."""
    clause = ORDERS + TOTALS + INSERT.replace(";", " ON CONFLICT DO DEDUPLICATE;")
    found = read(clause)
    Substitutes(found, "private").put(found.tables, rows="file:///rows", jar="file:///run/upserts.jar")
    *_, added, stand_in, _ = found.script({}).split(";\n")[:-1]
    assert added == "ADD JAR 'file:///run/upserts.jar'"
    assert "'format' = 'flinkcompat-upserts'" in stand_in
    scripts = (clause, ORDERS + TOTALS + INSERT, ORDERS + TOTALS.replace("PRIMARY KEY NOT ENFORCED", "") + INSERT)
    for settings, expected in (({}, [1, 0, 0]), ({"table.exec.sink.upsert-materialize": "force"}, [1, 1, 0])):
        assert [
            len(ScriptTables(prepare(script, "jobs.sql"), settings).tables.upserts) for script in scripts
        ] == expected


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("SELECT who, amount FROM orders WHERE who IN (SELECT who FROM other)", ["orders", "other"]),
        ("WITH orders AS (SELECT * FROM other) SELECT who, amount FROM orders", ["orders", "other"]),
        ("WITH q AS (SELECT * FROM other) SELECT who, amount FROM q", ["other"]),
        ("SELECT who, amount FROM TABLE(TUMBLE(TABLE other, DESCRIPTOR(t), INTERVAL '1' MINUTE))", ["other"]),
        ("SELECT o.who, r.amount FROM orders o JOIN other FOR SYSTEM_TIME AS OF o.t AS r ON o.who = r.who",
         ["orders", "other"]),
        ("SELECT who, amount FROM default_catalog.default_database.seen", ["orders"]),
    ],
)  # fmt: skip
def test_every_table_of_a_query_is_found(query: str, sources: list[str]) -> None:
    """A WITH query of the same name as a table counts as this table, which only makes a stand-in superfluous."""
    declared = ORDERS + ORDERS.replace("orders", "other") + "CREATE VIEW seen AS SELECT * FROM orders;"
    assert names(f"{declared}{TOTALS} INSERT INTO totals {query};") == (["totals"], sources)


def test_options_of_hints_are_known() -> None:
    hinted = INSERT.replace("FROM orders", "FROM orders /*+ OPTIONS('scan.bounded.mode' = 'unbounded') */")
    assert [*read(ORDERS + TOTALS + hinted).tables.sources.values()] == [{"scan.bounded.mode"}]


def test_inherited_declarations_are_whole() -> None:
    found = read(f"{ORDERS}{TOTALS} CREATE TABLE sums WITH ('connector' = 'kafka') LIKE totals;"
                 f"{INSERT.replace('totals', 'sums')}")  # fmt: skip
    (sink,) = Substitutes(found, "private").sinks(found.tables)
    assert (sink.key, sink.columns) == (("who",), {"who": "STRING NOT NULL", "total": "BIGINT"})


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (ORDERS + INSERT, "does not declare the table totals"),
        (TOTALS + INSERT, "does not declare the table orders"),
        (f"{ORDERS}{TOTALS}DROP TABLE totals;{INSERT}", "does not declare the table totals"),
        (f"{ORDERS}{TOTALS}USE CATALOG lake;{INSERT}", r"does not declare the table lake\.totals"),
        (f"{ORDERS}{TOTALS}ALTER TABLE totals ADD n INT;{INSERT}", "Write the change into the CREATE"),
        (f"{ORDERS}CREATE TABLE totals LIKE lake.db.totals;{INSERT}", "which are inherited by LIKE, are unknown"),
        (f"{ORDERS}{TOTALS}{TOTALS.replace('TABLE', 'TABLE IF NOT EXISTS')}{INSERT}", "totals is declared twice"),
        (
            f"{ORDERS}USE CATALOG lake;{TOTALS.replace('TABLE', 'TABLE IF NOT EXISTS')}{INSERT}",
            "catalog lake may contain another declaration of totals",
        ),
    ],
)
def test_an_unknown_declaration_is_refused(script: str, why: str) -> None:
    with pytest.raises(CannotRehearse, match=why):
        read(script)
