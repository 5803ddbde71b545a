"""Parquet, orc and partitioned tables: what Flink writes is read, and what is written Flink reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest
from airflow_flinkcompat.backfill.planning import plan
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, FIRST, SECOND, SUM, SUM_COLUMNS, Run, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch

pytestmark = pytest.mark.slow

COLUMNS = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(8, 2), m DECIMAL(15, 3), "
    "o DECIMAL(38, 18), v VARCHAR(5), x STRING, c CHAR(3), y DATE, z TIMESTAMP(6), w TIMESTAMP(3)"
)
LTZ = ", k TIMESTAMP_LTZ(3)"
ROWS = [
    "true,-128,3,-4,5,0.1,1.0E-300,-1.5,12.345,0.5,ab,ü😀,abc,1969-12-31,1969-12-31 23:59:59,2024-03-31 02:30:00.123",
    "false,127,-3,4,-5,-3.5,NaN,99.99,-0.001,12345678901234567890.123456789012345678,,two words,x,2024-02-29,"
    "2024-02-29 23:59:59.999999,1970-01-01 00:00:00.001",
    "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL",
]
OLD = "1500-01-01"
LTZ_VALUES = ["1969-12-31 23:59:58.999Z", "2024-03-31 02:30:00.123Z", "NULL"]
PARQUET = {"parquet__utc_timezone": "true"}
INT64 = {**PARQUET, "parquet__write__int64__timestamp": "true"}


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkBatch]:
    """A Flink that knows parquet and orc."""
    from dev.services.flink_batch import columnar_jars, flink_batch

    with flink_batch(columnar_jars()) as batch:
        yield batch


def kinds(format: str) -> tuple[str, list[str]]:
    """The columns of a format, and rows of them as csv."""
    if format == "orc":
        return COLUMNS.partition(", z")[0], [row.rpartition(",")[0].rpartition(",")[0] for row in ROWS]
    # Flink fails on a fraction of a millisecond before 1970.
    old = [row.replace("2024-02-29 23:59:59.999999", f"{OLD} 23:59:59").replace("2024-02-29", OLD) for row in ROWS[1:2]]
    pairs = zip([*ROWS, *old], [*LTZ_VALUES, "0001-01-01 00:00:00Z"], strict=True)
    return COLUMNS + LTZ, [f"{row},{instant}" for row, instant in pairs]


@pytest.mark.parametrize(
    ("format", "options"),
    [
        pytest.param("parquet", PARQUET, id="int96", marks=pytest.mark.nightly),
        pytest.param("parquet", INT64, id="int64", marks=pytest.mark.nightly),
        pytest.param("orc", {}, id="orc", marks=pytest.mark.nightly),
    ],
)
def test_both_engines_read_what_both_write(
    flink: FlinkBatch, run: Run, tmp_path: Path, format: str, options: dict[str, str]
) -> None:
    columns, rows = kinds(format)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = table("given", columns, tmp_path / "in", csv__null_literal="NULL")
    held = {name: table("held", columns, tmp_path / name, format, **options) for name in ("flink", "spark")}
    flink.run([given, held["flink"], "INSERT INTO held SELECT * FROM given"])
    run(script(given, held["spark"], "INSERT INTO held SELECT * FROM given"))
    seen = {}
    for writer, source in held.items():
        copied = [source, table("copy", columns, tmp_path / f"flink-{writer}", csv__null_literal="NULL")]
        flink.run([*copied, "INSERT INTO copy SELECT * FROM held"])
        copied = [source, table("copy", columns, tmp_path / f"spark-{writer}", csv__null_literal="NULL")]
        run(script(*copied, "INSERT INTO copy SELECT * FROM held"))
        seen |= {f"{reader}-{writer}": lines(tmp_path / f"{reader}-{writer}") for reader in ("flink", "spark")}
    assert len(seen["flink-flink"]) == len(rows)
    assert seen["flink-flink"] == seen["spark-flink"] == seen["flink-spark"] == seen["spark-spark"]


@pytest.mark.nightly
def test_only_needed_columns_and_rows_reach_the_reader(
    run: Run, spark: SparkSession, history: Path, tmp_path: Path
) -> None:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    archive = tmp_path / "archive"
    kept = table("kept", BID_COLUMNS.rpartition(",")[0], archive, "parquet", **INT64)
    run(script(table("bid", BID_COLUMNS, history), kept, "INSERT INTO kept SELECT * FROM bid"))
    text = script(
        table("bid", BID_COLUMNS, archive, "parquet", **INT64),
        table("results", SUM_COLUMNS, tmp_path / "results"),
        f"INSERT INTO results {SUM}",
    )
    bounds = {"from_": datetime(2020, 4, 15, 8, 10), "to": datetime(2020, 4, 15, 8, 20)}
    (write,) = plan(BackfillRequest(JobSpec(text), **bounds)).work.writes
    rows, _ = Execution(spark).rows(write)
    shown = rows._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<bidtime:timestamp_ntz,price:decimal(10,2)>" in shown
    assert "GreaterThanOrEqual(bidtime,2020-04-15T08:10)" in shown
    assert "LessThan(bidtime,2020-04-15T" in shown  # Spark cuts long lists
    result = run(text, "2020-04-15 08:10:00", "2020-04-15 08:20:00")
    assert lines(tmp_path / "results") == [SECOND]
    assert result.rows_read == 3


@pytest.mark.nightly
def test_times_in_the_zone_of_a_machine_are_refused(run: Run, results: Path) -> None:
    text = script(
        table("bid", BID_COLUMNS, "/nowhere", "parquet"),
        table("o", "a STRING", results),
        "INSERT INTO o SELECT {} FROM bid",
    )
    with pytest.raises(BackfillError, match="times like bidtime are read in the time zone of Flink's TaskManagers"):
        run(text.format("CAST(bidtime AS STRING)"))
    with pytest.raises(BackfillError, match="does not exist"):
        run(text.format("item"))


@pytest.mark.nightly
@pytest.mark.parametrize("format", mostly_nightly(["parquet", "json", "csv"], 1))
def test_an_archive_in_another_format(run: Run, history: Path, results: Path, tmp_path: Path, format: str) -> None:
    columns = BID_COLUMNS.rpartition(",")[0].replace("bidtime TIMESTAMP(3)", "bidtime TIMESTAMP(3)")
    archive = tmp_path / "archive"
    bid, kept = table("bid", BID_COLUMNS, history), table("kept", columns, "/unused", "raw")
    run(script(bid, kept, "INSERT INTO kept SELECT * FROM bid"), sinks={"kept": f"{format}:{archive}"})
    text = script(
        table("bid", BID_COLUMNS, "/unused", "avro"),
        table("results", SUM_COLUMNS, results),
        f"INSERT INTO results {SUM}",
    )
    run(text, tables={"bid": f"{format}:{archive}"})
    assert lines(results) == [FIRST, SECOND]
    with pytest.raises(BackfillError, match="--table bid: a backfill does not read or write the format avro"):
        run(text, tables={"bid": f"avro:{archive}"})


PARTED = "item STRING, price DECIMAL(10, 2), day_ STRING, hour_ INT, kind STRING"
BY = " PARTITIONED BY (day_, hour_, kind)"
PARTED_ROWS = """\
a,1.00,2024-01-01,7,x y/z=%
b,2.00,2024-01-01,-1,
c,3.00,2024-01-02,7,ü
d,4.00,NULL,NULL,NULL
"""


def parted(name: str, place: Path, format: str, **options: str) -> str:
    if format == "parquet":
        options |= PARQUET
    return table(name, PARTED, place, format, **options).replace(") WITH (", f"){BY} WITH (")


@pytest.mark.parametrize("format", mostly_nightly(["csv", "json", "parquet", "orc"], 1))
@pytest.mark.nightly
def test_partitions_lie_where_flink_puts_them(flink: FlinkBatch, run: Run, tmp_path: Path, format: str) -> None:
    (tmp_path / "in").mkdir()
    # Flink writes partitions of NULL, and then reads none of that table.
    rows = [row for row in PARTED_ROWS.splitlines(keepends=True) if row[0] in "ac"]
    (tmp_path / "in" / "rows.csv").write_text("".join(rows), encoding="utf-8")
    given = table("given", PARTED, tmp_path / "in")
    held = {name: parted("held", tmp_path / name, format) for name in ("flink", "spark")}
    flink.run([given, held["flink"], "INSERT INTO held SELECT * FROM given"])
    run(script(given, held["spark"], "INSERT INTO held SELECT * FROM given"))
    folders = {name: folders_of(tmp_path / name) for name in held}
    assert folders["spark"] == folders["flink"]
    seen = {}
    for writer, source in held.items():
        flink.run([source, table("copy", PARTED, tmp_path / f"flink-{writer}"), "INSERT INTO copy SELECT * FROM held"])
        run(script(source, table("copy", PARTED, tmp_path / f"spark-{writer}"), "INSERT INTO copy SELECT * FROM held"))
        seen |= {f"{reader}-{writer}": lines(tmp_path / f"{reader}-{writer}") for reader in ("flink", "spark")}
    assert len(seen["flink-flink"]) == 2
    assert seen["flink-flink"] == seen["spark-flink"] == seen["flink-spark"] == seen["spark-spark"]


def visible(place: Path) -> list[Path]:
    return [file for file in place.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]


def folders_of(place: Path) -> list[str]:
    return sorted({str(file.parent.relative_to(place)) for file in visible(place)})


@pytest.mark.nightly
def test_static_partitions_as_in_flink(flink: FlinkBatch, run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text("a,1.00\n", encoding="utf-8")
    given = table("given", "item STRING, price DECIMAL(10, 2)", tmp_path / "in")
    insert = (
        "INSERT INTO held PARTITION (day_ = '2024-01-05', hour_ = 3, kind = 'it''s') SELECT item, price FROM given",
        "INSERT INTO held PARTITION (hour_ = 4) SELECT item, price, '2024-01-06', item FROM given",
        "INSERT INTO held SELECT item, price, CAST(NULL AS STRING), 5, '' FROM given",
    )
    for name in ("flink", "spark"):
        statements = [given, parted("held", tmp_path / name, "csv"), *insert]
        flink.run(statements) if name == "flink" else run(script(*statements))
    assert folders_of(tmp_path / "flink") == folders_of(tmp_path / "spark")
    assert lines(tmp_path / "flink") == lines(tmp_path / "spark")


@pytest.mark.nightly
def test_only_asked_partitions_are_read(run: Run, spark: SparkSession, tmp_path: Path, results: Path) -> None:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text(PARTED_ROWS, encoding="utf-8")
    given = table("given", PARTED, tmp_path / "in", csv__null_literal="NULL")
    held = parted("held", tmp_path / "held", "csv", **{"partition__default_name": "none"})
    run(script(given, held, "INSERT INTO held SELECT * FROM given"))
    (broken,) = (tmp_path / "held" / "day_=2024-01-02").rglob("*.csv")
    broken.write_text("not,a,row\n", encoding="utf-8")
    assert (tmp_path / "held" / "day_=none" / "hour_=none" / "kind=none").is_dir()
    text = script(
        held, table("o", "item STRING, hour_ INT", results), "INSERT INTO o SELECT item, hour_ FROM held WHERE {}"
    )
    chosen = text.format("day_ = '2024-01-01' AND price < 10")
    (write,) = plan(BackfillRequest(JobSpec(chosen))).work.writes
    shown = Execution(spark).rows(write)[0]._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [" in shown
    assert "day_" in shown.partition("PartitionFilters: [")[2].partition("]")[0]
    result = run(chosen)
    assert lines(results) == ["a,7", "b,-1"]
    assert result.rows_read == 2
    run(text.format("hour_ IS NULL"))
    with pytest.raises(BackfillError, match="does not fit"):
        run(text.format("price < 10"))


def test_partitions_are_published_as_one_and_again(run: Run, history: Path, results: Path) -> None:
    columns = SUM_COLUMNS + ", hour_ BIGINT"
    query = SUM.replace(" FROM", ", HOUR(MAX(bidtime)) FROM")
    options = {"sink__partition_commit__policy__kind": "success-file"}
    sink = table("results", columns, results, **options).replace(") WITH (", ") PARTITIONED BY (hour_) WITH (")
    text = script(table("bid", BID_COLUMNS, history), sink, f"INSERT INTO results {query}")
    (results / "hour_=8").mkdir(parents=True)
    (results / "hour_=8" / "part-live").write_text("live\n", encoding="utf-8")
    for _ in range(2):
        run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        assert lines(results) == [FIRST, SECOND, "live"]
        assert (results / "hour_=8" / "_SUCCESS").is_file()
    with pytest.raises(BackfillError, match="overlapping range"):
        run(text, "2020-04-15 08:10:00", "2020-04-15 08:30:00")
    with pytest.raises(BackfillError, match="metastore"):
        run(text.replace("success-file", "metastore,success-file"))
    run(text, sinks={"results": str(results)})
    assert lines(results) == [FIRST, SECOND]
