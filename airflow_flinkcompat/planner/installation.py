"""Installation of the planner for a line of Flink: Flink's jars, our jar and a class archive."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from airflow_flinkcompat.local_flink import LocalFlinkError, flink_home, jars
from airflow_flinkcompat.local_flink.processes import find_java
from airflow_flinkcompat.model.installation import cache_directory

JAR = Path(__file__).parent / "jars" / "flinkcompat-planner.jar"
"""Jar that is built from ``planner/``; the same jar works with every line of Flink."""
MAIN = "flinkcompat.planner.Main"
JAVA_OPTIONS = (
    # Only Java's first compiler (C1), which halves the processor time of the start.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx768m",
    # 50 MB of the heap are live after a script. These options return the memory of garbage and unloaded classes.
    "-XX:MaxNewSize=48m",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:-ShrinkHeapInSteps",
    "-Xss4m",
    "-XX:MaxMetaspaceSize=512m",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Dlog4j2.configurationFile=flinkcompat-planner-log4j2.properties",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.time", "java.util")),
)
HOME_VARIABLE = "FLINK_HOME"
_LOADER = "flink-table-planner-loader"
_INSIDE_LOADER = "flink-table-planner.jar"
_NEEDED = ("flink-dist", "flink-table-api-java-uber", "flink-table-runtime", _LOADER)
"""Jars that a complete Flink folder contains."""


class PlannerMissing(LocalFlinkError):
    """The planner for a line of Flink is missing on this machine; the message names the remedy."""


@dataclass(frozen=True)
class FlinkLine:
    """A line of Flink, such as 2.3, and its measured release."""

    name: str
    version: str


RELEASES: Mapping[str, str] = {
    "2.3": "2.3.0", "2.2": "2.2.1", "2.1": "2.1.1", "2.0": "2.0.0", "1.20": "1.20.3", "1.19": "1.19.1",
}  # fmt: skip
"""The release of each line of Flink with which the planner was measured."""
LINES: Mapping[str, FlinkLine] = {name: FlinkLine(name, version) for name, version in RELEASES.items()}
"""The lines of Flink for which a planner exists."""


@dataclass(frozen=True)
class Installation:
    """Files that are needed to run the planner for a line of Flink.

    Attributes:
        home: The folder with Flink's jars in ``lib/``.
        java: The ``java`` executable that runs the planner.
        classpath: The jars of the planner; the jar of this package is the first.
        jars: Jars of connectors, formats and functions that a script uses.
    """

    line: FlinkLine
    home: Path
    java: Path
    classpath: tuple[Path, ...]
    jars: tuple[Path, ...] = ()

    @property
    def class_archive(self) -> Path:
        """Path of the class archive for this Java and these jars; the file may be absent."""
        java = self.java.resolve()
        family = _digest([str(each) for each in (java, self.home, JAR)])[:8]
        files = [each for each in (java, java.parents[1] / "release", *self.classpath) if each.is_file()]
        stamps = [(str(each), (found := each.stat()).st_size, int(found.st_mtime)) for each in files]
        return cache_directory() / "planner" / f"classes-{self.line.version}-{family}-{_digest(stamps)[:16]}.jsa"


def find(name: str, jars_of_scripts: Sequence[Path] = ()) -> Installation:
    """Find the planner for a line of Flink, without downloads.

    Raises PlannerMissing if a part is missing or no planner exists for the line.
    """
    line = _line(name)
    java = _java()
    home = next(_homes(line), None)
    if home is None:
        raise PlannerMissing(f"Flink {line.version} is not on this machine: {_remedy(line)}")
    lib = sorted(each for each in (home / "lib").glob("*.jar") if not each.name.startswith(_LOADER))
    classpath = (JAR, _planner_jar(line, home), *lib)
    return Installation(line, home, java, classpath, tuple(jars_of_scripts))


def install(name: str) -> Installation:
    """Download the missing parts of the planner for a line of Flink.

    Flink's jars are downloaded from PyPI (``apache-flink-libraries``) and cached. Nothing is downloaded for Flink if an
    environment variable or an installed package provides the same release. An interrupted download resumes.

    Raises PlannerMissing without a suitable Java or without a planner for the line, and LocalFlinkError if the download
    fails.
    """
    line = _line(name)
    _java()
    home(line.name)
    return find(name)


def home(name: str) -> Path:
    """The Flink folder of a line, with jars in ``lib/``; downloaded from PyPI (330 MB) if absent."""
    line = LINES[name]
    if (found := next(_homes(line), None)) is not None:
        return found
    folder = _cached_home(line)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock, tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := next(_homes(line), None)) is not None:
            return found
        try:
            fetched = jars.fetch_jar(jars.flink(line.version))
        except jars.JarError as error:
            raise LocalFlinkError(f"{error}, or unpack Flink {line.version} and point {HOME_VARIABLE} to it") from error
        with tarfile.open(fetched) as archive:
            # Before 3.11.4, Python has no filters; the archive is the one whose digest is known.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(unpacked)
        shutil.rmtree(folder, ignore_errors=True)  # an incomplete folder
        next(Path(unpacked).glob("*/deps")).replace(folder)
        fetched.unlink()
    return flink_home(folder)


def status() -> tuple[dict[str, str], bool]:
    """State of Java and of each line's planner on this machine, and True if any planner is ready."""
    found, java = {}, ""
    try:
        java = str(_java())
        found["Java"] = f"ready: {java}"
    except PlannerMissing as error:
        found["Java"] = str(error)
    plans = False
    for line in LINES.values():
        home = next(_homes(line), None)
        if home is None:
            found[line.name] = f"Flink {line.version} is not on this machine: {_remedy(line)}"
            continue
        found[line.name] = f"{'ready' if java else 'needs Java'}: Flink {line.version} in {home}"
        if java:
            plans = True
            if not find(line.name).class_archive.is_file():
                found[line.name] += f"; to halve its start time, {_remedy(line)}"
    return found, plans


def _digest(data: object) -> str:
    return hashlib.sha256(repr(data).encode()).hexdigest()


def _line(name: str) -> FlinkLine:
    if name not in LINES:
        raise PlannerMissing(f"there is no planner for Flink {name}; lines with a planner: {', '.join(LINES)}")
    return LINES[name]


def _remedy(line: FlinkLine) -> str:
    return f"run flinkcompat planner install {line.name}"


def _java() -> Path:
    try:
        return find_java()
    except LocalFlinkError as error:
        raise PlannerMissing(str(error)) from None


def _cached_home(line: FlinkLine) -> Path:
    return cache_directory() / f"flink-{line.version}" / "pyflink"


def _homes(line: FlinkLine) -> Iterator[Path]:
    """Flink folders of exactly this release: ``$FLINK_HOME``, the installed package, the cache."""
    configured = os.environ.get(HOME_VARIABLE)
    for folder in (Path(configured) if configured else None, None, _cached_home(line)):
        try:
            found = flink_home(folder)
        except LocalFlinkError:
            continue
        if all((found / "lib" / f"{module}-{line.version}.jar").is_file() for module in _NEEDED):
            yield found


def _planner_jar(line: FlinkLine, home: Path) -> Path:
    """Extract the planner's jar from its loader; without the loader, the planner starts twice as fast."""
    loader = home / "lib" / f"{_LOADER}-{line.version}.jar"
    stamp = f"{loader.stat().st_size:x}-{loader.stat().st_mtime_ns:x}"
    target = cache_directory() / "planner" / f"flink-table-planner-{line.version}-{stamp}.jar"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(loader) as archive:
            part.write_bytes(archive.read(_INSIDE_LOADER))
        part.replace(target)
    return target


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
"""Typical jobs that are planned to fill the class archive."""


def make_archive(installation: Installation) -> Path:
    """Make an absent class archive (90 MB, 17 seconds of processor time), and remove stale archives."""
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
            process.communicate(timeout=_SECONDS)  # Java writes the archive when its input ends
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
    """Make an absent class archive in a detached process, at most once for each Java and set of jars."""
    archive = installation.class_archive
    if archive.is_file():
        return
    make = f"from {__name__} import find, make_archive; make_archive(find({installation.line.name!r}))"
    with contextlib.suppress(OSError):  # attempted before, or the cache is read-only
        archive.with_suffix(_ATTEMPTED).touch(exist_ok=False)
        made = subprocess.Popen(
            [sys.executable, "-c", make],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        made.returncode = 0  # suppresses the warning about an unawaited child


def _ask(requests: IO[bytes], answers: IO[bytes], restore: list[str]) -> list[dict[str, Any]]:
    question = {"id": 1, "statements": [*_TABLES, *_JOBS], "settings": {"parallelism.default": "1"}, "restore": restore}
    requests.write(json.dumps(question).encode() + b"\n")
    requests.flush()
    jobs: list[dict[str, Any]] = json.loads(answers.readline())["jobs"]
    return jobs
