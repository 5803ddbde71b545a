"""Number of pairs that an audit judges in a second: in one process, in several, and on Spark.

The pairs are those of the tests (the vendor's rows and measured restores), repeated. Each gets a unique comment and
name, so that no two texts are equal. Every contender runs in a separate process. Spark judges all pairs. Contenders
on this machine may judge only the first pairs, because their rate does not depend on the number. Elapsed and
processor time of the whole process tree are measured, including the start of Spark and of processes. If the rows that
all contenders judge differ, the benchmark fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from argparse import SUPPRESS
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.audit.document import row_document
from airflow_flinkcompat.fleet.audit.judging import audit_here, audit_in_processes
from airflow_flinkcompat.fleet.audit.sources import plain_job
from airflow_flinkcompat.fleet.audit.spark import audit_on_spark
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditRow, AuditSubject, AuditSummary
from dev.benchmarks.check import fixtures
from dev.measure import measured
from dev.tools import Cost, benchmark_parser, cost_of, publish

PAIRS = 100_000
CONTENDERS = {"one process": "one", "two processes": "two", "Spark, local[2]": "spark"}
_TIMEOUT = 4 * 3600


def pairs() -> Iterator[AuditPair]:
    """Pairs without end."""
    of_vendor = [(Side(case.old_script), Side(case.new_script)) for case in fixtures()]
    restores = [each.sides() for each in (*measured.narrow(), *measured.connectors())]
    basis = [(plain_job(old), plain_job(new)) for old, new in (*of_vendor, *restores)]
    for number in count():
        old, new = basis[number % len(basis)]
        name, head = f"job {number}", f"-- job {number}\n"
        old, new = (replace(side, script=head + side.script, source=f"jobs/{number}.sql") for side in (old, new))
        yield AuditPair(name, old, new)


def judged(contender: str, number: int) -> Iterator[AuditRow]:
    """Rows of a number of pairs, judged by one contender."""
    asked = islice(pairs(), number)
    if contender == "spark":
        return audit_on_spark(asked, (), "local[2]")
    return audit_here(asked) if contender == "one" else audit_in_processes(asked, (), 2)


def contend(contender: str, number: int, compared: int) -> None:
    """Judge in this process, and print the result and the first rows as JSON."""
    begin, digest, summary = time.monotonic(), hashlib.sha256(), AuditSummary(AuditSubject("", "", "never"))
    for place, row in enumerate(judged(contender, number)):
        summary.add(row)
        if place < compared:
            digest.update(json.dumps(row_document(row)).encode())
    seconds = time.monotonic() - begin
    print(json.dumps({"rows": digest.hexdigest(), "seconds": seconds, "summary": summary.sentence}))


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N")
    parser.add_argument("--alone", type=int, metavar="N", help="how many are judged without Spark (default: all)")
    parser.add_argument("--contend", choices=tuple(CONTENDERS.values()), help=SUPPRESS)
    options = parser.parse_args()
    alone = min(options.alone or options.pairs, options.pairs)
    if options.contend:
        contend(options.contend, options.pairs, alone)
        return
    loads = [os.getloadavg()[0]]
    costs: dict[str, Cost] = {}
    for name, contender in CONTENDERS.items():
        number = options.pairs if contender == "spark" else alone
        numbers = ["--pairs", str(number), "--alone", str(alone)]
        command = [sys.executable, "-m", "dev.benchmarks.audit", *numbers, "--contend", contender]
        costs[name] = cost_of(command, _TIMEOUT)
        loads.append(os.getloadavg()[0])
        if costs[name].status:
            raise SystemExit(f"{name}: {costs[name].output[-2000:]}")
        print(f"{name}: {costs[name].wall:.0f} s", file=sys.stderr)
    publish(results(costs, options.pairs, alone, loads), options.write)


def results(costs: dict[str, Cost], number: int, alone: int, loads: list[float]) -> Iterator[str]:
    """The table. Raises SystemExit if the rows of two contenders differ."""
    answers = {
        name: next(json.loads(line) for line in cost.output.splitlines() if line.startswith('{"rows"'))
        for name, cost in costs.items()
    }
    if len({each["rows"] for each in answers.values()}) != 1:
        raise SystemExit("the rows of the contenders differ")
    judged_by = {name: number if contender == "spark" else alone for name, contender in CONTENDERS.items()}
    first = next(iter(costs.values()))
    yield f"# Audits of {number:,} pairs, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    yield f"`python -m dev.benchmarks audit --pairs {number} --alone {alone}`: {[*answers.values()][-1]['summary']}."
    yield f"Python {platform.python_version()}, {os.cpu_count()} cores that other work shares; load average before and"
    before = ", ".join(f"{load:.1f}" for load in loads)
    yield f"after each: {before}. All three found the same for each of {alone:,} pairs."
    yield ""
    heads = "pairs", "a second", "by the clock", "compared", "processor time a pair", "compared"
    yield f"| who judges | {' | '.join(heads)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, cost in costs.items():
        many = judged_by[name]
        rate, each = many / cost.wall, cost.cpu / many
        # Nobody waits for Spark's Python processes, so their processor time is unknown.
        used = f"{each * 1000:.1f} ms | {each / (first.cpu / alone):.2f} times |"
        yield (
            f"| {name} | {many:,} | {rate:.0f} | {cost.wall:.0f} s | {rate / (alone / first.wall):.2f} times as fast "
            f"| {'not known | |' if CONTENDERS[name] == 'spark' else used}"
        )


if __name__ == "__main__":
    main()
