"""Plain Python computes what Spark does and what the savepoint holds; where either is wrong nothing is published."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import Begins, StateLayout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history import sampling
from airflow_flinkcompat.history.aggregations import aggregation_query
from airflow_flinkcompat.history.computing import HistoryComputer
from airflow_flinkcompat.history.recomputing import Place, identity
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.migration.computed import ComputedOperator, SampleDiffers
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import AggregateOperator, operators
from dev.measure.progress import epoch_millis
from dev.measure.savepoint_fixtures import NOW
from tests.scenarios.history import test_kills
from tests.scenarios.history.test_warm_start import begun
from tests.support.savepoint.savepoints import FOLDER

pytestmark = pytest.mark.slow
ROWS = Path(__file__).parents[3] / "dev" / "measure" / "data" / "orders" / "before.csv"
GIVEN = """
CREATE TABLE t (
  a STRING, i INT, l BIGINT, s SMALLINT, e DECIMAL(10, 2), w DECIMAL(30, 4), f DOUBLE, c STRING, d DATE, q BOOLEAN,
  ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = '{place}', 'format' = 'json');
CREATE TABLE printed (n BIGINT) WITH ('connector' = 'print');
INSERT INTO printed SELECT {calls} FROM {rows} GROUP BY {keys}
"""
CALLS = """COUNT(*), COUNT(i), SUM(i), SUM(l), SUM(s), SUM(e), SUM(w), SUM(f), AVG(i), AVG(e), AVG(f), MIN(c), MAX(c),
MIN(d), MAX(d), MIN(ts), MAX(f), MIN(w), COUNT(*) FILTER (WHERE i > 0), SUM(l) FILTER (WHERE q),
MAX(s) FILTER (WHERE NOT q), COUNT(DISTINCT c), COUNT(DISTINCT c) FILTER (WHERE q), SUM(DISTINCT i), COUNT(DISTINCT d),
SUM(DISTINCT s) FILTER (WHERE q)"""
AGGREGATE = "airflow_flinkcompat.history.table_rows.aggregate"
MINUTE = "INTERVAL '1' MINUTE"
OVER = {
    "keys": ("t", "a, q"),
    "a condition": ("(SELECT * FROM t WHERE i > 0 OR e IS NULL)", "a"),
    "TUMBLE": (f"TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE}))", "a, window_start, window_end"),
    "HOP": (f"TABLE(HOP(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '3' MINUTE))", "a, window_start, window_end"),
}


def draw(seed: int) -> Iterator[Mapping[str, object]]:
    """Rows of some keys; each column is NULL at times, and numbers come near to their ends."""
    of = random.Random(seed)
    begin = datetime(2024, 1, 1)

    def drawn() -> Mapping[str, object]:
        return {
            "a": of.choice(["x", "y", "ü", "a longer key of them", ""]),
            "i": of.choice([of.randint(-9, 9), 2**31 - 1]),
            "l": of.choice([of.randint(-9, 9), 2**63 - 1, -(2**63)]),
            "s": of.choice([of.randint(-9, 9), 2**15 - 1]),
            "e": of.choice([f"{of.randint(-99, 99) / 10:.2f}", "99999999.99"]),
            "w": of.choice([f"{of.randint(-99, 99)}.0001", "99999999999999999999999999.9999"]),
            "f": of.choice([of.uniform(-1, 1), 1e9]),
            "c": of.choice(["k", "ß", "z" * 20, ""]),
            "d": f"2024-01-0{of.randint(1, 9)}",
            "q": of.choice([True, False]),
        }

    for _ in range(300):
        time = begin + timedelta(milliseconds=of.randint(0, 600_000))
        row = {name: value if of.random() > 0.15 else None for name, value in drawn().items()}
        yield row | {"ts": time.isoformat(" ", "milliseconds")}


def query(over: str, place: str, watermark: int | None = None) -> StateQuery:
    """What computes the state of the calls over drawn rows."""
    rows, keys = OVER[over]
    outputs, problems = Side(GIVEN.format(place=place, calls=CALLS, rows=rows, keys=keys), engine="flink").outputs
    assert not problems
    (operator,) = operators(outputs[0])
    assert isinstance(operator, AggregateOperator)
    layout = operator_layout(operator, Symbols(), False)
    assert isinstance(layout, StateLayout), layout
    pipeline = Side(GIVEN.format(place=place, calls=CALLS, rows=rows, keys=keys), engine="flink").program.pipelines[0]
    return aggregation_query(TableRows(pipeline, operator.segment, TableLocations(), watermark), operator, layout)


def of_spark(session: SparkSession, found: StateQuery, reached: int) -> Mapping[Any, Mapping[Place, Sequence[Any]]]:
    """What Spark computes, by key and place."""
    width = len(found.key)
    held: dict[Any, dict[Place, Sequence[Any]]] = {}
    for number, each in enumerate(found.states):
        for row in Execution(session).frame(each.steps).collect():
            key, rest = identity(row[:width]), list(row[width:])
            bounds: tuple[int, ...] = ()
            if found.windows is not None:
                place = found.windows.place(rest.pop(0) // 1000, reached)
                if place is None:
                    continue
                bounds = (place[0],)
            fields = (field for field in each.state.value.fields if field.begins is not Begins.EMPTY_VIEW)
            by = [rest.pop(0)] if each.state.map_key is not None else []
            held.setdefault(key, {})[number, bounds, identity(by)] = [
                0 if value is None and field.begins is Begins.ZERO else value
                for field, value in zip(fields, rest, strict=True)
            ]
    return held


def differences(session: SparkSession, found: StateQuery, watermark: int | None = None) -> list[str]:
    """What Spark and Python compute otherwise, of all keys."""
    (plain,), told = found.plain, []
    sample = sampling.draw_sample(session, plain, watermark, 1000, 0)
    held = of_spark(session, found, watermark or 0)
    assert sorted(map(repr, held)) == sorted(repr(key) for (_, key), of in sample.held.items() if of.found)
    for (_, key), of in sample.held.items():
        told += list(sampling.key_differences(plain.made, of, str(key), held[key]))
    return told


@pytest.fixture
def place(tmp_path: Path) -> Callable[[int], str]:
    def made(seed: int) -> str:
        (tmp_path / "rows.json").write_text("\n".join(map(json.dumps, draw(seed))), "utf-8")
        return tmp_path.as_uri()

    return made


@pytest.mark.nightly
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("seed", range(5))
def test_python_and_spark_say_the_same(over: str, seed: int, place: Callable[[int], str], spark: SparkSession) -> None:
    watermark = epoch_millis("2024-01-01 00:04:30") if over in ("TUMBLE", "HOP") else None
    assert differences(spark, query(over, place(seed), watermark), watermark) == []


@pytest.mark.nightly
def test_each_broken_metric_is_told(
    place: Callable[[int], str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All calls at once compute something else than they should."""
    least = {"MIN": "MAX", "MAX": "MIN"}

    def broken(call: AggregateCall) -> str:
        if call.function in least:
            return aggregate(replace(call, function=least[call.function]))
        text = aggregate(call)
        return text if call.args and call.distinct and call.function == "COUNT" else f"coalesce({text} + 1, 7)"

    monkeypatch.setattr(AGGREGATE, broken)
    found = query("keys", place(0))
    told = "\n".join(differences(spark, found))
    for state in found.states:
        for field in state.state.value.fields:
            if field.words and "distinct values" not in field.words and "COUNT(DISTINCT" not in field.words:
                assert f"{field.words} is written as" in told, field.words


def without_filter(call: AggregateCall) -> AggregateCall:
    return replace(call, filter=None)


def not_distinct(call: AggregateCall) -> AggregateCall:
    return replace(call, distinct=False)


@pytest.mark.nightly
@pytest.mark.parametrize("change", [without_filter, not_distinct])
def test_a_condition_or_distinct_that_is_forgotten(
    change: Callable[[AggregateCall], AggregateCall],
    place: Callable[[int], str],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AGGREGATE, lambda call: aggregate(change(call)))
    assert differences(spark, query("keys", place(0)))


WRITTEN = {
    "2.3/tumble": 5,
    "2.3/cumulate": 5,
    "2.3/group-rocksdb": 5,
    "2.3/group-distinct": 5,
    "2.3/group-all": 1,
    "2.3/hop-distinct": 5,
    "2.3/inner-join": 15,
    "2.3/group-window": 5,
    "1.20/tumble": 5,
}


def written(name: str, folder: Path, sample: int = 20) -> list[str]:
    """What is said of the savepoint of a job that has never run, over the rows of one that had."""
    (folder / "orders").mkdir()
    (folder / "orders" / ROWS.name).write_bytes(ROWS.read_bytes())
    start, said = begun(name, folder.as_uri()), list[str]()
    assert not start.reasons
    start = replace(start, history=replace(start.history, sample=sample))
    template, target = str(FOLDER / name), str(folder / "begun")
    with start.computing(template, said.append) as (origin, computer):
        migrate_savepoint(origin, template, target, start.state, NOW, computer.workers, computer)
    return said


@pytest.mark.nightly
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_what_python_computes(name: str, tmp_path: Path, spark: SparkSession) -> None:
    told = written(name, tmp_path)[-1]
    assert told.endswith(f": the state of {WRITTEN[name]} keys is equal when recomputed in plain Python")


@pytest.mark.nightly
def test_fewer_keys_and_none(tmp_path: Path, spark: SparkSession) -> None:
    for count, says in ((2, "2 keys is equal"), (0, "treated as emitted")):
        (tmp_path / str(count)).mkdir()
        assert says in written("2.3/tumble", tmp_path / str(count), count)[-1]


@pytest.mark.nightly
def test_what_is_not_computed_by_python_is_said(tmp_path: Path, spark: SparkSession) -> None:
    told = written("2.3/session", tmp_path)[-1]
    assert "no key was recomputed in plain Python: recomputation supports only GROUP BY, windows and joins" in told


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        (
            "2.3/group-all",
            lambda entries: entries.map(lambda each: (each[0], each[1][:-1] + b"\1")),
            "the only key [A-Z]+.* is written as",
        ),
        (
            "2.3/group-rocksdb",
            lambda entries: entries.map(lambda each: (each[0], each[1][:-2] + b"\7\7")),
            "an entry of accState cannot be read back",
        ),
        (
            "2.3/group-distinct",
            lambda entries: entries.sample(False, 0.5, 7),
            "was not written, but the rows contain it",
        ),
    ],
)
def test_entries_that_are_wrong_are_not_published(
    name: str,
    wrong: Callable[[RDD[tuple[int, bytes]]], RDD[tuple[int, bytes]]],
    says: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = HistoryComputer.entries

    def entries(self: HistoryComputer, query: StateQuery, wanted: ComputedOperator) -> RDD[tuple[int, bytes]]:
        return wrong(right(self, query, wanted))

    monkeypatch.setattr(HistoryComputer, "entries", entries)
    with pytest.raises(SampleDiffers, match=says):
        written(name, tmp_path)
    assert not (tmp_path / "begun" / "_metadata").exists()


@pytest.mark.nightly
def test_slices_that_are_shifted_are_not_published(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = TableRows.in_windows
    monkeypatch.setattr(
        TableRows, "in_windows", lambda self, window, by=(): right(self, replace(window, offset=10_000), by)
    )
    with pytest.raises(SampleDiffers, match="window or slice that ends at"):
        written("2.3/tumble", tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_what_was_prepared_and_is_changed_since_is_not_published(tmp_path: Path, spark: SparkSession) -> None:
    folder, prepared = test_kills.laid_out(tmp_path), tmp_path / "prepared"
    options = ["--savepoint", str(test_kills.CASE / "old"), "--prepare", str(prepared)]
    assert test_kills.run(folder, "never", "migrate", *options).returncode == 0
    right = test_kills.written(folder, folder / "right", "never", "migrate")
    assert ": the state of 5 keys is equal when recomputed in plain Python" in right.stderr

    (aggregated,) = (each for each in prepared.iterdir() if each.is_dir())
    rows = spark.read.parquet(str(aggregated))
    *others, metric = rows.columns
    wrong = rows.selectExpr(*others, f"CAST('0.05' AS {rows.schema[metric].dataType.simpleString()}) {metric}")
    wrong.write.parquet(str(tmp_path / "wrong"))
    shutil.rmtree(aggregated)
    (tmp_path / "wrong").rename(aggregated)
    refused = test_kills.written(folder, folder / "wrong", "never", "migrate")
    assert refused.returncode == 1
    assert "the written state differs from the state that Python computes from the same rows" in refused.stderr
    assert not (folder / "wrong" / "_metadata").exists()

    (prepared / "prepared.json").write_text("{", "utf-8")
    damaged = test_kills.written(folder, folder / "damaged", "never", "migrate")
    assert damaged.returncode == 2
    assert "prepared.json was not written by migrate prepare: prepare again" in damaged.stderr
