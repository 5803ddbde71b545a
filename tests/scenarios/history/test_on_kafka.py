"""The same from a topic: history is what lies below the offsets of the savepoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.history.sources import Until
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.source_positions import kafka_positions
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import Side
from dev.measure.services import SIDES, Services, jars, services
from tests.scenarios.history.test_on_flink import (
    NEW_TABLES,
    UNMERGED,
    Case,
    begins,
    goes_on,
    is_prepared,
    load_cases,
    prepared_is_whole,
)

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]
FOLDER = re.compile(r"'connector' = 'filesystem', 'path' = 'file://DATA/(\w+)'.*?\n(?=\))", re.DOTALL)
TOPIC = """'connector' = 'kafka', 'topic' = '\\1', 'properties.bootstrap.servers' = '127.0.0.1:9092',
  'properties.group.id' = 'shop', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
"""
"""In place of the files of the cases' table."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with services(tmp_path_factory.mktemp("services")) as made:
        yield made


@pytest.fixture(scope="module")
def bench(served: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("topics")
    with (
        LocalFlink(folder / "flink", slots=4, config=CLUSTER, extra_jars=jars()) as flink,
        closing(PairRunner(flink, folder / "data", services=served)) as made,
    ):
        (folder / "data").mkdir()
        yield made


def from_topic(case: Case) -> Case:
    old, new = (replace(side, script=FOLDER.sub(TOPIC, side.script)) for side in (case.old, case.new))
    return replace(case, old=old, new=new)


SENT = {"orders", "clicks", "late", *(f"{timed}{side}" for timed in ("", "untimed_") for side in SIDES)}
"""The rows that the services send as records."""
CASES = [from_topic(case) for case in load_cases() if set(FOLDER.findall(case.new.script)) <= SENT]
IN_ANY_ORDER = [case for case in CASES if not re.search(r"\bOVER\b.*ORDER BY came\b", case.new.script, re.DOTALL)]
"""Changes of which what is sent does not depend on how partitions are mixed."""
LAST_TO_COME = [case for case in CASES if "ORDER BY came DESC" in case.new.script]
READ_LATER = [case for case in CASES if "SESSION(" not in case.old.script + case.new.script]
CHANGED = (
    "metrics are added to a tumbling window",
    "a tumbling window becomes longer",
    "an aggregation has other keys",
)
WITH_ARCHIVE = [case for case in CASES if case.title in CHANGED]
ROW = "a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP_NTZ"
OFFSETS, BOUNDARY, EARLIER_BOUNDARY = "kafka_partition,kafka_offset", "2024-01-01T00:01:35", "2024-01-01T00:01:25"
OF_ONE = frozenset(
    {
        "a tumbling window becomes longer",
        "rows of several tables are put into longer windows",
        "a view of several tables gets metrics",
    }
)
"""No window would end with the rows that come to the slowest of three partitions."""


@dataclass(frozen=True)
class Topics:
    """Cases over topics of three partitions, or of one, on one bench."""

    bench: PairRunner
    served: Services
    spark: SparkSession
    monkeypatch: pytest.MonkeyPatch

    def over(self, case: Case, subtasks: int, own: str = "") -> Case:
        """The case over its partitions; its consumer group separates it from other cases of the bench."""
        partitions = 1 if case.title in OF_ONE else 3
        subtasks = min(subtasks, partitions)  # one without a partition holds the watermark back
        self.monkeypatch.setattr(self.served, "partitions", partitions)
        parallelism = ("parallelism.default", str(subtasks))
        old, new = (
            Side(each.script.replace("'shop'", f"'of-{partitions}-{subtasks}{own}'"), (*each.settings, parallelism))
            for each in (case.old, case.new)
        )
        return replace(case, old=old, new=new)

    def archived(self, folder: Path, joined: str, script: str) -> tuple[str, str]:
        """The topic that a script reads, and an archive of all that it holds."""
        (topic,) = set(re.findall(r"'topic' = '([^']*)'", script))
        (servers,) = set(re.findall(r"'properties.bootstrap.servers' = '([^']*)'", script))
        records = self.spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
        rows = records.load().selectExpr(
            f"inline(array(from_json(CAST(value AS STRING), '{ROW}')))",
            "partition AS kafka_partition",
            "offset AS kafka_offset",
        )
        (rows if joined == OFFSETS else rows.drop(*OFFSETS.split(","))).write.parquet(str(folder / "lake"))
        return topic, f"parquet:{(folder / 'lake').as_uri()}#{joined}"

    def all_but_three_gone(self, folder: Path, joined: str, savepoint: str, script: str) -> str:
        """An archive of the topic of a script, which keeps only the last three read records of each partition."""
        topic, found = self.archived(folder, joined, script)
        offsets = offsets_of(savepoint)[topic]
        self.served.delete_below(topic, {partition: offset - 3 for partition, offset in offsets.items()})
        return found


@pytest.fixture
def topics(bench: PairRunner, served: Services, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Topics:
    return Topics(bench, served, spark, monkeypatch)


@pytest.mark.parametrize(
    ("case", "subtasks"),
    [*((case, 2) for case in IN_ANY_ORDER), *((case, 1) for case in IN_ANY_ORDER[::3])],
    ids=lambda each: getattr(each, "title", str(each)),
)
def test_the_job_goes_on_as_though_it_had_always_run(case: Case, subtasks: int, topics: Topics) -> None:
    assert goes_on(topics.over(case, subtasks), topics.bench, topics.served.bound)


@pytest.mark.parametrize("case", [case for case in CASES if case not in IN_ANY_ORDER], ids=lambda case: case.title)
def test_a_partition_tells_the_order(case: Case, topics: Topics) -> None:
    assert goes_on(case, topics.bench, topics.served.bound)


@pytest.mark.parametrize("case", LAST_TO_COME, ids=lambda case: case.title)
def test_of_several_partitions_nothing_tells_the_last_row(case: Case, topics: Topics) -> None:
    with pytest.raises(NotMigratable, match="their order of arrival is unknown"):
        goes_on(topics.over(case, 2), topics.bench, topics.served.bound)


@pytest.mark.parametrize("subtasks", [1, 2])
@pytest.mark.parametrize("case", [from_topic(case) for case in load_cases([NEW_TABLES])], ids=lambda case: case.title)
def test_a_table_that_the_old_job_did_not_read_counts_as_always_read(case: Case, subtasks: int, topics: Topics) -> None:
    """Its source goes on behind the records that were there when the savepoint was written."""
    wanted = topics.over(case, subtasks)
    assert goes_on(wanted, topics.bench, topics.served.bound, kept_back=["untimed_rights"])


@pytest.mark.parametrize("joined", [OFFSETS, BOUNDARY])
@pytest.mark.parametrize("case", WITH_ARCHIVE, ids=lambda case: case.title)
def test_what_the_topic_no_longer_holds_comes_from_an_archive(
    case: Case, joined: str, topics: Topics, tmp_path: Path
) -> None:
    """All but the last three of the records that were read are gone from the topic."""
    place = partial(topics.all_but_three_gone, tmp_path, joined)
    assert goes_on(topics.over(case, 1), topics.bench, topics.served.bound, place)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "SESSION(" not in case.new.script], ids=lambda case: case.title
)
def test_what_was_prepared_while_the_job_ran_goes_on(case: Case, topics: Topics, tmp_path: Path) -> None:
    """Though none of the records that were prepared is in the topic any more."""

    def forgotten(savepoint: str, script: str, said: Sequence[str]) -> None:
        if not any(UNMERGED in line for line in said):
            for topic, offsets in offsets_of(savepoint).items():
                topics.served.delete_below(topic, offsets)

    if case in IN_ANY_ORDER:
        case = topics.over(case, 1)
    said = prepared_is_whole(case, topics.bench, topics.served.bound, tmp_path / "prepared", forgotten)
    assert is_prepared(said, case.new)


@pytest.mark.parametrize("joined", [OFFSETS, BOUNDARY])
@pytest.mark.parametrize("case", WITH_ARCHIVE, ids=lambda case: case.title)
def test_what_was_prepared_beside_an_archive_goes_on(case: Case, joined: str, topics: Topics, tmp_path: Path) -> None:
    """The topic had lost records by then; what has come since is decoded as what came before."""
    place = partial(topics.all_but_three_gone, tmp_path, joined)
    beside = topics.over(case, 1, joined[:9])
    said = prepared_is_whole(beside, topics.bench, topics.served.bound, tmp_path / "prepared", place=place)
    assert is_prepared(said, case.new)


def offsets_of(savepoint: str) -> Mapping[str, Mapping[int, int]]:
    """How far a real job has read each partition of each topic."""
    found: dict[str, dict[int, int]] = {}
    for operator in read_metadata(savepoint).operators:
        for each in kafka_positions(operator, savepoint) if operator.coordinator is not None else ():
            found.setdefault(each.topic, {})[each.partition] = max(each.offset, 0)
    return found


def its_positions(savepoint: str, tables: Sequence[Table]) -> Mapping[str, Until]:
    """The same as limits of tables, which tell the rows after apart."""
    found = offsets_of(savepoint)
    return {table.path[2]: Until(offsets=tuple(found[str(table.option("topic"))].items())) for table in tables}


@pytest.mark.parametrize("case", IN_ANY_ORDER, ids=lambda case: case.title)
def test_a_job_that_has_never_run_begins_as_though_it_had(case: Case, topics: Topics) -> None:
    new = topics.over(case, 1).new
    # The enumerator of a real job goes on saying of partitions that it has handed out where they began, and a reader of
    # one without records that it begins with the earliest: only thirds have one.
    told_otherwise = {"coordinator"} | ({"SourceReaderState"} if "JOIN thirds" in new.script else set())
    assert begins(new, topics.bench, topics.served.bound, its_positions, frozenset(told_otherwise))


@pytest.mark.parametrize("case", WITH_ARCHIVE, ids=lambda case: case.title)
def test_a_job_that_has_never_run_begins_with_an_archive(case: Case, topics: Topics, tmp_path: Path) -> None:
    """The first record of each partition is gone, and how far time has come the others tell."""
    new = topics.over(case, 1).new

    def place(savepoint: str, script: str) -> str:
        topic, found = topics.archived(tmp_path, EARLIER_BOUNDARY, script)
        topics.served.delete_below(topic, dict.fromkeys(range(topics.served.partitions), 1))
        return found

    assert begins(new, topics.bench, topics.served.bound, its_positions, frozenset({"coordinator"}), place)
