"""Stand-ins for the tables of a job: which it has, what replaces them, and what is not replaced."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.flink.gateway import Result
from airflow_flinkcompat.deploy.flink.second_readers import ADMITTED, refusal
from airflow_flinkcompat.deploy.flink.tables import SessionTables, Substitutes, Tables, sink_ddl, tables_of
from airflow_flinkcompat.deploy.target import TablePath
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.statement_parser import parse_statement

EXPLAINED = """\
== Abstract Syntax Tree ==
LogicalSink(table=[default_catalog.default_database.totals], fields=[customer])
+- LogicalProject(customer=[$0])
   +- LogicalJoin(condition=[=($0, $1)], joinType=[inner])
      :- LogicalTableScan(table=[[default_catalog, default_database, orders]])
      +- LogicalTableScan(table=[[hive, shop, rates]], hints=[[[OPTIONS inheritPath:[] \
options:{properties.group.id=g, scan.startup.mode=earliest-offset}]]])

LogicalSink(table=[default_catalog.default_database.other], fields=[customer])
+- LogicalTableScan(table=[[default_catalog, default_database, orders]])

== Optimized Physical Plan ==
Sink(table=[default_catalog.default_database.totals], fields=[customer], upsertMaterialize=[true])
+- Exchange(distribution=[hash[customer]])

Sink(table=[default_catalog.default_database.other], fields=[customer])
"""


def test_tables_are_those_of_the_planner() -> None:
    place = ("default_catalog", "default_database")
    assert tables_of(EXPLAINED) == Tables(
        sinks=((*place, "totals"), (*place, "other")),
        sources={
            (*place, "orders"): frozenset(),
            ("hive", "shop", "rates"): frozenset({"properties.group.id", "scan.startup.mode"}),
        },
        upserts=frozenset({(*place, "totals")}),
    )
    clause = EXPLAINED.replace("upsertMaterialize=[true]", "conflictStrategy=[DEDUPLICATE]")
    assert tables_of(clause).upserts == {(*place, "totals")}
    with pytest.raises(CannotRehearse, match=r"cannot read 'LogicalLegacySink"):
        tables_of(
            EXPLAINED.replace(
                "LogicalSink(table=[default_catalog.default_database.other]", "LogicalLegacySink(name=[o]"
            )
        )
    with pytest.raises(CannotRehearse, match="names no sink"):
        tables_of("== Abstract Syntax Tree ==\n")
    with pytest.raises(CannotRehearse, match=r"cannot read the table 'c\.d\.a\.b'"):
        tables_of("LogicalSink(table=[c.d.a.b], fields=[x])")


SUBQUERY = """\
== Abstract Syntax Tree ==
LogicalSink(table=[c.d.totals], fields=[k])
+- LogicalProject(k=[$1])
   +- LogicalFilter(condition=[AND(EXISTS({
LogicalFilter(condition=[=($1, $cor0.k)])
  LogicalTableScan(table=[[c, d, rates]])
}), NOT(IN($0, {
LogicalTableScan(table=[[c, d, others]])
})))], variablesSet=[[$cor0]])
      +- LogicalTableScan(table=[[c, d, orders]])

== Optimized Physical Plan ==
"""


def test_a_subquery_in_a_condition_is_no_sink() -> None:
    place = ("c", "d")
    found = tables_of(SUBQUERY)
    assert found.sinks == ((*place, "totals"),)
    assert found.sources.keys() == {(*place, "orders"), (*place, "rates"), (*place, "others")}
    hidden = SUBQUERY.replace("LogicalTableScan(table=[[c, d, others]])", "LogicalSink(table=[c.d.live], fields=[k])")
    assert (*place, "live") in tables_of(hidden).sinks


def declared(text: str) -> nodes.CreateTable:
    tree = parse_statement(text)
    assert isinstance(tree, nodes.CreateTable)
    return tree


def test_a_sink_keeps_its_columns_and_its_key(snapshot: SnapshotAssertion) -> None:
    ddl = """CREATE TABLE `c`.`d`.`a ``b` (
      `id` BIGINT NOT NULL COMMENT 'x', `met` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', `part` INT METADATA VIRTUAL,
      `twice` AS `id` * 2, `row` ROW<`x` INT, `y` ARRAY<STRING>>, WATERMARK FOR `met` AS `met`,
      CONSTRAINT `PK` PRIMARY KEY (`id`) NOT ENFORCED
    ) COMMENT 'sink' DISTRIBUTED BY HASH(`id`) INTO 3 BUCKETS PARTITIONED BY (`row`)
    WITH ('connector' = '%s', 'password' = 'secret')"""
    assert [sink_ddl(declared(ddl % connector)) for connector in ("kafka", "print")] == snapshot


class FakeCluster:
    """A session that knows declarations, and remembers what it was told."""

    def __init__(self, **tables: str) -> None:
        self.tables = tables
        self.settings: dict[str, str] = {}
        self.told: list[str] = []

    def execute(self, sql: str) -> Result:
        if sql.startswith("SHOW CREATE TABLE"):
            return Result(("result",), ((self.tables[sql.rpartition(".`")[2].rstrip("`")],),))
        if sql == "SET":
            return Result(("key", "value"), tuple(self.settings.items()))
        self.told.append(sql)
        return Result((), ())


def path(name: str) -> tuple[str, str, str]:
    return ("c", "d", name)


def table(name: str, connector: str, kind: str = "TABLE", **options: str) -> str:
    given = {"connector": connector, **options}
    pairs = ", ".join(f"'{key.replace('__', '.').replace('_', '-')}' = '{value}'" for key, value in given.items())
    return f"CREATE {kind} `c`.`d`.`{name}` (`x` INT) WITH ({pairs})"


def test_stand_ins_shadow_by_name(snapshot: SnapshotAssertion) -> None:
    session = FakeCluster(
        o=table("o", "kafka", properties__group__id="live"),
        p=table("p", "upsert-kafka", "TEMPORARY TABLE"),
        f=table("f", "filesystem"),
        s=table("s", "jdbc"),
        t=table("t", "kafka", "TEMPORARY TABLE"),
    )
    tables = Tables((path("s"), path("t")), {path(name): frozenset() for name in "opf"})
    stand_ins = Substitutes(SessionTables(session), "private")  # type: ignore[arg-type]
    stand_ins.check(tables)
    assert session.told == []
    stand_ins.put(tables)
    assert session.told == snapshot
    session.told.clear()
    stand_ins.put(tables, empty=True)
    assert session.told == snapshot(name="on empty input")


KEYED = "CREATE TABLE `c`.`d`.`{}` (`x` INT, PRIMARY KEY (`x`) NOT ENFORCED) WITH ('connector' = 'print')"


@pytest.mark.parametrize("upserts", [frozenset(), {path("p")}])
def test_a_stand_in_is_keyed_where_rows_are_kept_in_front_of_the_sink(upserts: frozenset[TablePath]) -> None:
    session = FakeCluster(p=KEYED.format("p"))
    Substitutes(SessionTables(session), "private").put(Tables((path("p"),), {}, upserts))  # type: ignore[arg-type]
    assert [("PRIMARY KEY" in each, "'blackhole'" in each) for each in session.told] == [(bool(upserts), True)]


@pytest.mark.parametrize(("rows", "waits"), [("s3://rows", False), (None, True)], ids=["stored", "discarded"])
def test_stand_ins_of_upserts(rows: str | None, waits: bool, snapshot: SnapshotAssertion) -> None:
    """Only those sinks have them whose plan only a sink of upserts has."""
    session = FakeCluster(p=KEYED.format("p"), q=KEYED.format("q"))
    tables = Tables((path("p"), path("q")), {}, frozenset({path("q")}))
    stand_ins = Substitutes(SessionTables(session), "private")  # type: ignore[arg-type]
    stand_ins.put(tables, rows=rows, waits=waits, jar="s3://run/it's.jar")
    assert session.told == snapshot


def test_a_print_sink_without_rows_has_no_stand_in() -> None:
    session = FakeCluster(p=table("p", "print"))
    Substitutes(SessionTables(session), "private").put(Tables((path("p"),), {}), empty=True)  # type: ignore[arg-type]
    assert not [each for each in session.told if each.startswith("CREATE")]


@pytest.mark.parametrize(
    ("tables", "declaration", "words"),
    [
        (Tables((), {path("t"): frozenset()}), table("t", "mysql-cdc"), r"t \(mysql-cdc\) .* one server id"),
        (Tables((), {path("t"): frozenset()}), table("t", "db2-cdc"), "may allow only one reader"),
        (
            Tables((), {path("t"): frozenset()}),
            table("t", "homemade"),
            ("it is unknown if the connector allows a second reader"),
        ),
        (Tables((), {path("t"): frozenset()}), table("t", "paimon", consumer_id="me"), "would share consumer-id"),
        (
            Tables((), {path("t"): frozenset({"properties.group.id"})}),
            table("t", "kafka"),
            "would share properties.group.id with the live job",
        ),
        (Tables((path("t"),), {path("t"): frozenset()}), table("t", "kafka"), "both reads and writes t"),
        (Tables((), {path("t"): frozenset()}), "CREATE VIEW t AS SELECT 1", "cannot read the declaration"),
    ],
)
def test_what_cannot_be_read_twice_is_not_begun(tables: Tables, declaration: str, words: str) -> None:
    with pytest.raises(CannotRehearse, match=words):
        Substitutes(SessionTables(FakeCluster(t=declaration)), "private").check(tables)  # type: ignore[arg-type]


def test_every_admitted_connector_is_private() -> None:
    assert not any(map(refusal, ADMITTED))
    assert all(map(refusal, ("mysql-cdc", "postgres-cdc", "pulsar", "", "kafka-0.11")))
    assert ADMITTED["kafka"].own_options("mine")["properties.group.id"] == "mine"
    assert ADMITTED["kafka"].options["properties.commit.offsets.on.checkpoint"] == "false"
