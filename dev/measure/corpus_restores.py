"""Restore public changes that the check calls compatible on a real Flink, and compare their rows.

Each change of the corpus (:mod:`dev.measure.corpus`) that engine ``flink`` calls compatible runs as
:mod:`dev.measure.public_jobs` adapts it: the old script over the first rows, a stop with savepoint, the new script from
it, without ``allowNonRestoredState``. Rows are compared with those of the new script from scratch. ``--more N`` adds
whole stateful jobs of the corpus, in another layout and under another name.

Exit status: 0 no restore was refused or wrong, 1 one was, 2 it could not be run.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_flinkcompat.compat import InputError, Outcome, Report, check
from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.sql import ScriptError, parse_script
from airflow_flinkcompat.sql.nodes import CreateTable
from airflow_flinkcompat.sql.statement_parser import Flink
from dev.measure import corpus, results, services
from dev.measure.pair_runner import PairRunner, Savepoint
from dev.measure.pairs import CACHE, Pair, Side
from dev.measure.progress import GENERATED
from dev.measure.public_jobs import NotRunnable, PublicJob, declarations
from dev.measure.running import add_arguments, bench_of, deadline, say
from dev.tools import publish

SCRIPTS = "scripts.jsonl.gz"
UNCOMPARED, NOT_RUN = "restored, no rows to compare", "not run"
"""With the former, the new script from scratch prints no row, or rows that depend on the clock."""
_OF_THE_RUN = re.compile(
    r"20(?:2[5-9]|[3-9]\d)-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-\w+"
)
"""Times of the clock and UUIDs; the rows that are read have times of 2024."""
_KEY = re.compile(r"\S+ \+I\[\{.*?\}: ")


@dataclass(frozen=True)
class Restored:
    """One change and the result of its restore. ``change`` is the part that ran, ``compared`` a row count."""

    id: str
    origin: str
    operators: str
    change: str = ""
    replaced: str = ""
    outcome: str = NOT_RUN
    compared: int = 0
    fault: str = ""
    by_clock: bool = False


def changes(folder: Path, line: str, more: int) -> Iterator[tuple[Restored, str, str]]:
    """Changes that are compatible on a line of Flink, then ``more`` edited jobs, with both scripts."""
    for change in corpus.read(folder / corpus.CHANGES):
        report = _compatible(change["old"], change["new"], line)
        if report is not None:
            yield _named(change["id"], str(change["origin"]), report), change["old"], change["new"]
    for script in corpus.read(folder / SCRIPTS):
        if more and script["kind"] in ("job", "job-query"):
            old = script["text"]
            parsed = parse_script(old, "<public>").statements
            new = "".join(f"{each.tree.sql(dialect=Flink) if each.tree else each.text};\n" for each in parsed)
            new = f"SET 'pipeline.name' = 'renamed';\n{new}"
            report = _compatible(old, new, line)
            if report is not None and report.operators:
                more -= 1
                yield _named(script["id"], f"{script['repo'].replace('+', '/')}@ {script['path']}", report), old, new


def known_tables(folder: Path) -> Mapping[str, Mapping[str, CreateTable]]:
    """The tables that the scripts of each repository declare."""
    known: dict[str, dict[str, CreateTable]] = defaultdict(dict)
    for script in corpus.read(folder / SCRIPTS):
        if script["kind"] in ("ddl-only", "job"):
            known[script["repo"].replace("+", "/")] |= {each.this.name: each for each in declarations(script["text"])}
    return known


def _named(name: str, origin: str, report: Report) -> Restored:
    return Restored(name, origin.replace("|", "/"), ", ".join(sorted({each.kind for each in report.operators})))


def _compatible(old: str, new: str, line: str) -> Report | None:
    before, after = (JobSide(text, engine="flink", engine_version=line, source="job.sql") for text in (old, new))
    try:
        report = check(before, after)
        return report if corpus.answer_of(report, before, after) == Outcome.COMPATIBLE.value else None
    except (InputError, ScriptError):
        return None


def pair_of(job: PublicJob, name: str, old: str, new: str) -> tuple[Pair, str]:
    """The change as a pair of the bench, and the part of it that runs there; raises NotRunnable."""
    scripts = job.scripts()
    job.feed()
    sides = [Side(script, database=job.database()) for script in scripts]
    pair = Pair(name, "public", "", sides[0], sides[1], reference=sides[2])
    if _trees(old) == _trees(new):
        return pair, "layout"
    return pair, "options of what is replaced" if _trees(scripts[0]) == _trees(scripts[2]) else "whole"


def _trees(script: str) -> list[object]:
    return [each.tree or each.text for each in parse_script(script, "<public>").statements]


def restore(bench: PairRunner, change: Restored, pair: Pair, savepoint: Savepoint | None = None) -> Restored:
    """Run one pair, perhaps from a savepoint of another line.

    Raises MeasureError or another DeployError where it cannot be run.
    """
    measured = bench.restore(pair, savepoint) if savepoint else bench.run(pair)
    if measured.exception is not None:
        return replace(change, outcome=measured.outcome, fault=measured.exception.partition("\n")[0][:300])
    reference = bench.complete(pair.reference or pair.new)
    before, expected = map(_lasting, bench.from_scratch(reference))
    restored, outcome = _lasting(measured.restored_rows or ()), measured.outcome
    if outcome != results.RIGHT:
        outcome = results.judge(restored, expected, _lasting((savepoint or bench.taken(pair)).printed), before)
    if (not expected and not restored) or (outcome != results.RIGHT and change.by_clock):
        outcome = UNCOMPARED
    elif outcome != results.RIGHT:
        again = bench.from_scratch(replace(reference, script=f"{reference.script}\n-- again"))[1]
        if results.net(_lasting(again)) != results.net(expected):
            outcome = UNCOMPARED
    wrong = outcome not in (results.RIGHT, UNCOMPARED)
    fault = f"{sorted(restored)[:5]} and not {sorted(expected)[:5]}" if wrong else ""
    return replace(change, outcome=outcome, compared=len(expected), fault=fault)


def _lasting(rows: Iterable[str]) -> tuple[str, ...]:
    """The rows without the clock, and the last of each key of a topic."""
    found: dict[str, str] = {}
    for number, row in enumerate(_OF_THE_RUN.sub("NOW", each) for each in rows):
        key = _KEY.match(row)
        found[key[0] if key else f"{number}"] = row
    return tuple(found.values())


def table(found: Sequence[Restored]) -> Iterator[str]:
    """The results as Markdown."""
    counts = Counter(each.outcome for each in found)
    yield f"{len(found)} changes: {', '.join(f'{number} {outcome}' for outcome, number in counts.most_common())}.\n"
    head = ("id", "script", "stateful operators", "change", "replaced connectors", "restore", "rows compared")
    ran = [each for each in found if each.outcome != NOT_RUN]
    rows = ((e.id, e.origin, e.operators, e.change, e.replaced, e.outcome, e.compared) for e in ran)
    yield from corpus.table(head, rows)
    yield ""
    yield from (f"* {each.id} {each.origin}: {each.outcome}, {each.fault}" for each in found if each.fault)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure corpus-restores", description=__doc__)
    add_arguments(parser)
    parser.add_argument("corpus", type=Path, help="the folder of the corpus")
    parser.add_argument("--more", type=int, default=0, help="edited jobs to add (default: none)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the result into a file, too")
    options = parser.parse_args(arguments)
    try:
        found = _run(options)
    except (DeployError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    publish("\n".join(table(found)) + "\n", options.write)
    return int(any(each.outcome not in (results.RIGHT, UNCOMPARED, NOT_RUN) for each in found))


def _run(options: argparse.Namespace) -> list[Restored]:
    shutil.rmtree(GENERATED, ignore_errors=True)
    known = known_tables(options.corpus)
    found: dict[str, Restored] = {}
    pairs: list[Pair] = []
    for change, old, new in changes(options.corpus, options.flink, options.more):
        if not re.search(options.only, change.id):
            continue
        found[change.id] = change
        try:
            job = PublicJob(f"p{change.id}", old, new, known[change.origin.partition("@")[0]])
            pair, part = pair_of(job, change.id, old, new)
        except NotRunnable as error:
            found[change.id] = replace(change, fault=str(error))
            continue
        pairs.append(pair)
        found[change.id] = replace(change, change=part, replaced=", ".join(sorted(job.replaced)), by_clock=job.by_clock)

    def add(restored: Restored) -> None:
        found[restored.id] = restored

    folder = CACHE / "corpus-restores"
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as stack:
        servers = stack.enter_context(services.services(folder / "services"))
        bench = stack.enter_context(bench_of(options.flink, folder, services.jars(options.flink), servers))
        late = deadline(options.minutes)
        run = lambda pair: restore(bench, found[pair.id], pair)  # noqa: E731
        failures = bench.measure(pairs, options.threads, say, late, add, run)
    for failure in failures:
        name, _, why = failure.partition(": ")
        found[name] = replace(found[name], fault=why.partition("\n")[0][:300])
    return list(found.values())


if __name__ == "__main__":
    raise SystemExit(main())
