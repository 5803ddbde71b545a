"""What a local run does to start fast, and that it is only ever a matter of speed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill.spark import session, startup
from airflow_flinkcompat.backfill.spark.startup import Effort
from airflow_flinkcompat.caching import CACHE_VARIABLE
from tests.backfill.scripts import script, table


def test_effort_is_that_of_reading_files_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b" / "deep").mkdir(parents=True)
    (tmp_path / "a b" / "deep" / "rows.csv").write_bytes(b"x" * 100)
    place = (tmp_path / "a b" / "deep").as_uri()
    assert startup.effort([place]) is startup.effort([]) is Effort.TINY
    assert startup.effort([place, "s3a://bucket/orders"]) is Effort.MUCH
    monkeypatch.setattr(startup, "_MOST", {Effort.TINY: 99, Effort.LITTLE: 100})
    assert startup.effort(iter([place])) is Effort.LITTLE
    assert startup.effort([place, place]) is Effort.MUCH


def test_the_logging_that_spark_is_told_of_is_there() -> None:
    options = session.submit_configuration("local[*]")["spark.driver.extraJavaOptions"]
    (place,) = re.findall(r"configurationFile=file://(\S+)", options)
    assert "rootLogger" in Path(place).read_text(encoding="utf-8")


def test_an_archive_takes_the_place_of_others_of_its_name(tmp_path: Path) -> None:
    archive = startup.Archive(tmp_path, "4-abc")
    for name in ("4-abc-5.jsa", "4-abcd-5.jsa"):
        (tmp_path / name).write_bytes(b"older")
    (tmp_path / "made").write_bytes(b"newest")
    archive.keep(tmp_path / "made")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4-abc-6.jsa", "4-abcd-5.jsa"]
    assert archive.whole() == tmp_path / "4-abc-6.jsa"


def test_without_java_or_a_folder_there_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    found = startup.Archive.here()
    assert found is not None
    assert found.folder.parent == tmp_path
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    assert startup.Archive.here() is None
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert startup.Archive.here() is None


def test_what_a_killed_run_had_begun_to_make_goes(tmp_path: Path) -> None:
    """The next run removes it, and nothing of a run that is still at work or of an archive that is whole."""
    archive = startup.Archive(tmp_path, "4-abc")
    (tmp_path / "4-abc-5.jsa").write_bytes(b"whole")
    (tmp_path / "making-older").mkdir()
    (tmp_path / "making-older" / "classes.jsa").write_bytes(b"half")
    code = (
        "import os, sys; from pathlib import Path; from airflow_flinkcompat.backfill.spark.startup import Archive\n"
        "with Archive(Path(sys.argv[1]), '4-abc').making() as path:\n"
        "    path.write_bytes(b'half'); print(path.parent.name, flush=True); sys.stdin.read(); os._exit(1)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = process.stdout.readline().strip()
        with archive.making() as ours:
            archive.clear()
            assert {path.name for path in tmp_path.iterdir()} == {"4-abc-5.jsa", theirs, ours.parent.name}
        process.kill()
    assert (tmp_path / theirs / "classes.jsa").read_bytes() == b"half"
    archive.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["4-abc-5.jsa"]


@pytest.mark.slow
@pytest.mark.nightly
def test_the_first_run_makes_the_archive_and_a_broken_one_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("2024-01-01 00:00:01,1\n2024-01-01 00:00:02,2\n", encoding="utf-8")
    text = script(
        table("t", "ts TIMESTAMP(3), v INT, WATERMARK FOR ts AS ts", tmp_path / "in"),
        table("o", "s INT, we TIMESTAMP(3)", tmp_path / "out"),
        "INSERT INTO o SELECT SUM(v), window_end FROM "
        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
    )
    (tmp_path / "job.sql").write_text(text, encoding="utf-8")
    cache = tmp_path / "cache"

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-m", "airflow_flinkcompat.cli", "backfill", str(tmp_path / "job.sql")],
            env={**os.environ, CACHE_VARIABLE: str(cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (written,) = (tmp_path / "out").glob("backfill-*.csv")
        return written.read_text(encoding="utf-8")

    rows = run()
    assert rows == '3,"2024-01-01 00:01:00"\n'
    (made,) = (cache / "spark-classes").iterdir()
    assert made.suffix == ".jsa"
    before = made.stat().st_mtime_ns
    assert run() == rows
    assert made.stat().st_mtime_ns == before
    made.chmod(0o600)
    os.truncate(made, 100_000)  # the JVM would die of it
    assert run() == rows
    assert any(path.stat().st_size > 100_000 for path in made.parent.iterdir())
