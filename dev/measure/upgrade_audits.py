"""Share of random public scripts whose upgrade ``flinkcompat audit`` judges, by pair of lines.

Each script is judged with the planners of both lines. Scripts without a job and unreadable scripts, which the new line
or both lines refuse, do not count. ``--list`` names the rows with a result, and their causes.

Exit status: 0 measured.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from airflow_flinkcompat.fleet.audit.judging import audit_pair
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow
from airflow_flinkcompat.model import JobSpec
from dev.measure import corpus
from dev.measure.corpus_restores import SCRIPTS
from dev.tools import publish

PAIRS = ("1.19:2.3", "1.20:2.3", "2.0:2.3", "2.1:2.3", "2.2:2.3", "1.20:2.2")
_SHOWN = (AuditResult.COMPATIBLE, AuditResult.CONDITIONAL, AuditResult.INCOMPATIBLE, AuditResult.UNKNOWN)
_OTHERS = (AuditResult.UNREADABLE, AuditResult.NO_JOB)


def drawn(scripts: Iterable[str], number: int, seed: int, without: Iterable[str] = ()) -> list[str]:
    """Draw different random scripts that are not among others."""
    known = {each.strip() for each in without}
    texts = sorted({each.strip() for each in scripts} - known)
    return random.Random(seed).sample(texts, min(number, len(texts)))


def audited(scripts: Sequence[str], old: str, new: str) -> Iterator[AuditRow]:
    """Judge the upgrade of each script; its name is its number."""
    for number, script in enumerate(scripts):
        name = f"{number:03}.sql"
        before, after = (JobSpec(script, engine="flink", engine_version=line, source=name) for line in (old, new))
        yield audit_pair(AuditPair(name, before, after, planner="always"))


def row_of(pair: str, results: Counter[AuditResult]) -> tuple[object, ...]:
    """The results of one pair of lines, and the share of readable scripts with a verdict."""
    readable = results.total() - sum(results[each] for each in _OTHERS)
    share = (readable - results[AuditResult.UNKNOWN]) / readable if readable else 0
    counts = (results[each] for each in (*_SHOWN, *_OTHERS))
    return pair.replace(":", " to "), readable, *counts, f"{share:.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure upgrade-audits", description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the corpus")
    parser.add_argument("--number", type=int, default=100, help="number of scripts (default: 100)")
    parser.add_argument("--seed", type=int, default=48, help="seed of the sample (default: 48)")
    parser.add_argument("--without", type=Path, nargs="*", default=(), help="folders of scripts to leave out")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the sample to a folder")
    parser.add_argument("--pairs", nargs="*", default=PAIRS, metavar="OLD:NEW", help="pairs of lines")
    parser.add_argument("--list", nargs="*", default=(), metavar="RESULT", help="name the rows with these results")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table into a file, too")
    options = parser.parse_args(arguments)
    others = (path.read_text(encoding="utf-8") for folder in options.without for path in folder.glob("*.sql"))
    texts = (script["text"] for script in corpus.read(options.corpus / SCRIPTS))
    scripts = drawn(texts, options.number, options.seed, others)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        for number, script in enumerate(scripts):
            (options.save / f"{number:03}.sql").write_text(script, encoding="utf-8")
    publish(_table(scripts, options.pairs, options.list), options.write)
    return 0


def _table(scripts: Sequence[str], pairs: Sequence[str], listed: Sequence[str]) -> Iterator[str]:
    shown: list[str] = []
    yield f"# Audits of upgrades of random public scripts, {datetime.now(UTC).date().isoformat()}"
    yield f"\n{len(scripts)} scripts, judged by `flinkcompat audit --planner always` for each pair of lines.\n"
    head = ("lines", "readable", *(each.value for each in (*_SHOWN, *_OTHERS)), "with a verdict")
    yield from corpus.table(head, ())
    for pair in pairs:
        rows = list(audited(scripts, *pair.split(":")))
        yield from list(corpus.table((), (row_of(pair, Counter(each.result for each in rows)),)))[2:]
        for each in (row for row in rows if row.result.value in listed):
            causes = "; ".join(f"{cause.reason}: {cause.message}" for cause in each.causes)
            shown.append(f"* {pair} {each.name} {each.result}: {causes}")
    yield from ("", *shown) if shown else ()


if __name__ == "__main__":
    raise SystemExit(main())
