"""Write the savepoint fixtures with a real Flink.

``python -m dev.measure savepoints`` writes them anew for the newest line, ``--flink 1.20`` for an older one (the
scripts that name it). Beside each savepoint lies the plan that Flink compiled of its script, ``plan.json``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing import fixture_cases
from dev.measure.flink_versions import CACHE, VERSIONS, home
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import Side

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "savepoints"
_NEWEST = "2.3"


@dataclass(frozen=True)
class Case:
    """One script to take a savepoint of."""

    name: str
    side: Side
    lines: frozenset[str]


def load_cases(file: Path = FOLDER / "scripts.sql") -> Iterator[Case]:
    """The scripts of a file."""
    _, given, *rest = fixture_cases.split(file.read_text("utf-8"), file.name, ("given", "case", "sql"))
    for head, script in zip(rest[::2], rest[1::2], strict=True):
        found = fixture_cases.headers(head, {"settings", "flink"}, file.name, {"settings", "flink"})
        settings = tuple(fixture_cases.settings(found, "settings", file.name).items())
        lines = frozenset({_NEWEST, *(value for _, value in found.get("flink", []))})
        yield Case(head.title, Side(given.text + script.text, settings), lines)


def keep(savepoint: str, target: Path) -> None:
    """Copies a savepoint to be a fixture, without the path of the machine it was taken on.

    What stands instead is as long, because lengths stand before strings in the files.
    """
    shutil.copytree(savepoint.removeprefix("file:"), target)
    place = str(CACHE).encode()
    instead = b"/measured".ljust(len(place), b"_")[: len(place)]
    for file in target.iterdir():
        file.write_bytes(file.read_bytes().replace(place, instead))


def main() -> None:
    """Start Flink and write a savepoint of every script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flink", choices=sorted(VERSIONS), default=_NEWEST)
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="these cases alone")
    options = parser.parse_args()
    work = CACHE / f"savepoints-{options.flink}"
    shutil.rmtree(work, ignore_errors=True)
    failed: list[str] = []
    with ExitStack() as stack:
        flink = stack.enter_context(
            LocalFlink(work / "flink", home=home(options.flink), slots=4, config=CLUSTER, log=print)
        )
        bench = stack.enter_context(closing(PairRunner(flink, work / "data")))
        for case in load_cases():
            if options.flink not in case.lines or (options.only and case.name not in options.only):
                continue
            side = bench.complete(case.side)
            try:
                made = bench.savepoint(side)
            except DeployError as error:
                failed.append(f"{case.name}: {error}")
                continue
            target = FOLDER / options.flink / case.name
            shutil.rmtree(target, ignore_errors=True)
            keep(made.path, target)
            plan = json.loads(bench.compiled(side))
            (target / "plan.json").write_text(json.dumps(plan, separators=(",", ":")) + "\n")
            print(case.name, sum(file.stat().st_size for file in target.iterdir()), "bytes")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
