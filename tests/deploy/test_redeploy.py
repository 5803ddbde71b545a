"""The order of a redeploy's steps and what each failure leaves behind, on a target that only pretends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat import compat
from airflow_flinkcompat.deploy import (
    DeployError,
    DeployRefused,
    EngineInfo,
    JobStatus,
    Ledger,
    LedgerConflict,
    LedgerEntry,
    Options,
    Start,
    StartFailed,
    deploy,
)
from airflow_flinkcompat.deploy.redeploy import Deployable
from airflow_flinkcompat.plan import FunctionDeclaration
from tests.deploy.jobs import Side

SCRIPT = "CREATE TABLE s (a INT) WITH ('connector'='datagen'); CREATE TABLE k LIKE s; INSERT INTO k SELECT a FROM s;"
V1, V2 = Side(SCRIPT), Side(SCRIPT, settings={"parallelism.default": "2"})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))


@dataclass
class Pretended:
    """A cluster in memory. ``fail`` names the call that fails."""

    version: str = "2.3.0"
    jobs: dict[str, JobStatus] = field(default_factory=dict)
    restored: dict[str, str | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    submitted: list[Mapping[str, str]] = field(default_factory=list)
    fail: str = ""
    before_submit: Any = None

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.fail == name:
            raise DeployError(f"{name} does not work")

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self.version)

    def validate(self, script: str, settings: Mapping[str, str], *, source: str = "") -> None:
        self._call("validate")

    def submit(self, script: str, settings: Mapping[str, str], start: Start, *, source: str = "") -> str:
        if self.before_submit:
            self.before_submit()
        self._call("submit")
        self.submitted.append(settings)
        job_id = f"job{len(self.jobs) + 1}"
        self.jobs[job_id] = JobStatus(job_id, settings["pipeline.name"], "RUNNING", True, 1)
        self.restored[job_id] = start.savepoint
        return job_id

    def stop_with_savepoint(self, job_id: str, directory: str | None = None) -> str:
        self._call("stop")
        self.jobs[job_id] = replace(self.jobs[job_id], state="FINISHED")
        return f"{directory or 'file:/sp'}/{job_id}"

    def status(self, job_id: str) -> JobStatus | None:
        return self.jobs.get(job_id)

    def running(self, name: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in self.jobs.values() if job.name == name and not job.terminal)

    def restored_from(self, job_id: str) -> str | None:
        if self.fail == "restore":
            return "file:/another"
        return self.restored[job_id]

    def request_checkpoint(self, job_id: str) -> None:
        self._call("checkpoint")

    def cancel(self, job_id: str) -> None:
        self._call("cancel")
        self.jobs[job_id] = replace(self.jobs[job_id], state="CANCELED")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def target() -> Pretended:
    return Pretended()


def run(target: Pretended, ledger: Ledger, side: Deployable, **more: Any) -> LedgerEntry:
    head = ledger.head()
    options = Options(settle_seconds=0, start_timeout=0.2, **more.pop("options", {}))
    given = {"checked_old_sha256": head.sha256 if head else None, "options": options, "owner": "me", **more}
    return deploy(target, ledger, side, **given)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_entry_holds_the_whole_side(target: Pretended, ledger: Ledger) -> None:
    side = replace(V1, functions=({"name": "f", "kind": "scalar", "span": "x"},), catalog="CREATE TABLE …")
    entry = run(target, ledger, side, outcome="unknown", report_path="r.json", approved_by="ann")
    assert entry == ledger.head()
    assert (entry.script, entry.settings, entry.catalog) == (side.script, side.settings, side.catalog)
    assert entry.functions == ({"name": "f", "kind": "scalar"},)
    assert (entry.engine, entry.engine_version, entry.sha256) == ("flink", "2.3.0", side.sha256)
    assert (entry.outcome, entry.report_path, entry.approved_by, entry.owner) == ("unknown", "r.json", "ann", "me")


def test_side_comes_back_from_the_ledger(target: Pretended, ledger: Ledger) -> None:
    functions = (FunctionDeclaration("f", "aggregate", "python"),)
    side = compat.Side(SCRIPT, {"a": "b"}, functions, engine="flink", engine_version="2.3.0")
    entry = run(target, ledger, side)
    declared = tuple(FunctionDeclaration(**row) for row in entry.functions)
    again = compat.Side(
        entry.script, entry.settings, declared, entry.catalog, entry.engine, entry.engine_version, source="elsewhere"
    )
    assert again.sha256 == side.sha256 == entry.sha256


def test_job_is_named_after_the_deployment_unless_the_settings_say_otherwise(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    assert target.submitted[0]["pipeline.name"] == "orders"
    run(target, ledger, replace(V2, settings={"pipeline.name": "mine"}))
    assert target.submitted[1]["pipeline.name"] == "mine"


def test_savepoint_directory_is_passed_on(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    assert run(target, ledger, V2, options={"savepoint_directory": "s3://b"}).savepoint == "s3://b/job1"


def test_first_deployment_has_no_savepoint_to_start_from(target: Pretended, ledger: Ledger) -> None:
    with pytest.raises(DeployRefused, match="was never deployed"):
        run(target, ledger, V1, start_mode="savepoint")
    with pytest.raises(DeployRefused, match="holds no deployment: is it the right ledger"):
        run(target, ledger, V1, checked_old_sha256="ab" * 32)
    assert target.calls == []


def test_check_was_for_another_version(target: Pretended, ledger: Ledger) -> None:
    target.version = "2.2.1"
    with pytest.raises(DeployRefused, match=r"checked for flink 2\.3\.0, the target is flink 2\.2\.1"):
        run(target, ledger, V1)
    for version in ("2.3.7", "2.3"):
        target.version = version
        run(target, Ledger(ledger.directory.parent, f"v{version}"), V1)


def test_validation_comes_before_everything(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail, target.calls = "validate", []
    with pytest.raises(DeployError, match="validate does not work"):
        run(target, ledger, V2)
    assert target.calls == ["validate"]
    assert kinds(ledger) == ["deploying", "started", "deployed"]


def test_stop_that_fails_leaves_the_old_job(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "stop"
    with pytest.raises(
        StartFailed, match="job job1 could not be stopped with a savepoint and is RUNNING: stop does not"
    ):
        run(target, ledger, V2)
    assert kinds(ledger)[3:] == ["deploying", "failed"]
    target.fail = ""
    assert run(target, ledger, V2).savepoint == "file:/sp/job1"


@pytest.mark.parametrize("where", ["submit", "restore"])
def test_start_that_fails_tells_the_way_back(where: str, target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = where
    with pytest.raises(StartFailed) as caught:
        run(target, ledger, V2)
    message = str(caught.value)
    assert (
        "Nothing of orders runs now. The former job job1 was stopped; its state is safe in\n  file:/sp/job1" in message
    )
    assert "deploy the script of ledger entry 3 again with start mode 'savepoint'" in message
    assert "SET 'execution.state-recovery.path' = 'file:/sp/job1'" in message
    assert "000003.json" in message
    failed = ledger.entries()[-1]
    assert (failed.kind, failed.savepoint, failed.sha256) == ("failed", "file:/sp/job1", V2.sha256)
    assert target.running("orders") == ()

    target.fail = ""
    back = run(target, ledger, V1, start_mode="savepoint")
    assert (back.savepoint, back.sha256, target.calls.count("stop")) == ("file:/sp/job1", V1.sha256, 1)


def test_first_start_that_fails(target: Pretended, ledger: Ledger) -> None:
    target.fail = "submit"
    with pytest.raises(StartFailed, match="Nothing of orders runs, as before"):
        run(target, ledger, V1)
    assert kinds(ledger) == ["deploying", "failed"]
    assert ledger.head() is None


def test_bad_job_that_cannot_be_cancelled_is_told(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    original = target.cancel

    def cancel(job_id: str) -> None:
        raise DeployError("no answer")

    target.cancel = cancel  # type: ignore[method-assign]
    with pytest.raises(StartFailed, match=r"Job job2 could not be cancelled \(no answer\): cancel it by hand"):
        run(target, ledger, V2)
    target.fail, target.cancel = "", original  # type: ignore[method-assign]
    with pytest.raises(DeployRefused, match="job job2 named 'orders' runs on the cluster"):
        run(target, ledger, V2)


def test_another_run_in_between_stops_this_one_before_it_starts(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    stop = target.stop_with_savepoint

    def interfered(job_id: str, directory: str | None = None) -> str:
        ledger.append(LedgerEntry(kind="deploying", owner="other"))
        return stop(job_id, directory)

    target.stop_with_savepoint = interfered  # type: ignore[method-assign]
    target.calls.clear()
    with pytest.raises(LedgerConflict):
        run(target, ledger, V2)
    assert target.calls == ["validate", "stop"]
    stopped = ledger.entries()[-1]
    assert (stopped.kind, stopped.savepoint) == ("stopped", "file:/sp/job1"), "the savepoint is recorded in any case"


def test_rejection_in_between_takes_no_part(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.before_submit = lambda: ledger.append(LedgerEntry(kind="rejected", sha256="cd"))
    run(target, ledger, V2)
    assert kinds(ledger)[3:] == ["deploying", "stopped", "rejected", "started", "deployed"]


def test_unfinished_run_keeps_others_out_for_a_while(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    ledger.append(LedgerEntry(kind="deploying", owner="other"))
    with pytest.raises(
        DeployRefused, match=r"other is deploying orders \(entry 4, deploying, \d+ s ago\): wait for it"
    ):
        run(target, ledger, V2)
    log: list[str] = []
    run(target, ledger, V2, options={"claim_seconds": 0}, log=log.append)
    assert "taking over the unfinished run of other (entry 4, deploying)" in log
    ledger.append(LedgerEntry(kind="deploying", owner="me"))
    run(target, ledger, V1)


def test_started_job_of_another_version_must_go_first(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.jobs["jobX"] = JobStatus("jobX", "orders", "RUNNING", True, 1)
    ledger.append(LedgerEntry(kind="started", owner="me", job_id="jobX", sha256=V2.sha256))
    with pytest.raises(DeployRefused, match="job jobX of entry 4 runs another version"):
        run(target, ledger, V1)
    target.jobs["jobX"] = replace(target.jobs["jobX"], state="CANCELED")
    run(target, ledger, V2)


def test_stateless_restart_of_a_job_an_earlier_run_stopped(target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "submit"
    with pytest.raises(StartFailed):
        run(target, ledger, V2)
    target.fail = ""
    entry = run(target, ledger, V2, start_mode="stateless")
    assert target.restored[str(entry.job_id)] is None
    assert (entry.start_mode, entry.savepoint) == ("stateless", "file:/sp/job1")


@pytest.mark.parametrize("between", ["rejected", "failed", "approved"])
def test_decision_after_a_killed_run_does_not_hide_its_job(between: str, target: Pretended, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.jobs["jobX"] = JobStatus("jobX", "orders", "RUNNING", True, 1)
    target.restored["jobX"] = None
    ledger.append(
        LedgerEntry(
            kind="started", owner="me", job_id="jobX", sha256=V2.sha256, script=V2.script, start_mode="stateless"
        )
    )
    ledger.append(LedgerEntry(kind=between, owner="a person", sha256="cd"))
    assert run(target, ledger, V2, start_mode="stateless").job_id == "jobX"
