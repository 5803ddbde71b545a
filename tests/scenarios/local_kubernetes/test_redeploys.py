"""Whole redeploys over the real operator, a real Flink and real files: what each comes to, with the rows right."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, run_backfill
from airflow_flinkcompat.deploy import DeployError, RolledBack
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.model import JobSpec
from dev.demo.orders import read_rows
from dev.local_kubernetes.rigs import INLINE, Rig
from dev.services.csv_job import SETTINGS, wait_for
from tests.scenarios.deploy.faults import RESULTS, Result, write
from tests.scenarios.deploy.scenarios import FILES, TOTALS
from tests.scenarios.local_kubernetes.stages import PATIENCE, Point, Stage, scenario

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(3600)]

Case = Callable[[Stage], str]
_NAME = "kubernetes-redeploys"
_NOTES = (
    "Redeploys by `deploy` on the local Kubernetes of the tests: API server 1.34.4, Flink's operator 1.7.0, Flink "
    "1.20.3, session jobs on one cluster, applications with a ConfigMap. The operator looks every 1 to 2 s here, not "
    "every 15 to 60 s as it does by default. Right is after each: exactly one job runs by the operator's and Flink's "
    "own word, from the savepoint that the ledger names; each savepoint of a stop is there; the ledger has no gap; its "
    "rows are those of an undisturbed run. A run that is killed (SIGKILL) is called once more. `make test-kubernetes` "
    "makes this file."
)


def created(stage: Stage) -> str:
    """First start."""
    entry = stage.created()
    stage.check(stops=0)
    return f"{entry.kind}: {'; '.join(entry.evidence)}"


def resumed(stage: Stage) -> str:
    """Resumed from the savepoint of its stop."""
    stage.created()
    entry = stage.deploy(stage.proposed(), start_mode="savepoint")
    assert entry.start.savepoint is not None
    stage.check()
    return f"{entry.kind}, restored from the savepoint of the stop"


def stateless(stage: Stage) -> str:
    """Started without state."""
    stage.created()
    without = scenario("starts without state")
    entry = stage.deploy(stage.proposed(without), start_mode="stateless", review=Review("incompatible"))
    assert entry.start.start_mode == "stateless"
    stage.check(without)
    return f"{entry.kind}, began empty"


def backfilled(stage: Stage) -> str:
    """Started without state, history backfilled by Spark."""
    stage.files.arrive("before", FILES["before"])
    stage.deploy(stage.former)
    # Its row is ended by the last one of the file, so the old job has read all of what is moved away now.
    wait_for(lambda: stage.files.rows() == TOTALS["before"], "minute 0 is written", PATIENCE)
    archive, most = stage.files.root / "archive", stage.files.root / "most"
    archive.mkdir()
    (stage.files.source / "before").rename(archive / "before")
    stage.files.arrive("live", [("eve", 3, "10:10"), ("eve", 5, "10:20"), ("eve", 1, "11:10")])
    script = stage.files.script(select="customer, MAX(amount), window_start")
    side = JobSpec(script.replace(stage.files.sink.as_uri(), most.as_uri()), SETTINGS, source="orders.sql")
    entry = stage.deploy(side, start_mode="stateless", review=Review("incompatible"))
    assert entry.start.start_mode == "stateless"
    live = [("eve", "5", "2026-01-01 00:10:00")]
    wait_for(lambda: read_rows(_written(most)) == live, "the live job's first window", PATIENCE)
    boundary = datetime(2026, 1, 1, 0, 10)
    request = BackfillRequest(side, to=boundary, tables={"orders": archive.as_uri()}, master="local[2]")
    result = run_backfill(request)
    history = [("ann", "2", "2026-01-01 00:00:00"), ("ann", "4", "2026-01-01 00:01:00")]
    assert read_rows(_written(most)) == sorted(history + live)
    assert len(stage.rig.flink_jobs(stage.name)) == 1
    return f"{entry.kind}, began empty; {sum(each.rows for each in result.sinks)} rows of history by Spark, each once"


def _written(folder: Path) -> list[Path]:
    return [path for path in folder.glob("**/*") if path.is_file() and path.name[0] not in "._"]


def script_refused(stage: Stage) -> str:
    """Script that Flink refuses."""
    stage.created()
    side = replace(stage.proposed(), script=stage.files.script(select="customer, SUM(nothing), window_start"))
    said = stage.fails(side, RolledBack)
    assert "nothing" in said, said
    stage.check()
    return said


def state_refused(stage: Stage) -> str:
    """State refused as it is submitted."""
    stage.created()
    said = stage.fails(stage.proposed(scenario("refused at submit")), RolledBack)
    if stage.rig.kubelet is None:  # what Flink knew of the job goes with the JobManager of an application
        assert "No task of the new job ever ran" in said, said
    stage.check()
    return said


def restore_refused(stage: Stage) -> str:
    """State refused by a task as it is restored."""
    stage.created()
    said = stage.fails(stage.proposed(scenario("refused at restore")), RolledBack)
    stage.check()
    return said


def two_at_once(stage: Stage) -> str:
    """Two runs at once."""
    stage.created()
    came_to = stage.at_once(stage.proposed())
    assert len(came_to) == 2
    assert came_to.count("deployed") == 1, came_to
    stage.check()
    return " and ".join(came_to)


# ------------------------------------------------------------------------------------------------- planned, then merged
def merged(stage: Stage) -> str:
    """Planned, and merged by a repository."""
    stage.created()
    planned = stage.plan(stage.proposed())
    assert stage.recorded() is None, "nobody has merged it yet"
    stage.merge(planned.plan.documents)
    entry = stage.recorded()
    assert entry is not None
    assert str(planned.entry.start.request_id) in str(entry.job_id)
    savepoint = Path(str(entry.start.savepoint).removeprefix("file:"))
    assert (savepoint / "_metadata").is_file()
    stage.check(stops=0)
    return f"{entry.kind}: {'; '.join(entry.evidence)}"


def merged_then_reverted(stage: Stage) -> str:
    """Planned and merged, its state refused, and the merge reverted."""
    first = stage.created()
    before = stage.resource()
    stage.merge(stage.plan(stage.proposed(scenario("refused at submit"))).plan.documents)
    with pytest.raises(DeployError) as refused:
        stage.recorded()
    said = str(refused.value)
    assert stage.ledger.head() == first, "what was deployed before is still what is in force"
    kept = {key: before["metadata"][key] for key in ("name", "labels", "annotations")}
    stage.merge(json.dumps({"kind": before["kind"], "metadata": kept, "spec": before["spec"]}))
    wait_for(lambda: len(stage.rig.flink_jobs(stage.name)) == 1, "the former job runs again", PATIENCE)
    stage.check_rows()
    return said


# ----------------------------------------------------------------------------------------------- the operator is killed
def killed_before_it_sees_a_stop(stage: Stage) -> str:
    """Operator killed before it sees the stop."""
    stage.created()
    entry = stage.without_operator(
        stage.proposed(), lambda: stage.resource()["spec"]["job"]["state"] == "suspended", start_mode="savepoint"
    )
    stage.check()
    return f"{entry.kind}, restored from the savepoint of the stop"


def killed_as_the_job_has_ended(stage: Stage) -> str:
    """Operator killed as the job has ended by its savepoint."""
    stage.created()
    entry = stage.without_operator(
        stage.proposed(), lambda: not stage.rig.flink_jobs(stage.name), start_mode="savepoint"
    )
    stage.check()
    return f"{entry.kind}, restored from the savepoint of the stop"


def killed_before_it_sees_a_start(stage: Stage) -> str:
    """Operator killed before it sees the start."""
    first = stage.created()
    before = stage.resource()["metadata"]["labels"]["flinkcompat/request"]
    assert before in str(first.job_id)

    def asked() -> bool:
        found = stage.resource()
        return bool(
            found["spec"]["job"]["state"] == "running" and found["metadata"]["labels"]["flinkcompat/request"] != before
        )

    entry = stage.without_operator(stage.proposed(), asked, start_mode="savepoint")
    stage.check()
    return f"{entry.kind}, restored from the savepoint of the stop"


def killed_as_the_job_was_accepted(stage: Stage) -> str:
    """Operator killed as Flink has accepted the successor."""
    stage.created()
    ended: list[bool] = []

    def accepted() -> bool:
        there = bool(stage.rig.flink_jobs(stage.name))
        if not there:
            ended.append(True)
        return there and bool(ended)

    entry = stage.without_operator(stage.proposed(), accepted, start_mode="savepoint")
    stage.check()
    return f"{entry.kind}, restored from the savepoint of the stop"


OPERATOR_KILLED: tuple[Case, ...] = (
    killed_before_it_sees_a_stop,
    killed_as_the_job_has_ended,
    killed_before_it_sees_a_start,
    killed_as_the_job_was_accepted,
)
SESSION: tuple[Case, ...] = (
    created,
    resumed,
    stateless,
    backfilled,
    script_refused,
    state_refused,
    restore_refused,
    two_at_once,
    merged,
    merged_then_reverted,
    *OPERATOR_KILLED,
)
APPLICATION: tuple[Case, ...] = (
    created,
    resumed,
    stateless,
    script_refused,
    state_refused,
    merged,
    merged_then_reverted,
    *OPERATOR_KILLED,
)


class Redeploys:
    """What the cases of either kind of rig share."""

    what: ClassVar[str]

    def run(self, rig: Rig, root: Path, case: Case, fault: str = "") -> None:
        """Run a case, and write down what became of it."""
        name = re.sub(r"[^a-z]+", "-", case.__name__)[:30]
        stage = Stage(rig, root, f"{name}-{new_id()[:6]}")
        began, told, wrong = time.monotonic(), "", ""
        try:
            told = case(stage)
        except BaseException as error:
            wrong = f"{type(error).__name__}: {error}"
            raise
        finally:
            words = (case.__doc__ or "").rstrip(".")
            said = (wrong or told).replace(str(root), "…").replace(str(rig.savepoints), "…")
            print(f"{self.what}, {words}, {fault}: {said}", flush=True)
            came_to = {"outcome": "", "wrong": said} if wrong else {"outcome": said, "wrong": ""}
            result = Result(f"{self.what}: {words}", fault, seconds=time.monotonic() - began, **came_to)
            write(_NAME, "Redeploys on Flink's Kubernetes Operator", _with(result), [_NOTES])
            rig.clear()


def _with(result: Result) -> list[Result]:
    """The results of today, of other runs too, with this one in the place of an earlier one of its case."""
    file = RESULTS / f"{_NAME}-{datetime.now(UTC).date().isoformat()}.json"
    known = [Result(**row) for row in json.loads(file.read_text("utf-8"))] if file.exists() else []
    by_case = {(each.scenario, each.fault): each for each in known}
    return [*(by_case | {(result.scenario, result.fault): result}).values()]


class TestSessionJobs(Redeploys):
    """Of ``FlinkSessionJob``s."""

    what = "session job"

    @pytest.fixture
    def rig(self, session_jobs: Rig) -> Rig:
        return session_jobs

    @pytest.mark.parametrize("case", SESSION, ids=lambda case: case.__name__)
    def test_it_comes_to_one_job_with_the_right_rows(self, rig: Rig, case: Case, tmp_path: Path) -> None:
        self.run(rig, tmp_path, case)

    @pytest.mark.parametrize(
        ("scenario_name", "kinds"),
        [
            ("succeeds", "PATCH"),
            ("starts without state", "PATCH|POST|DELETE"),
            ("refused at submit", "POST flinksessionjobs|DELETE flinksessionjobs"),
        ],
    )
    def test_a_killed_run_is_taken_up(self, rig: Rig, scenario_name: str, kinds: str, tmp_path: Path) -> None:
        """Before and after its writes to the API server."""
        of = scenario(scenario_name)
        undisturbed = Stage(rig, tmp_path, f"let-be-{new_id()[:6]}")
        undisturbed.created()
        points = [
            each
            for each in undisturbed.killed(undisturbed.proposed(of), None, of.start_mode)
            if re.search(kinds, each.call)
        ]
        rig.clear()
        assert points
        for point in points:
            self.run(rig, tmp_path, _killed(of.name, point), f"killed {point}")


def _killed(scenario_name: str, point: Point) -> Case:
    of = scenario(scenario_name)

    def killed(stage: Stage) -> str:
        stage.created()
        head = stage.ledger.head()
        side = stage.proposed(of)
        stage.killed(side, point, of.start_mode)
        reached = stage.ledger.entries()[-1].kind
        try:
            entry = stage.deploy(
                side,
                start_mode=of.start_mode,
                checked_old_sha256=head.sha256 if head else None,
                review=Review("compatible" if of.start_mode == "savepoint" else "incompatible"),
            )
            came_to = entry.kind
        except DeployError as error:
            came_to = type(error).__name__
        assert came_to == of.comes_to, came_to
        stage.check(of)
        return f"{came_to}; {reached} was the last entry before the retry"

    killed.__doc__ = f"{of.name}"
    return killed


class TestApplications(Redeploys):
    """Of ``FlinkDeployment``s in application mode."""

    what = "application"

    @pytest.fixture
    def rig(self, applications: Rig) -> Rig:
        return applications

    @pytest.mark.parametrize("case", APPLICATION, ids=lambda case: case.__name__)
    def test_it_comes_to_one_job_with_the_right_rows(self, rig: Rig, case: Case, tmp_path: Path) -> None:
        self.run(rig, tmp_path, case)

    def test_a_script_may_stand_in_its_arguments(self, rig: Rig, tmp_path: Path) -> None:
        """As one line of base64, which survives the way through Flink's configuration."""
        manifest = {**rig.place.manifest, "spec": {**rig.place.manifest["spec"]}}
        manifest["spec"]["job"] = {**manifest["spec"]["job"], "args": list(INLINE)}
        inline = replace(rig, place=replace(rig.place, manifest=manifest))

        def resumed_inline(stage: Stage) -> str:
            """Resumed, its script in its arguments."""
            return resumed(stage)

        self.run(inline, tmp_path, resumed_inline)
