"""Restore stateful public jobs of one line of Flink on another, and compare the verdicts.

Each job runs as :mod:`dev.measure.public_jobs` adapts it: on the old line over the first rows, then a canonical
savepoint, then on the new line from it, without ``allowNonRestoredState``, each with the connectors' jars of its line.
Rows are compared with those of the new line from scratch. A script that the new line refuses runs again with the edits
of ``flinkcompat upgrade``. The verdict is that of ``flinkcompat audit`` with the planners of both lines. If the new
line refuses or loses the state, the savepoint is migrated: by the plan of each line, with a template of the new
line. ``--refused`` runs only jobs with such a verdict.

Exit status: 0 no job with verdict compatible and no migrated job was refused or wrong, 1 one was, 2 not run.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_flinkcompat.compat import InputError, check
from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet.audit.judging import audit_pair
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow
from airflow_flinkcompat.fleet.upgrades import upgrades
from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.sql import ScriptError
from dev.measure import corpus, results, services
from dev.measure.corpus_restores import NOT_RUN, SCRIPTS, UNCOMPARED, Restored, known_tables, restore
from dev.measure.pair_runner import PairRunner
from dev.measure.pairs import CACHE, Pair, Side
from dev.measure.progress import GENERATED
from dev.measure.public_jobs import NotRunnable, PublicJob
from dev.measure.run_migrations import lost_state, migration_of_plans
from dev.measure.running import add_arguments, bench_of, deadline, say
from dev.tools import publish

_KINDS = ("job", "job-query", "dml-only", "query-only")
"""Kinds of scripts in the corpus that hold a whole job, perhaps over tables of their repository."""
_HEAD = (
    *("id", "script", "stateful operators", "replaced connectors"),
    *("edits", "verdict", "restore", "rows compared", "agreement", "migrated"),
)
_NOT_WRITTEN = "not written"
"""Outcome of a migration that the plans promise, if no savepoint was written."""
_READ = ("right", "unknown")
"""Effects of an upgrade on an operator that neither refuse nor lose its state."""


@dataclass(frozen=True)
class Upgraded:
    """The verdict on an upgrade and the result of its restore."""

    restored: Restored
    verdict: str
    consequence: str = ""
    cause: str = ""
    edits: str = ""
    refused: str = ""
    kept: str = ""
    migrated: Restored | None = None

    @property
    def agreement(self) -> str:
        """Agreement of verdict and restore in a few words."""
        outcome = results.RIGHT if self.restored.outcome == UNCOMPARED else self.restored.outcome
        return results.agreement(self.verdict, self.consequence, outcome)


def jobs(folder: Path, line: str) -> Iterator[tuple[Restored, PublicJob, str]]:
    """Stateful jobs of the corpus as the bench runs them; those with rare operators first."""
    known = known_tables(folder)
    found: dict[str, list[tuple[Restored, PublicJob, str]]] = defaultdict(list)
    seen: set[str] = set()
    for name, repository, path, text in _texts(folder):
        try:
            job = PublicJob(f"p{name}", text, text, known[repository])
            adapted = job.scripts()[0]
            side = JobSide(adapted, engine="flink", engine_version=line, source="job.sql")
            operators = sorted({each.kind for each in check(side, side).operators})
        except (NotRunnable, InputError, ScriptError):
            continue
        anonymous = adapted.replace(name, "")
        if operators and anonymous not in seen:
            seen.add(anonymous)
            origin = f"{repository} {path}".replace("|", "/")
            restored = Restored(name, origin, ", ".join(operators), replaced=", ".join(sorted(job.replaced)))
            found[restored.operators].append((replace(restored, by_clock=job.by_clock), job, adapted))
    turns = ((turn, len(of), each) for of in found.values() for turn, each in enumerate(of))
    yield from (each for *_, each in sorted(turns, key=lambda turn: turn[:2]))


def _texts(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Id, repository, path and text of each script, then of the old script of each change."""
    for script in corpus.read(folder / SCRIPTS):
        if script["kind"] in _KINDS:
            yield script["id"], script["repo"].replace("+", "/"), script["path"], script["text"]
    for change in corpus.read(folder / corpus.CHANGES):
        repository, _, path = str(change["origin"]).partition("@")
        yield change["id"], repository, path, change["old"]


class Upgrades:
    """Upgrades of jobs from one running Flink to another."""

    def __init__(self, old: PairRunner, new: PairRunner, lines: tuple[str, str], *, refused: bool) -> None:
        self._old, self._new, self._lines, self._refused = old, new, lines, refused

    def of(self, change: Restored, job: PublicJob, script: str) -> Iterator[Upgraded]:
        """The results of a job: as it is, and with edits if the new line asks for some."""
        job.feed()
        side = self._old.complete(Side(script, database=job.database()))
        asked = self._asked(change.id, side)
        row = audit_pair(asked)
        if self._wanted(row):
            yield self._judged(change, row, Pair(change.id, "public", "", side, side))
        for upgrade in upgrades((asked,)):
            if upgrade.edited is not None and upgrade.edited.edits and self._wanted(upgrade.row):
                new = replace(side, script=upgrade.edited.job.script)
                edits = "; ".join(each.new.strip() for each in upgrade.edited.edits)
                found = self._judged(change, upgrade.row, Pair(change.id, "public", "", side, new))
                yield replace(found, edits=edits)

    def _wanted(self, row: AuditRow) -> bool:
        return not self._refused or row.result is AuditResult.INCOMPATIBLE

    def _asked(self, name: str, side: Side) -> AuditPair:
        settings = {**results.SETTINGS, **dict(side.settings)}
        old, new = (JobSpec(side.script, settings, engine="flink", engine_version=line) for line in self._lines)
        return AuditPair(name, old, new, planner="always")

    def _judged(self, change: Restored, row: AuditRow, pair: Pair) -> Upgraded:
        cause = row.causes[0] if row.causes else None
        refused = ", ".join(dict.fromkeys(each.operator for each in row.operators if each.effect not in _READ))
        verdict = row.result.value, cause.consequence if cause else "", cause.message if cause else ""
        try:
            found = Upgraded(restore(self._new, change, pair, self._old.taken(pair)), *verdict, refused=refused)
            if found.restored.outcome in (results.RIGHT, UNCOMPARED, results.NOT_PLANNED):
                return found
            return self._migrated(found, change, replace(pair, id=f"{pair.id} migrated"))
        except DeployError as error:
            return Upgraded(replace(change, fault=str(error).partition("\n")[0][:300]), *verdict)

    def _migrated(self, found: Upgraded, change: Restored, pair: Pair) -> Upgraded:
        """The result with a migrated savepoint. Raises DeployError."""
        sides = self._old.complete(pair.old), self._new.complete(pair.new)
        made, _ = migration_of_plans((self._old.compiled(sides[0]), self._new.compiled(sides[1])), sides, self._lines)
        if made.kept is MigrationExtent.NONE:
            return replace(found, kept=made.kept, migrated=replace(change, fault=lost_state(made)))
        savepoint = self._old.taken(pair)
        target = f"{savepoint.folder}/migrated"
        try:
            migrate_savepoint(savepoint.path, self._new.template(sides[1]), target, made, int(time.time() * 1000))
        except (DeployError, NotMigratable, MigrationVerificationFailed, SavepointUnreadable) as error:
            return replace(found, kept=made.kept, migrated=replace(change, fault=f"{type(error).__name__}: {error}"))
        restored = restore(self._new, change, pair, replace(savepoint, path=f"file:{target}"))
        return replace(found, kept=made.kept, migrated=restored)


def table(found: Iterator[Upgraded]) -> Iterator[str]:
    """The results as Markdown, a line as soon as it is measured."""
    yield from corpus.table(_HEAD, ())
    ran: list[Upgraded] = []
    migrated: list[tuple[str, str]] = []
    faults: list[str] = []
    for each in found:
        of = each.restored
        if of.outcome == NOT_RUN:
            faults.append(f"* {of.id} {of.origin}: not run, {of.fault}")
            say(faults[-1])
            continue
        ran.append(each)
        if each.agreement != "agree":
            faults.append(f"* {of.id}: {each.verdict}, {each.cause}; {of.outcome} {of.fault}")
        verdict = f"{each.verdict}, {each.consequence}" if each.consequence else each.verdict
        job = of.id, of.origin, of.operators, of.replaced
        state = ""
        if each.migrated is not None:
            rows = each.migrated
            outcome = _NOT_WRITTEN if rows.outcome == NOT_RUN else rows.outcome
            state = each.kept if each.kept == MigrationExtent.NONE else f"{each.kept}, {outcome}"
            migrated.append((each.refused, state))
            state += f", {rows.compared} rows" if rows.compared else ""
            if rows.fault:
                faults.append(f"* {of.id} migrated: {rows.fault}")
        cells = *job, each.edits, verdict, of.outcome, of.compared, each.agreement, state
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield f"{len(ran)} restores: " + ", ".join(f"{n} {of}" for of, n in Counter(e.agreement for e in ran).most_common())
    yield ""
    if migrated:
        counts = ((*of, number) for of, number in sorted(Counter(migrated).items()))
        yield from corpus.table(("state that is refused or lost", "migrated", "restores"), counts)
        yield ""
    yield from faults


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure upgrade-restores", description=__doc__)
    add_arguments(parser)
    parser.set_defaults(flink_old="1.20", threads=1)
    parser.add_argument("corpus", type=Path, help="the folder of the corpus")
    parser.add_argument("--refused", action="store_true", help="only jobs whose state the new line refuses or loses")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the result into a file, too")
    options = parser.parse_args(arguments)
    found: list[Upgraded] = []
    try:
        publish(table(_run(options, found)), options.write)
    except (DeployError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(any(map(_is_wrong, found)))


def _is_wrong(each: Upgraded) -> bool:
    """True if a restore that should be right was not, with or without a migration."""
    wrong = each.migrated is not None and each.migrated.outcome not in (results.RIGHT, UNCOMPARED, NOT_RUN)
    return wrong or (each.agreement == "FALSE COMPATIBLE" and each.restored.outcome != NOT_RUN)


def _run(options: argparse.Namespace, found: list[Upgraded]) -> Iterator[Upgraded]:
    shutil.rmtree(GENERATED, ignore_errors=True)
    folder, lines = CACHE / "upgrade-restores", (options.flink_old, options.flink)
    shutil.rmtree(folder, ignore_errors=True)
    late = deadline(options.minutes)
    drawn = [each for each in jobs(options.corpus, options.flink_old) if re.search(options.only, each[0].id)]
    say(f"{len(drawn)} jobs\n")
    with ExitStack() as stack:
        servers = stack.enter_context(services.services(folder / "services"))
        old, new = (stack.enter_context(bench_of(x, folder / x, services.jars(x), servers)) for x in lines)
        upgrading = Upgrades(old, new, lines, refused=options.refused)
        for change, job, script in drawn:
            if late():
                return
            try:
                for each in upgrading.of(change, job, script):
                    found.append(each)
                    yield each
            except DeployError as error:
                yield Upgraded(replace(change, fault=str(error).partition("\n")[0][:300]), AuditResult.UNREADABLE)


if __name__ == "__main__":
    raise SystemExit(main())
