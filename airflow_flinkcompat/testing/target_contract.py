"""Contract tests for targets: subclass ``TargetContract`` and provide the fixture ``connect``.

The jobs of these tests count generated rows, which requires state, and discard the results.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, SavepointFailed, SnapshotGone
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, StoppedEntry
from airflow_flinkcompat.deploy.ledger.ledger import E, Ledger
from airflow_flinkcompat.deploy.redeploy.adopt import adopt
from airflow_flinkcompat.deploy.redeploy.run import Options, RolledBack, new_id
from airflow_flinkcompat.deploy.redeploy.sequence import deploy
from airflow_flinkcompat.deploy.target import (
    CallerNamesJobs,
    ClusterOptions,
    JobDescriptions,
    JobHistories,
    JobHistory,
    JobRef,
    LiveSavepoints,
    Operation,
    PlanCompiler,
    ReadsBack,
    RestoreObservations,
    RestoreTests,
    SavepointStore,
    Snapshot,
    Start,
    Strength,
    Target,
    Verb,
    same_snapshot,
)
from airflow_flinkcompat.model import ENGINES, JobSpec

SCRIPT = """
CREATE TEMPORARY TABLE numbers (n BIGINT) WITH (
    'connector' = 'datagen', 'rows-per-second' = '20', 'fields.n.min' = '0', 'fields.n.max' = '9'
);
CREATE TEMPORARY TABLE counts (n BIGINT, c BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'blackhole');
INSERT INTO counts SELECT n, COUNT(*) FROM numbers GROUP BY n;
"""
# A script with the same state as SCRIPT, and with one more operator, which is stateless.
CHANGED = SCRIPT.replace("SELECT n, COUNT(*)", "SELECT n, COUNT(*) + 1")
# A script that cannot restore the state of SCRIPT or CHANGED.
MISFIT = SCRIPT.replace("SELECT n, COUNT(*)", "SELECT n, COUNT(DISTINCT n)")
SETTINGS = {"execution.checkpointing.interval": "500 ms", "parallelism.default": "1"}
Connect = Callable[[], Target]


def side(script: str) -> JobSpec:
    """A job that runs ``script``."""
    return JobSpec(script, SETTINGS, engine="flink", source="contract.sql")


class TargetContract:
    """Contract tests of one target.

    A subclass provides the fixture ``connect``, a function that opens the same target anew, like a different process.
    For a target that really runs jobs, ``settle_seconds`` is the time to watch a job after its start. A step takes at
    most ``step_seconds``.
    """

    settle_seconds = 0.0
    step_seconds = 120.0

    @pytest.fixture
    def connect(self) -> Connect:
        """Function that opens the target."""
        raise NotImplementedError("a subclass must provide the fixture 'connect', which opens the target")

    @pytest.fixture
    def target(self, connect: Connect) -> Target:
        """The target, opened once."""
        return connect()

    @pytest.fixture
    def name(self, connect: Connect) -> Iterator[str]:
        """A job name for one test. Jobs of this name are cancelled after the test."""
        name = f"contract-{uuid.uuid4().hex[:8]}"
        yield name
        target = connect()
        for job in target.running(name):
            target.cancel(job)

    def started(self, target: Target, name: str, start: Start | None = None) -> JobRef:
        """Start a job and wait until all of its tasks run."""
        found = self.job_of(target, target.start(_job(name), start or Start(), new_id()))
        self.is_up(target, found)
        return found

    def job_of(self, target: Target, start: Operation) -> JobRef:
        """Wait until the target knows the started job, and return the job."""
        found = poll(lambda: target.poll(start).job, lambda job: job is None, timeout=self.step_seconds)
        assert found is not None
        return found

    def is_up(self, target: Target, job: JobRef) -> None:
        """Wait until every task of a job runs."""
        poll(lambda: target.status(job), lambda seen: seen is None or not seen.tasks_running, timeout=self.step_seconds)

    def stopped(self, target: Target, job: JobRef) -> Snapshot:
        """Stop a job, and return its savepoint."""
        operation = target.stop(job, new_id(), None)
        found = poll(lambda: target.poll(operation).snapshot, lambda seen: seen is None, timeout=self.step_seconds)
        assert found is not None
        return found

    # ----------------------------------------------------------------------------------------------------- the verbs
    def test_it_names_its_engine(self, target: Target) -> None:
        """The target returns a known engine and its version."""
        found = target.engine()
        assert found.engine in ENGINES
        assert found.version[0].isdigit()

    def test_a_script_that_makes_no_job_is_refused_before_anything_starts(self, target: Target, name: str) -> None:
        """Validation and start refuse a script without a job."""
        broken = replace(_job(name), script="CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'datagen');")
        target.validate(_job(name), Start())
        with pytest.raises(DeployError):
            target.validate(broken, Start())
        with pytest.raises(DeployError):
            target.start(broken, Start(), new_id())
        assert target.running(name) == ()

    def test_a_started_job_is_found_and_began_empty(self, target: Target, connect: Connect, name: str) -> None:
        """A started job is found by its request id and by its name, also from a different process."""
        request = new_id()
        assert target.poll(Operation(Verb.START, request)).job is None, "no start has been requested yet"
        operation = target.start(_job(name), Start(), request)
        assert Operation.from_dict(json.loads(json.dumps(operation.to_dict()))) == operation
        job = self.job_of(connect(), Operation(Verb.START, request))
        self.is_up(target, job)
        assert connect().running(name) == (job,)
        status = target.status(job)
        assert status is not None
        assert (status.job_id, status.name, status.terminal) == (job, name, False)
        proof = target.restored_from(job)
        assert proof.snapshot is None

    def test_a_start_asked_for_twice_is_one_job(self, target: Target, connect: Connect, name: str) -> None:
        """Repeated start requests, also from a different process, start only one job."""
        request = new_id()
        first = target.start(_job(name), Start(), request)
        again = connect().start(_job(name), Start(), request)
        job = self.job_of(target, first)
        assert connect().poll(again).job == job
        assert target.running(name) == (job,)

    def test_a_stopped_job_goes_on_from_its_savepoint(self, target: Target, name: str) -> None:
        """A stop ends the job, and the next job restores the stop's savepoint."""
        job = self.started(target, name)
        savepoint = self.stopped(target, job)
        assert target.running(name) == ()
        status = target.status(job)
        assert status is None or status.terminal
        successor = self.started(target, name, Start(savepoint))
        assert successor != job
        proof = target.restored_from(successor)
        assert proof.strength is Strength.UNKNOWN or same_snapshot(proof.snapshot, savepoint)

    def test_a_stop_asked_for_twice_is_one_savepoint(self, target: Target, connect: Connect, name: str) -> None:
        """Repeated stop requests take only one savepoint, even from a different process."""
        job = self.started(target, name)
        request = new_id()
        target.stop(job, request, None)
        stop = Operation(Verb.STOP, request, job)
        savepoint = poll(lambda: target.poll(stop).snapshot, lambda seen: seen is None, timeout=self.step_seconds)
        assert connect().poll(stop).snapshot == savepoint
        connect().stop(job, request, None)
        assert connect().poll(stop).snapshot == savepoint

    def test_a_cancelled_job_has_ended(self, target: Target, name: str) -> None:
        """A cancel waits until the job has ended."""
        job = self.started(target, name)
        target.cancel(job)
        status = target.status(job)
        assert status is None or status.terminal
        assert target.running(name) == ()

    def test_a_job_that_nobody_started_is_unknown(self, target: Target) -> None:
        """Queries about an unknown job raise no error."""
        assert target.status(JobRef(new_id())) is None
        assert target.running(f"nothing-{uuid.uuid4().hex[:8]}") == ()

    def test_a_stop_and_a_start_under_one_request_stay_apart(self, target: Target, connect: Connect, name: str) -> None:
        """A stop and a start with the same request id are distinct, as in a redeploy."""
        job, request = self.started(target, name), new_id()
        stop, start = Operation(Verb.STOP, request, job), Operation(Verb.START, request)
        target.stop(job, request, None)
        savepoint = poll(lambda: target.poll(stop).snapshot, lambda seen: seen is None, timeout=self.step_seconds)
        assert connect().poll(start).job is None, "only the stop was requested"
        successor = self.job_of(target, target.start(_job(name), Start(savepoint), request))
        self.is_up(target, successor)
        assert successor != job
        assert target.running(name) == (successor,)
        again = connect()
        assert (again.poll(stop).snapshot, again.poll(start).job) == (savepoint, successor)

    def test_a_script_names_its_job_itself(self, target: Target, connect: Connect, name: str) -> None:
        """The ``pipeline.name`` in a script overrides the ``pipeline.name`` in the settings."""
        own = f"{name}-own"
        try:
            asked = target.start(
                replace(_job(name), script=f"SET '{JOB_NAME}' = '{own}';\n{SCRIPT}"), Start(), new_id()
            )
            job = self.job_of(target, asked)
            assert (target.running(own), target.running(name)) == ((job,), ())
            status = target.status(job)
            assert status is not None
            assert status.name == own
        finally:
            for left in connect().running(own):
                target.cancel(left)

    def test_a_reset_in_the_script_takes_neither_its_state_nor_its_request(self, target: Target, name: str) -> None:
        """``RESET`` resets options of the session, but not the start's savepoint and request id."""
        savepoint = self.stopped(target, self.started(target, name))
        sets = {JOB_NAME: name, **SETTINGS}
        reset = "".join(["RESET;\n", *(f"SET '{key}' = '{value}';\n" for key, value in sets.items())])
        request = new_id()
        asked = target.start(replace(_job(name), script=reset + SCRIPT), Start(savepoint), request)
        job = self.job_of(target, asked)
        self.is_up(target, job)
        assert self.job_of(target, Operation(Verb.START, request)) == job
        assert target.running(name) == (job,)
        proof = target.restored_from(job)
        assert proof.strength is Strength.UNKNOWN or same_snapshot(proof.snapshot, savepoint)

    # ------------------------------------------------------------------------------------------------- capabilities
    def test_capabilities_keep_what_they_promise(self, target: Target, name: str) -> None:
        """Every capability that the target declares works."""
        job = self.started(target, name)
        if isinstance(target, CallerNamesJobs):
            request = new_id()
            assert target.job_of_request(request) == target.job_of_request(request)
        if isinstance(target, ReadsBack):
            found = target.deployed(name)
            assert found is not None
            assert found.job == job
            assert target.deployed(f"nothing-{name}") is None
        if isinstance(target, JobDescriptions):
            described = target.describe(job)
            assert described is not None
            assert described.streaming
            assert all(vertex.name and vertex.parallelism > 0 for vertex in described.vertices)
            assert job in {each.job_id for each in target.jobs() if each.name == name and not each.terminal}
        if isinstance(target, ClusterOptions):
            options = target.cluster_options(job)
            assert all(isinstance(each, str) for pair in options.items() for each in pair)
        if isinstance(target, JobHistories):
            assert isinstance(target.job_history(job), JobHistory)
            assert target.ever_ran(job) is not False

    def test_a_savepoint_is_found_and_deleted(self, target: Target, connect: Connect, name: str) -> None:
        """A target with ``SavepointStore`` finds savepoints, and deletes them even after a job restored one."""
        if not isinstance(target, SavepointStore):
            return
        job = self.started(target, name)
        assert target.final_savepoint(job) is None, "the job has not ended"
        savepoint = self.stopped(target, job)
        assert same_snapshot(target.savepoint_at(target.location(savepoint)), savepoint)
        again = connect()
        assert isinstance(again, SavepointStore)
        assert same_snapshot(again.final_savepoint(job), savepoint)
        self.started(target, name, Start(savepoint))
        again.dispose(savepoint)
        with pytest.raises(SnapshotGone):
            again.dispose(savepoint)

    def test_a_savepoint_asked_for_twice_is_one_and_the_job_goes_on(
        self, target: Target, connect: Connect, name: str
    ) -> None:
        """Repeated requests take only one savepoint. The job continues, and the savepoint can be restored."""
        if not isinstance(target, LiveSavepoints):
            return
        job = self.started(target, name)
        asked = target.savepoint(job, new_id(), None)
        taken = poll(lambda: target.poll(asked).snapshot, lambda seen: seen is None, timeout=self.step_seconds)
        assert taken is not None
        again = connect()
        assert isinstance(again, LiveSavepoints)
        again.savepoint(job, asked.request_id, None)
        assert again.poll(asked).snapshot == taken
        assert target.running(name) == (job,)
        with pytest.raises(SavepointFailed):
            target.poll(replace(asked, request_id=new_id()))
        assert not same_snapshot(self.stopped(target, job), taken), "a stop takes a separate savepoint"
        self.goes_on_from(target, name, taken)

    def test_a_start_is_given_an_older_savepoint(self, target: Target, name: str) -> None:
        """A job can start from the savepoint of an earlier stop."""
        if isinstance(target, LiveSavepoints):
            return
        older = self.stopped(target, self.started(target, name))
        self.stopped(target, self.started(target, name, Start(older)))
        self.goes_on_from(target, name, older)

    def goes_on_from(self, target: Target, name: str, savepoint: Snapshot) -> None:
        """Check that a job starts from the passed savepoint, not from the latest savepoint."""
        proof = target.restored_from(self.started(target, name, Start(savepoint)))
        assert proof.strength is Strength.UNKNOWN or same_snapshot(proof.snapshot, savepoint)

    def test_a_restore_beside_the_live_job_takes_its_state(self, target: Target, name: str) -> None:
        """A restore test next to the live job restores all state of the live job (``RestoreTests``)."""
        if not (isinstance(target, RestoreTests) and isinstance(target, LiveSavepoints)):
            return
        job = self.started(target, name)
        asked = target.savepoint(job, new_id(), None)
        taken = poll(lambda: target.poll(asked).snapshot, lambda seen: seen is None, timeout=self.step_seconds)
        assert taken is not None
        test = target.restore_test(side(SCRIPT), f"private-{name}")
        beside = self.job_of(target, test.start(f"{name} beside", taken, new_id(), ignore_unclaimed=False))
        try:
            self.is_up(target, beside)
            assert target.running(name) == (job,)
            proof = target.restored_from(beside)
            assert proof.strength is Strength.UNKNOWN or same_snapshot(proof.snapshot, taken)
            if isinstance(target, RestoreObservations):
                assert target.query(beside) == target.query(job)
                assert target.left_aside(beside) in (frozenset(), None)
                assert not target.failed_at_restore(beside)
                assert 0 <= target.slots().free <= target.slots().total
        finally:
            target.cancel(beside)

    def test_what_a_planner_compiles_starts_nothing(self, target: Target, name: str, tmp_path: Path) -> None:
        """A target with ``PlanCompiler`` returns a plan for each job of the script, and starts no job."""
        if not isinstance(target, PlanCompiler):
            return
        assert len(target.compile_plans(Side.of(side(SCRIPT)), str(tmp_path))) == 1
        assert target.running(name) == ()

    # ------------------------------------------------------------------------------------------------ whole redeploys
    def deployed(self, target: Target, ledger: Ledger, script: str, **more: object) -> DeployedEntry:
        """Deploy a script with the default start mode."""
        head = ledger.head()
        seconds = self.step_seconds
        options = Options(settle_seconds=self.settle_seconds, submit_timeout=seconds, start_timeout=seconds)
        arguments = {"checked_old_sha256": head.sha256 if head else None, "options": options, "owner": new_id(), **more}
        return deploy(target, ledger, side(script), **arguments)  # type: ignore[arg-type]

    def test_a_redeploy_goes_on_from_the_savepoint(self, target: Target, name: str, tmp_path: Path) -> None:
        """A redeploy leaves one job, which restored the former job's state. The ledger records the evidence."""
        ledger = Ledger(tmp_path, name)
        first = self.deployed(target, ledger, SCRIPT)
        second = self.deployed(target, ledger, CHANGED)
        savepoint = second.start.savepoint
        assert savepoint is not None
        assert target.running(name) == (second.job_id,)
        assert second.job_id != first.job_id
        strength = target.restored_from(second.start.job_ref).strength
        expected = {
            Strength.OBSERVED: f"restored from {savepoint}",
            Strength.DECLARED: f"restored from {savepoint}, as declared by the platform (not observed)",
            Strength.UNKNOWN: f"requested start from {savepoint}; the restored state cannot be determined "
            "on this target",
        }
        assert second.evidence[0] == expected[strength]

    def test_a_state_that_does_not_fit_is_rolled_back(self, target: Target, name: str, tmp_path: Path) -> None:
        """After a failed restore, the former script runs again from its savepoint."""
        ledger = Ledger(tmp_path, name)
        first = self.deployed(target, ledger, SCRIPT)
        self.misfits(target, name)
        with pytest.raises(RolledBack):
            self.deployed(target, ledger, MISFIT)
        head = ledger.head()
        assert head is not None
        assert (head.kind, head.job.script) == ("rolled-back", SCRIPT)
        assert target.running(name) == (head.job_id,)
        assert head.job_id != first.job_id

    def test_what_somebody_else_deployed_is_refused_and_can_be_taken_over(
        self, target: Target, name: str, tmp_path: Path
    ) -> None:
        """A redeploy refuses to stop an unknown job. After adoption, a redeploy keeps the job's state."""
        ledger = Ledger(tmp_path, name)
        target.cancel(self.deployed(target, ledger, SCRIPT).start.job_ref)
        other = JobSpec(CHANGED, {JOB_NAME: name, **SETTINGS}, source="contract.sql")
        job = self.job_of(target, target.start(other, Start(), new_id()))
        self.is_up(target, job)
        # The cluster shows that the ledger's own job has ended, so the running job was started by someone else.
        with pytest.raises(DeployRefused, match=job if isinstance(target, ReadsBack) else None):
            self.deployed(target, ledger, CHANGED)
        assert target.running(name) == (job,)
        entry = adopt(target, ledger, Side.of(side(CHANGED)), job, owner="contract").entry
        successor = self.deployed(target, ledger, SCRIPT, checked_old_sha256=entry.sha256, start_mode="savepoint")
        assert target.running(name) == (successor.job_id,)
        assert successor.start.savepoint is not None

    def misfits(self, target: Target, name: str) -> None:
        """Make a platform without real state refuse the next start of this name from a savepoint."""

    @pytest.mark.parametrize("kind", ["deploying", "stopping", "stopped", "starting", "started"])
    def test_a_run_that_died_is_taken_up(
        self, kind: str, target: Target, connect: Connect, name: str, tmp_path: Path
    ) -> None:
        """If a process dies after a ledger entry of this kind, the next run leaves one job and one stop."""
        ledger = Ledger(tmp_path, name)
        self.deployed(target, ledger, SCRIPT)
        with pytest.raises(_Died):
            self.deployed(target, _Mortal(tmp_path, name, kind), CHANGED, owner="worker")
        entry = self.deployed(connect(), ledger, CHANGED, owner="worker")
        assert target.running(name) == (entry.job_id,)
        assert len([each for each in ledger.entries() if each.kind == "stopped"]) == 1

    @pytest.mark.parametrize("verb", [Verb.STOP, Verb.START])
    def test_a_run_that_died_before_it_noted_what_it_did_is_taken_up(
        self, verb: Verb, target: Target, connect: Connect, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If a process dies before it records an executed request, the next run does not repeat the request."""
        ledger = Ledger(tmp_path, name)
        first = self.deployed(target, ledger, SCRIPT)
        mortal = connect()
        done = getattr(mortal, verb)

        def die(*given: object) -> Operation:
            done(*given)
            raise _Died

        monkeypatch.setattr(mortal, verb, die)
        with pytest.raises(_Died):
            self.deployed(mortal, ledger, CHANGED, owner="worker")
        # A running stop or start continues without its caller.
        entry = self.deployed(connect(), ledger, CHANGED, owner="worker")
        assert target.running(name) == (entry.job_id,)
        assert entry.job_id != first.job_id
        (stop,) = (each.stop for each in ledger.entries() if isinstance(each, StoppedEntry))
        assert stop.savepoint is not None
        assert entry.start.savepoint == stop.savepoint


class _Died(BaseException):
    """Raised to simulate the end of a process."""


class _Mortal(Ledger):
    """A ledger whose process dies after an entry of one kind."""

    def __init__(self, root: Path, deployment: str, dies_after: str) -> None:
        super().__init__(root, deployment)
        self._dies_after = dies_after

    def append(self, entry: E, *, after: int | None = None) -> E:
        """Append an entry, and die if the entry has the chosen kind."""
        stored = super().append(entry, after=after)
        if entry.kind == self._dies_after:
            raise _Died
        return stored


def _job(name: str) -> JobSpec:
    return JobSpec(SCRIPT, {JOB_NAME: name, **SETTINGS}, source="contract.sql")
