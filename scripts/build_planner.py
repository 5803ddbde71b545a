"""Build the planner's jar from planner/: ``python -m scripts.build_planner [--output DIR]``.

Needs a JDK 17 and Maven. The jar is built against every line of Flink. The bytes must be equal for all lines, because
one jar serves all of them. ``build.json`` contains the digest of every source and of the jar, which a test compares.
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

from airflow_flinkcompat.planner.installation import JAR, LINES

SOURCES = Path(__file__).parents[1] / "planner"


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every source by its path."""
    files = [folder / "pom.xml", *(each for each in (folder / "src").rglob("*") if each.is_file())]
    return {
        each.relative_to(folder).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(files)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Build them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=JAR.parent, help="the folder to write to (default: the package's)"
    )
    options = parser.parse_args(arguments)
    if shutil.which("mvn") is None:
        print(
            "error: Maven is missing: install Maven and a JDK 17 (maven, openjdk-17-jdk-headless)",
            file=sys.stderr,
        )
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    built: dict[str, bytes] = {}
    for line in LINES.values():
        with tempfile.TemporaryDirectory() as made:
            folder = shutil.copytree(SOURCES, Path(made) / "planner", ignore=shutil.ignore_patterns("target"))
            command = ["mvn", "-q", "-B", "package", f"-Dflink.version={line.version}"]
            if code := subprocess.run(command, cwd=folder).returncode:
                return code
            built[line.name] = (folder / "target" / JAR.name).read_bytes()
    first, *others = built
    if unlike := [name for name in others if built[name] != built[first]]:
        print(
            f"error: the jar for {', '.join(unlike)} is not that for {first}: no line may need its own", file=sys.stderr
        )
        return 1
    (options.output / JAR.name).write_bytes(built[first])
    text = json.dumps({"sources": digests(SOURCES), "jar": hashlib.sha256(built[first]).hexdigest()}, indent=2)
    (options.output / "build.json").write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
