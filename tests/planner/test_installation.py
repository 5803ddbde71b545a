"""Where the planner's parts are found, and what is said where one is missing."""

from __future__ import annotations

import zipfile
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from airflow_flinkcompat.caching import CACHE_VARIABLE
from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.cluster import HOME_VARIABLE as OWN_VARIABLE
from airflow_flinkcompat.planner import PlannerMissing, find, install, status
from airflow_flinkcompat.planner import installation as module
from airflow_flinkcompat.planner.installation import HOME_VARIABLE


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a Java, an empty cache, and a Flink of another line in its environment."""
    monkeypatch.setattr(module, "find_java", lambda: Path("/usr/bin/java"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(OWN_VARIABLE, str(flink(tmp_path / "other", "1.18.1")))
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    return tmp_path


def flink(folder: Path, version: str) -> Path:
    lib = folder / "lib"
    lib.mkdir(parents=True)
    for name in ("flink-dist", "flink-table-runtime", "flink-table-api-java-uber"):
        (lib / f"{name}-{version}.jar").write_bytes(b"")
    with zipfile.ZipFile(lib / f"flink-table-planner-loader-{version}.jar", "w") as loader:
        loader.writestr("flink-table-planner.jar", "the planner")
    return folder


def test_a_line_without_a_planner_names_those_that_have_one() -> None:
    with pytest.raises(PlannerMissing, match=r"no planner is built for Flink 1\.18; the lines that have one: 2\.3"):
        find("1.18")


def test_what_is_missing_is_named_with_the_command_that_brings_it(machine: Path) -> None:
    with pytest.raises(PlannerMissing, match=r"Flink 2\.3\.0 is not on this machine.*install 2\.3"):
        find("2.3")
    flink(machine / "cache" / "flink-2.3.0" / "pyflink", "2.3.0")
    found, plans = status()
    assert found["2.3"].startswith("ready: Flink 2.3.0 in ")
    assert "planner install 1.20" in found["1.20"]
    assert plans


def test_flink_home_counts_where_it_is_of_that_release(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(flink(machine / "flink", "1.20.3")))
    found = find("1.20", (Path("c.jar"),))
    assert found.home == machine / "flink"
    assert found.jars == (Path("c.jar"),)
    names = [jar.name for jar in found.classpath]
    assert names[0] == "flinkcompat-planner.jar"
    assert "flink-table-runtime-1.20.3.jar" in names
    assert not any("loader" in name for name in names)
    assert found.classpath[1].read_bytes() == b"the planner"


def test_an_incomplete_flink_is_none(machine: Path) -> None:
    """An interrupted installation left some of its jars."""
    lib = flink(machine / "cache" / "flink-2.3.0" / "pyflink", "2.3.0") / "lib"
    (lib / "flink-table-runtime-2.3.0.jar").unlink()
    with pytest.raises(PlannerMissing, match=r"Flink 2\.3\.0 is not on this machine: run flinkcompat planner install"):
        find("2.3")


def test_where_pypi_does_not_answer_the_other_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: CompletedProcess((), 1, "", "trace\n  no connection\n"))
    with pytest.raises(LocalFlinkError, match=r"cannot fetch .*==2\.0\.0: no connection; .* point FLINK_HOME to it"):
        install("2.0")


def test_without_a_java_that_is_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise LocalFlinkError("no Java found on PATH")

    monkeypatch.setattr(module, "find_java", none)
    for asked in (find, install):
        with pytest.raises(PlannerMissing, match="no Java found on PATH"):
            asked("2.3")
    found, plans = status()
    assert found["Java"] == "no Java found on PATH"
    assert "planner install 1.20" in found["1.20"], "the lines are listed without Java too"
    assert not plans
