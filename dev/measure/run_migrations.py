"""Migrate the state of changes on a real Flink; compare with runs from scratch.

Each change: the old SQL runs over ``before.csv`` and is stopped with a canonical savepoint; the savepoint is rewritten
for the new SQL as the plans tell that the Flink of each side compiles, read back, and the new SQL starts from it beside
``after.csv``. Columns that the old SQL had too must equal those of the new SQL over all rows, others those of the new
SQL over the rows after alone.

Exit status: 0 all rows are right, 1 some are not or no savepoint was written, 2 a change could not be run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from airflow_flinkcompat.compat import Side as Script
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind
from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint
from airflow_flinkcompat.migration.writing import WrittenState
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results
from dev.measure.measured import AS_RUN
from dev.measure.migration_cases import Migrated, load, load_over_connectors
from dev.measure.migration_verdict import Runs, judged
from dev.measure.pair_runner import PairRunner, Restored, Savepoint, has_fillers
from dev.measure.pairs import CACHE, RELEASES, Pair, Side
from dev.measure.progress import MeasureError
from dev.measure.running import add_arguments, bench_of, beside_flink, deadline, say

RIGHT = "kept_right"
WRONG = "kept_WRONG"
NOT_READ_EXACTLY = "rows_read_WRONG"
REFUSED = "savepoint_refused"
NOT_WRITTEN = "not_written"
NOT_MIGRATABLE = "not_migratable"
"""The compiled plans can keep nothing, so nothing was run and there is no result."""
OUTCOMES = {
    RIGHT: "what was kept equals the new SQL over all rows, what begins now equals it over the rows after the switch",
    WRONG: "RUNNING, rows of the one or the other are wrong",
    NOT_READ_EXACTLY: "RUNNING, rows were lost or read twice by a source that goes on",
    REFUSED: "Flink did not go on from the rewritten savepoint",
    NOT_WRITTEN: "the migration was promised, and then no savepoint was written or it did not pass reading back",
}
HOW = (
    "As `pairs`; the savepoint is rewritten by what the plans tell that the Flink of each side compiles, with a "
    "template that Flink took of the new side. kept: what was promised; alone: what Flink made of the savepoint as it "
    "was; restored_rows: what the new SQL printed from the rewritten savepoint, expected_rows: from scratch over all "
    "rows, both of the rows after the savepoint; printed_rows, before_rows: what the old SQL and the new one printed "
    "before it; alone_rows: from scratch over the rows after alone. keys: how many came out; told: whether rows of "
    "a start without state would have differed."
)
NAMES = ("migrations/flink", f"migrations/{results.UPGRADE}", "migrations/connectors")
"""Names of the result files: for one line of Flink, for upgrades, and over connectors."""


@dataclass(frozen=True)
class Ending:
    """Outcome of one change's migration."""

    pair: Pair
    alone: str
    outcome: str
    kept: MigrationExtent
    states: Mapping[str, RestoreEffect]
    fault: str = ""
    runs: Runs = field(default_factory=lambda: Runs((), (), (), (), ()))
    entries: int = 0
    keys: int = 0
    told: bool = False

    def entry(self) -> dict[str, Any]:
        """The entry of a results file."""
        return {
            "id": self.pair.id,
            "area": self.pair.area,
            "description": self.pair.about,
            "kept": self.kept.value,
            "states": {name: keep.value for name, keep in self.states.items()},
            "alone": self.alone,
            "outcome": self.outcome,
            "fault": self.fault or None,
            "entries": self.entries,
            "keys": self.keys,
            "told": self.told,
            **results.texts(self.pair.old.script, self.pair.new.script),
            **results.settings(self.pair),
            **{f"{name}_rows": list(rows) for name, rows in vars(self.runs).items()},
        }


def judged_again(entry: results.Entry, version: str) -> results.Entry:
    """An entry with rows that are judged again; other outcomes of Flink are kept."""
    if entry["outcome"] not in (RIGHT, WRONG):
        return entry
    rows = Runs(*(entry.get(f"{each.name}_rows", ()) for each in fields(Runs)))
    found = judged(rows, *results.sides(entry, version))
    outcome = WRONG if found.fault else RIGHT
    return {**entry, "outcome": outcome, "fault": found.fault or None, "keys": found.keys, "told": found.told}


def migrated(
    bench: PairRunner,
    change: Migrated,
    taken: Callable[[Pair], Savepoint],
    versions: tuple[str, str],
    old_plan: str | None = None,
) -> Ending:
    """Migrate the state of one change, between ``versions`` of Flink. Raises DeployError if this fails.

    ``old_plan`` is the compiled plan of the old side, if another Flink runs it.
    """
    pair = change.pair
    old, new = bench.complete(pair.old), bench.complete(pair.new)
    made, scripts = migration_of_plans((old_plan or bench.compiled(old), bench.compiled(new)), (old, new), versions)
    states = {name: line.effect for line, name in zip(made.operators, _names(made), strict=True)}
    ending = Ending(pair, change.alone, NOT_MIGRATABLE, made.kept, states)
    if made.kept is MigrationExtent.NONE:
        return replace(ending, fault=lost_state(made))
    if not change.alone:
        ending = replace(ending, alone=bench.restore(pair, taken(pair)).outcome)
    savepoint = taken(replace(pair, id=f"{pair.id} migrated"))

    def write(template: str, target: str) -> Iterable[WrittenState]:
        return migrate_savepoint(savepoint.path, template, target, made, int(time.time() * 1000))

    reference = bench.complete(pair.reference) if pair.reference else new
    found = attempt(bench, new, reference, savepoint, write)
    ending = replace(ending, outcome=found.outcome, fault=found.fault, entries=found.entries, runs=found.runs)
    if found.outcome != RIGHT:
        return ending
    if has_fillers(pair.new):
        ending = replace(ending, runs=ending.runs.without_fillers())
    return _judged(ending, scripts, found.restored, made)


@dataclass(frozen=True)
class Attempt:
    """A rewritten and restored savepoint: RIGHT until its rows are judged, or the reason why it fails."""

    outcome: str
    fault: str = ""
    entries: int = 0
    restored: Restored = field(default_factory=Restored)
    runs: Runs = field(default_factory=lambda: Runs((), (), (), (), ()))


def attempt(
    bench: PairRunner,
    new: Side,
    reference: Side,
    savepoint: Savepoint,
    write: Callable[[str, str], Iterable[WrittenState]],
) -> Attempt:
    """Rewrite a savepoint by ``write(template, target)``, restore it, and run ``reference`` from scratch."""
    target = f"{savepoint.folder}/migrated-{uuid4().hex}"
    template = bench.template(new)
    try:
        written = write(template, target)
    except (NotMigratable, MigrationVerificationFailed, SavepointUnreadable) as error:
        return Attempt(NOT_WRITTEN, f"{type(error).__name__}: {error}")
    entries = sum(count for each in written for count in each.entries.values())
    restored = bench.attempt(new, replace(savepoint, path=f"file:{target}"))
    if restored.outcome is not None:
        return Attempt(REFUSED, f"{restored.outcome}: {restored.exception}", entries)
    before, expected = bench.from_scratch(reference)
    runs = Runs(savepoint.printed, restored.rows or (), before, expected, bench.after_alone(reference))
    return Attempt(RIGHT, "", entries, restored, runs)


def lost_state(made: Migration) -> str:
    """The state that a migration cannot keep, by operator."""
    lost = (RestoreEffect.NOT_MIGRATABLE, RestoreEffect.DROPPED)
    operators = (each for each in MigrationReport.of(made).operators if each.effect in lost)
    return "; ".join(f"{each.operator} {each.state}" for each in operators)


def migration_of_plans(
    plans: tuple[str, str], sides: tuple[Side, Side], versions: tuple[str, str]
) -> tuple[Migration, tuple[Script, Script]]:
    """State kept by the compiled plans of both sides, and the scripts. Raises MeasureError."""

    def script(side: Side, name: str, version: str) -> Script:
        settings = {**AS_RUN, **dict(side.settings)}
        return Script(side.script, settings, engine="flink", engine_version=version, source=name)

    scripts = script(sides[0], "old.sql", versions[0]), script(sides[1], "new.sql", versions[1])
    try:
        old, new = map(read_plan, plans)
        (made,) = migrations(*scripts, ((old,), (new,)))
    except InputError as error:
        raise MeasureError(str(error)) from None
    return made, scripts


def _names(made: Migration) -> list[str]:
    """The operators, told apart where several have one name."""
    seen: Counter[str] = Counter()
    found = []
    for each in MigrationReport.of(made).operators:
        seen[each.operator] += 1
        found.append(each.operator + (f" ({seen[each.operator]})" if seen[each.operator] > 1 else ""))
    return found


def _judged(ending: Ending, scripts: tuple[Script, Script], restored: Restored, made: Migration) -> Ending:
    found = judged(ending.runs, *scripts)
    ending = replace(ending, told=found.told, keys=found.keys)
    if found.fault:
        return replace(ending, outcome=WRONG, fault=found.fault)
    if wrong := _not_exact(made, restored):
        return replace(ending, outcome=NOT_READ_EXACTLY, fault=wrong)
    return replace(ending, outcome=RIGHT)


def _not_exact(made: Migration, restored: Restored) -> str:
    """Sources that resume and have read other rows than those after the savepoint."""
    goes_on = {
        line.new.name.rpartition(".")[2].strip("`")
        for line in made.operators
        if line.new is not None and line.new.kind is StateKind.POSITIONS and line.keeps
    }
    return "; ".join(
        f"{table}: {rows} rows were read, and there were {restored.due[table]}"
        for table, rows in restored.read.items()
        if table in goes_on and rows != restored.due[table]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure migrations", description=__doc__)
    add_arguments(parser)
    parser.add_argument(
        "--connectors", action="store_true", help="changes over Kafka and PostgreSQL, both started here, on Flink 2.3"
    )
    parser.add_argument("--out", type=Path, help="the results file; by default the newest one in dev/measure/results")
    parser.add_argument("--again", action="store_true", help="run those that have a result too")
    parser.add_argument(
        "--judge-again", action="store_true", help="judge the rows of all committed results again; needs no Flink"
    )
    options = parser.parse_args(arguments)
    if options.judge_again:
        return _judge_again()
    try:
        path, failures = _run(options)
    except (DeployError, FixtureError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for failure in failures:
        print(f"error: could not be run: {failure}", file=sys.stderr)
    if not path.exists():
        return 2
    print(f"\n{summary(results.read(path))}\n{path}")
    return 2 if failures else int(any(entry["outcome"] != RIGHT for entry in results.read(path)["pairs"]))


def _judge_again() -> int:
    wrong = False
    for path in sorted(results.FOLDER.glob("migrations/*.json")):
        data = results.read(path)
        data = {**data, "pairs": [judged_again(entry, data["flink"]) for entry in data["pairs"]]}
        results.write(data, path)
        print(f"{summary(data)}\n{path}")
        wrong = wrong or any(entry["outcome"] != RIGHT for entry in data["pairs"])
    return int(wrong)


def _run(options: argparse.Namespace) -> tuple[Path, list[str]]:
    """The results file, and the errors of changes that could not be run; other results stay as they are."""
    today = datetime.now(UTC).date().isoformat()
    lines = f"{options.flink_old}-to-{options.flink}" if options.flink_old else options.flink
    name = NAMES[2 if options.connectors else bool(options.flink_old)]
    path: Path = options.out or results.newest(lines, name) or results.FOLDER / f"{name}-{lines}-{today}.json"
    if options.connectors and (options.flink != "2.3" or options.flink_old):
        raise FixtureError("connectors are measured only on Flink 2.3, for which their jars are pinned")
    changes = (
        load_over_connectors(options.only)
        if options.connectors
        else load(options.flink, options.only, options.flink_old or "")
    )
    wanted = {each.pair.id: each for each in changes if options.again or not results.holds(path, each.pair)}
    if not wanted:
        return path, []
    path.parent.mkdir(exist_ok=True)
    old = RELEASES.get(options.flink_old, "")
    versions = old or RELEASES[options.flink], RELEASES[options.flink]
    writer = results.Writer(path, results.Run(RELEASES[options.flink], today, old, HOW, OUTCOMES), path.exists())
    folder = CACHE / f"migrating-{lines}"
    shutil.rmtree(folder, ignore_errors=True)
    failures: list[str] = []
    old_plans: dict[str, str] = {}
    pairs = [each.pair for each in wanted.values()]
    with ExitStack() as stack:
        if options.flink_old:
            with bench_of(options.flink_old, folder / "old") as bench:
                old_plans = {pair.id: bench.compiled(bench.complete(pair.old)) for pair in pairs}
                twice = [*pairs, *(replace(pair, id=f"{pair.id} migrated") for pair in pairs)]
                savepoints, failures = bench.take(twice, options.threads, say)
            pairs = [pair for pair in pairs if f"{pair.id} migrated" in savepoints and pair.id in savepoints]
        beside = beside_flink(stack, folder, options.connectors)
        bench = stack.enter_context(bench_of(options.flink, folder / "new", *beside))
        taken = (lambda pair: savepoints[pair.id]) if options.flink_old else bench.taken

        def add(ending: Ending) -> None:
            if ending.fault:
                say(f"  {ending.pair.id}: {ending.fault}")
            if ending.outcome == NOT_MIGRATABLE:
                writer.drop(ending.pair.id)
            else:
                writer.add(ending.entry())

        late = deadline(options.minutes)  # of the runs: what starts on a busy machine may take as long
        failures += bench.measure(
            pairs,
            options.threads,
            say,
            late,
            add,
            lambda pair: migrated(bench, wanted[pair.id], taken, versions, old_plans.get(pair.id)),
        )
    return path, failures


def summary(data: Mapping[str, Any]) -> str:
    """Numbers of outcomes, and the changes that did not end right, in some lines."""
    entries: Iterable[Mapping[str, Any]] = data["pairs"]
    ends = Counter(entry["outcome"] for entry in entries)
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(ends.items()))
    wrong = [f"  {entry['id']}: {entry['outcome']}: {entry['fault']}" for entry in entries if entry["outcome"] != RIGHT]
    return "\n".join([f"Flink {data['flink']}, {data['date']}: {sum(ends.values())} migrated: {told}.", *wrong])


if __name__ == "__main__":
    raise SystemExit(main())
