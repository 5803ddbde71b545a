"""Where the sources of a start without state begin: what can be chosen, what is refused, what the ledger keeps."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.compat.hand_over import HandOver, SourceStart
from airflow_flinkcompat.compat.rule_builders.table_options import start_clause
from airflow_flinkcompat.connectors.registry import catalogue
from airflow_flinkcompat.deploy import (
    DeployError,
    DeployRefused,
    Ledger,
    Options,
    RolledBack,
    SubmissionUnknown,
    deploy,
)
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Result
from airflow_flinkcompat.deploy.flink.tables import SessionTables, overlay, sources_of
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, Review
from airflow_flinkcompat.deploy.offset_choices import SourceOffsets
from airflow_flinkcompat.deploy.start_offsets import (
    PositionsUnknown,
    StoredList,
    decide,
    positions_of,
    specific_offsets,
)
from airflow_flinkcompat.deploy.target import Sources, SourceTable
from dev.services.csv_job import Side
from tests.support.deploy.fake_cluster import FakeCluster, number_ids

SCRIPT = "CREATE TABLE s (a INT) WITH ('connector'='datagen'); CREATE TABLE k LIKE s; INSERT INTO k SELECT a FROM s;"
V1, V2 = Side(SCRIPT), Side(f"{SCRIPT} -- 2")
PLACE = ("default_catalog", "default_database")
TOPIC = {"topic": "t", "properties.bootstrap.servers": "b:9092", "properties.group.id": "g"}
ORDERS = SourceTable((*PLACE, "orders"), "kafka", {**TOPIC, "scan.startup.mode": "earliest-offset"})
RATES = SourceTable((*PLACE, "rates"), "filesystem")
MODE, MILLIS = "scan.startup.mode", "scan.startup.timestamp-millis"
SPECIFIC = "scan.startup.specific-offsets"


def split(topic: str, partition: int, offset: int, stop: int = -(2**63)) -> bytes:
    """A partition as a reader of Kafka's connector stores it."""
    text = topic.encode()
    body = struct.pack(">H", len(text)) + text + struct.pack(">iqq", partition, offset, stop)
    return struct.pack(">iii", len(body) + 8, 0, len(body)) + body


def readers(*splits: bytes) -> StoredList:
    begins, content = [], b"head"
    for each in splits:
        begins.append(len(content))
        content += each
    return StoredList("SourceReaderState", tuple(begins), content)


# -------------------------------------------------------------------------------- what can be asked for
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("newest", "'newest' are unknown: write as-stored, earliest, latest, script, or a time"),
        ("timestamp", "'timestamp' are unknown"),
        ("2026-01-31T00:00:00", "have no time zone: write a time such as 2026-01-31T00:00:00Z"),
        ({"orders": "2026-01-31"}, "have no time zone"),
        ('{"orders": ', "are not JSON"),
        ({"orders": None}, "'None' are unknown|None are unknown"),
    ],
)
def test_what_is_no_choice_is_refused(given: Any, words: str) -> None:
    with pytest.raises(DeployRefused, match=words):
        SourceOffsets.of(given)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (None, {}),
        ("script", {}),
        ("earliest", {MODE: "earliest-offset"}),
        ("latest", {MODE: "latest-offset"}),
        ("2026-01-31T01:00:00+01:00", {MODE: "timestamp", MILLIS: "1769817600000"}),
        ('{"orders": "latest"}', {MODE: "latest-offset"}),
        ({"default_database.orders": "latest"}, {MODE: "latest-offset"}),
        ({"default_catalog.default_database.orders": "earliest"}, {MODE: "earliest-offset"}),
    ],
)
def test_a_choice_becomes_options_of_the_connector(given: Any, options: Mapping[str, str]) -> None:
    (begun,) = decide([ORDERS], SourceOffsets.of(given))
    assert begun.options == options


def test_kinesis_is_told_a_moment_in_its_own_form() -> None:
    clicks = SourceTable((*PLACE, "clicks"), "kinesis")
    (begun,) = decide([clicks], SourceOffsets.of("2026-01-31T01:00:00.5+01:00"))
    assert begun.options["source.init.timestamp"] == "2026-01-31T00:00:00.500Z"


@pytest.mark.parametrize(
    ("source", "given", "words"),
    [
        (RATES, "latest", r"rates \(filesystem\) cannot start at latest\. .* which then starts with all files"),
        (RATES, "2026-01-31T00:00:00Z", r"rates \(filesystem\) cannot start at 2026-01-31T00:00:00Z"),
        (RATES, "as-stored", r"rates \(filesystem\) cannot resume from the former job's offsets"),
        (replace(RATES, connector="upsert-kafka"), "latest", "with the earliest record of the topic, as always"),
        (replace(RATES, connector="datagen"), "earliest", "it generates its rows"),
        (replace(RATES, connector="pulsar"), "earliest", r"its connector \(pulsar\) does; that start is unknown"),
        (replace(RATES, connector=""), "earliest", "the connector of its catalog"),
        (
            replace(ORDERS, hinted=frozenset({MODE, "x"})),
            "latest",
            (f"a hint in the script sets {MODE} and overrides"),
        ),
        (ORDERS, {"order": "latest"}, "source offsets name order, but the job reads orders"),
        (ORDERS, "as-stored", "the former job did not read topic t"),
        (replace(ORDERS, options={**TOPIC, "topic": "t;u"}), "as-stored", "reads several topics"),
        (replace(ORDERS, options={"topic-pattern": "t.*"}), "as-stored", "reads several topics"),
    ],
)
def test_what_a_source_cannot_do_is_refused(source: SourceTable, given: Any, words: str) -> None:
    with pytest.raises(DeployRefused, match=words):
        decide([source], SourceOffsets.of(given))


def test_other_brokers_have_other_places() -> None:
    moved = replace(ORDERS, options={**TOPIC, "properties.bootstrap.servers": "other:9092"})
    with pytest.raises(DeployRefused, match="offsets are valid only in their own Kafka cluster"):
        decide([moved], SourceOffsets.of("as-stored"), former=[ORDERS])


def test_every_source_says_how_it_begins_by_itself() -> None:
    unset = replace(ORDERS, options=TOPIC)
    words = [begun.words for begun in decide([ORDERS, unset, RATES], SourceOffsets())]
    assert words == [
        "table orders starts by its own options: scan.startup.mode = earliest-offset, properties.group.id = g",
        "table orders starts by its connector's default, scan.startup.mode = group-offsets (properties.group.id = g)",
        "table rates starts with all files, including files that were read before",
    ]
    assert all(start_clause(connector, {}).startswith("starts ") for connector in [*catalogue(), "unheard-of", ""])


# -------------------------------------------------------------------------------- what a savepoint tells
def test_positions_are_those_of_kafka_readers_alone() -> None:
    other = struct.pack(">iii", 30, 0, 22) + b"a split of another one"
    found = positions_of([readers(split("t", 0, 7), other, split("t", 2, -2)), readers(split("u", 1, 2**40), b"\x00")])
    assert found == {"t": {0: 7, 2: -2}, "u": {1: 2**40}}
    assert specific_offsets(found["t"]) == "partition:0,offset:7;partition:2,offset:-2"


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_split_that_is_cut_is_none(cut: int) -> None:
    assert positions_of([readers(split("t", 0, 7)[:-cut])]) == {}


def test_two_readers_at_two_places_cannot_go_on_as_one() -> None:
    assert positions_of([readers(split("t", 0, 7)), readers(split("t", 0, 7))]) == {"t": {0: 7}}
    with pytest.raises(PositionsUnknown, match=r"partition 0 \(7 and 8\)"):
        positions_of([readers(split("t", 0, 7)), readers(split("t", 0, 8))])


# -------------------------------------------------------------------------------- what a session tells
class Session:
    """A session that knows declarations, and remembers what it was told."""

    def __init__(self, **tables: str) -> None:
        self.tables = tables
        self.told: list[str] = []

    def execute(self, sql: str) -> Result:
        if sql.startswith("SHOW CREATE TABLE"):
            name = sql.rpartition(".`")[2].rstrip("`")
            if name not in self.tables:
                raise GatewayError("it is a view", 500)
            return Result(("result",), ((self.tables[name],),))
        self.told.append(sql)
        return Result((), ())


DECLARED = """CREATE TABLE `c`.`d`.`orders` (`a` INT, `at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `timestamp` TIMESTAMP_LTZ(3) METADATA VIRTUAL, `part` INT METADATA FROM 'partition') WITH ('connector' = 'kafka',
  'topic' = 't', 'properties.sasl.jaas.config' = 'secret', 'scan.startup.mode' = 'latest-offset')"""
EXPLAINED = """== Abstract Syntax Tree ==
LogicalSink(table=[c.d.k], fields=[a])
+- LogicalTableScan(table=[[c, d, orders, metadata=[timestamp, partition]]], hints=[[[OPTIONS inheritPath:[] options:{scan.startup.mode=earliest-offset}]]])

== Optimized Physical Plan ==
TableSourceScan(table=[[c, d, other]])
"""  # noqa: E501


def test_sources_are_those_of_the_planner_with_what_counts() -> None:
    found = sources_of(Session(orders=DECLARED), EXPLAINED)  # type: ignore[arg-type]
    options = {MODE: "earliest-offset", "topic": "t"}
    times = frozenset({"at", "timestamp"})
    assert found == Sources((SourceTable(("c", "d", "orders"), "kafka", options, frozenset({MODE}), times),))


@pytest.mark.parametrize("explained", [EXPLAINED, EXPLAINED.replace("[c, d, orders,", "[orders,")])
def test_sources_that_cannot_be_told_say_why(explained: str) -> None:
    assert "it is a view" in (found := sources_of(Session(), explained).unknown) or "cannot read the table" in found  # type: ignore[arg-type]


def test_options_are_laid_over_a_table_of_the_session() -> None:
    for kind, dropped in (("TABLE", []), ("TEMPORARY TABLE", ["DROP TEMPORARY TABLE `c`.`d`.`orders`"])):
        session = Session(orders=DECLARED.replace("CREATE TABLE", f"CREATE {kind}"))
        overlay(SessionTables(session), ("c", "d", "orders"), {"f": "yyyy-MM-dd'T'"}, "own")  # type: ignore[arg-type]
        assert session.told == [
            "CREATE TEMPORARY TABLE `c`.`d`.`own orders` WITH ('f' = 'yyyy-MM-dd''T''') LIKE `c`.`d`.`orders` "
            "(OVERWRITING OPTIONS)",
            *dropped,
            "CREATE TEMPORARY TABLE `c`.`d`.`orders` LIKE `c`.`d`.`own orders`",
        ]


# -------------------------------------------------------------------------------- the sequence
@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))
    number_ids(monkeypatch)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


def cluster(*sources: SourceTable) -> FakeCluster:
    return FakeCluster(reads={side.script: Sources(sources) for side in (V1, V2)})


def run(target: FakeCluster, ledger: Ledger, side: Side = V2, **more: Any) -> DeployedEntry:
    head = ledger.head()
    given = {"checked_old_sha256": head.sha256 if head else None, "owner": None, "start_mode": "stateless", **more}
    options = Options(settle_seconds=0, start_timeout=0.02, submit_timeout=0.02)
    return deploy(target, ledger, side, options=options, **given)


def stood_at(monkeypatch: pytest.MonkeyPatch, places: Mapping[str, Mapping[int, int]]) -> None:
    monkeypatch.setattr("airflow_flinkcompat.deploy.start_offsets.read_positions", lambda savepoint: places)


def rows(entry: DeployedEntry) -> list[tuple[Any, ...]]:
    return [(row["path"][-1], row["choice"], row["options"]) for row in entry.start.offsets]


def test_a_stateless_start_begins_by_the_script_and_says_so(ledger: Ledger) -> None:
    said: list[str] = []
    entry = run(cluster(ORDERS, RATES), ledger, V1, log=said.append)
    assert rows(entry) == [("orders", "script", {}), ("rates", "script", {})]
    assert entry == ledger.head(), "the ledger keeps it"
    assert [line for line in said if line.startswith("table ")] == [row["words"] for row in entry.start.offsets]


def test_what_was_chosen_is_tried_first_and_given_to_the_start_alone(ledger: Ledger) -> None:
    target = cluster(ORDERS, RATES)
    entry = run(target, ledger, V1, offsets={"orders": "latest"})
    tables = {ORDERS.path: {MODE: "latest-offset"}}
    assert target.tried == [{}, tables]
    assert target.starts[-1][1].tables == tables
    assert target.starts[-1][0] == V1.script == entry.job.script
    assert rows(entry) == [("orders", "latest", {MODE: "latest-offset"}), ("rates", "script", {})]


def test_where_sources_begin_is_taken_up_with_the_start(ledger: Ledger) -> None:
    target = cluster(ORDERS)
    target.fail, target.error = "submit", SubmissionUnknown
    with pytest.raises(DeployError, match="was accepted, so nothing else is started"):
        run(target, ledger, V1, offsets="latest", owner="me")
    target.fail = ""
    entry = run(target, ledger, V1, owner="me")
    assert target.starts[-1][1].tables == {ORDERS.path: {MODE: "latest-offset"}}
    assert rows(entry) == [("orders", "latest", {MODE: "latest-offset"})]


@pytest.mark.parametrize("mode", ["savepoint", "checkpoint", "auto-first"])
@pytest.mark.parametrize("offsets", ["earliest", "script", {"orders": "2026-01-31T00:00:00Z"}])
def test_with_state_offsets_are_stored_ones(ledger: Ledger, mode: str, offsets: Any) -> None:
    target = cluster(ORDERS)
    run(target, ledger, V1)
    before = len(target.calls)
    with pytest.raises(DeployRefused, match=r"Flink ignores other start offsets\. Omit the offsets"):
        run(target, ledger, start_mode=mode, offsets=offsets, review=Review("compatible"))
    assert (len(target.calls), target.now) == (before, {"job-1": "RUNNING"})
    entry = run(target, ledger, start_mode="savepoint", offsets="as-stored")
    assert [row["choice"] for row in entry.start.offsets] == ["as-stored"]
    assert f"resumes from its offset in {entry.start.savepoint}" in entry.start.offsets[0]["words"]


def test_as_stored_without_state_begins_where_the_stop_left_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    target = cluster(ORDERS)
    run(target, ledger, V1)
    stood_at(monkeypatch, {"t": {1: 8, 0: 7, 2: -2, 3: -3}})
    entry = run(target, ledger, offsets="as-stored")
    places = "partition:0,offset:7;partition:1,offset:8;partition:2,offset:-2;partition:3,offset:-3"
    assert rows(entry) == [("orders", "as-stored", {MODE: "specific-offsets", SPECIFIC: places})]
    assert target.starts[-1][1].tables == {ORDERS.path: {MODE: "specific-offsets", SPECIFIC: places}}
    assert target.starts[-1][1].savepoint is None


@pytest.mark.parametrize(
    ("places", "former", "words"),
    [
        ({}, ORDERS, "contains no offset of topic t"),
        ({"t": {0: 7, 4: -1}}, ORDERS, "had not yet read partition 4 of topic t"),
        (
            {"t": {0: -3}},
            replace(ORDERS, options={**TOPIC, "properties.group.id": "h"}),
            ("had not yet read partition 0"),
        ),
    ],
)
def test_where_the_savepoint_does_not_tell_the_former_job_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, places: Any, former: SourceTable, words: str
) -> None:
    target = cluster(ORDERS)
    target.reads[V1.script] = Sources((former,))
    run(target, ledger, V1)
    stood_at(monkeypatch, places)
    with pytest.raises(RolledBack, match=words) as caught:
        run(target, ledger, offsets="as-stored")
    assert "No task of the new job ever ran, so no row was written twice" in str(caught.value)
    assert target.now == {"job-1": "FINISHED", "job-3": "RUNNING"}
    assert target.starts[-1][1].savepoint == "file:/sp/orders/job-2/job-1"


def test_as_stored_needs_a_former_job_and_its_savepoint(ledger: Ledger) -> None:
    target = cluster(ORDERS)
    with pytest.raises(DeployRefused, match=r"there is none .* orders was never deployed"):
        run(target, ledger, V1, offsets="as-stored")
    run(target, ledger, V1)
    target.end("job-1", "FAILED")
    options = Options(settle_seconds=0, allow_ended=True)
    with pytest.raises(DeployRefused, match=r"there is none .* job job-1 of ledger entry 4 ended without a savepoint"):
        deploy(target, ledger, V2, start_mode="stateless", checked_old_sha256=V1.sha256, offsets="as-stored",
               options=options)  # fmt: skip


def test_savepoints_out_of_reach_are_found_out_before_the_stop(ledger: Ledger) -> None:
    target = cluster(ORDERS)
    run(target, ledger, V1)
    with pytest.raises(DeployRefused, match="this machine cannot access nowhere://sp"):
        deploy(target, ledger, V2, start_mode="stateless", checked_old_sha256=V1.sha256, offsets="as-stored",
               options=Options(savepoint_directory="nowhere://sp"))  # fmt: skip
    assert target.now == {"job-1": "RUNNING"}


def test_sources_nobody_can_name_begin_by_the_script_or_not_at_all(ledger: Ledger) -> None:
    target = FakeCluster(reads={V1.script: Sources(unknown="the table 'x' is not understood")})
    with pytest.raises(DeployRefused, match="the job's sources are unknown: the table 'x' is not understood"):
        run(target, ledger, V1, offsets="earliest")
    assert ledger.entries() == ()
    assert "the list of sources is unknown" in run(target, ledger, V1).start.offsets[0]["words"]


# -------------------------------------------------------------------------------- after a backfill
def handed_over(column: str, live_from: str = "2026-01-01T00:00:00Z", **startup: str) -> HandOver:
    start = SourceStart("orders", column, 0, live_from, live_from, startup)
    return HandOver("2026-01-02 00:00:00", (start,), (), V1.part_digests(), "2026-01-03")


TIMED = replace(ORDERS, record_time=frozenset({"met"}))


@pytest.mark.parametrize(
    ("source", "column", "live_from", "given", "choice"),
    [
        (TIMED, "met", "2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z"),
        (TIMED, "met", "2026-01-01T00:00:00Z", "earliest", "earliest"),
        (replace(TIMED, options={MODE: "latest-offset"}), "met", "2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z"),
        (TIMED, "met", "2026-01-01T00:00:00Z", {"orders": "2025-12-31T23:00:00Z"}, "2025-12-31T23:00:00Z"),
        # An event time that is not the record's own, or is no instant, is left to a person.
        (TIMED, "ts", "2026-01-01T00:00:00Z", None, "script"),
        (TIMED, "met", "2026-01-01 00:00:00", None, "script"),
        (replace(TIMED, connector="filesystem"), "met", "2026-01-01T00:00:00Z", None, "script"),
        (replace(TIMED, hinted=frozenset({MODE})), "met", "2026-01-01T00:00:00Z", None, "script"),
    ],
)
def test_a_hand_over_says_where_its_sources_begin(
    ledger: Ledger, source: SourceTable, column: str, live_from: str, given: Any, choice: str
) -> None:
    record = handed_over(column, live_from, **source.options)
    entry = run(cluster(source), ledger, V1, hand_over=record, offsets=given)
    assert [row["choice"] for row in entry.start.offsets] == [choice]


@pytest.mark.parametrize(
    ("startup", "given", "words"),
    [
        ({}, "latest", "at latest-offset, so only with rows that arrive later: choose its source offsets"),
        ({}, {"orders": "2026-01-01T00:00:01Z"}, "starts it at 2026-01-01T00:00:01Z"),
        ({MODE: "latest-offset"}, "script", "at latest-offset, so only with rows that arrive later"),
    ],
)
def test_a_beginning_that_misses_rows_of_a_hand_over_is_refused(
    ledger: Ledger, startup: Mapping[str, str], given: Any, words: str
) -> None:
    with pytest.raises(DeployRefused, match=words):
        run(cluster(TIMED), ledger, V1, hand_over=handed_over("met", **startup), offsets=given)
    assert ledger.entries() == ()


def test_where_the_former_job_stood_is_no_hand_over(ledger: Ledger) -> None:
    target = cluster(TIMED)
    run(target, ledger, V1)
    with pytest.raises(DeployRefused, match="differs from the start that the hand-over needs"):
        run(target, ledger, V1, hand_over=handed_over("met"), offsets="as-stored")
    assert target.now == {"job-1": "RUNNING"}


def test_offsets_may_mend_what_the_script_would_miss(ledger: Ledger) -> None:
    late = handed_over("met", **{MODE: "latest-offset"})
    entry = run(cluster(TIMED), ledger, V1, hand_over=late, offsets="earliest")
    assert rows(entry) == [("orders", "earliest", {MODE: "earliest-offset"})]
