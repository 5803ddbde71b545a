"""Common parts of all runs of pairs: a Flink for the run, its end, and progress messages."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import RELEASES, home
from dev.measure.pyflink import PyFlink
from dev.measure.services import Lakes, Services, jars, services

SLOTS = 16


@contextmanager
def bench_of(
    line: str,
    folder: Path,
    connectors: tuple[Path, ...] = (),
    beside: Services | None = None,
    pyflink: PyFlink | None = None,
    lakes: bool = False,
) -> Iterator[PairRunner]:
    """A Flink of that line, for as long as the block lasts; ``lakes``: with tables of lake formats."""
    flink = LocalFlink(folder / "flink", home=home(line), slots=SLOTS, config=CLUSTER, extra_jars=connectors, log=print)
    with flink:
        services = Lakes(flink.gateway_url) if lakes else beside
        with closing(PairRunner(flink, folder / "data", pyflink, services)) as bench:
            yield bench


def beside_flink(stack: ExitStack, folder: Path, connectors: bool) -> tuple[tuple[Path, ...], Services | None]:
    """Flink's jars of connectors, and the servers that they reach; neither where none are measured."""
    if not connectors:
        return (), None
    return jars(), stack.enter_context(services(folder / "services"))


def deadline(minutes: float) -> Callable[[], bool]:
    """True if no more pairs must be started."""
    last = time.monotonic() + minutes * 60
    return (lambda: time.monotonic() > last) if minutes else (lambda: False)


def say(line: str) -> None:
    print(line, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that every run takes."""
    parser.add_argument("--flink", choices=sorted(RELEASES), default="2.3", help="the line of Flink (default: 2.3)")
    parser.add_argument(
        "--flink-old", choices=sorted(RELEASES), help="the line that takes the savepoints, where it is another"
    )
    parser.add_argument("--minutes", type=float, default=0, help="begin no pair after so many (default: no limit)")
    parser.add_argument("--only", type=_pattern, default="", metavar="REGEX", help="only pairs whose id matches")
    parser.add_argument("--threads", type=int, default=3, help="pairs that run at a time (default: 3)")


def add_drawing(parser: argparse.ArgumentParser, folder: str) -> None:
    """The arguments of a run over drawn pairs, with its folder of results."""
    parser.add_argument("--count", type=int, default=300, help="pairs to draw (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="the same draws the same pairs (default: 1)")
    parser.add_argument(
        "--out", type=Path, help=f"the results file; by default the newest one in dev/measure/results/{folder}"
    )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text
