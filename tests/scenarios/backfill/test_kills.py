"""Runs killed while they write files: whatever the moment, a run to the end leaves what one clean run leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan, run_backfill
from airflow_flinkcompat.backfill.connectors import registry
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import SUM, SUM_COLUMNS, bids, lines
from tests.support.nightly import NIGHTLY, mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

KILLS = 4
"""Each costs two starts of Spark, a minute; all changes to files between which a run may be killed are tried below."""
FROM, TO = datetime(2020, 4, 15, 8), datetime(2020, 4, 15, 9)


def own_folder(history: Path, results: Path) -> BackfillRequest:
    """A place that afterwards holds this run's rows alone."""
    return BackfillRequest(JobSpec(bids(SUM, SUM_COLUMNS, history), source="job.sql"), sinks={"results": str(results)})


def declared_folder(history: Path, results: Path) -> BackfillRequest:
    """The table's own place, where the files of a range are replaced beside what else lies there."""
    return BackfillRequest(JobSpec(bids(SUM, SUM_COLUMNS, history, results), source="job.sql"), from_=FROM, to=TO)


def in_chunks(history: Path, results: Path) -> BackfillRequest:
    return replace(declared_folder(history, results), chunk=timedelta(minutes=20))


def partitioned(history: Path, results: Path) -> BackfillRequest:
    """A folder for each hour, with a file that says it is complete."""
    query = SUM.replace("SUM(price)", "SUM(price), 'h' || CAST(EXTRACT(HOUR FROM window_start) AS STRING)")
    text = bids(query, SUM_COLUMNS + ", h STRING", history, results)
    head, _, tail = text.rpartition(" WITH (")
    policy = "'sink.partition-commit.policy.kind' = 'success-file', "
    return BackfillRequest(
        JobSpec(f"{head} PARTITIONED BY (h) WITH ({policy}{tail}", source="job.sql"), from_=FROM, to=TO
    )


Ask = Callable[[Path, Path], BackfillRequest]


def shown(results: Path) -> dict[str, str]:
    """The visible files of a folder: name → lines in the order of the alphabet.

    Rows have no order of their own, nor one of the run's numbered files rather than another: these are one name.
    """
    found: dict[str, list[str]] = {}
    for file in results.rglob("*"):
        if file.is_file() and not file.name.startswith("."):
            name = re.sub(r"(backfill-.*)-\d+(?=\.csv$)", r"\1", str(file.relative_to(results)))
            found.setdefault(name, []).extend(file.read_text(encoding="utf-8").splitlines(keepends=True))
    return {name: "".join(sorted(lines)) for name, lines in found.items()}


# --- a driver killed at random moments --------------------------------------------------------------------------------


@pytest.fixture
def long_history(tmp_path: Path) -> Path:
    """An hour of bids, enough of them for a run to take its time."""
    place = tmp_path / "history"
    place.mkdir()
    draw = random.Random(3)
    rows = (f"2020-04-15 08:{draw.randrange(60):02d}:00,{draw.randrange(100)}.00,x\n" for _ in range(20_000))
    (place / "a.csv").write_text("".join(rows), encoding="utf-8")
    return place


def _started(request: BackfillRequest, folder: Path) -> subprocess.Popen[str]:
    """A run in a process of its own, at the moment it begins to say what it does."""
    path = folder / "request.json"
    path.write_text(json.dumps(replace(request, master="local[1]").to_dict()), encoding="utf-8")
    driver = subprocess.Popen(
        [sys.executable, "-m", "airflow_flinkcompat.backfill.job", "--request", str(path)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline().startswith("backfill: "), "the driver ended before it computed"
    return driver


@pytest.mark.parametrize("ask", mostly_nightly([own_folder, declared_folder, in_chunks], 0))
def test_a_driver_killed_at_any_moment(spark: SparkSession, long_history: Path, tmp_path: Path, ask: Ask) -> None:
    assert spark.getActiveSession() is spark
    results, clean = tmp_path / "results", tmp_path / "clean" / "results"
    clean.parent.mkdir()
    run_backfill(ask(long_history, clean))
    wanted = shown(clean)
    assert len(lines(clean)) == 6
    request = ask(long_history, results)
    driver = _started(ask(long_history, tmp_path / "timed"), tmp_path)
    begun = time.monotonic()
    assert driver.communicate()[0] is not None
    lasts = time.monotonic() - begun
    assert driver.returncode == 0
    stale = {"part-live" if ask is not own_folder else "part-00000.csv": "written by somebody else\n"}
    seed = random.randrange(2**32)
    print(f"moments of seed {seed}, from 0 to {lasts:.1f} s")
    draw = random.Random(seed)
    for _ in range(KILLS):
        results.mkdir(exist_ok=True)
        for name, text in stale.items():
            (results / name).write_text(text, encoding="utf-8")
        driver = _started(request, tmp_path)
        try:
            driver.wait(draw.uniform(0, lasts))
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
        run_backfill(request)
        assert shown(results) == (wanted if ask is own_folder else {**wanted, **stale})
        assert [path.name for path in tmp_path.iterdir() if ".chunks-" in path.name] == []


# --- killed between any two changes to the file system ----------------------------------------------------------------


class Killed(BaseException):
    """Nothing that follows happens any more, not even what cleans up."""


def _killed_after(monkeypatch: pytest.MonkeyPatch, changes: int) -> Callable[[], int]:
    """Lets so many changes of folders and files happen, and none after them; returns how many were asked for."""
    from airflow_flinkcompat.backfill.spark import FileSystem

    asked = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def counts(self: FileSystem, *places: str) -> Any:
            nonlocal asked
            asked += 1
            if asked > changes:
                raise Killed
            return method(self, *places)

        return counts

    for name in ("write", "make_folder", "move", "delete"):
        monkeypatch.setattr(FileSystem, name, counted(getattr(FileSystem, name)))
    return lambda: asked


@pytest.mark.parametrize("ask", mostly_nightly([own_folder, declared_folder, partitioned], 1))
def test_killed_between_any_two_changes(
    spark: SparkSession, history: Path, results: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """Rows of an earlier run, with other values, are replaced; what no run wrote stays beside a declared place's."""
    from airflow_flinkcompat.backfill.execution.frames import Execution

    planned = plan(ask(history, results))
    (write,) = planned.work.writes
    rows = Execution(spark, planned.work).rows(write)[0].persist()

    def publish(value: str = "c2") -> None:
        publication = registry.publication(spark, write.target, write.rows, planned.bounds)
        try:
            publication.check()
            publication.stage(rows.selectExpr("c0", "c1", f"CAST({value} AS DECIMAL(38, 2)) AS c2", *rows.columns[3:]))
            publication.publish()
        finally:
            publication.discard()

    found = []
    for value in ("c2", "c2 + 1"):
        publish(value)
        found.append((value, shown(results)))
    assert {*found[0][1]} == {*found[1][1]}
    assert found[0][1] != found[1][1]
    stray = {} if ask is own_folder else {"part-live": "written by somebody else\n"}
    for name, text in stray.items():
        (results / name).write_text(text, encoding="utf-8")
    with monkeypatch.context() as patched:
        asked = _killed_after(patched, 1000)
        publish()
    changes = random.sample(range(asked()), asked())
    assert len(changes) > 4
    for after, (value, wanted) in zip(changes if NIGHTLY else changes[:4], itertools.cycle(reversed(found))):
        with monkeypatch.context() as patched:
            _killed_after(patched, after)
            with contextlib.suppress(Killed):
                publish(value)
        publish(value)
        assert shown(results) == wanted | stray, after
    rows.unpersist()
