"""Deploying: the first start, and the resumable sequence that replaces a running job by its successor.

Claim in the ledger → stop with savepoint → start → verify → ledger. Every step is an entry, so a run that dies in
between is taken up where it stopped: a savepoint that was taken is used, a job that was started is verified.
"""

from __future__ import annotations

import dataclasses
import getpass
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from airflow_flinkcompat.compat.handover import HandOver, fingerprint
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
from airflow_flinkcompat.deploy.handover import check_hand_over
from airflow_flinkcompat.deploy.ledger import DEPLOYED, Ledger, LedgerConflict, LedgerEntry
from airflow_flinkcompat.deploy.statements import JOB_NAME, prepare
from airflow_flinkcompat.deploy.target import EngineInfo, Start, StartMode, Target
from airflow_flinkcompat.deploy.verify import VerificationFailed, verify_start

_log = logging.getLogger(__name__)
DEPLOYING, STOPPED, STARTED, FAILED = "deploying", "stopped", "started", "failed"
_STEPS = (DEPLOYING, STOPPED, STARTED, DEPLOYED)


class StartFailed(DeployError):
    """The former job was stopped (if there was one) and the new one does not run; the message says what to do."""


class Deployable(Protocol):
    """The proposed side, as ``compat.Side`` has it."""

    @property
    def script(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str]: ...
    @property
    def functions(self) -> Sequence[Any]: ...
    @property
    def catalog(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def engine_version(self) -> str | None: ...
    @property
    def source(self) -> str: ...
    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True)
class Options:
    """How patiently and where. Times in seconds; ``savepoint_directory`` None is the cluster's own."""

    savepoint_directory: str | None = None
    settle_seconds: float = 10.0
    start_timeout: float = 300.0
    # How long an unfinished run of another owner keeps this one out.
    claim_seconds: float = 900.0
    # Allow a stateless start although the ledger's job has ended (failed, or stopped by hand).
    allow_ended: bool = False


def deploy(
    target: Target,
    ledger: Ledger,
    side: Deployable,
    *,
    start_mode: StartMode | str = StartMode.AUTO_FIRST,
    checked_old_sha256: str | None,
    outcome: str | None = None,
    report_path: str | None = None,
    approved_by: str | None = None,
    owner: str | None = None,
    hand_over: HandOver | None = None,
    options: Options | None = None,
    log: Callable[[str], None] = _log.info,
) -> LedgerEntry:
    """Deploy ``side`` and return its ``deployed`` ledger entry.

    ``checked_old_sha256`` is the hash of the old side that the change was checked against; None: nothing was deployed
    then. ``owner`` names this run (the same name may take up its own unfinished run at once). With nothing deployed
    the start is stateless; ``savepoint`` is refused then. A stateless restart stops with a savepoint too, so that
    nothing is lost. ``hand_over`` is the record of the backfill this job goes on from: its start is stateless, and the
    record, kept in the ledger, is of this very script. Raises DeployRefused (nothing touched), StartFailed, or another
    DeployError.
    """
    context = {
        "outcome": outcome,
        "report_path": report_path,
        "approved_by": approved_by,
        "hand_over": None if hand_over is None else hand_over.to_dict(),
    }
    mode, who = StartMode(start_mode), owner or default_owner()
    if hand_over is not None:
        functions = [_mapping(function) for function in side.functions]
        resumes = mode is StartMode.SAVEPOINT or (mode is StartMode.AUTO_FIRST and ledger.head() is not None)
        check_hand_over(hand_over, fingerprint(side.script, side.settings, functions, side.catalog), resumes)
        for line in hand_over.lines():
            log(line)
    return _Run(target, ledger, side, mode, context, who, options or Options(), log).deploy(checked_old_sha256)


def default_owner() -> str:
    """This process: ``user@host:pid``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's nameless user
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


@dataclass
class _Run:
    target: Target
    ledger: Ledger
    side: Deployable
    mode: StartMode
    context: Mapping[str, Any]
    owner: str
    options: Options
    log: Callable[[str], None]
    last: int = 0

    def deploy(self, checked_old_sha256: str | None) -> LedgerEntry:
        entries = self.ledger.entries()
        self.last = entries[-1].number if entries else 0
        head = next((entry for entry in reversed(entries) if entry.kind == DEPLOYED), None)
        since = tuple(entry for entry in entries if (head is None or entry.number > head.number) and _is_step(entry))
        self._check_head(head, checked_old_sha256)
        self._check_claim(since)
        engine = self.target.engine()
        self._check_version(engine)
        settings = {JOB_NAME: self.ledger.deployment, **self.side.settings}
        self.log(f"validating {self.side.source} on {engine.engine} {engine.version}")
        self.target.validate(self.side.script, settings, source=self.side.source)
        template = self._template()
        if unfinished := self._unfinished(since):
            self.log(f"entry {unfinished.number} started job {unfinished.job_id} and did not verify it: verifying it")
            from_savepoint = unfinished.start_mode == StartMode.SAVEPOINT
            template = replace(template, start_mode=unfinished.start_mode, savepoint=unfinished.savepoint)
            start = Start(unfinished.savepoint if from_savepoint else None)
            return self._verify(template, str(unfinished.job_id), start, head)
        stop, savepoint = self._old_state(head, since)
        self._check_strangers(settings, head)
        self._append(replace(template, kind=DEPLOYING))
        if stop and head:
            savepoint = self._stop(template, head)
        start = self._start(head, savepoint)
        return self._submit(template, settings, start, head, savepoint)

    # ------------------------------------------------------------------ what must hold before anything is touched
    def _check_head(self, head: LedgerEntry | None, checked: str | None) -> None:
        name = self.ledger.deployment
        if head is None and checked is not None:
            raise DeployRefused(
                f"the change was checked against a deployed side ({_short(checked)}), but the ledger of {name} "
                "holds no deployment: is it the right ledger? Check again"
            )
        if head is None and self.mode is StartMode.SAVEPOINT:
            raise DeployRefused(
                f"{name} was never deployed: there is no savepoint to start from; use start mode {StartMode.AUTO_FIRST}"
            )
        if head is not None and head.sha256 != checked:
            seen = f"against {_short(checked)}" if checked else "while nothing was deployed"
            raise DeployRefused(
                f"the change was checked {seen}, but entry {head.number} of the ledger of {name} deployed "
                f"{_short(head.sha256)} at {head.at}: check the change again, against what is deployed now"
            )

    def _check_version(self, engine: EngineInfo) -> None:
        wanted = (self.side.engine_version or "").split(".")[:2]
        if self.side.engine == engine.engine and wanted != [""] and wanted != engine.version.split(".")[: len(wanted)]:
            raise DeployRefused(
                f"the change was checked for {self.side.engine} {self.side.engine_version}, the target is "
                f"{engine.engine} {engine.version}: check it again for that version"
            )

    def _check_claim(self, since: Sequence[LedgerEntry]) -> None:
        last = since[-1] if since else None
        if last is None or last.kind not in (DEPLOYING, STOPPED, STARTED) or last.owner == self.owner:
            return
        age = (datetime.now(UTC) - datetime.fromisoformat(last.at)).total_seconds()
        if age < self.options.claim_seconds:
            raise DeployRefused(
                f"{last.owner} is deploying {self.ledger.deployment} (entry {last.number}, {last.kind}, "
                f"{age:.0f} s ago): wait for it; should it have died, its run can be taken over in "
                f"{self.options.claim_seconds - age:.0f} s"
            )
        self.log(f"taking over the unfinished run of {last.owner} (entry {last.number}, {last.kind})")

    def _unfinished(self, since: Sequence[LedgerEntry]) -> LedgerEntry | None:
        """The job that an earlier run started and did not verify, if it still runs."""
        last = since[-1] if since else None
        if last is None or last.kind != STARTED or not last.job_id:
            return None
        status = self.target.status(last.job_id)
        if status is None or status.terminal:
            return None
        if last.sha256 != self.side.sha256:
            raise DeployRefused(
                f"job {last.job_id} of entry {last.number} runs another version ({_short(last.sha256)}) that was never "
                "verified: cancel it, then deploy again"
            )
        return last

    def _old_state(self, head: LedgerEntry | None, since: Sequence[LedgerEntry]) -> tuple[bool, str | None]:
        """Whether the ledger's job is to be stopped, and the savepoint an earlier run has stopped it with."""
        if head is None:
            return False, None
        status = self.target.status(str(head.job_id))
        if status is not None and not status.terminal:
            return True, None
        stopped = next((e for e in reversed(since) if e.kind == STOPPED and e.job_id == head.job_id), None)
        if stopped is not None:
            self.log(f"job {head.job_id} was stopped by entry {stopped.number}; its state is in {stopped.savepoint}")
            return False, stopped.savepoint
        if self.options.allow_ended and self.mode is StartMode.STATELESS:
            return False, None
        seen = f"is {status.state}" if status else "is unknown to the cluster"
        raise DeployRefused(
            f"job {head.job_id} of {self.ledger.deployment} (ledger entry {head.number}) {seen}, and no deployment has "
            "stopped it: there is no savepoint to go on from. Find out why it ended; then restart it stateless with "
            "ended jobs allowed"
        )

    def _check_strangers(self, settings: Mapping[str, str], head: LedgerEntry | None) -> None:
        name = prepare(self.side.script, self.side.source).job_name or settings[JOB_NAME]
        strangers = [job for job in self.target.running(name) if head is None or job != head.job_id]
        if strangers:
            raise DeployRefused(
                f"job {', '.join(strangers)} named {name!r} runs on the cluster and is not the one of the ledger "
                f"({head.job_id if head else 'nothing is deployed'}): two would write to one sink. Stop it, or "
                "deploy under another name"
            )

    # --------------------------------------------------------------------------------------------- the sequence
    def _stop(self, template: LedgerEntry, head: LedgerEntry) -> str:
        job_id = str(head.job_id)
        self.log(f"stopping job {job_id} with a savepoint (open windows stay open)")
        try:
            savepoint = self.target.stop_with_savepoint(job_id, self.options.savepoint_directory)
        except DeployError as error:
            status = self.target.status(job_id)
            state = status.state if status else "gone"
            message = f"job {job_id} could not be stopped with a savepoint and is {state}: {error}"
            self._append(replace(template, kind=FAILED, job_id=job_id, message=message))
            raise StartFailed(message) from None
        self._append(replace(template, kind=STOPPED, job_id=job_id, savepoint=savepoint))
        self.log(f"stopped; its state is in {savepoint}")
        return savepoint

    def _start(self, head: LedgerEntry | None, savepoint: str | None) -> Start:
        if head is None or self.mode is StartMode.STATELESS:
            return Start()
        return Start(savepoint)

    def _submit(
        self,
        template: LedgerEntry,
        settings: Mapping[str, str],
        start: Start,
        head: LedgerEntry | None,
        savepoint: str | None,
    ) -> LedgerEntry:
        template = replace(template, start_mode=str(start.mode), savepoint=savepoint)
        self.log(f"starting from {start.savepoint or 'an empty state'}")
        try:
            job_id = self.target.submit(self.side.script, settings, start, source=self.side.source)
        except DeployError as error:
            raise self._failed(template, f"the job was refused: {error}", head) from None
        template = replace(template, job_id=job_id)
        self._append(replace(template, kind=STARTED))
        return self._verify(template, job_id, start, head)

    def _verify(self, template: LedgerEntry, job_id: str, start: Start, head: LedgerEntry | None) -> LedgerEntry:
        template = replace(template, job_id=job_id)
        try:
            status = verify_start(
                self.target,
                job_id,
                start,
                settle_seconds=self.options.settle_seconds,
                timeout=self.options.start_timeout,
                log=self.log,
            )
        except VerificationFailed as error:
            raise self._failed(template, str(error), head, self._cancel(job_id)) from None
        entry = self._append(replace(template, kind=DEPLOYED, message=f"{status.state}, verified"))
        self.log(f"deployed: job {job_id} is {status.state}, verified; ledger entry {entry.number}")
        return entry

    def _cancel(self, job_id: str) -> str:
        """End a job that must not go on; what to add to the message when that fails."""
        try:
            status = self.target.status(job_id)
            if status is not None and not status.terminal:
                self.target.cancel(job_id)
        except DeployError as error:
            return f" Job {job_id} could not be cancelled ({error}): cancel it by hand."
        return ""

    def _failed(self, template: LedgerEntry, reason: str, head: LedgerEntry | None, addition: str = "") -> StartFailed:
        entry = self._append(replace(template, kind=FAILED, message=reason))
        return StartFailed(f"{reason}.{addition}\n{self._way_back(entry, head)}")

    def _way_back(self, entry: LedgerEntry, head: LedgerEntry | None) -> str:
        name = self.ledger.deployment
        if head is None:
            return f"Nothing of {name} runs, as before."
        if not entry.savepoint:
            return f"Nothing of {name} runs now; its former job {head.job_id} (entry {head.number}) had ended before."
        return (
            f"Nothing of {name} runs now. The former job {head.job_id} was stopped; its state is safe in\n"
            f"  {entry.savepoint}\n"
            f"To bring it back, deploy the script of ledger entry {head.number} again with start mode 'savepoint' "
            "(it starts from there); or by hand, in one session of the SQL Gateway:\n"
            f"  SET 'execution.state-recovery.path' = '{entry.savepoint}';\n"
            "  SET 'execution.state-recovery.claim-mode' = 'NO_CLAIM';\n"
            f"  and the statements of {self.ledger.directory / f'{head.number:06d}.json'}"
        )

    # --------------------------------------------------------------------------------------------- the ledger
    def _template(self) -> LedgerEntry:
        return LedgerEntry(
            kind="",
            script=self.side.script,
            settings=dict(self.side.settings),
            functions=tuple(_mapping(function) for function in self.side.functions),
            catalog=self.side.catalog,
            engine=self.side.engine,
            engine_version=self.side.engine_version,
            sha256=self.side.sha256,
            start_mode=str(self.mode),
            owner=self.owner,
            **self.context,
        )

    def _append(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the next step. Raises LedgerConflict when another run deploys too; no further step is taken then."""
        while True:
            try:
                stored = self.ledger.append(entry, after=self.last)
            except LedgerConflict:
                others = [other for other in self.ledger.entries() if other.number > self.last]
                if not any(other.kind in _STEPS for other in others):  # a rejection, say: it takes no part in this
                    self.last = others[-1].number
                    continue
                if entry.kind != DEPLOYING:  # what was done is recorded in any case
                    self.ledger.append(
                        replace(entry, message=f"{entry.message} (another run wrote in between)".strip())
                    )
                raise
            self.last = stored.number
            return stored


def _is_step(entry: LedgerEntry) -> bool:
    """Whether a deployment wrote the entry; a decision or a failed check in between takes no part in the sequence."""
    return entry.kind in _STEPS or (entry.kind == FAILED and bool(entry.script))


def _mapping(value: Any) -> Mapping[str, Any]:
    """A declared function as JSON values; where it was declared is not kept."""
    row = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else dict(value)
    return {key: item for key, item in row.items() if key != "span"}


def _short(sha256: str | None) -> str:
    return (sha256 or "?")[:12]
