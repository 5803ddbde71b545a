"""Window Top-N: like Flink where no tie decides, repeatable and counted where one does."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.backfill.steps import Rank, Step, UnionAll
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import TUMBLE, Run, bids, filled, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = "ts TIMESTAMP(3), nr INT, k STRING, v INT, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' HOUR"
WINDOW = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
ROWS = "nr INT, k STRING, v INT, x DOUBLE, ws TIMESTAMP(3), we TIMESTAMP(3)"
NUMBERED = "ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS rn"
PLAIN = (
    "SELECT nr, k, v, x, window_start, window_end{number} FROM (SELECT *, " + NUMBERED + " FROM {window}) WHERE {kept}"
)
SUMS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), s INT, n BIGINT"
SUMMED = (
    "SELECT k, window_start, window_end, s, n{number} FROM (SELECT *, " + NUMBERED + " FROM (SELECT k, window_start, "
    "window_end, SUM(v) AS s, COUNT(*) AS n FROM {window} GROUP BY k, window_start, window_end)) WHERE {kept}"
)


def history(folder: Path) -> str:
    """300 rows around 1970 with NULLs and repeated values; ``nr`` tells them apart, ``x`` never has two equal."""
    draw = random.Random(11)
    lines_ = []
    for number in range(300):
        second, milli = draw.randrange(-180, 180), draw.randrange(1000)
        time = f"1969-12-31 23:{60 + second // 60:02d}" if second < 0 else f"1970-01-01 00:{second // 60:02d}"
        values = (
            draw.choice(["a", "b", "c", ""]),
            draw.choice(["", str(draw.randrange(-5, 5))]),
            f"{number * 7 % 300}.5",
        )
        lines_.append(f"{time}:{second % 60:02d}.{milli:03d},{number},{','.join(values)}\n")
    return filled("t", COLUMNS, folder, lines_)


def query(shape: str, keys: str, order: str, kept: str, shown: bool = False, window: str = WINDOW) -> str:
    return "INSERT INTO o " + shape.format(
        keys=keys, order=order, kept=kept, number=", rn" if shown else "", window=window
    )


BOTH = "window_start, window_end"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "keys", "order", "kept", "shown"),
    mostly_nightly(
        [
            (PLAIN, BOTH, "v, nr", "rn <= 3", True),
            (PLAIN, f"k, {BOTH}", "v DESC, nr", "rn < 3", False),
            (PLAIN, "window_end, window_start", "v NULLS LAST, nr DESC", "rn = 1", False),
            (PLAIN, BOTH, "x DESC", "4 >= rn AND v > 0", False),
            (SUMMED, BOTH, "s DESC, n, k", "rn <= 2", True),
            (SUMMED, BOTH, "n DESC NULLS FIRST, k DESC", "rn <= 2 AND n > 1", False),
        ],
        2,
    ),
)
def test_like_flink(
    flink: FlinkBatch, spark: SparkSession, tmp_path: Path, shape: str, keys: str, order: str, kept: str, shown: bool
) -> None:
    sink = table("o", (ROWS if shape is PLAIN else SUMS) + (", rn BIGINT" if shown else ""), "OUT")
    statements = [history(tmp_path / "in"), sink, query(shape, keys, order, kept, shown)]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements)
    assert by_spark == by_flink
    assert by_flink
    assert result.ties == 0


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kept", mostly_nightly(["rn BETWEEN 2 AND 3", "rn = 2", "rn > 1 AND rn <= 4"], 1))
def test_ranks_from_the_middle_like_flink_in_batch_mode(
    flink: FlinkBatch, spark: SparkSession, tmp_path: Path, kept: str
) -> None:
    statements = [history(tmp_path / "in"), table("o", ROWS + ", rn BIGINT", "OUT")]
    statements.append(query(PLAIN, BOTH, "v DESC, nr", kept, shown=True))
    by_flink, by_spark, _ = by_both(flink, tmp_path, statements, streaming=False)
    assert by_spark == by_flink
    assert by_flink


TIES = {
    # one minute each: which rows of a Top-2 by v are published, or how they are numbered, is decided by a tie
    "00:00": ["a,1", "b,2", "c,3"],
    "00:01": ["a,1", "b,2", "c,2"],
    "00:02": ["a,1", "b,1", "c,3"],
    "00:03": ["a,1", "b,2", "b,2"],
    "00:04": ["a,1", "b,1", "b,1", "b,1"],
}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "shown", "ties", "chosen"),
    [
        ("rn <= 2", "", 2, ["a,1", "a,1", "a,1", "a,1", "a,1", "b,1", "b,1", "b,2", "b,2", "b,2"]),
        ("rn = 1", "", 2, ["a,1"] * 5),
        ("rn = 2", "", 3, ["b,1", "b,1", "b,2", "b,2", "b,2"]),
        ("rn <= 2", ", rn", 3, None),
        ("rn <= 9", "", 0, None),
        ("rn <= 9", ", rn", 3, None),
    ],
)
def test_ties_are_settled_the_same_way_each_time_and_counted(
    run: Run, tmp_path: Path, kept: str, shown: str, ties: int, chosen: list[str] | None
) -> None:
    rows = [f"2024-01-01 {minute}:00,{row}\n" for minute, rows in TIES.items() for row in rows]
    found = []
    for number in range(2):
        place = tmp_path / f"in{number}"
        place.mkdir()
        (place / "rows.csv").write_text("".join(rows if number else reversed(rows)), encoding="utf-8")
        text = script(
            table("t", "ts TIMESTAMP(3), k STRING, v INT, WATERMARK FOR ts AS ts", place),
            table("o", "k STRING, v INT" + (", rn BIGINT" if shown else ""), tmp_path / "out"),
            f"INSERT INTO o SELECT k, v{shown} FROM (SELECT *, ROW_NUMBER() OVER ("
            f"PARTITION BY window_end, window_start ORDER BY v) AS rn FROM {WINDOW}) WHERE {kept}",
        )
        result = run(text)
        assert result.ties == ties
        assert result.to_dict()["windows_decided_by_ties"] == ties
        found.append(lines(tmp_path / "out"))
    assert found[0] == found[1]
    assert chosen is None or found[0] == chosen


# --- what a query becomes, and what is refused, without Spark ---------------------------------------------------------

BIDS = f"SELECT item, {{}} AS rn FROM {TUMBLE}"
NUMBER = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price)"


def rank_of(step: Step) -> Rank:
    while not isinstance(step, Rank):
        assert not isinstance(step, UnionAll)
        step = step.input  # type: ignore[union-attr]
    return step


@pytest.mark.parametrize(
    ("select", "kept", "first", "last", "shown"),
    [
        ("item", "rn <= 3", 1, 3, False),
        ("item, rn", "rn < 3", 1, 2, True),
        ("item, rn + 1", "rn < 3", 1, 2, True),
        ("item", "rn = 1", 1, 1, False),
        ("item", "rn BETWEEN 2 AND 4 AND item <> 'x'", 2, 4, False),
        ("item", "5 > rn", 1, 4, False),
    ],
)
def test_the_range_of_a_top_n(select: str, kept: str, first: int, last: int, shown: bool) -> None:
    columns = "item STRING" + (", rn BIGINT" if shown else "")
    text = bids(f"SELECT {select} FROM ({BIDS.format(NUMBER)}) WHERE {kept}", columns)
    rank = rank_of(plan(BackfillRequest(JobSpec(text))).work.writes[0].inputs[0])
    assert (rank.first, rank.last, rank.number_read) == (first, last, shown)
    assert rank.columns == (0, 1, 2, 3, 4)[1:]


@pytest.mark.parametrize(
    ("number", "kept", "words"),
    [
        (NUMBER, "TRUE", "without a condition on the row number"),
        (NUMBER, "rn > 2", "without a condition on the row number"),
        (NUMBER, "rn <= 3 OR item = 'x'", "only with constants"),
        (NUMBER, "rn <= CAST(item AS INT)", "only with constants"),
        (NUMBER, "rn <= 3 AND rn <> 2", "only with constants"),
        (NUMBER.replace("window_start, ", ""), "rn <= 3", "both window_start and window_end"),
        (NUMBER.replace("window_end", "item"), "rn <= 3", "both window_start and window_end"),
        (NUMBER.replace("ROW_NUMBER", "RANK"), "rn <= 3", "only if it ranks the rows of one window"),
        (
            "SUM(price) OVER (PARTITION BY window_start, window_end ORDER BY bidtime)",
            "rn <= 3",
            "not ordered by a time attribute",
        ),
    ],
)
def test_any_other_over_is_refused(number: str, kept: str, words: str) -> None:
    text = bids(f"SELECT item FROM ({BIDS.format(number)}) WHERE {kept}", "item STRING")
    with pytest.raises(BackfillError, match=re.escape(words)) as caught:
        plan(BackfillRequest(JobSpec(text, source="job.sql")))
    assert str(caught.value).startswith("job.sql:")


def test_rows_of_no_window_are_not_ranked() -> None:
    number = NUMBER.replace("window_start, window_end", "item")
    text = bids(f"SELECT item FROM (SELECT item, {number} AS rn FROM bid) WHERE rn <= 3", "item STRING")
    with pytest.raises(BackfillError, match="several windows"):
        plan(BackfillRequest(JobSpec(text)))
