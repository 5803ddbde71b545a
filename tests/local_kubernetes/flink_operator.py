"""The Flink Kubernetes Operator as it is published: its jars, and the CRDs inside of them, each pinned by a lock.

``operator-<version>.toml`` beside this module holds every jar of the operator's class path with its SHA-256, so that a
test needs no Maven. ``python -m tests.local_kubernetes.flink_operator VERSION`` resolves another version by Maven and
writes its lock; ``$FLINKCOMPAT_OPERATOR_VERSION`` chooses which one the tests run. ``crds.toml`` pins the releases
whose CRDs can be installed, with an operator of the same release or not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from airflow_flinkcompat.local_flink.jars import Jar, fetch_jar

VERSION = os.environ.get("FLINKCOMPAT_OPERATOR_VERSION", "1.7.0")
"""The operator that the tests run: 1.7.0 is the newest whose jars could be fetched from Maven Central."""
MAIN_CLASS = "org.apache.flink.kubernetes.operator.FlinkOperator"

_REPOSITORY = "https://repo.maven.apache.org/maven2/"
_FOLDER = Path(__file__).parent
_CRDS = _FOLDER / "crds.toml"
_DOWNLOADS = 8
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>flinkcompat</groupId><artifactId>operator</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.flink</groupId><artifactId>flink-kubernetes-operator</artifactId><version>{version}</version>
    </dependency>
    <!-- The operator's own module has it as provided: it comes with the image. -->
    <dependency>
      <groupId>org.apache.flink</groupId><artifactId>flink-kubernetes-standalone</artifactId><version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""


def class_path(version: str = VERSION) -> list[Path]:
    """Every jar of the operator in the order of its class path; fetched on first use, 111 MB.

    Raises:
        JarError: A jar cannot be fetched, or is not the pinned one.
        FileNotFoundError: The version has no lock.
    """
    locked = tomllib.loads(_lock(version).read_text(encoding="utf-8"))["jars"]
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        return list(pool.map(lambda row: _fetch(row["path"], row["sha256"]), locked))


def custom_resource_definitions(version: str) -> list[dict[str, Any]]:
    """The CRDs of a release, out of the jar of its API. Raises JarError, and KeyError: it is not pinned."""
    row = tomllib.loads(_CRDS.read_text(encoding="utf-8"))[version]
    with zipfile.ZipFile(_fetch(row["path"], row["sha256"])) as archive:
        names = [name for name in archive.namelist() if name.startswith("META-INF/fabric8/")]
        return [yaml.safe_load(archive.read(name)) for name in sorted(names) if name.endswith("-v1.yml")]


def _fetch(path: str, sha256: str) -> Path:
    group, artifact, version, _ = path.rsplit("/", 3)
    coordinates = f"{group.replace('/', '.')}:{artifact}:{version}"
    return fetch_jar(Jar(artifact, coordinates, _REPOSITORY + path, sha256), progress=False)


def _lock(version: str) -> Path:
    return _FOLDER / f"operator-{version}.toml"


def resolve(version: str) -> list[tuple[str, str]]:
    """Every jar that Maven resolves for a version, as path and SHA-256. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        pom, jars = Path(folder, "pom.xml"), Path(folder, "jars")
        pom.write_text(_POM.format(version=version), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
        subprocess.run(["mvn", "--batch-mode", "--quiet", "-f", pom, *goal, f"-DoutputDirectory={jars}"], check=True)
        found = [
            (path.relative_to(jars).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
            for path in jars.rglob("*.jar")
        ]
    # Its own standalone module has classes that the others hold in another form, so it is found first.
    return sorted(found, key=lambda jar: ("/flink-kubernetes-standalone/" not in jar[0], jar[0]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Resolve a version of the operator by Maven, and write its lock."""
    parser = argparse.ArgumentParser(prog="python -m tests.local_kubernetes.flink_operator", description=main.__doc__)
    parser.add_argument("version")
    version = parser.parse_args(arguments).version
    rows = "".join(
        f"\n[[jars]]\npath = {json.dumps(path)}\nsha256 = {json.dumps(sha)}\n" for path, sha in resolve(version)
    )
    command = f"python -m tests.local_kubernetes.flink_operator {version}"
    _lock(version).write_text(f"# Written by {command}: the class path in order.\n{rows}", encoding="utf-8")
    print(_lock(version))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
