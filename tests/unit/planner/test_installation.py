"""Where the planner's parts are found, and what is said where one is missing."""

from __future__ import annotations

import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.local_flink import LocalFlinkError, jars
from airflow_flinkcompat.local_flink.cluster import HOME_VARIABLE as OWN_VARIABLE
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from airflow_flinkcompat.planner import installation as module
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import HOME_VARIABLE, PlannerMissing, find, install, make_archive, status
from airflow_flinkcompat.planner.questions import plan
from dev.services.csv_job import wait_for
from tests.unit.local_flink.test_jars import jar, serving


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
    with pytest.raises(PlannerMissing, match=r"there is no planner for Flink 1\.18; lines with a planner: 2\.3"):
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


JAVA = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"'; exit; }
while read -r question; do
  echo '{"id": 1, "jobs": [], "lasting": [], "stand_ins": {}, "catalogs": {}, "flink": "2.3.0"}'
done
for each; do case "$each" in -XX:ArchiveClassesAtExit=*) echo classes > "${each#*=}";; esac; done
"""
"""Answers each line as the planner does, and archives its classes."""


def test_a_stale_class_archive_is_replaced_in_the_background(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = machine / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA, encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setattr(module, "find_java", lambda: java)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setenv(HOME_VARIABLE, str(flink(machine / "flink", "2.3.0")))
    first = make_archive(find("2.3"))
    other = first.with_name("classes-2.3.0-of another Java-0.jsa")
    other.touch()
    loader = machine / "flink" / "lib" / "flink-dist-2.3.0.jar"
    loader.write_bytes(b"another")
    second = find("2.3").class_archive
    assert second != first
    assert "; to halve its start time, run flinkcompat planner install 2.3" in status()[0]["2.3"]
    for _ in range(2):
        plan(Side("SELECT 1;", engine="flink", engine_version="2.3"), find("2.3"))
        close_all()
    wait_for(second.is_file, "the class archive", timeout=60)
    assert second.read_text(encoding="utf-8") == "classes\n"
    assert {each.name for each in second.parent.glob("classes-*.jsa")} == {second.name, other.name}


def test_an_incomplete_flink_is_none(machine: Path) -> None:
    """An interrupted installation left some of its jars."""
    lib = flink(machine / "cache" / "flink-2.3.0" / "pyflink", "2.3.0") / "lib"
    (lib / "flink-table-runtime-2.3.0.jar").unlink()
    with pytest.raises(PlannerMissing, match=r"Flink 2\.3\.0 is not on this machine: run flinkcompat planner install"):
        find("2.3")


def test_an_interrupted_download_of_flink_resumes(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lib = flink(machine / "sources" / "deps", "2.0.0") / "lib"
    (lib / "flink-dist-2.0.0.jar").write_bytes(random.randbytes(20_000))
    file = machine / "good.jar"
    with tarfile.open(file, "w:gz") as archive:
        archive.add(machine / "sources", "apache-flink-libraries-2.0.0")
    content = file.read_bytes()
    half = len(content) // 2
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(jars, "_ATTEMPTS", 1)
    with serving(content) as server:
        monkeypatch.setattr(jars, "flink", lambda release: jar(server, "good.jar", content))
        server.cut = half
        with pytest.raises(LocalFlinkError, match=r"cannot fetch .*unpack Flink 2\.0\.0 and point FLINK_HOME to it"):
            install("2.0")
        assert server.sent == half
        server.cut = None
        installed = install("2.0")
        assert server.sent < len(content) + 1_024, "what came of the first time is not sent again"
    assert installed.home == machine / "cache" / "flink-2.0.0" / "pyflink"
    assert {each.name for each in installed.home.parent.iterdir()} == {".lock", "pyflink"}
    assert not list((machine / "cache" / "jars").iterdir())


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
