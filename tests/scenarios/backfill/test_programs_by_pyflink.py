"""Programs run by real PyFlink, as streaming jobs over bounded files, and as backfills: equal rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, run_backfill
from airflow_flinkcompat.backfill.planning import plan
from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.model import JobSpec
from dev.measure.pyflink import PyFlink
from tests.support.backfill.scripts import lines

FOLDER = Path(__file__).parents[2] / "fixtures" / "table_api" / "oracle"
PROGRAMS = {
    path.stem: text
    for path in sorted(FOLDER.glob("*.py"))
    if "file://OUT" in (text := path.read_text(encoding="utf-8"))
}
"""Those that write files: what they write is never taken back."""
NOT_KNOWN = ["over_chained", "over_then_tumble", "tumble_union", "over_range", "over_two_keys", "sql_over_avg"]
"""Those of which no history tells which rows came too late: operators on what others wrote, and frames of RANGE with a
beginning, where Flink's timers decide."""
SETTINGS = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    # Checkpoints commit what the file sink has written; an interval of 0 emits a watermark with each row that moves it.
    "execution.checkpointing.interval": "1 s",
    "pipeline.auto-watermark-interval": "0",
}
LATE = {"drop": (0, 0, 0, 2_000, 5_000, 9_000, 40_000), "include": (0, 0, 500, 2_000, 4_900)}
"""How far rows come back in time, in ms; the tables' watermarks are 5 seconds behind."""


@pytest.fixture(scope="module")
def pyflink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyFlink]:
    with PyFlink(tmp_path_factory.mktemp("pyflink")) as running:
        yield running


def history(folder: Path, late: str, seed: int) -> None:
    """One file of 200 rows, of four keys; times go on, by leaps too, and come back."""
    draw, now, written = random.Random(seed), datetime(2024, 1, 1), []
    for number in range(200):
        now += timedelta(milliseconds=draw.choice([200, 700, 1_500, 4_000, 11_000]))
        time = now - timedelta(milliseconds=draw.choice(LATE[late]))
        a, c = draw.choice("uvwx"), draw.choice("pqr")
        written.append(f"{a},{draw.randint(1, 99)},{c},{draw.randint(0, 9)},{number},{time:%F %T.%f}"[:-3] + "\n")
    folder.mkdir(parents=True)
    (folder / "rows.csv").write_text("".join(written), encoding="utf-8")


def request(text: str, name: str, late: str) -> BackfillRequest:
    order = {table: "nr" for table in ("visits", "calls") if f"CREATE TABLE {table} " in text}
    return BackfillRequest(JobSpec(text, source=f"{name}.py", language="python"), order_by=order, late=late)


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_which_rows_came_late_is_not_known_of_every_program(tmp_path: Path, name: str) -> None:
    text = PROGRAMS[name].replace("file://DATA", tmp_path.as_uri()).replace("file://OUT", tmp_path.as_uri())
    with pytest.raises(Untranslatable, match="late"):
        plan(request(text, name, "drop"))


CASES = [(name, late) for name in PROGRAMS for late in LATE if late == "include" or name not in NOT_KNOWN]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.usefixtures("plain_spark")
@pytest.mark.parametrize(("name", "late"), CASES, ids=map(" ".join, CASES))
def test_a_backfill_gives_the_rows_of_the_stream(pyflink: PyFlink, tmp_path: Path, name: str, late: str) -> None:
    for number, table in enumerate(("visits", "calls")):
        history(tmp_path / "in" / table, late, number)
    text = PROGRAMS[name].replace("file://DATA", (tmp_path / "in").as_uri())
    by_flink, by_spark = (tmp_path / "by-flink", tmp_path / "by-spark")
    pyflink.run(text.replace("file://OUT", by_flink.as_uri()), name, SETTINGS)
    run_backfill(request(text.replace("file://OUT", by_spark.as_uri()), name, late))
    for sink in sorted(path.name for path in by_flink.iterdir()):
        assert lines(by_spark / sink) == lines(by_flink / sink)
        assert len(lines(by_flink / sink)) >= 3
