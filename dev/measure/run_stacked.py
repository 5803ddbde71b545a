"""Migrate random jobs of two stacked operators on a real Flink.

Each drawn pair of ``dev/measure/stacked_pairs.py`` is migrated twice: without history, and with the history of all
tables. Where all of the state is kept or computed, every row must equal that of the new SQL over all input. Elsewhere
those columns must that are kept, as ``dev.measure.run_migrations`` judges them.

Pairs with a right result are left out.

Exit status: 0 no row is wrong and every promised savepoint was written, 1 some are or were not, 2 it could not be run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side as Script
from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent
from airflow_flinkcompat.history.known_history import KnownHistory, history_spark
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.migration.writing import WrittenState
from dev.measure import results
from dev.measure.migration_verdict import columns_of, fault, judged
from dev.measure.pair_runner import PairRunner, Savepoint
from dev.measure.pairs import CACHE, RELEASES, Pair, Side
from dev.measure.progress import tables_read
from dev.measure.results import net, parts
from dev.measure.run_migrations import (
    NOT_MIGRATABLE,
    NOT_WRITTEN,
    REFUSED,
    RIGHT,
    WRONG,
    attempt,
    lost_state,
    migration_of_plans,
)
from dev.measure.running import add_arguments, add_drawing, bench_of, deadline, say
from dev.measure.stacked_pairs import stacked_pairs

SAME = "same_as_without"
"""History computes nothing, so that this is the migration without it."""
_BAD = (WRONG, REFUSED, NOT_WRITTEN)


@dataclass(frozen=True)
class Stacked:
    """Results of migrating one pair, without history and with it: an outcome and a fault of each."""

    pair: Pair
    alone: tuple[str, str]
    history: tuple[str, str]

    @property
    def outcome(self) -> str:
        return f"{self.alone[0]}, with history {self.history[0]}"

    def entry(self) -> dict[str, Any]:
        """The result as an entry of the results file."""
        ends = {"outcome": self.alone[0], "with_history": self.history[0]}
        found = {"fault": self.alone[1], "history_fault": self.history[1]}
        faults = {name: wrong for name, wrong in found.items() if wrong}
        sides = {"old": self.pair.old.script, "new": self.pair.new.script}
        return {"id": self.pair.id, "about": self.pair.about, **ends, **faults, **sides}


@dataclass(frozen=True)
class _Bench:
    """A Flink, and the one thread on which Spark computes."""

    flink: PairRunner
    spark: ThreadPoolExecutor
    version: str

    def run(self, pair: Pair) -> Stacked:
        """Migrate one pair both ways. Raises MeasureError or another DeployError where it cannot be run."""
        old, new = self.flink.complete(pair.old), self.flink.complete(pair.new)
        made, _ = migration_of_plans(
            (self.flink.compiled(old), self.flink.compiled(new)), (old, new), (self.version, self.version)
        )
        savepoint = self.flink.taken(pair)
        scripts = [self._script(side, savepoint) for side in (old, new)]
        alone = self._ended(new, savepoint, made, None)
        history = KnownHistory(dict.fromkeys(tables_read(new.script), ""))
        computed = history.applied(made, *scripts)
        if not any(line.from_history for line in computed.operators):
            return Stacked(pair, alone, (SAME, ""))
        with_history = self._ended(new, savepoint, computed, (history, scripts[0], scripts[1]))
        return Stacked(pair, alone, with_history)

    def _script(self, side: Side, savepoint: Savepoint) -> Script:
        text = side.script.replace("file://DATA", savepoint.folder.as_uri())
        return Script(text, dict(side.settings), engine="flink", engine_version=self.version)

    def _ended(
        self,
        new: Side,
        savepoint: Savepoint,
        made: Migration,
        history: tuple[KnownHistory, Script, Script] | None,
    ) -> tuple[str, str]:
        """An outcome, and its fault."""
        if made.kept is MigrationExtent.NONE:
            return NOT_MIGRATABLE, lost_state(made)

        def write(template: str, target: str) -> Iterable[WrittenState]:
            now = int(time.time() * 1000)
            if history is None:
                return migrate_savepoint(savepoint.path, template, target, made, now)
            known, old_script, new_script = history
            with known.computing(old_script, new_script, savepoint.path, made, lambda line: None) as computer:
                return migrate_savepoint(savepoint.path, template, target, made, now, computer.workers, computer)

        found = attempt(self.flink, new, new, savepoint, lambda *places: self.spark.submit(write, *places).result())
        if found.outcome != RIGHT:
            return found.outcome, found.fault
        runs = found.runs.without_fillers()
        # Only keys that became one are sent otherwise than by a run from scratch, where nothing begins.
        if all(line.keeps and not (line.new_fields or line.merges or line.accepted) for line in made.operators):
            rows, wanted = runs.restored, runs.expected
            equal = net(rows) == net(wanted) or _same_by_key(new.script, rows, wanted)
            return (RIGHT, "") if equal else (WRONG, f"rows {sorted(rows)} and not {sorted(wanted)}")
        sides = [Script(side.script, {}, engine="flink") for side in (savepoint.old, new)]
        if history is None:
            wrong = judged(runs, *sides).fault
        else:
            # A metric that begins now is over rows that history has computed below it, as no run from scratch has them.
            # Above an operator of which something begins, nothing is computed, so no computed metric is left out here.
            (columns,) = columns_of(*sides).values()
            assert columns is not None
            wrong = fault(runs, replace(columns, metrics=()))
        return (WRONG, wrong) if wrong else (RIGHT, "")


_HIGHEST_ROW = re.compile(r"SELECT (?P<columns>k, g, v\b.*?) FROM .*PARTITION BY (?P<key>[kg]) .* WHERE r <= 1;\s*$")


def _same_by_key(script: str, rows: Sequence[str], expected: Sequence[str]) -> bool:
    """True if the highest row of each key is the same in the end; how often it is sent depends on timing."""
    match = _HIGHEST_ROW.search(script)
    if match is None:
        return False
    place = match["columns"].split(", ").index(match["key"])
    last = [{parts(row)[2].strip("[]").split(", ")[place]: parts(row)[2] for row in each} for each in (rows, expected)]
    return last[0] == last[1] and not any(parts(row)[1].startswith("-") for row in (*rows, *expected))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure stacked", description=__doc__)
    add_arguments(parser)
    add_drawing(parser, "stacked")
    options = parser.parse_args(arguments)
    try:
        path, failures = _run(options)
    except (DeployError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for failure in failures:
        print(f"error: could not be run: {failure}", file=sys.stderr)
    data = json.loads(path.read_text("utf-8"))
    print(f"\n{summary(data)}\n{path}")
    return 2 if failures else int(any(_wrong(entry) for entry in data["pairs"]))


def _run(options: argparse.Namespace) -> tuple[Path, list[str]]:
    """The results file, and the errors of pairs that could not be run."""
    today = datetime.now(UTC).date().isoformat()
    newest = results.newest(options.flink, "stacked/flink")
    path: Path = options.out or newest or results.FOLDER / "stacked" / f"flink-{options.flink}-{today}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = [pair for pair in stacked_pairs(options.count, options.seed) if re.search(options.only, pair.id)]
    head = {"flink": RELEASES[options.flink], "date": today, "seed": options.seed, "count": options.count}
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["pairs"] if path.exists() else []
    pairs = [pair for pair in pairs if not any(_is_of(entry, pair) for entry in found)]
    folder = CACHE / f"stacked-{options.flink}"
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as stack:
        flink = stack.enter_context(bench_of(options.flink, folder))
        spark = stack.enter_context(ThreadPoolExecutor(1))
        session = history_spark("local[2]", ())
        spark.submit(session.__enter__).result()
        stack.callback(lambda: spark.submit(session.__exit__, None, None, None).result())
        bench = _Bench(flink, spark, options.flink)

        def add(ended: Stacked) -> None:
            for wrong in (wrong for end, wrong in (ended.alone, ended.history) if end in _BAD):
                say(f"  {ended.pair.id}: {wrong}")
            found[:] = [*(entry for entry in found if entry["id"] != ended.pair.id), ended.entry()]
            entries = sorted(found, key=lambda entry: str(entry["id"]))
            path.write_text(json.dumps({**head, "pairs": entries}, indent=1) + "\n", "utf-8")

        failures = flink.measure(pairs, options.threads, say, deadline(options.minutes), add, bench.run)
    return path, failures


def _is_of(entry: Mapping[str, Any], pair: Pair) -> bool:
    """True if an entry is a right result of this pair as it is drawn now."""
    drawn = {"id": pair.id, "old": pair.old.script, "new": pair.new.script}
    return not _wrong(entry) and all(entry[key] == value for key, value in drawn.items())


def _wrong(entry: Mapping[str, Any]) -> bool:
    return entry["outcome"] in _BAD or entry["with_history"] in _BAD


def summary(data: Mapping[str, Any]) -> str:
    """Summarise outcomes, and name the pairs that are not right."""
    entries = data["pairs"]
    run = f"{len(entries)} of {data['count']} pairs run"
    lines = [f"Flink {data['flink']}, {data['date']}, seed {data['seed']}: {run}."]
    for name, key in (("without history", "outcome"), ("with history", "with_history")):
        ends = Counter(entry[key] for entry in entries)
        lines.append(f"{name}: {', '.join(f'{number} {outcome}' for outcome, number in sorted(ends.items()))}.")
    return "\n".join([*lines, *(f"  {entry['id']}" for entry in entries if _wrong(entry))])


if __name__ == "__main__":
    raise SystemExit(main())
