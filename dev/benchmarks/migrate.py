"""Speed and memory of a savepoint migration.

The savepoints have the headers and values of a real Flink's savepoints (`tests/fixtures/migrations`) under many keys.
*cat* copies the bytes of the state files. *Writing* rewrites them. *Verifying* reads both savepoints, hashes keys into
their key groups, and compares the kept values. *Both* is a whole migration, next to the speed *before*, when Python
processed one entry at a time (2026-11-26; for merged keys and slices, 2026-11-30). MB are the size of the old
savepoint. Seconds are processor time, measured in turn in one process, so that other load affects all steps equally;
the best of several rounds is used. Loops are compiled before the first round. Memory is the maximum of one process,
including the interpreter and the compiler. *Query* counts and sums in SQL. On Spark, seconds are elapsed time without
the generation, and memory is that of the largest Python process and of the JVM.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.migration import migrate_savepoint, verify
from airflow_flinkcompat.migration.writing import write_migrated
from airflow_flinkcompat.savepoint.compiled import COMPILED
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration import migration_workers
from airflow_flinkcompat.state import open_savepoint, query
from dev.benchmarks.generated_savepoints import generate, with_key
from dev.measure.savepoint_fixtures import FOLDER, NOW, change, migration_of
from dev.tools import benchmark_parser, explanation, publish

FIXED = "a-metric-is-added-to-a-tumbling-window"
VARIABLE = "a-column-comes-to-the-highest-two-of-a-key"
MOVED = "the-keys-of-a-group-aggregation-change-places"
COPIED = "unchanged"
MERGED = "a-key-leaves-a-group-aggregation"
SLICES = "hopping-windows-become-tumbling-ones"
ALIKE = 11
"""Number of keys that become one in the shape of merged keys."""
SHAPES: dict[str, tuple[str, float, float | None]] = {
    FIXED: ("fixed length: a metric added to a tumbling window", 100.0, 5.3),
    VARIABLE: ("variable length: a column added to lists of rows with texts", 60.0, 2.0),
    MOVED: ("keys in another order: every entry moves to another key group", 40.0, 2.3),
    COPIED: ("unchanged: the state of the first row is copied as a whole", 100.0, None),
    SLICES: ("changed windows: hopping windows become tumbling windows", 40.0, 2.2),
    MERGED: (f"merged keys: a column leaves the key, {ALIKE} keys become one", 40.0, 1.6),
}
"""The title, the goal and the speed on 2026-11-26 of each shape, in MB of the old savepoint a second."""
FORMER_SPARK = 10
"""The speed on Spark on 2026-11-26, in MB of the old savepoint a second."""
MEMORY_GOAL = 500
MANY, LARGE, WIDE = 10_000_000, 4_900_000, 500
"""Numbers of keys without and with Spark, and the length of their texts."""


def case_of(name: str) -> tuple[Path, str, Migration]:
    """Savepoint of the old job, template and migration of a shape."""
    if name == MERGED:
        return _merged_keys()
    if name != COPIED:
        return FOLDER / name / "old", str(FOLDER / name / "template"), change(name)
    plan = (FOLDER / FIXED / "old.json").read_text("utf-8")
    return FOLDER / FIXED / "old", str(FOLDER / FIXED / "old"), migration_of(plan, plan)


def _merged_keys() -> tuple[Path, str, Migration]:
    plan = (FOLDER / MOVED / "old.json").read_text("utf-8")
    new = json.loads(plan)
    exchange, aggregation = (next(e for e in new["nodes"] if kind in e["type"]) for kind in ("exchange", "aggregate"))
    exchange["inputProperties"][0]["requiredDistribution"]["keys"] = aggregation["grouping"] = [0]
    aggregation["outputType"] = "ROW<`a` VARCHAR(2147483647), `EXPR$2` BIGINT>"
    old, template = FOLDER / MOVED / "old", Path(tempfile.gettempdir()) / f"flinkcompat-bench-{MERGED}-{os.getpid()}"
    if not template.exists():
        with_key(old, FOLDER / FIXED / "template", template)
    return old, str(template), migration_of(plan, json.dumps(new))


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def copy_all(source: Path, target: Path) -> None:
    """Copy the bytes of all files."""
    for path in source.iterdir():
        with path.open("rb") as read, target.open("wb") as written:
            shutil.copyfileobj(read, written, 1 << 20)


def alone(name: str, source: Path, target: Path, rounds: int) -> dict[str, float]:
    """Copy, write, verify and query in this process."""
    size = read_metadata(str(source)).keyed_size / 1e6
    old, template, made = case_of(name)
    paths = str(source), template, str(target)
    migrate_savepoint(str(old), template, str(target), made, NOW)
    count_and_sum(old)
    best = dict.fromkeys(("cat", "write", "verify", "query"), float("inf"))
    for _ in range(rounds):
        shutil.rmtree(target, ignore_errors=True)
        best["cat"] = min(best["cat"], spent(lambda: copy_all(source, target.with_suffix(".copy"))))
        best["write"] = min(best["write"], spent(lambda: write_migrated(*paths, made, NOW)))
        best["verify"] = min(best["verify"], spent(lambda: verify(str(source), str(target), made)))
        best["query"] = min(best["query"], spent(lambda: count_and_sum(source)))
    target.with_suffix(".copy").unlink()
    both = best["write"] + best["verify"]
    rates = {each: size / seconds for each, seconds in (*best.items(), ("both", both))}
    return {"size": size, **rates, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def count_and_sum(source: Path) -> None:
    """Query one aggregate over the state with rows."""
    savepoint = open_savepoint(str(source))
    table = next(table for table in savepoint.tables if table.kind != "timers")
    column = next(
        name for name in table.schema.names if name.startswith("field_") and "int" in str(table.schema.field(name).type)
    )
    with query(savepoint, f'SELECT count(*), sum("{column}") FROM "{table.name}"') as rows:
        rows.text(1)


def on_spark(name: str, source: Path, target: Path, master: str) -> dict[str, float]:
    """The complete migration on Spark, including the verification, and a copy of the files."""
    _, template, made = case_of(name)
    started = time.monotonic()
    copy_all(source, target.with_suffix(".copy"))
    copied = time.monotonic() - started
    target.with_suffix(".copy").unlink()
    started = time.monotonic()
    with migration_workers(str(source), True, master, print) as workers:
        ready = time.monotonic()
        migrate_savepoint(str(source), template, str(target), made, NOW, workers)
        done = time.monotonic()
    size = read_metadata(str(source)).keyed_size / 1e6
    return {"size": size, "cat": copied, "start": ready - started, "seconds": done - ready}


def in_its_own_process(name: str, keys: int, folder: Path, *options: str, text: int | None = None) -> dict[str, Any]:
    """One measurement, with a savepoint that a separate process generated before."""
    source, target = folder / f"{name}-{keys}", folder / f"{name}-{keys}-new"
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "dev.benchmarks.migrate"]
    if not source.exists():
        length = [] if text is None else ["--text", str(text)]
        subprocess.run([*command, "--generate", name, str(keys), str(source), *length], check=True)
    shutil.rmtree(target, ignore_errors=True)
    with subprocess.Popen(
        [*command, "--one", name, str(source), str(target), *options], stdout=subprocess.PIPE, text=True
    ) as process:
        memory: dict[str, float] = {}
        while process.returncode is None:
            watch(process.pid, memory)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    shutil.rmtree(source)
    shutil.rmtree(target)
    return {**memory, **json.loads(output.splitlines()[-1])}


def watch(pid: int, memory: dict[str, float]) -> None:
    """Track the memory of each program's largest process, in MB."""
    try:
        for process in (root := psutil.Process(pid), *root.children(recursive=True)):
            program = "java" if "java" in process.name() else "python"
            memory[program] = max(memory.get(program, 0), process.memory_info().rss / (1 << 20))
    except psutil.NoSuchProcess:
        pass


def results(folder: Path, keys: int, many: int, large: int, rounds: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# Migrating savepoints, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    loops = "compiled" if COMPILED else "plain Python"
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    yield f"{machine}, loops: {loops}; `make bench-migrate`."
    yield ""
    yield explanation(__doc__)
    yield ""
    yield "| rows | keys | MB | cat, MB/s | write | verify | both | before | query | memory, MB | goals |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name in SHAPES:
        yield row(name, keys, in_its_own_process(name, keys, folder, "--rounds", str(rounds)))
    if many:
        yield row(FIXED, many, in_its_own_process(FIXED, many, folder, "--rounds", "1"))
    if not large:
        return
    yield ""
    found = in_its_own_process(VARIABLE, large, folder, "--spark", "local[2]", text=WIDE)
    rate = found["size"] / found["seconds"]
    yield (
        f"On Spark, `local[2]`: {found['size'] / 1000:.1f} GB, {large:,} keys with texts of {WIDE} bytes, written and "
        f"read back in {found['seconds']:.0f} s ({rate:.0f} MB/s; {FORMER_SPARK} MB/s on 2026-11-26; `cat` of the same "
        f"bytes: {found['cat']:.0f} s), after {found['start']:.0f} s in which Spark started; at most "
        f"{found['python']:.0f} MB in a Python process, {found['java']:.0f} MB in the JVM."
    )


def row(name: str, keys: int, found: dict[str, float]) -> str:
    """A row of the table."""
    title, goal, former = SHAPES[name]
    goals = (
        f"both ≥ {goal:g}: {'met' if found['both'] >= goal else 'missed'}",
        f"memory ≤ {MEMORY_GOAL}: {'met' if found['memory'] <= MEMORY_GOAL else 'missed'}",
    )
    rates = " | ".join(f"{found[each]:.0f}" for each in ("cat", "write", "verify", "both"))
    figures = f"{rates} | {former or ''} | {found['query']:.0f} | {found['memory']:.0f}"
    return f"| {title} | {keys:,} | {found['size']:.0f} | {figures} | {', '.join(goals)} |"


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--folder", metavar="DIR", type=Path, help="where savepoints lie meanwhile, 20 GB")
    parser.add_argument("--keys", type=int, default=1_000_000, help="of each shape (default: %(default)s)")
    parser.add_argument("--many", type=int, default=MANY, help="keys of a large one, 0: none (default: %(default)s)")
    parser.add_argument("--large", type=int, default=LARGE, help="keys on Spark, 0: none (default: %(default)s, 5 GB)")
    parser.add_argument("--rounds", type=int, default=3, help="of each shape (default: %(default)s)")
    parser.add_argument("--generate", nargs=3, help=SUPPRESS)
    parser.add_argument("--one", nargs=3, help=SUPPRESS)
    parser.add_argument("--text", type=int, help=SUPPRESS)
    parser.add_argument("--spark", help=SUPPRESS)
    options = parser.parse_args()
    if options.generate:
        name, keys, source = options.generate
        alike = ALIKE if name == MERGED else 1
        generate(case_of(name)[0], int(keys), Path(source), text=options.text, alike=alike)
        return
    if options.one:
        name, source, target = options.one
        paths = Path(source), Path(target)
        found = on_spark(name, *paths, options.spark) if options.spark else alone(name, *paths, options.rounds)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(prefix="flinkcompat-bench-") as own:
        folder = options.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        publish(results(folder, options.keys, options.many, options.large, options.rounds), options.write)


if __name__ == "__main__":
    main()
