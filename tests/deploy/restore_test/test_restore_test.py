"""The parts of a rehearsal that need no Flink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat import InputError
from airflow_flinkcompat.deploy.flink.gateway import Result
from airflow_flinkcompat.deploy.flink.snapshot import (
    SnapshotUnreadable,
    StoredOperator,
    parse_snapshot,
    read_snapshot,
)
from airflow_flinkcompat.deploy.restore_test import Rehearsal
from airflow_flinkcompat.deploy.restore_test.claims import is_of_the_query, query_of, skipped_by_log
from airflow_flinkcompat.deploy.restore_test.cluster import missing_slots
from airflow_flinkcompat.deploy.restore_test.readers import ADMITTED, refusal
from airflow_flinkcompat.deploy.restore_test.substitutes import CannotRehearse, Substitutes, Tables, sink_ddl, tables_of
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.sql import nodes, parse_statement
from tests.deploy.flink.test_clients import Server, jobmanager, ok

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rehearsal"
JOB, OTHER = "a" * 32, "b" * 32
FIRST, SECOND = "1" * 32, "2" * 32
WINDOW = StoredOperator(FIRST, "GlobalWindowAggregate[12]", True)
SOURCE = StoredOperator(SECOND, "Source: orders[8]", True)


# ---------------------------------------------------------------------------------------------- what was left aside
def starting(job: str) -> str:
    return f"INFO CheckpointCoordinator [] - Starting job {job} from savepoint file:/s/1 (allowing non restored state)"


def skipping(operator: str) -> str:
    return f"INFO Checkpoints [] - Skipping savepoint state for operator {operator}."


def restored(job: str) -> str:
    return f"INFO CheckpointCoordinator [] - Reset the checkpoint ID of job {job} to 13."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([starting(JOB), skipping(FIRST), "other", skipping(SECOND), restored(JOB)], {FIRST, SECOND}),
        ([starting(OTHER), skipping(FIRST), restored(OTHER), starting(JOB), restored(JOB)], set()),
        ([starting(JOB), skipping(FIRST), restored(JOB), starting(OTHER), skipping(SECOND)], {FIRST}),
        ([starting(JOB), restored(JOB), "Skipping empty savepoint state for operator " + FIRST], set()),
        ([], None),  # rolled over, or of a higher level
        ([starting(JOB), skipping(FIRST)], None),  # not restored yet, or refused
        ([restored(JOB)], None),  # its beginning is in an older file
        # Two restores at once: nothing tells whose state was skipped.
        ([starting(JOB), starting(OTHER), skipping(FIRST), restored(JOB)], None),
        ([starting(OTHER), starting(JOB), skipping(FIRST), restored(OTHER), restored(JOB)], None),
    ],
)
def test_the_log_says_what_was_skipped(lines: list[str], expected: set[str] | None) -> None:
    assert skipped_by_log(lines, JOB) == expected


def test_savepoints_are_read() -> None:
    """Taken by Flink 2.3.0 of the windowed job of these tests."""
    found = parse_snapshot((FIXTURES / "metadata-2.3.0").read_bytes())
    assert {(each.name.partition("[")[0], each.has_state) for each in found} == {
        ("GlobalWindowAggregate", True),
        ("Source: orders", True),
        ("WatermarkAssigner", False),
        ("StreamingFileWriter", True),
        ("end: Writer", False),
        ("Calc", False),
        ("LocalWindowAggregate", False),
    }
    by_name = {each.name.partition("[")[0]: each.id for each in found}
    assert by_name["GlobalWindowAggregate"] == "c27dcf7b54ef6bfd6cff02ca8870b681", "the vertex's id in the REST API"


def test_unreadable_savepoints_say_why(tmp_path: Path) -> None:
    whole = (FIXTURES / "metadata-2.3.0").read_bytes()
    # After the operators come properties that are not read: an object of Java's.
    for length in range(whole.rindex(b"\xac\xed\x00\x05") - 1, 0, -97):
        with pytest.raises(SnapshotUnreadable):
            parse_snapshot(whole[:length])
    with pytest.raises(SnapshotUnreadable, match="no file of Flink's"):
        parse_snapshot(b"\x00" * 100)
    with pytest.raises(SnapshotUnreadable, match="format 99"):
        parse_snapshot(whole[:4] + (99).to_bytes(4, "big") + whole[8:])
    with pytest.raises(SnapshotUnreadable, match=r"cannot be read from here \(FileNotFoundError\)"):
        read_snapshot(f"file:{tmp_path}/savepoint-1")
    with pytest.raises(SnapshotUnreadable, match="cannot be read from here"):
        read_snapshot("nowhere://bucket/savepoint-1")
    (tmp_path / "_metadata").write_bytes(whole)
    assert len(read_snapshot(f"file:{tmp_path}")) == 7, "as Flink writes file:///"


def test_queries_are_told_from_sinks() -> None:
    def plan(sink: str, number: int, keys: str = "a") -> dict[str, Any]:
        text = (
            f"[{number}]:GroupAggregate(groupBy=[{keys}])<br/>+- [{number + 1}]:Calc(select=[a])<br/>   +- {sink}<br/>"
        )
        return {"plan": {"nodes": [{"description": f"[{number - 1}]:TableSourceScan(x)<br/>"}, {"description": text}]}}

    live = query_of(plan("StreamingFileWriter<br/>      +- end: Writer", 3))
    assert sum(live.values()) == 3
    assert live == query_of(plan("[15]:Sink(table=[blackhole])", 13))
    assert live != query_of(plan("[15]:Sink(table=[blackhole])", 13, keys="b"))
    assert live == query_of(plan("[15]:StreamRecordTimestampInserter(rowtime field: 2)<br/> +- [16]:Sink(…)", 13))
    named, renamed, cast = (
        query_of(
            {"plan": {"nodes": [{"description": f"[4]:Calc(select=[UPPER(a){first}, CAST(b AS {kind}){second}])"}]}}
        )
        for first, kind, second in ((" AS x", "INT", ""), ("", "INT", " AS y"), (" AS x", "BIGINT", ""))
    )
    assert named == renamed != cast
    assert all(map(is_of_the_query, ("Source: orders[8]", "GroupAggregate[3]")))
    assert not any(map(is_of_the_query, ("totals[9]: Writer", "Sink: totals[9]", "end: Writer", "StreamingFileWriter")))


# ------------------------------------------------------------------------------------------------- stand-ins
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
Sink(table=[default_catalog.default_database.else], fields=[customer])
"""


def test_tables_are_those_of_the_planner() -> None:
    place = ("default_catalog", "default_database")
    assert tables_of(EXPLAINED) == Tables(
        sinks=((*place, "totals"), (*place, "other")),
        sources={
            (*place, "orders"): frozenset(),
            ("hive", "shop", "rates"): frozenset({"properties.group.id", "scan.startup.mode"}),
        },
    )
    with pytest.raises(CannotRehearse, match=r"'LogicalLegacySink.* is not understood"):
        tables_of(
            EXPLAINED.replace(
                "LogicalSink(table=[default_catalog.default_database.other]", "LogicalLegacySink(name=[o]"
            )
        )
    with pytest.raises(CannotRehearse, match="names no sink"):
        tables_of("== Abstract Syntax Tree ==\n")
    with pytest.raises(CannotRehearse, match=r"'c\.d\.a\.b' .* is not understood"):
        tables_of("LogicalSink(table=[c.d.a.b], fields=[x])")


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


class Pretended:
    """A session that knows declarations, and remembers what it was told."""

    def __init__(self, **tables: str) -> None:
        self.tables = tables
        self.told: list[str] = []

    def execute(self, sql: str) -> Result:
        if sql.startswith("SHOW CREATE TABLE"):
            return Result(("result",), ((self.tables[sql.rpartition(".`")[2].rstrip("`")],),))
        self.told.append(sql)
        return Result((), ())


def path(name: str) -> tuple[str, str, str]:
    return ("c", "d", name)


def table(name: str, connector: str, kind: str = "TABLE", **options: str) -> str:
    given = {"connector": connector, **options}
    pairs = ", ".join(f"'{key.replace('__', '.').replace('_', '-')}' = '{value}'" for key, value in given.items())
    return f"CREATE {kind} `c`.`d`.`{name}` (`x` INT) WITH ({pairs})"


def test_stand_ins_shadow_by_name(snapshot: SnapshotAssertion) -> None:
    session = Pretended(
        o=table("o", "kafka", properties__group__id="live"),
        p=table("p", "upsert-kafka", "TEMPORARY TABLE"),
        f=table("f", "filesystem"),
        s=table("s", "jdbc"),
        t=table("t", "kafka", "TEMPORARY TABLE"),
    )
    tables = Tables((path("s"), path("t")), {path(name): frozenset() for name in "opf"})
    stand_ins = Substitutes(session, "private")  # type: ignore[arg-type]
    stand_ins.check(tables)
    assert session.told == []
    stand_ins.put(tables)
    assert session.told == snapshot


@pytest.mark.parametrize(
    ("tables", "declaration", "words"),
    [
        (Tables((), {path("t"): frozenset()}), table("t", "mysql-cdc"), r"t \(mysql-cdc\) .* one server id"),
        (Tables((), {path("t"): frozenset()}), table("t", "db2-cdc"), "may admit one reader only"),
        (Tables((), {path("t"): frozenset()}), table("t", "homemade"), "is not known to admit a second reader"),
        (Tables((), {path("t"): frozenset()}), table("t", "paimon", consumer_id="me"), "would share consumer-id"),
        (
            Tables((), {path("t"): frozenset({"properties.group.id"})}),
            table("t", "kafka"),
            "would share properties.group.id with the live job",
        ),
        (Tables((path("t"),), {path("t"): frozenset()}), table("t", "kafka"), "t is read and written"),
        (Tables((), {path("t"): frozenset()}), "CREATE VIEW t AS SELECT 1", "is not understood"),
    ],
)
def test_what_cannot_be_read_twice_is_not_begun(tables: Tables, declaration: str, words: str) -> None:
    with pytest.raises(CannotRehearse, match=words):
        Substitutes(Pretended(t=declaration), "private").check(tables)  # type: ignore[arg-type]


def test_every_admitted_connector_is_private() -> None:
    assert not any(map(refusal, ADMITTED))
    assert all(map(refusal, ("mysql-cdc", "postgres-cdc", "pulsar", "", "kafka-0.11")))
    assert ADMITTED["kafka"].own_options("mine")["properties.group.id"] == "mine"
    assert ADMITTED["kafka"].options["properties.commit.offsets.on.checkpoint"] == "false"


# ------------------------------------------------------------------------------------------------------ the cluster
def test_slots_that_are_missing_are_named() -> None:
    overview = {"GET /overview": [ok(**{"slots-available": 1, "slots-total": 8})]}
    fixed = Server(
        {**overview, "GET /jobmanager/config": [httpx.Response(200, json=[{"key": "rest.port", "value": 1}])]}
    )
    assert missing_slots(jobmanager(fixed), 1) == ""
    assert missing_slots(jobmanager(fixed), 3).startswith("it needs 3 free slots, the cluster has 1 of 8")
    row = {"key": "kubernetes.cluster-id", "value": "x"}
    growing = Server({**overview, "GET /jobmanager/config": [httpx.Response(200, json=[row])]})
    assert missing_slots(jobmanager(growing), 3) == ""


# --------------------------------------------------------------------------------------------------- what is read
FINDINGS = {
    "restored": Rehearsal(
        RehearsalFinding.RESTORED,
        job_id=JOB,
        live="RUNNING, no restart meanwhile",
        claimed=(WINDOW, SOURCE),
        unclaimed=(StoredOperator("4558" * 8, "StreamingFileWriter", True),),
        begun=(StoredOperator("99" * 16, "Deduplicate[4]", True),),
        basis=("operators by the JobManager's log",),
    ),
    "refused": Rehearsal(
        RehearsalFinding.REFUSED,
        "IllegalStateException: Cannot map …",
        at="submit",
        job_id=JOB,
        live="RUNNING",
        dropped=(WINDOW,),
    ),
    "failed": Rehearsal(RehearsalFinding.REFUSED, "State D does not exist in the NFA", at="run", job_id=JOB),
    "untold": Rehearsal(
        RehearsalFinding.INCONCLUSIVE,
        "source orders (mysql-cdc) cannot be read beside the live job",
        live="not touched",
    ),
    "left": Rehearsal(
        RehearsalFinding.INCONCLUSIVE, "the JobManager does not answer", left=(f"job {JOB} may still come up",)
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_a_reader_sees(name: str, snapshot: SnapshotAssertion) -> None:
    found = FINDINGS[name]
    assert "\n".join(found.lines()) == snapshot
    assert json.loads(json.dumps(found.to_dict()))["finding"] == str(found.finding)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.sql", "b.sql", "--job-id", JOB], "Missing option '--gateway'"),
        (["a.sql", "b.sql", "--job-id", JOB, "--gateway", "nowhere", "--jobmanager", "http://j:1"], "no address"),
        (["a.sql", "c.sql", "--job-id", JOB, "--gateway", "http://g:1", "--jobmanager", "http://j:1"], "makes no job"),
    ],
)
def test_bad_input_is_told(arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.sql", "b.sql"):
        Path(name).write_text("INSERT INTO k SELECT * FROM s;", encoding="utf-8")
    Path("c.sql").write_text("SET 'a' = 'b';", encoding="utf-8")
    result = CliRunner().invoke(cli, ["rehearse", *arguments])
    told = str(result.exception) if isinstance(result.exception, InputError) else result.output
    assert words in told
    assert result.exit_code != 0
