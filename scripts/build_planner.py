"""Builds the planner's jar for each line of Flink from planner/: ``python -m scripts.build_planner [--output DIR]``.

Needs a JDK 17 and Maven. The same sources and the same javac give the same bytes; ``build.json`` names the digest of
every source and of every jar, which a test compares in Python alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from airflow_flinkcompat.planner.installation import JARS, LINES

SOURCES = Path(__file__).parents[1] / "planner"


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every source by its path."""
    files = [folder / "pom.xml", *(each for each in (folder / "src").rglob("*") if each.is_file())]
    return {each.relative_to(folder).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(files)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=JARS, help="the folder to write to (default: the package's)")
    options = parser.parse_args(arguments)
    if shutil.which("mvn") is None:
        print("error: Maven is not there: install it, and a JDK 17 (maven, openjdk-17-jdk-headless)", file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    built = {}
    for line in LINES.values():
        with tempfile.TemporaryDirectory() as made:
            folder = shutil.copytree(SOURCES, Path(made) / "planner", ignore=shutil.ignore_patterns("target"))
            versions = [f"-Dflink.version={line.version}", f"-Dharness.module={line.harness_module}"]
            if code := subprocess.run(["mvn", "-q", "-B", "package", *versions], cwd=folder).returncode:
                return code
            jar = shutil.copy(folder / "target" / "flinkcompat-planner.jar", options.output / line.jar_name)
        built[line.jar_name] = hashlib.sha256(Path(jar).read_bytes()).hexdigest()
    text = json.dumps({"sources": digests(SOURCES), "jars": built}, indent=2)
    (options.output / "build.json").write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
