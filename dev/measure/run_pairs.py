"""Run change pairs on a real Flink and compare the outcomes with ``check``.

Exit status: 0 nothing measured refused or wrong was called compatible, 1 something was, 2 a pair could not be run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import evidence, results
from dev.measure.pairs import (
    CACHE,
    FOLDER,
    LAKES,
    PROGRAMS,
    RELEASES,
    UPGRADES,
    VERSIONS,
    Pair,
    load_base,
    load_connector_pairs,
    load_pairs,
)
from dev.measure.pyflink import PyFlink
from dev.measure.results import Measured
from dev.measure.running import add_arguments, bench_of, beside_flink, deadline, say
from dev.measure.services import LAKE_LINE, lake_jars


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.evidence:
        print(evidence.write())
        return 0
    try:
        paths, failures = (sorted(results.FOLDER.glob("*.json")), []) if options.predict_only else _run(options)
    except (DeployError, FixtureError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    unsafe = False
    for path in paths:
        # Write the results first: the predictions can be computed again at any time.
        data = results.renew(path)
        results.write(data, path)
        print(f"\n{results.report(data)}\n{path}")
        unsafe = unsafe or any(map(results.is_unsafe, data["pairs"]))
    if not (options.predict_only or options.out):
        print(evidence.write())
    for failure in failures:
        print(f"error: could not be run: {failure}", file=sys.stderr)
    return 2 if failures else int(unsafe)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev.measure pairs", description=__doc__)
    add_arguments(parser)
    parser.add_argument(
        "--programs", action="store_true", help="the pairs of PyFlink programs; needs `make pyflink`, and Flink 2.3"
    )
    parser.add_argument(
        "--connectors",
        action="store_true",
        help="the pairs over Kafka and PostgreSQL, both started here, on Flink 2.3; those with a result are left out",
    )
    parser.add_argument(
        "--lakes",
        action="store_true",
        help="the pairs over Iceberg, Paimon, Hudi and Doris, on Flink 1.20; those with a result stay",
    )
    parser.add_argument(
        "--out", type=Path, help="the results file; by default one of today's date in dev/measure/results"
    )
    parser.add_argument(
        "--predict-only", action="store_true", help="renew the predictions of all committed results; needs no Flink"
    )
    parser.add_argument(
        "--evidence", action="store_true", help="make the table of evidence anew of the committed results, and no more"
    )
    return parser


def _run(options: argparse.Namespace) -> tuple[list[Path], list[str]]:
    """Measure, and write the results file next to former results; errors of pairs that could not be run."""
    if (options.programs or options.connectors) and options.flink != "2.3":
        raise FixtureError("programs and connectors are measured only on Flink 2.3, whose jars are pinned")
    if options.flink_old and (options.programs or options.connectors or options.flink_old == options.flink):
        raise FixtureError("--flink-old must differ from --flink, and excludes --programs and --connectors")
    if options.lakes and options.flink != LAKE_LINE:
        raise FixtureError(f"lake formats are measured on Flink {LAKE_LINE}, for which their connectors are built")
    today = datetime.now(UTC).date().isoformat()
    name, folder = _set(options)
    lines = f"{options.flink_old}-to-{options.flink}" if options.flink_old else options.flink
    base = options.flink not in VERSIONS and folder == FOLDER
    adds = bool(options.only or options.connectors or options.lakes or base)
    newest = results.newest(lines, name) if adds else None
    path: Path = options.out or newest or results.FOLDER / f"{name}-{lines}-{today}.json"
    if options.connectors or options.lakes:
        written = load_connector_pairs(options.only, LAKES) if options.lakes else load_connector_pairs(options.only)
        pairs = [pair for pair in written if not results.holds(path, pair)]
    elif base:
        ran = () if options.only else results.ids(path)
        pairs = [pair for pair in load_base(options.flink, options.only) if pair.id not in ran]
    else:
        pairs = load_pairs(options.flink, options.only, folder)
    keep = path.exists() and adds
    if not pairs:
        return [path], []
    writer = results.Writer(
        path, results.Run(RELEASES[options.flink], today, RELEASES.get(options.flink_old, "")), keep
    )
    run = CACHE / f"run-{name}-{lines}"
    shutil.rmtree(run, ignore_errors=True)
    measure = _upgraded if options.flink_old else _measured
    failures = measure(options, run, pairs, lambda measured: writer.add(results.entry_of(measured)))
    return [path] if path.exists() else [], failures


def _set(options: argparse.Namespace) -> tuple[str, Path]:
    """The name of the results, and the folder of the pairs."""
    if options.flink_old:
        return results.UPGRADE, UPGRADES
    if options.programs:
        return "programs", PROGRAMS
    if options.lakes:
        return "lakes", FOLDER
    return ("connectors" if options.connectors else "flink"), FOLDER


def _upgraded(
    options: argparse.Namespace, folder: Path, pairs: list[Pair], add: Callable[[Measured], None]
) -> list[str]:
    """Take all savepoints on the old line, then restore them on the new line, one cluster at a time."""
    late = deadline(options.minutes)
    with bench_of(options.flink_old, folder / "old") as bench:
        taken, failures = bench.take(pairs, options.threads, say)
    left = [pair for pair in pairs if pair.id in taken]
    with bench_of(options.flink, folder / "new") as bench:
        restored = bench.measure(
            left, options.threads, say, late, add, lambda pair: bench.restore(pair, taken[pair.id])
        )
    return [*failures, *restored]


def _measured(
    options: argparse.Namespace, folder: Path, pairs: list[Pair], add: Callable[[Measured], None]
) -> list[str]:
    """Measure, and write each result immediately; returns errors of pairs that could not be run."""
    late = deadline(options.minutes)
    with ExitStack() as stack:
        # Check the environment first, so that nothing is started in vain.
        pyflink = stack.enter_context(PyFlink(folder / "pyflink")) if options.programs else None
        beside = (lake_jars(), None) if options.lakes else beside_flink(stack, folder, options.connectors)
        bench = stack.enter_context(bench_of(options.flink, folder, *beside, pyflink, lakes=options.lakes))
        return bench.measure(pairs, options.threads, say, late, add, bench.run)


if __name__ == "__main__":
    raise SystemExit(main())
