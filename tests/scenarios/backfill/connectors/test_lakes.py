"""Delta Lake and Iceberg: what is read is what was written, a range is replaced whole, a killed run leaves nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest
from airflow_flinkcompat.backfill.connectors.delta import DeltaSource
from airflow_flinkcompat.backfill.planning import plan
from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.spark_sql.windows import to_micros
from airflow_flinkcompat.backfill.steps import reads_of
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, SUM, SUM_COLUMNS, Run, bids, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BY_ITEM = SUM.replace("window_end, SUM", "window_end, item, SUM") + ", item"
ITEM_COLUMNS = SUM_COLUMNS.replace("total", "item STRING, total")
# How often the kill test kills.
KILLS = 4
TYPES = {
    "a": "TINYINT", "b": "SMALLINT", "c": "INT", "d": "BIGINT", "e": "FLOAT", "f": "DOUBLE", "g": "DECIMAL(10, 2)",
    "h": "STRING", "i": "BOOLEAN", "j": "DATE", "k": "TIMESTAMP(6)", "l": "TIMESTAMP_LTZ(6)", "m": "TIMESTAMP(3)",
}  # fmt: skip
ROWS = (
    '1,2,3,4,1.5,-2.25,12345678.90,"é ""x""",true,1969-12-31,2020-01-01 00:00:00.123456,1969-12-31 23:59:59.999999Z,'
    "2020-01-01 00:00:00.123\n"
    "-128,-32768,-2147483648,-9223372036854775808,NaN,Infinity,-0.01,plain,false,9999-12-31,0001-01-01 00:00:00,"
    "2020-01-01 00:00:00Z,1969-12-31 23:59:59.999\n"
    "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL\n"
)


def declared(name: str, columns: str, **options: str) -> str:
    pairs = ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({pairs})"


def lake(name: str, columns: str, kind: str, folder: Path) -> str:
    """A declared table of either format below a folder."""
    if kind == "delta":
        return declared(name, columns, connector="delta", table_path=str(folder / name))
    options = {"catalog_name": "lake", "catalog_type": "hadoop", "warehouse": str(folder), "catalog_database": "db"}
    return declared(name, columns, connector="iceberg", **options)


def history(folder: Path, rows: str) -> Path:
    place = folder / "history"
    place.mkdir(exist_ok=True)
    (place / "rows.csv").write_text(rows, encoding="utf-8")
    return place


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_every_type_comes_back_as_it_was_written(run: Run, tmp_path: Path, kind: str) -> None:
    chosen = {name: type for name, type in TYPES.items() if kind == "delta" or name not in "ab"}
    columns = ", ".join(f"{name} {type}" for name, type in chosen.items())
    every = ", ".join(f"{name} {type}" for name, type in TYPES.items())
    source = table("source", every, history(tmp_path, ROWS), csv__null_literal="NULL")
    names = ", ".join(chosen)
    run(script(source, lake("kept", columns, kind, tmp_path), f"INSERT INTO kept SELECT {names} FROM source"))
    for reads, text in (("source", source), ("kept", lake("kept", columns, kind, tmp_path))):
        out = table("o", columns, tmp_path / f"by-{reads}")
        run(script(text, out, f"INSERT INTO o SELECT {names} FROM {reads}"))
    assert lines(tmp_path / "by-kept") == lines(tmp_path / "by-source") != []


@pytest.mark.slow
@pytest.mark.parametrize("kind", mostly_nightly(["iceberg", "delta"]))
def test_a_range_is_replaced_and_the_rest_stays(
    run: Run, spark: SparkSession, history: Path, tmp_path: Path, kind: str
) -> None:
    text = script(
        table("bid", BID_COLUMNS, history), lake("results", SUM_COLUMNS, kind, tmp_path), f"INSERT INTO results {SUM}"
    )

    def held() -> list[tuple[str, float]]:
        if kind == "delta":
            rows = spark.read.format("delta").load(str(tmp_path / "results"))
        else:
            (target,) = (write.target for write in plan(BackfillRequest(JobSpec(text))).work.writes)
            rows = spark.table(target.location.identifier)  # type: ignore[attr-defined]
        return sorted((f"{row.window_start:%H:%M}", float(row.total)) for row in rows.collect())

    run(text)  # both windows in one file, which a later range cuts in two
    assert held() == [("08:00", 11.0), ("08:10", 10.0)]
    (history / "more.csv").write_text("2020-04-15 08:01:00,100.00,G\n2020-04-15 08:11:00,100.00,H\n", encoding="utf-8")
    for _ in range(2):
        run(text, "2020-04-15 08:10:00", "2020-04-15 08:20:00")
        assert held() == [("08:00", 11.0), ("08:10", 110.0)]
    for file in history.rglob("*.csv"):
        file.write_text("", encoding="utf-8")
    run(text, "2020-04-15 08:00:00", "2020-04-15 08:10:00")
    assert held() == [("08:10", 110.0)]
    if kind == "iceberg":
        (target,) = (write.target for write in plan(BackfillRequest(JobSpec(text))).work.writes)
        refs = spark.sql(f"SELECT name FROM {target.location.identifier}.refs").collect()  # type: ignore[attr-defined]
        assert [row.name for row in refs] == ["main"]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_does_not_fit_is_left_alone(
    run: Run, spark: SparkSession, history: Path, tmp_path: Path, kind: str
) -> None:
    source = table("bid", BID_COLUMNS, history)
    run(script(source, lake("results", SUM_COLUMNS, kind, tmp_path), f"INSERT INTO results {SUM}"))
    other = SUM_COLUMNS.replace("DECIMAL(38, 2)", "DOUBLE")
    with pytest.raises(BackfillError, match=r"column total is decimal\(38,2\) at .*, but DOUBLE requires double"):
        run(
            script(
                lake("results", other, kind, tmp_path),
                table("o", other, tmp_path / "o"),
                "INSERT INTO o SELECT * FROM results",
            )
        )
    sink = lake("results", f"{SUM_COLUMNS}, n BIGINT", kind, tmp_path)
    with pytest.raises(BackfillError, match="has no column n"):
        run(script(source, sink, f"INSERT INTO results {SUM.replace('SUM(price)', 'SUM(price), COUNT(*)')}"))
    missing = lake("missing", SUM_COLUMNS, kind, tmp_path)
    with pytest.raises(BackfillError, match="there is no"):
        run(script(missing, table("o", SUM_COLUMNS, tmp_path / "o"), "INSERT INTO o SELECT * FROM missing"))


@pytest.mark.nightly
@pytest.mark.slow
def test_archives_and_places_of_a_lake(run: Run, spark: SparkSession, history: Path, tmp_path: Path) -> None:
    """``delta:`` in front of a place, for reading and for writing; a time finer than declared is an error."""
    columns = "bidtime TIMESTAMP(3), price DECIMAL(10, 2), item STRING"
    archive = script(
        table("bid", columns, history), lake("kept", columns, "delta", tmp_path), "INSERT INTO kept SELECT * FROM bid"
    )
    run(archive)
    text = bids(SUM, SUM_COLUMNS, "/nowhere", "/nowhere-either")
    given = {"tables": {"bid": f"delta:{tmp_path / 'kept'}"}, "sinks": {"results": f"delta:{tmp_path / 'sums'}"}}
    result = run(text, "2020-04-15 08:10:00", "2020-04-15 08:20:00", **given)
    sums = spark.read.format("delta").load(str(tmp_path / "sums"))
    assert [float(row.total) for row in sums.collect()] == [10.0]
    assert result.rows_read == 3, "rows of other windows are not read"
    assert dict(sums.dtypes)["window_start"] == "timestamp_ntz"
    spark.sql(f"INSERT INTO delta.`{tmp_path / 'kept'}` VALUES (TIMESTAMP_NTZ '2020-04-15 08:15:00.000001', 1, 'x')")
    with pytest.raises(BackfillError, match=r"column bidtime contains a time that is more precise than TIMESTAMP\(3\)"):
        run(text, **given)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(BackfillError, match="contains files that are not a Delta table"):
        run(text, tables=given["tables"], sinks={"results": f"delta:{tmp_path / 'mine'}"})


def test_the_range_reaches_the_table_through_filters_and_projections() -> None:
    source = declared("bid", BID_COLUMNS, connector="delta", table_path="/history")
    query = SUM.replace("TABLE bid", "TABLE kept")
    view = "CREATE VIEW kept AS SELECT item, price, bidtime FROM bid WHERE price > 1"
    text = script(source, view, table("results", SUM_COLUMNS, "/r"), f"INSERT INTO results {query}")
    bounds = datetime(2020, 4, 15, 8), datetime(2020, 4, 15, 8, 25)
    (write,) = plan(BackfillRequest(JobSpec(text), from_=bounds[0], to=bounds[1])).work.writes
    (read,) = reads_of(write.inputs[0])
    assert isinstance(read.source, DeltaSource)
    assert read.source.span == TimeSpan(0, to_micros(bounds[0]), to_micros(datetime(2020, 4, 15, 8, 20)))
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    (read,) = reads_of(write.inputs[0])
    assert isinstance(read.source, DeltaSource)
    assert read.source.span is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"connector": "delta"}, "no option table-path"),
        (
            {"connector": "delta", "table_path": "/x", "versionAsOf": "3"},
            "does not support the option versionAsOf = '3'",
        ),
        ({"connector": "iceberg"}, "no option uri"),
        ({"connector": "iceberg", "catalog_type": "hadoop"}, "no option warehouse"),
        ({"connector": "iceberg", "catalog_type": "nessie", "uri": "x"}, "does not support catalog-type 'nessie'"),
        ({"connector": "iceberg", "snapshot_id": "3"}, "does not support the option snapshot-id = '3'"),
    ],
)
def test_options_that_are_not_understood(options: dict[str, str], words: str) -> None:
    text = script(
        declared("bid", BID_COLUMNS, **options), table("results", SUM_COLUMNS, "/r"), f"INSERT INTO results {SUM}"
    )
    with pytest.raises(BackfillError, match=words):
        plan(BackfillRequest(JobSpec(text)))


def test_a_range_needs_a_column_that_tells_it() -> None:
    sink = declared("results", "total DECIMAL(38, 2)", connector="delta", table_path="/r")
    query = SUM.replace("window_start, window_end, SUM", "SUM")
    text = script(table("bid", BID_COLUMNS, "/h"), sink, f"INSERT INTO results {query}")
    plan(BackfillRequest(JobSpec(text)))
    with pytest.raises(BackfillError, match="the sink has no column of window_start"):
        plan(BackfillRequest(JobSpec(text), from_=datetime(2020, 4, 15)))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_primary_key_that_other_windows_share(tmp_path: Path, kind: str) -> None:
    def planned(columns: str, key: str) -> str:
        sink = lake("results", f"{columns}, PRIMARY KEY ({key}) NOT ENFORCED", kind, tmp_path)
        return script(table("bid", BID_COLUMNS, "/h"), sink, f"INSERT INTO results {BY_ITEM}")

    range_ = {"from_": datetime(2020, 4, 15, 8), "to": datetime(2020, 4, 15, 9)}
    for key in ("item, window_end", "item, window_start"):
        plan(BackfillRequest(JobSpec(planned(ITEM_COLUMNS, key)), **range_))
    plan(BackfillRequest(JobSpec(planned(ITEM_COLUMNS, "item"))))
    with pytest.raises(BackfillError, match="Add window_end to the key"):
        plan(BackfillRequest(JobSpec(planned(ITEM_COLUMNS, "item")), **range_))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_several_rows_of_one_primary_key(
    run: Run, spark: SparkSession, history: Path, tmp_path: Path, kind: str
) -> None:
    """Nothing is published, and nothing is left of what was staged."""
    source = table("bid", BID_COLUMNS, history)
    insert = f"INSERT INTO results {BY_ITEM}"
    run(script(source, lake("results", ITEM_COLUMNS, kind, tmp_path), insert))
    (history / "more.csv").write_text("2020-04-15 08:12:00,7.00,A\n", encoding="utf-8")
    text = script(source, lake("results", f"{ITEM_COLUMNS}, PRIMARY KEY (item) NOT ENFORCED", kind, tmp_path), insert)
    with pytest.raises(BackfillError, match=r"2 rows for the primary key \(item\) = \(A\)"):
        run(text)
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    name = f"delta.`{tmp_path / 'results'}`" if kind == "delta" else write.target.location.identifier  # type: ignore[attr-defined]
    assert spark.sql(f"SELECT * FROM {name}").count() == 6
    if kind == "iceberg":
        assert [row.name for row in spark.sql(f"SELECT name FROM {name}.refs").collect()] == ["main"]
    (history / "more.csv").unlink()
    run(text)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_driver_killed_at_any_moment_leaves_the_rows_of_one_run(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    """SIGKILL at random moments: the table is as before or as after; a run to the end gives that run's rows."""
    from tests.support.spark_packages import NEEDS

    draw = random.Random()
    times = (f"2020-04-15 08:{draw.randrange(60):02d}:00,{draw.randrange(100)}.00,x" for _ in range(20_000))
    results = tmp_path / "results"
    text = script(
        table("bid", BID_COLUMNS, history(tmp_path, "\n".join(times) + "\n")),
        lake("results", SUM_COLUMNS, "delta", tmp_path),
        f"INSERT INTO results {SUM}",
    )
    columns = "window_start TIMESTAMP_NTZ, window_end TIMESTAMP_NTZ, total DECIMAL(38, 2)"
    spark.sql(f"CREATE TABLE delta.`{results}` ({columns}) USING delta")

    def stale() -> None:
        """A window before the range, and in it one that no run gives anew."""
        spark.sql(f"DELETE FROM delta.`{results}`")
        row = "(TIMESTAMP_NTZ '2020-04-15 {0}:00', TIMESTAMP_NTZ '2020-04-15 {0}:01', 7)"
        spark.sql(f"INSERT INTO delta.`{results}` VALUES {row.format('07:00')}, {row.format('08:25')}")

    def totals() -> list[tuple[str, float]]:
        rows = spark.read.format("delta").load(str(results)).collect()
        return sorted((f"{row.window_start:%H:%M}", float(row.total)) for row in rows)

    bounds = "2020-04-15 08:00:00", "2020-04-15 09:00:00"
    stale()
    before = totals()
    begun = time.monotonic()
    run(text, *bounds)
    lasts = time.monotonic() - begun
    wanted = totals()
    assert [start for start, _ in wanted] == ["07:00", "08:00", "08:10", "08:20", "08:30", "08:40", "08:50"]
    configuration = tmp_path / "conf"
    configuration.mkdir()
    settings = "\n".join(f"{key} {value}" for key, value in NEEDS.conf if key == "spark.jars.ivy")
    (configuration / "spark-defaults.conf").write_text(settings, encoding="utf-8")
    from_, to = (datetime.fromisoformat(bound) for bound in bounds)
    request = BackfillRequest(JobSpec(text, source="job.sql"), from_=from_, to=to, master="local[1]")
    (tmp_path / "request.json").write_text(json.dumps(request.to_dict()), encoding="utf-8")
    command = [sys.executable, "-m", "airflow_flinkcompat.backfill.job", "--request", str(tmp_path / "request.json")]
    environment = {**os.environ, "SPARK_CONF_DIR": str(configuration), "PYTHONPATH": str(Path.cwd())}
    for _ in range(KILLS):
        stale()
        driver = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert driver.stdout is not None
        assert any(line.startswith("backfill: ") for line in driver.stdout), "the driver ended before it computed"
        try:
            driver.wait(draw.uniform(0, 3 * lasts))
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
        assert totals() in (before, wanted)
        run(text, *bounds)
        assert totals() == wanted
