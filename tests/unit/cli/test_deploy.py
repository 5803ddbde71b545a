"""``flinkcompat deploy`` on the fake target: branches of the gate, decisions, repeats, exit codes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.cli import deploy as command
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    ShadowedEntry,
)
from airflow_flinkcompat.deploy.shadow import gating
from airflow_flinkcompat.deploy.shadow.report import ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.target import Operation
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.fleet.gate import DeploymentGate
from airflow_flinkcompat.testing.fake_target import AnswerLost, FakeServer, FakeTarget
from tests.support.cli.command import BROKEN, COMPATIBLE, INCOMPATIBLE, PARTIAL, V1, Result, Run
from tests.support.fleet.repository import git
from tests.unit.cli.project import commit
from tests.unit.cli.test_shadow import DIFFERS

ADDRESSES = ("--gateway", "http://g.test", "--jobmanager", "http://j.test")
FILE = """\
ledger = "ledger"

[deployments.orders]
script = "orders.sql"
check.planner = "never"
deploy = { settle_seconds = 0, stop_timeout = 5, start_timeout = 5 }
"""


class Site:
    """A project of one deployment in the current folder, and the platform that runs its job."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.server = run, FakeServer()
        self.target: Callable[[], Any] = lambda: FakeTarget(self.server)
        monkeypatch.setattr(TargetLocation, "open", lambda *_: nullcontext(self.target()))
        monkeypatch.setattr(command, "_login", lambda: "ann")
        self.declare()
        self.write(V1)

    def declare(self, *more: str) -> None:
        Path("flinkcompat.toml").write_text(FILE + "\n".join(more) + "\n", encoding="utf-8")

    def write(self, script: str) -> None:
        Path("orders.sql").write_text(script, encoding="utf-8")

    def deploy(self, *more: str) -> Result:
        return self.run("deploy", "orders", *ADDRESSES, *more)

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in Ledger("ledger", "orders").entries()]

    def last(self, kind: type[Any]) -> Any:
        return next(each for each in reversed(Ledger("ledger", "orders").entries()) if isinstance(each, kind))

    @property
    def running(self) -> list[tuple[str, Any]]:
        """Script and savepoint of each running job."""
        return [(job.runs.script, job.restored) for job in self.server.jobs.values() if not job.status.terminal]


@pytest.fixture
def site(run: Run, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(run, monkeypatch)


@pytest.fixture
def deployed(site: Site) -> Site:
    """A site whose first version is deployed by the command."""
    result = site.deploy()
    assert (result.code, site.running) == (0, [(V1, None)]), result.err
    return site


def test_the_first_deployment_starts_without_state(site: Site) -> None:
    result = site.deploy()
    assert result.code == 0
    assert result.out.startswith("deployed: job job-1 as orders, entry 5\n")
    assert "not compared: nothing is deployed yet → first" in result.err
    assert site.kinds == ["checked", "deploying", "starting", "started", "deployed"]
    entry = site.last(DeployedEntry)
    assert (entry.job.engine, entry.job.engine_version, entry.start.start_mode) == ("flink", "2.3.0", "stateless")


def test_an_unchanged_version_is_left_alone(deployed: Site) -> None:
    before = deployed.kinds
    result = deployed.deploy()
    assert (result.code, result.out) == (0, "unchanged: orders: nothing that affects the running job changed\n")
    assert deployed.kinds == before
    deployed.write(f"-- a comment\n{V1}")
    for _ in range(2):
        assert deployed.deploy().code == 0
    assert deployed.kinds == [*before, "checked", "unchanged"], "a repeat records nothing twice"
    assert deployed.running == [(V1, None)]


def test_a_compatible_change_resumes_from_a_savepoint(deployed: Site) -> None:
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert result.code == 0, result.err
    assert result.out.startswith("COMPATIBLE")
    assert "compatible: against the version of entry 5 → resume" in result.err
    assert deployed.running == [(COMPATIBLE, "savepoint #1")]
    review = deployed.last(DeployedEntry).review
    assert (review.outcome, review.approved_by) == ("compatible", None)
    assert review.report_path == deployed.last(CheckedEntry).review.report_path


def test_the_ledger_records_commit_author_and_owners(site: Site) -> None:
    site.declare("team = 'shop'", "owner = 'Cid'")
    git(Path(), "init", "--quiet", "--initial-branch", "main")
    commit("first")
    site.deploy()
    origin = site.last(DeployedEntry).origin
    assert origin == site.last(CheckedEntry).origin
    assert origin.commit == git(Path(), "rev-parse", "HEAD").strip()
    assert (origin.team, origin.owned_by, origin.author is None) == ("shop", "Cid", False)
    site.write(COMPATIBLE)
    result = site.deploy()
    assert "the commit is unknown: its files have uncommitted edits" in result.err
    assert site.last(DeployedEntry).origin.commit is None


def test_a_change_that_needs_a_decision_is_refused_with_the_command_that_records_it(deployed: Site) -> None:
    deployed.write(INCOMPATIBLE)
    result = deployed.deploy("--planner", "never")
    assert result.code == 1
    assert result.out.startswith("INCOMPATIBLE")
    checked = deployed.last(CheckedEntry)
    assert (checked.branch, checked.policy, deployed.kinds[-1]) == ("approve", "approve", "checked")
    assert "orders: a person must decide, because the change is incompatible. Nothing was changed" in result.err
    offered = [line.strip() for line in result.err.splitlines() if line.startswith("  flinkcompat")]
    assert [line.rpartition(" --approve ")[2] for line in offered] == [
        f"{each} --entry {checked.number} --reason '…'" for each in ("resume", "restart")
    ]
    assert deployed.running == [(V1, None)]

    done = deployed.run(*shlex.split(offered[1])[1:])
    assert done.code == 0, done.err
    assert deployed.running == [(INCOMPATIBLE, None)], "without state"
    approved, review = deployed.last(ApprovedEntry), deployed.last(DeployedEntry).review
    assert (approved.message, approved.review.reason) == ("ann chose 'Restart without state'", "…")
    assert (review.approved_by, review.reason, review.outcome) == ("ann", "…", "incompatible")
    assert deployed.kinds.count("checked") == 2, "the first deployment, and the change"
    again = deployed.run(*shlex.split(offered[1])[1:])
    assert (again.code, again.out[:9]) == (0, "unchanged")


def test_a_decision_to_resume_names_metrics_that_start_from_zero(site: Site) -> None:
    site.declare("engine = 'vvr'")
    assert site.deploy().code == 0
    site.write(PARTIAL)
    assert site.deploy().code == 1
    number = site.last(CheckedEntry).number
    assert site.deploy("--approve", "resume", "--entry", str(number)).code == 0
    assert site.last(ApprovedEntry).message.startswith("ann chose 'Resume from savepoint'; from zero start ")
    assert site.running == [(PARTIAL, "savepoint #1")]


def test_a_decision_is_about_one_version_only(deployed: Site) -> None:
    deployed.write(INCOMPATIBLE)
    deployed.deploy()
    seen = deployed.last(CheckedEntry).number
    deployed.write(INCOMPATIBLE.replace("'2' MINUTE", "'3' MINUTE"))
    result = deployed.deploy("--approve", "restart", "--entry", str(seen))
    assert result.code == 1
    assert f"entry {seen} is not a check of this change" in result.err
    assert "approved" not in deployed.kinds
    deployed.write(COMPATIBLE)
    result = deployed.deploy("--approve", "restart", "--entry", str(seen))
    assert (result.code, deployed.running) == (1, [(V1, None)])
    assert "nobody needs to decide on this change (branch resume)" in result.err


# --- shadow runs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shadowed(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[ShadowReport], list[Any]]:
    """A deployment with shadow runs and a changed script; the function sets the result, and returns the arguments."""
    deployed.declare("start_mode = 'shadow'", "shadow = { duration = '90s', expect = ['total'] }")
    deployed.write(COMPATIBLE)

    def result(report: ShadowReport) -> list[Any]:
        asked: list[Any] = []

        def instead(*arguments: Any, plan: Any, migration: Any) -> ShadowReport:
            asked.append(arguments)
            return report

        monkeypatch.setattr(gating, "shadow", instead)
        return asked

    return result


def test_equal_rows_in_a_shadow_run_resume_the_job(deployed: Site, shadowed: Callable[..., list[Any]]) -> None:
    asked = shadowed(ShadowReport(ShadowFinding.EQUAL))
    result = deployed.deploy()
    assert result.code == 0, result.err
    assert "SHADOW: equal: both scripts write the same rows" in result.out
    ((cluster, job_id, old, new, options, _log),) = asked
    assert (job_id, old.script, new.script, cluster.location.target) == ("job-1", V1, COMPATIBLE, "sql-gateway")
    assert (options.seconds, options.expected) == (90, ["total"])
    assert deployed.kinds[5:8] == ["checked", "shadowed", "deploying"]
    assert deployed.running == [(COMPATIBLE, "savepoint #1")]


def test_different_rows_require_a_decision_on_the_shadow_run(
    deployed: Site, shadowed: Callable[..., list[Any]]
) -> None:
    asked = shadowed(DIFFERS)
    result = deployed.deploy()
    entry = deployed.last(ShadowedEntry)
    assert (result.code, deployed.running, entry.branch) == (1, [(V1, None)], "approve")
    assert "differing keys: 2 (by column: total 2)" in result.out
    why = "because the result of the shadow run is: differs: the new script writes other rows. Nothing was changed"
    assert f"a person must decide, {why}" in result.err
    assert f"--approve resume --entry {entry.number} --reason" in result.err

    wrong = deployed.deploy("--approve", "resume", "--entry", str(deployed.last(CheckedEntry).number))
    assert (wrong.code, len(asked)) == (1, 1)
    assert "is not a shadow run of this change" in wrong.err

    done = deployed.deploy("--approve", "resume", "--entry", str(entry.number), "--reason", "as wanted")
    assert done.code == 0, done.err
    assert len(asked) == 1, "the decision is about the run that the person saw"
    assert deployed.running == [(COMPATIBLE, "savepoint #1")]
    review = deployed.last(DeployedEntry).review
    assert (review.approved_by, review.reason, review.outcome) == ("ann", "as wanted", "compatible")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (ShadowFinding.DIFFERS, "STATE: wrong: if the new script had always run"),
        (ShadowFinding.INCONCLUSIVE, "STATE: could not tell: rows are deleted."),
        (ShadowFinding.EXPECTED, "STATE: differs as expected: only in columns of --expect"),
    ],
)
def test_equal_rows_and_other_state_require_a_decision_on_the_state(
    deployed: Site, shadowed: Callable[..., list[Any]], finding: ShadowFinding, words: str
) -> None:
    shadowed(ShadowReport(ShadowFinding.EQUAL, state=StateComparison(finding, "rows are deleted")))
    result = deployed.deploy()
    assert (result.code, deployed.running) == (1, [(V1, None)])
    assert f"a person must decide, because the result of the shadow run is: {words}" in result.err
    deployed.declare("start_mode = 'shadow'", "shadow.on_expected = 'switch'")
    again = deployed.deploy()
    assert again.code == (0 if finding is ShadowFinding.EXPECTED else 1), again.err


def test_a_decision_on_a_shadow_run_is_about_one_version(deployed: Site, shadowed: Callable[..., list[Any]]) -> None:
    asked = shadowed(DIFFERS)
    deployed.deploy()
    seen = deployed.last(ShadowedEntry).number
    deployed.write(COMPATIBLE.replace("* 100", "* 50"))
    result = deployed.deploy("--approve", "resume", "--entry", str(seen))
    assert (result.code, deployed.running, len(asked)) == (1, [(V1, None)], 1)
    assert "is not a shadow run of this change" in result.err


def test_nobody_decides_on_equal_rows(deployed: Site, shadowed: Callable[..., list[Any]]) -> None:
    shadowed(ShadowReport(ShadowFinding.EQUAL))
    deployed.deploy()
    number = deployed.last(ShadowedEntry).number
    deployed.write(V1)
    result = deployed.deploy("--approve", "resume", "--entry", str(number))
    assert (result.code, deployed.running) == (1, [(COMPATIBLE, "savepoint #1")])


def test_outcomes_without_a_shadow_run(deployed: Site, shadowed: Callable[..., list[Any]]) -> None:
    asked = shadowed(ShadowReport(ShadowFinding.EQUAL))
    deployed.write(INCOMPATIBLE)
    result = deployed.deploy()
    assert (result.code, asked, deployed.kinds[-1]) == (1, [], "checked")
    assert "no shadow run: the change is incompatible, and shadow runs are for compatible" in result.err
    assert f"--approve resume --entry {deployed.last(CheckedEntry).number}" in result.err


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        (("rehearse = true",), "rehearse is set, which only a DAG in Airflow runs"),
        (("approve.approvers_needed = 2", "check.policy.compatible = 'approve'"), "approve requires a second person"),
        (("approve.author_may_approve = false", "check.policy.compatible = 'approve'"), "excludes the author"),
        (
            ("rehearse = true", "backfill.to = '2026-01-01T00:00:00Z'", "check.policy.compatible = 'approve'"),
            "rehearse is set, which only a DAG in Airflow runs; a backfill belongs to this start",
        ),
    ],
)
def test_a_start_that_only_airflow_makes_is_refused_before_the_shadow_run(
    deployed: Site, shadowed: Callable[..., list[Any]], more: tuple[str, ...], refusal: str
) -> None:
    asked = shadowed(ShadowReport(ShadowFinding.EQUAL))
    deployed.declare("start_mode = 'shadow'", *more)
    result = deployed.deploy()
    assert (result.code, asked, deployed.running) == (1, [], [(V1, None)])
    assert refusal in result.err
    assert "--approve" not in result.err


def test_a_person_may_restart_without_a_shadow_run_if_only_airflow_resumes(
    deployed: Site, shadowed: Callable[..., list[Any]]
) -> None:
    asked = shadowed(ShadowReport(ShadowFinding.EQUAL))
    deployed.declare("start_mode = 'shadow'", "rehearse = true", "check.policy.compatible = 'approve'")
    result = deployed.deploy("--start-mode", "savepoint")
    offered = [line.strip() for line in result.err.splitlines() if "--approve" in line]
    assert (result.code, asked, len(offered)) == (1, [], 1)
    assert "no shadow run: rehearse is set" in result.err
    assert "resume is not possible here: rehearse is set, which only a DAG in Airflow runs\n" in result.err
    assert deployed.run(*shlex.split(offered[0])[1:]).code == 0
    assert (asked, deployed.running) == ([], [(COMPATIBLE, None)])


def test_no_decision_is_offered_after_a_shadow_run_if_only_airflow_takes_it(
    deployed: Site, shadowed: Callable[..., list[Any]]
) -> None:
    asked = shadowed(DIFFERS)
    deployed.declare("start_mode = 'shadow'", "approve.approvers_needed = 2")
    result = deployed.deploy()
    assert (result.code, len(asked), deployed.running) == (1, 1, [(V1, None)])
    assert "approve requires a second person" in result.err
    assert "--approve" not in result.err


def test_a_table_without_effect_is_named(deployed: Site) -> None:
    deployed.declare("shadow.duration = '1h'")
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert (result.code, deployed.kinds.count("shadowed")) == (0, 0)
    assert 'the table shadow has no effect without start_mode = "shadow"' in result.err


def test_an_option_of_the_command_is_no_key_of_the_table(deployed: Site) -> None:
    deployed.declare("start_mode = 'shadow'", "shadow.for = '1h'")
    result = deployed.deploy()
    assert result.code == 2
    assert "shadow.for: is unknown; did you mean duration?" in result.err


def test_a_target_without_shadow_runs_is_refused(deployed: Site) -> None:
    deployed.declare("start_mode = 'shadow'")
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert (result.code, deployed.running) == (2, [(V1, None)])
    assert "shadow runs are not possible on" in result.err or "rehearsals are not possible on" in result.err


def test_a_template_is_not_a_folder(deployed: Site) -> None:
    deployed.declare("start_mode = 'shadow'", "shadow.savepoint_directory = '{{ var.value.folder }}'")
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert result.code == 2
    assert "shadow.savepoint_directory: is a template, which only Airflow renders" in result.err


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ("approvers = ['ben', { id = 7, name = 'Cid' }]", "ann is not one of the approvers in the project file"),
        ("approve.approvers_needed = 2", "approve requires a second person or excludes the author"),
        ("approve.author_may_approve = 'no'", "approve requires a second person or excludes the author"),
        ("backfill.to = '2026-01-01T00:00:00Z'", "a backfill belongs to this start"),
        ("check.policy.incompatible = 'reject'", "the policy rejects the change, which is incompatible"),
    ],
)
def test_a_decision_has_the_rights_of_airflow(deployed: Site, more: str, refusal: str) -> None:
    deployed.declare(more, *(["check.policy.incompatible = 'approve'"] if "backfill" in more else []))
    deployed.write(INCOMPATIBLE)
    deployed.deploy()
    number = deployed.last(CheckedEntry).number
    result = deployed.deploy("--approve", "restart", "--entry", str(number))
    assert result.code == 1
    assert refusal in result.err
    assert "approved" not in deployed.kinds
    assert deployed.running == [(V1, None)]


def test_an_approver_may_decide(deployed: Site) -> None:
    deployed.declare("approvers = ['ben', { id = 'ann', name = 'Ann' }]")
    deployed.write(INCOMPATIBLE)
    deployed.deploy()
    assert deployed.deploy("--approve", "restart", "--entry", str(deployed.last(CheckedEntry).number)).code == 0


def test_the_policy_may_restart_without_a_decision(deployed: Site) -> None:
    deployed.declare("check.policy.incompatible = 'restart'")
    deployed.write(INCOMPATIBLE)
    result = deployed.deploy("--start-mode", "checkpoint")
    assert (result.code, deployed.running) == (1, [(V1, None)])
    assert "the new job starts without state: omit --start-mode" in result.err
    assert deployed.deploy().code == 0
    assert deployed.running == [(INCOMPATIBLE, None)]


@pytest.mark.parametrize(
    ("more", "script", "refusal"),
    [
        ("rehearse = true", COMPATIBLE, "rehearse is set, which only a DAG in Airflow runs"),
        ("plan_only = true", COMPATIBLE, "plan_only is set"),
        ("check.policy.compatible = 'reject'", COMPATIBLE, "the policy rejects the change"),
        ("", COMPATIBLE.replace("'orders'", "'${conn.kafka.extra.topic}'"), "fills in ${conn.kafka.extra.topic}"),
        ("settings = { 'x.y' = '${conn.db.password}' }", COMPATIBLE, "of Airflow fills in ${conn.db.password}"),
    ],
)  # fmt: skip
def test_what_only_airflow_runs_is_refused_by_name(deployed: Site, more: str, script: str, refusal: str) -> None:
    deployed.declare(more)
    deployed.write(script)
    result = deployed.deploy()
    assert result.code == 1
    assert refusal in result.err
    assert deployed.running == [(V1, None)]


def test_a_migration_is_refused_by_name(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeploymentGate, "branch", lambda *_: "migrate")
    deployed.write(INCOMPATIBLE)
    result = deployed.deploy()
    assert (result.code, deployed.running) == (1, [(V1, None)])
    assert "orders: the policy migrates the state, which only a DAG in Airflow runs" in result.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("deploy.setle_seconds = 3", "deploy.setle_seconds: is unknown; did you mean settle_seconds?"),
        ("shadow.expects = ['total']", "shadow.expects: is unknown; did you mean expect?"),
        ("deploy.keep_savepoints = '3'", "deploy.keep_savepoints: has a value of a wrong type"),
        ("deploy.roll_back = 0", "deploy.roll_back: has a value of a wrong type"),
        ("deploy.savepoint_directory = '{{ x }}'", "deploy.savepoint_directory: is a template"),
        ("approvers = 'ann'", "approvers: a list is needed"),
        ("approve = 3", "approve: a table is needed"),
        ("target = '{{ x }}'", "target is a template"),
        ("check.policy.incompatible = 'resume'", "an incompatible change must not resume without approval"),
    ],
)
def test_bad_input(site: Site, more: str, message: str) -> None:
    text = FILE if "deploy." not in more else FILE.replace(FILE.splitlines()[-1] + "\n", "")
    Path("flinkcompat.toml").write_text(f"{text}{more}\n", encoding="utf-8")
    result = site.deploy()
    assert (result.code, site.running, Path("ledger").exists()) == (2, [], False)
    assert message in result.err


def test_bad_input_of_the_command(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "belong together" in site.deploy("--approve", "restart").err
    site.write(BROKEN)
    assert (site.deploy().code, site.running) == (2, [])
    Path("orders.sql").unlink()
    assert (site.deploy().code, site.deploy().err) == (
        2,
        "flinkcompat: orders.sql: cannot be read: there is no such file\n",
    )
    assert site.run("deploy", "others", *ADDRESSES).code == 2
    Path("flinkcompat.toml").write_text(FILE.replace('ledger = "ledger"\n', ""), encoding="utf-8")
    result = site.deploy()
    assert (result.code, "deployment 'orders' has no ledger: pass --ledger URI" in result.err) == (2, True)


def test_an_address_is_needed(run: Run) -> None:
    Path("flinkcompat.toml").write_text(FILE, encoding="utf-8")
    result = run("deploy", "orders")
    assert (result.code, "requires the address of its gateway: add --gateway URL" in result.err) == (2, True)


def test_a_rollback_is_exit_code_1(deployed: Site) -> None:
    deployed.server.refuses.add("orders")
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert result.code == 1
    assert "the state does not fit" in result.err
    assert deployed.kinds[-1] == "rolled-back"
    assert deployed.running == [(V1, "savepoint #1")]
    assert deployed.deploy().code == 0, "a person may try the version again"
    assert deployed.running == [(COMPATIBLE, "savepoint #2")]


def test_out_of_reach_and_repeated(deployed: Site) -> None:
    """The answer to the stop is lost; the repeated command finds the stop."""
    deployed.write(INCOMPATIBLE)
    deployed.deploy()
    decision = ("--approve", "restart", "--entry", str(deployed.last(CheckedEntry).number))

    class Lossy(FakeTarget):
        def stop(self, job: Any, request_id: str, directory: str | None) -> Operation:
            super().stop(job, request_id, directory)
            raise AnswerLost("the answer to the stop was lost")

    deployed.target = lambda: Lossy(deployed.server)
    result = deployed.deploy(*decision)
    assert result.code == 3, result.err
    deployed.target = lambda: FakeTarget(deployed.server)
    result = deployed.deploy(*decision)
    assert result.code == 0, result.err
    assert deployed.running == [(INCOMPATIBLE, None)]
    assert deployed.kinds.count("approved") == 1
    assert len({each.owner for each in Ledger("ledger", "orders").entries()}) == 2, "one name for each redeploy"


def test_interrupted_and_repeated(deployed: Site) -> None:
    class Interrupted(FakeTarget):
        def start(self, *arguments: Any) -> Operation:
            super().start(*arguments)
            raise KeyboardInterrupt

    deployed.write(COMPATIBLE)
    deployed.target = lambda: Interrupted(deployed.server)
    result = deployed.deploy()
    assert result.code == 130
    assert "interrupted: running jobs keep running, and the ledger contains the completed steps" in result.err
    deployed.target = lambda: FakeTarget(deployed.server)
    result = deployed.deploy()
    assert result.code == 0, result.err
    assert "resuming the redeploy that entry 7 began" in result.err
    assert deployed.running == [(COMPATIBLE, "savepoint #1")]
    assert len(deployed.server.jobs) == 2, "the first job, and its successor"


@pytest.mark.parametrize("verb", ["stop", "start"])
def test_a_second_command_takes_over_from_the_first(deployed: Site, verb: str) -> None:
    """A command cannot know that the first one still runs. The ledger ends the first one, and there is one job."""
    answered = getattr(FakeTarget, verb)
    second: list[Result] = []

    def twice(target: FakeTarget, *arguments: Any) -> Operation:
        result: Operation = answered(target, *arguments)
        if not second:
            second.append(Result(0, "", ""))
            invoked = CliRunner().invoke(cli, ["deploy", "orders", *ADDRESSES])
            second[0] = Result(invoked.exit_code, invoked.output, "")
        return result

    deployed.target = lambda: type("Twice", (FakeTarget,), {verb: twice})(deployed.server)
    deployed.write(COMPATIBLE)
    first = deployed.deploy()
    assert (first.code, second[0].code) == (1, 0)
    assert "a different run wrote to the ledger of orders during this run" in first.err
    assert deployed.running == [(COMPATIBLE, "savepoint #1")]
    assert len(deployed.server.jobs) == 2, "the first job, and its successor"


def test_another_run_is_refused(deployed: Site) -> None:
    ledger, head = Ledger("ledger", "orders"), deployed.last(DeployedEntry)
    ledger.append(DeployingEntry(job=head.job, owner="airflow:dag/run/resume", start_mode="savepoint"))
    deployed.write(COMPATIBLE)
    result = deployed.deploy()
    assert result.code == 1
    assert "airflow:dag/run/resume is deploying orders" in result.err


def test_a_target_without_an_answer(deployed: Site) -> None:
    class Silent(FakeTarget):
        def engine(self) -> Any:
            raise AnswerLost("no answer")

    deployed.target = lambda: Silent(deployed.server)
    assert deployed.deploy().code == 3
    Path("ledger/orders/000005.json").write_text("{}\n}", encoding="utf-8")
    assert deployed.deploy().code == 3
