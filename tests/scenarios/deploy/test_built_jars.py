"""The shipped jars are what their sources make."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from airflow_flinkcompat.local_flink.cluster import flink_home
from scripts.build_jars import JARS, Jar, write_jar

JAVAC = "17"  # another release of javac may make other bytes of the same source


@pytest.mark.nightly  # a JDK is needed, of which `make test` has the runtime alone
@pytest.mark.slow
@pytest.mark.parametrize("jar", JARS, ids=lambda jar: jar.path.stem)
def test_a_jar_is_made_of_its_source(jar: Jar, tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no javac to build the jars again: install a JDK 17 (openjdk-17-jdk-headless)")
    version = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    if version.partition(".")[0] != JAVAC:
        pytest.skip(f"the jars are built by javac {JAVAC}, and {javac} is {version}: put a JDK 17 on the PATH")
    again = tmp_path / "again.jar"
    write_jar(jar.build(flink_home() / "lib", javac), again)
    assert again.read_bytes() == jar.path.read_bytes(), "python scripts/build_jars.py FLINK_LIB builds it"
