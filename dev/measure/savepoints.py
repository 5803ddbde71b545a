"""Write the fixtures with savepoints of a real Flink, and the plans that it compiled.

Without ``--changes`` these are the scripts of ``tests/fixtures/savepoints``, on the newest line or another one that a
script names. With it they are the changes of ``tests/fixtures/migrations.sql`` that have a fixture. ``--only``
names some of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Collection
from contextlib import ExitStack, closing
from pathlib import Path

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.planner.installation import home
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import CACHE, VERSIONS
from dev.measure.savepoint_fixtures import CASES, FOLDER, NEWEST, SAVEPOINTS, load_changes, load_scripts


def keep(savepoint: str, target: Path) -> None:
    """Copy a savepoint into a new folder, without the path of this machine."""
    shutil.copytree(savepoint.removeprefix("file:"), target)
    place = str(CACHE).encode()
    # Lengths precede strings in the files, so the replacement has the same length.
    instead = b"/measured".ljust(len(place), b"_")[: len(place)]
    for file in target.iterdir():
        file.write_bytes(file.read_bytes().replace(place, instead))


def write_scripts(bench: PairRunner, line: str, names: Collection[str]) -> list[str]:
    """Write a savepoint of every script of a line; the errors."""
    failed = []
    for script in load_scripts():
        if line not in script.lines or (names and script.name not in names):
            continue
        side, target = bench.complete(script.side), SAVEPOINTS / line / script.name
        try:
            made = bench.savepoint(side)
        except DeployError as error:
            failed.append(f"{script.name}: {error}")
            continue
        shutil.rmtree(target, ignore_errors=True)
        keep(made.path, target)
        plan = json.loads(bench.compiled(side))
        (target / "plan.json").write_text(json.dumps(plan, separators=(",", ":")) + "\n")
        _report(target)
    return failed


def write_changes(bench: PairRunner, names: Collection[str]) -> None:
    """Write the savepoint, the template, the plans and the scripts of each change."""
    for change in load_changes():
        name = change.title.replace(" ", "-")
        if name not in (names or CASES):
            continue
        target = FOLDER / name
        shutil.rmtree(target, ignore_errors=True)
        old, new = bench.complete(change.old), bench.complete(change.new)
        for part, path in (("old", bench.savepoint(old).path), ("template", bench.template(new))):
            keep(path, target / part)
        for part, side in (("old", old), ("new", new)):
            (target / f"{part}.json").write_text(bench.compiled(side))
            (target / f"{part}.sql").write_text(side.script)
        _report(target)


def _report(target: Path) -> None:
    print(target.name, sum(file.stat().st_size for file in target.rglob("*") if file.is_file()), "bytes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dev.measure savepoints", description=__doc__)
    parser.add_argument("--flink", choices=sorted(VERSIONS), default=NEWEST)
    parser.add_argument("--changes", action="store_true", help="the fixtures of migrations, on the newest line")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="fixtures by name")
    options = parser.parse_args()
    line = NEWEST if options.changes else options.flink
    work = CACHE / f"savepoints-{line}"
    shutil.rmtree(work, ignore_errors=True)
    with ExitStack() as stack:
        flink = stack.enter_context(LocalFlink(work / "flink", home=home(line), slots=4, config=CLUSTER, log=print))
        bench = stack.enter_context(closing(PairRunner(flink, work / "data")))
        (work / "data").mkdir(parents=True, exist_ok=True)
        if options.changes:
            write_changes(bench, options.only)
        elif failed := write_scripts(bench, line, options.only):
            raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
