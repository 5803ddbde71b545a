"""The archive of classes that planning loads: it halves the processor time of a planner's start."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.planner.installation import JAVA_OPTIONS, MAIN, Installation

_SECONDS = 300.0
_ATTEMPTED = ".attempted"
_TABLES = (
    "CREATE TABLE a (k STRING, v BIGINT, t TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR t AS t) WITH ("
    "'connector' = 'filesystem', 'path' = '/none', 'format' = 'json', 'source.monitor-interval' = '1 s')",
    "CREATE TABLE b (k STRING, n STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'absent')",
    "CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print')",
    "CREATE TABLE names (k STRING, n STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'absent')",
)
_JOBS = (
    "INSERT INTO totals SELECT k, SUM(v) + COUNT(DISTINCT v) FROM a WHERE v > 1 GROUP BY k",
    "INSERT INTO totals SELECT k, MAX(v) FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '1' HOUR)) "
    "GROUP BY k, window_start, window_end",
    "INSERT INTO names SELECT a.k, UPPER(b.n) FROM a JOIN b ON a.k = b.k",
    "INSERT INTO totals SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t DESC) AS r FROM a) "
    "WHERE r <= 3",
    "INSERT INTO totals SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY t) FROM a",
    "INSERT INTO names SELECT a.k, b.n FROM a JOIN b FOR SYSTEM_TIME AS OF a.p AS b ON a.k = b.k",
)
"""Jobs of the common kinds, whose classes are archived."""


def make_archive(installation: Installation) -> Path:
    """Make the archive unless it is there, in place of a stale one: 90 MB, 17 seconds of processor time.

    Args:
        installation: The planner.

    Returns:
        The file.

    Raises:
        LocalFlinkError: Java makes none.
    """
    target = installation.class_archive
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    options = (*JAVA_OPTIONS, f"-XX:ArchiveClassesAtExit={part}", "-cp", ":".join(map(str, installation.classpath)))
    try:
        with subprocess.Popen(
            [str(installation.java), *options, MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            jobs = _ask(process.stdin, process.stdout, restore=[])
            _ask(process.stdin, process.stdout, restore=[job["savepoint"] for job in jobs])
            process.communicate(timeout=_SECONDS)  # it writes the archive when its input ends
        family, _, _ = target.name.rpartition("-")
        for old in target.parent.glob(f"{family}-*"):
            if old.stem != target.stem or old.suffix == _ATTEMPTED:
                old.unlink(missing_ok=True)
        part.replace(target)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise LocalFlinkError(f"Java made no archive of the planner's classes: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return target


def make_in_background(installation: Installation) -> None:
    """Make an absent archive in a process that outlives this one; once for each Java and set of jars."""
    archive = installation.class_archive
    if archive.is_file():
        return
    make = f"from airflow_flinkcompat.planner import find, make_archive; make_archive(find({installation.line.name!r}))"
    with contextlib.suppress(OSError):  # attempted before, or the cache is read-only
        archive.with_suffix(_ATTEMPTED).touch(exist_ok=False)
        made = subprocess.Popen(
            [sys.executable, "-c", make],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        made.returncode = 0  # nobody waits for it


def _ask(requests: IO[bytes], answers: IO[bytes], restore: list[str]) -> list[dict[str, Any]]:
    question = {"id": 1, "statements": [*_TABLES, *_JOBS], "settings": {"parallelism.default": "1"}, "restore": restore}
    requests.write(json.dumps(question).encode() + b"\n")
    requests.flush()
    jobs: list[dict[str, Any]] = json.loads(answers.readline())["jobs"]
    return jobs
