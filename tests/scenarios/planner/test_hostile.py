"""Scripts and jars that harm the planner's process: an error names it, nothing stays, the next question is answered."""

from __future__ import annotations

import random
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript
from airflow_flinkcompat.planner.daemon import Daemon, PlannerFailure, strictest
from airflow_flinkcompat.planner.installation import Installation, find, install
from airflow_flinkcompat.planner.questions import plan
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "hostile" / "HostileFactory.java"
SECONDS = f"{random.randint(10**8, 10**9)}"
"""How long its processes sleep, by which they are found."""


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("hostile")
    installed = install("2.3")
    javac = installed.java.resolve().with_name("javac")
    classpath = ":".join(map(str, installed.classpath))
    subprocess.run([javac, "-nowarn", "-cp", classpath, "-d", folder, SOURCE], check=True)
    jar = folder / "hostile.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each in folder.rglob("*.class"):
            archive.write(each, each.relative_to(folder))
        archive.writestr("META-INF/services/org.apache.flink.table.factories.Factory", "hostile.HostileFactory\n")
    return find("2.3", (jar,))


@pytest.fixture(scope="module")
def asked(flink: Installation) -> Iterator[Daemon]:
    made = Daemon(flink, seconds=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_flinkcompat.planner.questions.daemon", lambda installation: made)
        yield made
    made.close()


def planned(asked: Daemon, connector: str) -> PlannedScript:
    text = (
        f"CREATE TABLE s (k STRING) WITH ({connector});\nCREATE TABLE t (k STRING) WITH ('connector' = 'print');\n"
        "INSERT INTO t SELECT k FROM s;\n"
    )
    return plan(Side(text, engine="flink", engine_version="2.3", source="a.sql"), asked.installation)


def harm(asked: Daemon, does: str, what: object = "") -> str:
    """What comes of a jar that does harm: Flink's message, or that of the client."""
    try:
        script = planned(asked, f"'connector' = 'hostile', 'does' = '{does}', 'with' = '{what}'")
    except PlannerFailure as failure:
        return str(failure)
    assert script.refusal is not None
    return script.refusal.message


def answers(asked: Daemon) -> bool:
    return planned(asked, "'connector' = 'datagen'").refusal is None


@pytest.mark.parametrize(
    ("does", "words"),
    mostly_nightly(
        [
            ("exit", "Flink's planner crashed on this script: its process ended with exit code 7"),
            ("halt", "Flink's planner crashed on this script: its process ended with exit code 7"),
            ("memory", "Flink's planner crashed on this script: the script needs more memory than the planner has"),
            ("loop", "Flink's planner took more than 60 seconds for this script"),
        ],
        0,
    ),
)
def test_a_jar_that_ends_the_process_is_an_error_of_its_script(asked: Daemon, does: str, words: str) -> None:
    assert harm(asked, does).startswith(words)
    assert answers(asked)


@pytest.mark.nightly
def test_what_a_jar_starts_and_writes_ends_with_the_process(asked: Daemon, tmp_path: Path) -> None:
    own_files = strictest(False).own_files
    left = tmp_path / "left"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connected = harm(asked, "connect", port)
    assert ("ConnectException" in connected or "SocketException" in connected) == strictest(False).own_network
    assert harm(asked, "processes", SECONDS) == "it came to processes"
    assert harm(asked, "threads") == "it came to threads"
    assert harm(asked, "listen", port) == "it came to a port"
    assert "File too large" in harm(asked, "disk", SECONDS)
    assert "Read-only file system" in harm(asked, "write", left) or not own_files
    assert harm(asked, "output") == "it came to output"
    assert harm(asked, "kill").startswith("it came to exit code") or not own_files
    assert "Unable to create a source" in harm(asked, "stack")
    assert answers(asked)
    asked.close()
    assert subprocess.run(["pgrep", "-f", f"sleep {SECONDS}"], capture_output=True).stdout == b"" or not own_files
    assert not left.exists() or not own_files
    assert not list(Path("/tmp").glob(f"hostile*{SECONDS}"))
    socket.create_server(("127.0.0.1", port)).close()
    assert answers(asked)


@pytest.mark.nightly
def test_a_script_whose_planning_never_ends_is_an_error_of_that_script(asked: Daemon) -> None:
    tables = "CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'datagen');\n"
    joins = ", ".join(f"s AS s{each}" for each in range(400))
    keys = " AND ".join(f"s{each}.k = s{each + 1}.k" for each in range(399))
    text = f"{tables}SELECT s0.k FROM {joins} WHERE {keys};\n"
    asked.seconds, before = 10, asked.seconds
    with pytest.raises(PlannerFailure, match="took more than 10 seconds"):
        plan(Side(text, engine="flink", engine_version="2.3", source="a.sql"), asked.installation)
    asked.seconds = before
    assert answers(asked)
