"""Reserved words of each Flink line, from its parser."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from zipfile import ZipFile

from airflow_flinkcompat.sql.base_parser import DATA
from dev.measure.pairs import RELEASES, home

_SOURCE = Path(__file__).parent / "ReservedWords.java"
_PLANNER = "flink-table-planner.jar"


def reserved_words(line: str) -> list[str]:
    """Ask the parser of one Flink line for its reserved words, sorted."""
    (loader,) = (home(line) / "lib").glob("flink-table-planner-loader-*.jar")
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(loader) as jar:
            planner = jar.extract(_PLANNER, folder)
        classes = f"{planner}:{home(line) / 'lib'}/*"
        done = subprocess.run(["java", "-cp", classes, _SOURCE], capture_output=True, text=True, check=True)
    return done.stdout.split()


def main() -> None:
    """Write the words that every line reserves, and those that each line reserves in addition."""
    argparse.ArgumentParser(prog="python -m dev.measure reserved-words", description=__doc__).parse_args()
    found = {
        line: set(reserved_words(line)) for line in sorted(RELEASES, key=lambda line: [*map(int, line.split("."))])
    }
    always = set.intersection(*found.values())
    words = {"every line": sorted(always)} | {line: sorted(each - always) for line, each in found.items()}
    DATA.write_text(json.dumps(words, indent=1) + "\n")


if __name__ == "__main__":
    main()
