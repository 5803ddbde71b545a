"""Which jobs of stored plans can begin as though they had always run, and why the others cannot; without Flink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.sources import Until
from airflow_flinkcompat.history.warm_start import WarmStart
from airflow_flinkcompat.migration import NotMigratable, migrate_savepoint
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.source_positions import file_positions
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.measure.savepoint_fixtures import FOLDER as MIGRATIONS
from dev.measure.savepoint_fixtures import NOW, load_scripts, migration_of
from tests.scenarios.history.stored import stored
from tests.support.savepoint.savepoints import FOLDER, TAKEN

ROWS = Path(__file__).parents[3] / "dev" / "measure" / "data"


def begun(
    name: str,
    place: str = "file:///data",
    until: Mapping[str, Until] | None = None,
    known: Mapping[str, str] | None = None,
    edit: tuple[str, str] = ("", ""),
) -> WarmStart:
    """Of a savepoint's script and plan."""
    plan = (FOLDER / name / "plan.json").read_text("utf-8")
    (side,) = (each.side for each in load_scripts() if each.name == name.partition("/")[2])
    script = side.script.replace("file://DATA", place).replace(*edit)
    job = Side(script, dict(side.settings), engine="flink")
    read = {table.path[2] for table in job.program.tables if table.option("connector") != "print"}
    history = KnownHistory(dict.fromkeys(read, "") if known is None else known)
    return WarmStart.of(migration_of(plan, plan), job, read_plan(plan), history, until or {})


def test_each_job_begins_with_all_or_says_why_not(snapshot: SnapshotAssertion) -> None:
    told = {}
    for name in TAKEN:
        start = begun(name)
        told[name] = [start.headline, *start.report.lines(), *(f"{of}: {why}" for of, why in start.reasons.items())]
    assert told == snapshot


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            ("'source.monitor-interval' = '100 ms'", "'csv.null-literal' = 'x'"),
            "is bounded: set source.monitor-interval",
        ),
        (
            ("file:///data/orders", "s3://bucket/orders"),
            "it was not measured under which names Flink lists the files of s3://bucket/orders",
        ),
        (("'filesystem'", "'datagen'"), "has connector datagen, but a backfill supports only"),
    ],
)
def test_a_source_that_does_not_go_on_behind_its_rows(edit: tuple[str, str], says: str) -> None:
    assert says in begun("2.3/group-all", edit=edit).reasons["orders"]


def test_all_tables_are_named() -> None:
    start = begun("2.3/group-all", known={})
    assert start.reasons["orders"] == "the history of table orders is not specified: pass --history orders"
    assert start.reasons["group-aggregate"] == "the history of table orders is not specified: pass --history orders"
    moved = begun("2.3/group-all", known={"orders": "/elsewhere"})
    assert "it is unknown which of these files contain the rows of file:///elsewhere" in moved.reasons["orders"]
    with pytest.raises(InputError, match="--until order: the script reads no table with this name"):
        begun("2.3/group-all", until={"order": Until()})


FILES = (
    "'connector' = 'filesystem', 'path' = 'file:///data/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'"
)
TOPIC = "'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"


@pytest.mark.parametrize(
    ("name", "operator", "says"),
    [
        ("top-n", "rank", "in which order rows with equal sort keys arrived"),
        ("window-top-n", "window-rank", "in which order rows with equal sort keys arrived"),
        ("deduplicated", "deduplicate", "in which order rows with equal sort keys arrived"),
        ("first-row", "deduplicate", "in which order rows with equal sort keys arrived"),
        ("session", "window-aggregate", "which rows arrived too late for a session"),
    ],
)
def test_an_archive_without_offsets_tells_no_order(name: str, operator: str, says: str) -> None:
    place = "file:///lake below 2026-01-31T00:00:00, then kafka://b:9092/orders"
    joined = begun(f"2.3/{name}", known={"orders": "parquet:/lake#2026-01-31"}, edit=(FILES, TOPIC))
    assert joined.reasons[operator].startswith(f"{place} does not show {says}")
    with_offsets = begun(f"2.3/{name}", known={"orders": "parquet:/lake#p,o"}, edit=(FILES, TOPIC))
    assert not with_offsets.reasons


def test_rows_that_come_once_more() -> None:
    start = begun("2.3/group-all")
    scan = start.plan.nodes[0]
    values = replace(scan, place=len(start.plan.nodes), kind="values", config={}, description="Values(tuples=[[1]])")
    more = CompiledPlan(start.plan.version, (*start.plan.nodes, values))
    found = WarmStart.of(start.state, start.side, more, start.history, {})
    assert found.reasons == {
        "Values(tuples=[[1]])": "this source stores no positions, so the job would read its rows again"
    }


ADDED = MIGRATIONS / "a-metric-is-added-to-a-tumbling-window"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    for name in ("before.csv", "_hidden.csv"):
        (tmp_path / "orders" / name).write_bytes((ROWS / "orders" / "before.csv").read_bytes())
    return tmp_path


def of_template(folder: Path, until: Mapping[str, Until]) -> WarmStart:
    plan = (ADDED / "new.json").read_text("utf-8")
    side = Side((ADDED / "new.sql").read_text("utf-8").replace("file://DATA", folder.as_uri()), engine="flink")
    return WarmStart.of(migration_of(plan, plan), side, read_plan(plan), KnownHistory({"orders": ""}), until)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("until", "says"),
    [
        (Until(offsets=((0, 5),)), "--until orders: the rows are in files, which have no offsets. Write a time"),
    ],
)
def test_what_is_asked_for_and_not_there(folder: Path, until: Until, says: str, spark: SparkSession) -> None:
    with (
        pytest.raises(InputError, match=says),
        of_template(folder, {"orders": until}).computing(str(ADDED / "template"), print),
    ):
        pass


@pytest.mark.nightly
@pytest.mark.slow
def test_a_moment_before_all_files(folder: Path, spark: SparkSession) -> None:
    """Nothing was read: no window is kept, and no watermark has come."""
    start, said = of_template(folder, {"orders": Until.of("orders", "2020-01-01T00:00:00Z")}), list[str]()
    target = str(folder / "begun")
    with start.computing(str(ADDED / "template"), said.append) as (origin, computer):
        migrate_savepoint(origin, str(ADDED / "template"), target, start.state, NOW, computer.workers, computer)
    assert said[1] == "table orders has no watermark yet: all windows over the table are open"
    assert {state for _, state in stored(target)} == {"coordinator", "SourceReaderState", "watermark"}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_template_of_another_job(folder: Path, spark: SparkSession) -> None:
    start = of_template(folder, {})
    other = str(MIGRATIONS / "the-keys-of-a-group-aggregation-change-places" / "template")
    with (
        pytest.raises(NotMigratable, match="the savepoint differs from the layout that the old plan predicts"),
        start.computing(other, print) as (origin, computer),
    ):
        migrate_savepoint(origin, other, str(folder / "begun"), start.state, NOW, computer.workers, computer)
    assert not (folder / "begun" / "_metadata").exists()


@pytest.mark.nightly
@pytest.mark.slow
def test_it_is_written_from_a_template(folder: Path, spark: SparkSession) -> None:
    """Of the savepoint that a real job took which had read the same rows it holds the windows and the watermark."""
    start, said = of_template(folder, {}), list[str]()
    assert not start.reasons
    target = str(folder / "begun")
    with start.computing(str(ADDED / "template"), said.append) as (origin, computer):
        migrate_savepoint(origin, str(ADDED / "template"), target, start.state, NOW, computer.workers, computer)
    assert said == [
        f"orders is read up to {folder.as_uri()}/orders, 1 files",
        "windows over table orders that end by 2024-01-01T00:01:40.001 are treated as emitted: "
        "run a backfill to compute them",
        "global-window-aggregate: the state of 5 keys is equal when recomputed in plain Python",
    ]
    (source,) = (each for each in read_metadata(target).operators if each.coordinator is not None)
    assert file_positions(source, target).seen == {f"file:{folder}/orders/before.csv"}
    assert sum(stored(target)[window, "window-aggs"].total() for window in _windows(target)) > 0


def _windows(target: str) -> set[str]:
    return {operator for operator, state in stored(target) if state == "watermark"}
