"""The Flink Kubernetes Operator, as published or built from source: its jars and CRDs.

``operator-<version>.toml`` beside this module holds every jar of the operator's class path with its SHA-256, so that a
test needs no Maven. ``python -m dev.local_kubernetes.flink_operator VERSION`` resolves another version by Maven and
writes its lock. A release whose jars cannot be fetched is built of its source by ``--source FOLDER`` and kept in the
cache. ``$FLINKCOMPAT_OPERATOR_VERSION`` chooses which one the tests run. ``crds.toml`` pins the releases whose CRDs
can be installed without their operator.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from airflow_flinkcompat.local_flink.jars import Jar, JarError, fetch_jar
from airflow_flinkcompat.model.installation import cache_directory

VERSION = os.environ.get("FLINKCOMPAT_OPERATOR_VERSION", "1.7.0")
"""The operator that the tests run: 1.7.0 is the newest whose jars could be fetched from Maven Central."""
BUILT_HOW = "python -m dev.local_kubernetes.flink_operator --source FOLDER"
"""Builds an operator of the source of its release."""
MAIN_CLASS = "org.apache.flink.kubernetes.operator.FlinkOperator"

_REPOSITORY = "https://repo.maven.apache.org/maven2/"
_FOLDER = Path(__file__).parent
_CRDS = _FOLDER / "crds.toml"
_DOWNLOADS = 8
_STANDALONE = "flink-kubernetes-standalone"
_POM_NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
# Of the checks that are left out, the last one fetches older CRDs.
_LEFT_OUT = ("skipTests", "checkstyle.skip", "spotless.check.skip", "rat.skip", "maven.antrun.skip")
# Without it, operator 1.10.0 has no HTTP client. The release's own image is also built with it.
_HTTP_CLIENT = "-Dfabric8.httpclient.impl=okhttp"
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
    """Every jar of the operator in the order of its class path; fetched on first use, 111 MB."""
    if not _lock(version).exists():
        return sorted(_built(version).glob("*.jar"), key=lambda jar: (not jar.name.startswith(_STANDALONE), jar.name))
    locked = tomllib.loads(_lock(version).read_text(encoding="utf-8"))["jars"]
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        return list(pool.map(lambda row: _fetch(row["path"], row["sha256"]), locked))


def custom_resource_definitions(version: str) -> list[dict[str, Any]]:
    """CRDs of a release, from the pinned jar of its API or else from its source. Raises JarError."""
    row = tomllib.loads(_CRDS.read_text(encoding="utf-8")).get(version)
    if row is None:
        return [yaml.safe_load(path.read_bytes()) for path in sorted((_built(version) / "crds").glob("*.yml"))]
    with zipfile.ZipFile(_fetch(row["path"], row["sha256"])) as archive:
        names = [name for name in archive.namelist() if name.startswith("META-INF/fabric8/")]
        return [yaml.safe_load(archive.read(name)) for name in sorted(names) if name.endswith("-v1.yml")]


@cache
def flink_version(version: str = VERSION) -> str:
    """Value of ``spec.flinkVersion`` for Flink 1.20: the newest 1.x in the CRDs, which also runs 1.20."""
    crds = custom_resource_definitions(version)
    deployment = next(each for each in crds if each["spec"]["names"]["kind"] == "FlinkDeployment")
    schema = deployment["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    known = [found for each in schema["flinkVersion"]["enum"] if (found := re.fullmatch(r"v1_(\d+)", each))]
    return max(known, key=lambda each: int(each[1]))[0]


def _fetch(path: str, sha256: str) -> Path:
    group, artifact, version, _ = path.rsplit("/", 3)
    coordinates = f"{group.replace('/', '.')}:{artifact}:{version}"
    return fetch_jar(Jar(artifact, coordinates, _REPOSITORY + path, sha256), progress=False)


def _lock(version: str) -> Path:
    return _FOLDER / f"operator-{version}.toml"


def _built(version: str) -> Path:
    """Folder of a built operator. Raises JarError if it was not built."""
    folder = _builds() / version
    if not folder.is_dir():
        raise JarError(
            f"the operator {version} has no lock and was not built: unpack the source of its release and run "
            f"{BUILT_HOW}"
        )
    return folder


def _builds() -> Path:
    return cache_directory() / "operator"


def build(source: Path) -> Path:
    """Build an operator of the source of its release, as its own image has it, into the cache."""
    version = ElementTree.parse(source / "pom.xml").getroot().findtext(f"{_POM_NAMESPACE}version")
    _builds().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_builds()) as temporary:
        tree, made = Path(temporary, "source"), Path(temporary, str(version))
        # A build replaces the release's CRDs with generated CRDs.
        shutil.copytree(source, tree, ignore=shutil.ignore_patterns("target", ".git"))
        shutil.copytree(source / "helm" / "flink-kubernetes-operator" / "crds", made / "crds")
        options = [*(f"-D{each}" for each in _LEFT_OUT), _HTTP_CLIENT]
        goal = ["-pl", "flink-kubernetes-operator", "-am", "package"]
        subprocess.run(["mvn", "--batch-mode", "--quiet", *options, *goal], cwd=tree, check=True)
        operator, standalone = (tree / module / "target" for module in ("flink-kubernetes-operator", _STANDALONE))
        shutil.copy2(standalone / f"{_STANDALONE}-{version}.jar", made)
        shutil.copy2(operator / f"flink-kubernetes-operator-{version}-shaded.jar", made)
        for jar in (operator / "log4j").glob("*.jar"):  # later releases let their image choose how they log
            shutil.copy2(jar, made)
        shutil.rmtree(_builds() / made.name, ignore_errors=True)
        return made.rename(_builds() / made.name)


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


def _write_lock(version: str) -> Path:
    rows = "".join(
        f"\n[[jars]]\npath = {json.dumps(path)}\nsha256 = {json.dumps(sha)}\n" for path, sha in resolve(version)
    )
    command = f"python -m dev.local_kubernetes.flink_operator {version}"
    _lock(version).write_text(f"# Written by {command}: the class path in order.\n{rows}", encoding="utf-8")
    return _lock(version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Resolve an operator version with Maven and write its lock file, or build it from its source."""
    parser = argparse.ArgumentParser(prog="python -m dev.local_kubernetes.flink_operator", description=main.__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("version", nargs="?", help="of Maven Central")
    which.add_argument("--source", type=Path, metavar="FOLDER", help="the source of a release, with its pom.xml")
    given = parser.parse_args(arguments)
    try:
        print(_write_lock(given.version) if given.source is None else build(given.source))
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
