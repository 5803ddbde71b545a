"""What a platform says it runs, held against the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, Start, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.redeploy.adopt import adopt
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import Deployed, JobRef, Operation
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.fake_target import FakeTarget
from airflow_flinkcompat.testing.target_contract import CHANGED, SCRIPT, SETTINGS, side

OPTIONS = Options(settle_seconds=0)
BY_HAND = JobSpec(SCRIPT, {"pipeline.name": "orders", **SETTINGS})


@pytest.fixture
def target() -> FakeTarget:
    return FakeTarget()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


def deployed(target: FakeTarget, ledger: Ledger, script: str = SCRIPT) -> DeployedEntry:
    head = ledger.head()
    return deploy(target, ledger, side(script), checked_old_sha256=head.sha256 if head else None, options=OPTIONS)


def changed_by_somebody(target: FakeTarget, job: JobRef, **other: object) -> None:
    """The platform runs something else, under the same name and as the same job."""
    found = target.server.jobs[job]
    found.runs = replace(found.runs, **other)  # type: ignore[arg-type]


def test_what_is_as_the_ledger_says_goes_on(target: FakeTarget, ledger: Ledger) -> None:
    deployed(target, ledger)
    assert deployed(target, ledger, CHANGED).job_id == "job-2"


def test_another_script_is_refused_and_nothing_touched(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger)
    changed_by_somebody(target, first.start.job_ref, script=CHANGED)
    entries = ledger.entries()
    with pytest.raises(DeployRefused) as refused:
        deployed(target, ledger, CHANGED)
    number = first.number
    assert str(refused.value).splitlines() == [
        f"on the fake target, job job-1 runs a different script than entry {number} records, but the ledger of orders "
        f"records job job-1 (entry {number}): someone else deployed. Nothing was changed. Record the running version "
        "(`flinkcompat ledger adopt orders --job-id job-1 --script FILE`), or restore the version of entry "
        f"{number} on the platform. Then check the change again",
        f"--- script of entry {number}",
        "+++ script of the running version",
        "@@ -3,4 +3,4 @@",
        "     'connector' = 'datagen', 'rows-per-second' = '20', 'fields.n.min' = '0', 'fields.n.max' = '9'",
        " );",
        " CREATE TEMPORARY TABLE counts (n BIGINT, c BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = "
        "'blackhole');",
        "-INSERT INTO counts SELECT n, COUNT(*) FROM numbers GROUP BY n;",
        "+INSERT INTO counts SELECT n, COUNT(*) + 1 FROM numbers GROUP BY n;",
    ]
    assert ledger.entries() == entries
    assert target.running("orders") == ("job-1",)


def test_other_settings_are_shown_and_what_is_secret_of_them_is_not(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger)
    others = {"parallelism.default": "8", "s3.secret-key": "planted-in-the-console"}
    changed_by_somebody(target, first.start.job_ref, settings={**BY_HAND.settings, **others})
    with pytest.raises(
        DeployRefused, match=r"runs different settings \(parallelism\.default, s3\.secret-key\)"
    ) as refused:
        deployed(target, ledger, CHANGED)
    assert str(refused.value).splitlines()[1:] == [
        f"--- settings of entry {first.number}",
        "+++ settings of the running version",
        "@@ -1,2 +1,3 @@",
        " execution.checkpointing.interval = 500 ms",
        "-parallelism.default = 1",
        "+parallelism.default = 8",
        "+s3.secret-key = ***",
    ]


def test_a_secret_that_alone_differs_is_not_shown(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger, SCRIPT.replace("'blackhole'", "'blackhole', 'password' = '${conn.shop.password}'"))
    typed = first.job.script.replace("${conn.shop.password}", "typed-by-hand")
    changed_by_somebody(target, first.start.job_ref, script=typed)
    with pytest.raises(DeployRefused, match="a different script") as refused:
        deployed(target, ledger, CHANGED)
    assert "'password' = '***'" in str(refused.value)
    assert "typed-by-hand" not in str(refused.value)


def test_a_long_difference_is_cut_short(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger)
    comments = "".join(f"-- line {number}\n" for number in range(100))
    changed_by_somebody(target, first.start.job_ref, script=comments + SCRIPT)
    with pytest.raises(DeployRefused) as refused:
        deployed(target, ledger, CHANGED)
    shown = str(refused.value).splitlines()
    assert len(shown) == 62
    assert shown[-1] == "… and 46 more lines"


def test_the_same_script_started_by_somebody_else_is_said_to_be_the_same(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger)
    target.cancel(first.start.job_ref)
    target.start(BY_HAND, Start(), new_id())
    with pytest.raises(
        DeployRefused, match=rf"\n\(compared with entry {first.number}: script and settings are the same\)$"
    ):
        deployed(target, ledger, CHANGED)


def test_a_job_that_the_ledger_does_not_know_is_refused(target: FakeTarget, ledger: Ledger) -> None:
    first = deployed(target, ledger)
    target.cancel(first.start.job_ref)
    target.start(BY_HAND, Start(), new_id())
    with pytest.raises(
        DeployRefused, match="job job-2 runs under the name 'orders', but the ledger of orders records job"
    ):
        deployed(target, ledger, CHANGED)


def test_so_is_one_where_nothing_is_deployed(target: FakeTarget, ledger: Ledger) -> None:
    target.start(BY_HAND, Start(), new_id())
    with pytest.raises(DeployRefused, match="the ledger of orders records no deployment: someone else deployed"):
        deployed(target, ledger)


def test_what_a_platform_does_not_keep_is_not_compared(
    target: FakeTarget, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that it has in another form only, say: the job alone is held against the ledger."""
    deployed(target, ledger)
    monkeypatch.setattr(target, "deployed", lambda _name: Deployed(JobRef("job-1")))
    assert deployed(target, ledger, CHANGED).job_id == "job-2"


def test_a_job_changed_in_its_place_is_taken_over_with_what_it_runs(target: FakeTarget, ledger: Ledger) -> None:
    """By the platform's own word; with any other script it is not."""
    first = deployed(target, ledger)
    changed_by_somebody(target, first.start.job_ref, script=CHANGED)
    with pytest.raises(
        DeployRefused, match=r"on the fake target, job job-1 runs a different script than contract\.sql"
    ):
        adopt(target, ledger, Side.of(side(SCRIPT)), first.start.job_ref, owner="ann")
    entry = adopt(target, ledger, Side.of(side(CHANGED)), first.start.job_ref, owner="ann").entry
    assert entry.message == "script supplied by ann, confirmed by the platform"
    assert "tables that the job reads and writes: cannot be determined on this target" in entry.evidence
    with pytest.raises(DeployRefused, match="there is nothing to adopt"):
        adopt(target, ledger, Side.of(side(CHANGED)), first.start.job_ref, owner="ann")
    assert deployed(target, ledger).job_id == "job-2"


class Died(BaseException):
    """The process is gone."""


class SpecFirst(FakeTarget):
    """A platform that keeps what is to run before it has a job of it; its caller dies in between."""

    spec: Deployed | None = None

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        if self.spec is None and job.script == CHANGED:
            self.spec = Deployed(None, job.script)
            raise Died
        return super().start(job, start, request_id)

    def deployed(self, name: str) -> Deployed | None:
        return super().deployed(name) or self.spec


def test_what_a_run_that_died_asked_for_is_no_stranger(ledger: Ledger) -> None:
    """The platform knows of it before the ledger does; the retry goes on."""
    target = SpecFirst()
    deployed(target, ledger)
    with pytest.raises(Died):
        deployed(target, ledger, CHANGED)
    assert target.running("orders") == ()
    entry = deployed(target, ledger, CHANGED)
    assert target.running("orders") == (entry.job_id,)


def test_another_spec_without_a_job_is_refused(ledger: Ledger) -> None:
    target = SpecFirst()
    first = deployed(target, ledger)
    target.cancel(first.start.job_ref)
    target.spec = Deployed(None, CHANGED)
    with pytest.raises(DeployRefused, match="'orders' is deployed with a different script than entry 4 records"):
        deployed(target, ledger, CHANGED)
