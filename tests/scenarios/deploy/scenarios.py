"""What a redeploy that is killed is to come to on a real Flink: scenarios as data, and one case of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from airflow_flinkcompat.deploy import Options, Start
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    JobStart,
    LedgerEntry,
    StepEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import OpenTarget, TargetLocation
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import SETTINGS, Files, Side, wait_for
from tests.scenarios.deploy.kill_cases import OWNER, Case, Scenario
from tests.scenarios.deploy.kills import Attempt, Told

OPTIONS = Options(settle_seconds=0.5, start_timeout=240, stop_timeout=240)
PATIENCE = 600.0
"""How long (seconds) a step of a case may take before the case is held to be wrong: six go on at once."""
# Rows may be ten minutes late, so that files which arrive while nothing runs may be read in any order.
FILES = {
    "before": [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 4, "01:10"), ("ann", 100, "11:00")],  # ends minute 0
    "while it runs": [("ann", 8, "02:10"), ("bob", 1, "01:10"), ("ann", 200, "11:30")],
    "while nobody deploys": [("ann", 16, "02:30"), ("ann", 400, "12:10")],  # ends minute 1
    "after": [("ann", 32, "02:40"), ("ann", 800, "13:10")],  # ends minute 2
}
TOTALS = {
    "before": ['ann,3,"2026-01-01 00:00:00"'],
    "while nobody deploys": ['ann,4,"2026-01-01 00:01:00"', 'bob,1,"2026-01-01 00:01:00"'],
    "after": ['ann,56,"2026-01-01 00:02:00"'],
}
"""Rows of the windowed job, by the file whose watermark ends their window."""
COPIES = {name: [f'{who},{amount},"2026-01-01 00:{at}"' for who, amount, at in rows] for name, rows in FILES.items()}
"""Rows of a job that copies what it reads, in any order, from the first file on."""


def _script(files: Files, **changes: str) -> str:
    """The jobs' script, with a patient watermark."""
    eager, patient = "FOR ts AS ts", "FOR ts AS ts - INTERVAL '10' MINUTE"
    text = files.script(**changes)
    assert eager in text
    return text.replace(eager, patient)


def _succeeds(files: Files) -> Side:
    return Side(_script(files), {**SETTINGS, "table.exec.state.ttl": "1 d"})


def _refused_at_submit(files: Files) -> Side:
    return Side(_script(files, where=" WHERE amount > 1"))


def _refused_at_restore(files: Files) -> Side:
    """It restarts for ever, so it has to be cancelled."""
    more = "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT"
    script = _script(files, select="customer, SUM(amount), window_start, MAX(amount)", columns=more)
    return Side(script, {**SETTINGS, "restart-strategy.type": "exponential-delay"})


def _migrated(files: Files) -> Side:
    """Other key groups, to which state is written by itself: Flink alone refuses the savepoint."""
    return Side(_script(files), {**SETTINGS, "pipeline.max-parallelism": "64"})


def _distinct(files: Files) -> str:
    """A job with state and without watermarks, which writes each row once."""
    tables, _, _ = _script(files).partition("INSERT INTO")
    tables, watermark = re.subn(r", WATERMARK FOR [^)]*(?=\n\))", "", tables)
    assert watermark
    numbered = "ROW_NUMBER() OVER (PARTITION BY customer, amount, ts ORDER BY arrived) AS n"
    rows = f"SELECT *, {numbered} FROM (SELECT *, PROCTIME() AS arrived FROM orders)"
    return f"{tables}INSERT INTO totals SELECT customer, amount, ts FROM ({rows}) WHERE n = 1;"


def _migrated_distinct(files: Files) -> Side:
    return Side(_distinct(files), {**SETTINGS, "pipeline.max-parallelism": "64"})


def _computed(files: Files) -> Side:
    """The same sum in other words, which no former state is one of: it is computed from history."""
    return Side(_script(files, select="customer, SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END), window_start"))


def _copies(files: Files) -> Side:
    """No state of the windowed job fits it."""
    tables, _, _ = _script(files).partition("INSERT INTO")
    return Side(f"{tables}INSERT INTO totals SELECT customer, amount, ts FROM orders;")


@dataclass(frozen=True)
class FlinkScenario(Scenario):
    """``recorded`` is the side that the ledger says runs, where that is not the one that does.

    ``history``: state is computed from the rows that were read. ``catch_up``: the new script catches up with the job.
    """

    proposed: Callable[[Files], Side] = _succeeds
    history: bool = False
    catch_up: bool = False
    recorded: Callable[[Files], Side] | None = None
    former: Callable[[Files], str] = _script

    @property
    def rows(self) -> dict[str, list[str]]:
        """All rows that are written, by the file after which they are."""
        if self.former is _distinct:
            return COPIES
        if self.proposed is not _copies:
            return TOTALS
        return COPIES if self.first else {**COPIES, "before": TOTALS["before"] + COPIES["before"]}


SCENARIOS = (
    FlinkScenario("succeeds", "deployed", late="", again=True),
    FlinkScenario(
        "refused at submit", "RolledBack", proposed=_refused_at_submit, only="^(starting|failed|rolling-back)"
    ),
    FlinkScenario(
        "refused at restore",
        "RolledBack",
        proposed=_refused_at_restore,
        only="^(started|failed|rolling-back)",
        late="^(failed|rolling-back)",
        again=True,
    ),
    FlinkScenario(
        "migrates",
        "deployed",
        "migrated",
        proposed=_migrated,
        only="^(stopped|migrating|migrated|starting)",
        late="migrat",
    ),
    FlinkScenario("goes on from a checkpoint", "deployed", "checkpoint", only="PATCH"),
    FlinkScenario(
        "starts without state", "deployed", "stateless", proposed=_copies, only="^(stopped|starting|started)"
    ),
    FlinkScenario("first start", "deployed", "auto-first", proposed=_copies, first=True, late=""),
    FlinkScenario(
        "cannot be rolled back",
        "StartFailed",
        proposed=_refused_at_submit,
        recorded=lambda files: Side(_script(files, where=" WHERE amount > 2")),
        only="^(failed|rolling-back)",
    ),
)


FROM_HISTORY = FlinkScenario(
    "computes from history",
    "deployed",
    "migrated",
    proposed=_computed,
    history=True,
    only=r"savepoints|published|ledger (stopping|stopped|migrating|migrated|starting)|^deploying",
)


CATCHES_UP = FlinkScenario(
    "catches up",
    "deployed",
    "migrated",
    proposed=_migrated_distinct,
    former=_distinct,
    catch_up=True,
    only=FROM_HISTORY.only,
)


class _Flink(Protocol):
    """A target of a local Flink, which starts jobs under ids of their caller."""

    _jobmanager: JobManager


@dataclass
class FlinkCase(Case[FlinkScenario, Any]):
    """A case on a real Flink. ``place``: opens the target, for any process; ``location`` does, too, for a migration."""

    flink: LocalFlink = field(kw_only=True)
    place: Callable[[], OpenTarget] = field(kw_only=True)
    location: TargetLocation | None = None
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        super().__post_init__()
        self.files = Files(self.root / self.name)

    @contextmanager
    def staged(self) -> Iterator[Any]:
        with self.place() as target:
            try:
                yield target
            finally:
                for job_id in target.running(self.name):
                    target.cancel(job_id)

    def while_it_runs(self) -> None:
        self.files.arrive("while it runs", FILES["while it runs"])

    def while_nobody_deploys(self) -> None:
        self.files.arrive("while nobody deploys", FILES["while nobody deploys"])

    def attempt(self, first: DeployedEntry | None) -> Attempt:
        mode = self.scenario.start_mode
        return Attempt(
            self.place,
            self.root / "ledger",
            self.name,
            self.scenario.proposed(self.files),
            mode,
            first.sha256 if first else None,
            OWNER,
            OPTIONS,
            "incompatible" if mode == "stateless" else "compatible",
            location=self.location,
            history=KnownHistory({"orders": ""}) if self.scenario.history else None,
            catch_up=self.scenario.catch_up,
        )

    @property
    def _former(self) -> Side:
        """What runs before."""
        kept = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
        return Side(self.scenario.former(self.files), {**SETTINGS, **kept})

    def deployed(self, target: Any) -> DeployedEntry | None:
        """With an open window in its state."""
        self.files.arrive("before", FILES["before"])
        if self.scenario.first:
            return None
        job_id = new_id()
        self._submit(target, Start(), job_id)
        recorded = self.scenario.recorded(self.files) if self.scenario.recorded else self._former
        entry = DeployedEntry(job=recorded, start=JobStart(job_id=job_id), owner="an earlier run")
        rows = COPIES if self.scenario.former is _distinct else TOTALS
        wait_for(lambda: self.files.rows() == sorted(rows["before"]), "the first rows are written", PATIENCE)
        return self.ledger.append(entry)

    def _submit(self, target: Target, start: Start, job_id: str) -> None:
        settings = {"pipeline.name": self.name, **self._former.settings}
        target.start(JobSpec(self._former.script, settings, source="orders.sql"), start, job_id)

    def _known(self, target: _Flink) -> None:
        """There never was a job of this name that the ledger does not know."""
        known = {entry.job_id for entry in self.ledger.entries() if isinstance(entry, StepEntry)}
        had = {job.job_id for job in target._jobmanager.jobs().values() if job.name == self.name}
        assert had <= known, f"jobs the ledger does not know: {had - known}"

    def check_job(self, target: Any) -> None:
        if self.scenario.comes_to == "StartFailed":
            self._check_nothing_runs(target, self.told[-1].message)
        else:
            super().check_job(target)
            self._known(target)

    def _check_nothing_runs(self, target: Any, message: str) -> None:
        """Both ways failed: the message says so, names the savepoint, and what it tells to type brings the job back."""
        assert target.running(self.name) == ()
        self._known(target)
        (savepoint,) = {each.stop.savepoint for each in self.ledger.entries() if isinstance(each, StoppedEntry)}
        how, why = (
            r"(the job was refused: |job \w{32} is FAILED after its start: )",
            "Cannot map checkpoint/savepoint state ",
        )
        reason = rf"{how}[^\n]*{why}[^\n]*"
        said = re.fullmatch(rf"{reason}\. The rollback also failed: {reason}\.\n(No job of .*)", message, re.DOTALL)
        assert said, message
        first = self.ledger.directory / "000001.json"
        assert said[3] == (
            f"No job of {self.name} runs now.\n"
            "To restart the former job, deploy the script of ledger entry 1 again with start mode 'savepoint', which "
            "uses that state. Or start it manually, in one session of the SQL Gateway:\n"
            f"  SET 'execution.state-recovery.path' = '{savepoint}';\n"
            "  SET 'execution.state-recovery.claim-mode' = 'NO_CLAIM';\n"
            f"  SET 'execution.savepoint.path' = '{savepoint}';\n"
            "  SET 'execution.savepoint-restore-mode' = 'NO_CLAIM';\n"
            f"  and the statements of {first}"
        ), message
        self._submit(target, Start(savepoint), new_id())

    def savepoints(self) -> list[str]:
        found = (self.flink.work_dir / "savepoints" / self.name).glob("*/savepoint-*/_metadata")
        return [f"file:{path.parent}" for path in found]

    def check_stopped(
        self, entries: Sequence[LedgerEntry], first: DeployedEntry | None, savepoints: Sequence[str]
    ) -> None:
        super().check_stopped(entries, first, savepoints)
        for each in entries:
            if isinstance(each, StoppedEntry):  # a checkpoint, too
                assert (Path(str(each.stop.savepoint).removeprefix("file:")) / "_metadata").is_file()

    def check_platform(self, target: Any, told: Told) -> None:
        """The rows of an undisturbed run: none lost, none written twice."""
        late = self.scenario.rows["after"]
        early = sorted(row for name, rows in self.scenario.rows.items() for row in rows if name != "after")
        wait_for(lambda: len(self.files.rows()) >= len(early), "what arrived before is written", PATIENCE)
        # Restored state contains the first rows, so a job that writes each row once does not write them again.
        again = FILES["before"] if self.scenario.former is _distinct else []
        self.files.arrive("after", [*again, *FILES["after"]])
        wait_for(lambda: len(self.files.rows()) >= len(early + late), "all is written", PATIENCE)
        assert self.files.rows() == sorted(early + late)
