"""The sensor offers what is new, once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators.approval import REJECT
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.airflow.triggers.change import FileChangeTrigger, fingerprint_of
from airflow_flinkcompat.deploy import EngineInfo
from airflow_flinkcompat.deploy.flink.gateway import GatewayError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManagerError
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    ApprovedEntry,
    BackfilledEntry,
    DeployedEntry,
    DeployingEntry,
    FailedEntry,
    HeadEntry,
    RehearsedEntry,
    RolledBackEntry,
    RollingBackEntry,
)
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from tests.support.airflow.operators.fakes import Run, script
from tests.support.nightly import mostly_slow
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_approval import ASKING, event


def sensor(site: Site, **arguments: Any) -> FlinkSqlChangeSensor:
    given = {"script": "orders.sql", "ledger": str(site.folder / "ledger"), **arguments}
    with DAG("d", template_searchpath=str(site.folder)):
        return FlinkSqlChangeSensor(task_id="changed", deployment="orders", **given)


def _warnings(logs: list[Any]) -> list[str]:
    return [
        record["event"]
        for record in logs
        if record["log_level"] == "warning" and "outside of the Task Runner" not in record["event"]
    ]


def _handed_through(trigger: FileChangeTrigger) -> dict[str, Any]:
    return {name: getattr(trigger, name) for name in ("since", "reason", "problems")}


def look(site: Site, **arguments: Any) -> str | FileChangeTrigger:
    """The reason for an offer, or the trigger that waits."""
    try:
        return str(Run().execute(sensor(site, **arguments))["reason"])
    except TaskDeferred as deferred:
        return deferred.trigger  # type: ignore[return-value]


def offered(site: Site) -> bool:
    return isinstance(look(site), str)


def test_the_first_version_is_offered(site: Site) -> None:
    site.propose(script())
    assert look(site) == "nothing is deployed yet: orders.sql is a new version"


def test_what_is_deployed_is_waited_for_to_change(deployed: Site) -> None:
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    assert trigger.baseline == fingerprint_of(trigger.paths)
    assert trigger.paths == [str(deployed.folder / "orders.sql")]
    deployed.propose(script(size=5))
    assert trigger.baseline != fingerprint_of(trigger.paths)
    assert look(deployed) == f"orders.sql differs from entry 5, deployed at {deployed.ledger.entries()[4].at}"


@pytest.mark.parametrize("kind", [AdoptedEntry, DeployedEntry, RolledBackEntry])
def test_what_is_in_force_counts_however_it_came_to_be(kind: type[HeadEntry], deployed: Site) -> None:
    head = deployed.ledger.head()
    assert head is not None
    deployed.ledger.append(kind(job=replace(head.job, script=script(size=5)), start=head.start))
    assert isinstance(look(deployed), str)
    deployed.propose(script(size=5))
    assert not offered(deployed)


def test_settings_and_catalog_count_and_the_engines_version_does_not(deployed: Site) -> None:
    assert isinstance(look(deployed, settings={"parallelism.default": "2"}), str)
    assert isinstance(look(deployed, catalog="CREATE TABLE x (a INT);"), str)
    deployed.cluster.version = "2.4.0"
    assert not offered(deployed)


def test_a_rejected_version_is_not_offered_again(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    assert offered(deployed)
    run.complete(tasks["approve"], event(REJECT))
    assert not offered(deployed)
    deployed.propose(script(size=6))
    assert offered(deployed)
    deployed.propose(script(size=5))
    assert not offered(deployed)


def test_a_failed_version_is_not_offered_again_until_somebody_approves_it(deployed: Site) -> None:
    with pytest.raises(Exception, match="plain text"):
        deployed.checked(script(size=5).replace("'/out'", "'/out', 'password' = 'planted-pw'"))
    assert not offered(deployed)
    failed = deployed.ledger.entries()[-1]
    deployed.ledger.append(ApprovedEntry(version=failed.version))
    assert offered(deployed)


def test_that_a_rejected_version_was_looked_at_again_does_not_offer_it(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    run.complete(tasks["approve"], event(REJECT))
    Run("run-2").execute(tasks["check"])
    version = deployed.ledger.entries()[-1].version
    deployed.ledger.append(RehearsedEntry(version=version))
    deployed.ledger.append(BackfilledEntry(version=version))
    assert not offered(deployed)


def test_a_version_whose_way_back_was_waited_for_is_not_offered_again(deployed: Site) -> None:
    """Its run claimed the deployment once more when it was taken up again."""
    head = deployed.ledger.head()
    assert head is not None
    refused = replace(head.job, script=script(size=5))
    deployed.propose(refused.script)
    back = {"job": head.job, "start": head.start}
    for entry in (
        FailedEntry(job=refused, start=head.start, rolls_back_to=head.number, message="no such connector"),
        RollingBackEntry(**back),
        DeployingEntry(job=refused),
        RolledBackEntry(**back),
    ):
        deployed.ledger.append(entry)
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    assert "is not offered again (failed at" in trigger.reason


def test_a_script_that_cannot_be_read_is_not_offered_for_ever(deployed: Site) -> None:
    with pytest.raises(Exception, match="no SQL statement"):
        deployed.checked("-- nothing\n")
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    assert re.search("is not offered again .*contains no SQL statement.*Waiting until it changes$", trigger.reason)


def test_it_looks_again_when_the_trigger_fires(deployed: Site) -> None:
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    with pytest.raises(TaskDeferred) as again:  # nothing but the time has changed
        Run().complete(sensor(deployed), {"changed": False, "since": trigger.since})
    assert again.value.trigger.since == trigger.since
    deployed.propose(script(size=5))
    assert Run().complete(sensor(deployed), {"changed": True, "since": trigger.since})["deployment"] == "orders"


@dataclass(frozen=True)
class Mishap:
    """Something that lasts until somebody mends it. ``make`` and ``mend`` act on the site."""

    make: Callable[[Site, pytest.MonkeyPatch], None]
    says: str
    mend: Callable[[Site, pytest.MonkeyPatch], None]
    arguments: Mapping[str, Any] = field(default_factory=dict)


def _propose(text: str) -> Callable[[Site, pytest.MonkeyPatch], None]:
    return lambda site, _monkeypatch: site.propose(text)


def _remove(site: Site, _monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "orders.sql").unlink()


def _as_latin_1(site: Site, _monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "orders.sql").write_bytes("-- größer\n".encode("latin-1"))


def _ledger_is_a_file(site: Site, _monkeypatch: pytest.MonkeyPatch) -> None:
    site.propose(script(size=5))
    (site.folder / "ledger").rename(site.folder / "kept")
    (site.folder / "ledger").write_text("no folder")


def _ledger_is_back(site: Site, _monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "ledger").unlink()
    (site.folder / "kept").rename(site.folder / "ledger")


def _gateway_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.propose(script(size=5))
    monkeypatch.setattr(site.cluster, "engine", _raise(GatewayError("the SQL Gateway at http://gw:8083 is away")))


def _jobmanager_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.propose(script(size=5))
    monkeypatch.setattr(site.cluster, "running", _raise(JobManagerError("the JobManager at http://jm:8081 is away")))


def _connection_is_unknown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.propose(script(size=5))
    monkeypatch.setattr(FlinkHook, "get_conn", _raise(AirflowNotFoundException("the conn_id flink_default is unknown")))


def _cluster_answers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.cluster, "engine", lambda: EngineInfo("flink", "2.3.0"))
    monkeypatch.setattr(site.cluster, "running", lambda _name: ())
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _self: site.cluster)


def _raise(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def _ledger_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEDGER_VARIABLE, str(site.folder / "ledger"))


MISHAPS = {
    "missing script": Mishap(_remove, r"script file 'orders\.sql' does not exist; looked in", _propose(script(size=5))),
    "unreadable script": Mishap(_as_latin_1, r"orders\.sql:1: is not UTF-8 text", _propose(script(size=5))),
    "template": Mishap(_propose("SELECT {{ nothing.at.all }};\n"), "'nothing' is undefined", _propose(script(size=5))),
    "no ledger": Mishap(_propose(script(size=5)), "no ledger is set", _ledger_is_named, {"ledger": None}),
    "ledger away": Mishap(_ledger_is_a_file, "the ledger .* cannot be listed", _ledger_is_back),
    "unknown connection": Mishap(_connection_is_unknown, "the conn_id flink_default is unknown", _cluster_answers),
    "Gateway away": Mishap(_gateway_fails, "the SQL Gateway at http://gw:8083 is away", _cluster_answers),
    "JobManager away": Mishap(_jobmanager_fails, "the JobManager at http://jm:8081 is away", _cluster_answers),
}


@pytest.mark.parametrize("mishap", mostly_slow(tuple(MISHAPS.values()), 4), ids=MISHAPS)
def test_what_somebody_has_to_mend_is_waited_out(
    mishap: Mishap, deployed: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    mishap.make(deployed, monkeypatch)
    run, seconds, event = Run(), [], {}
    for looks in range(9):
        waiting = sensor(deployed, **mishap.arguments)
        with pytest.raises(TaskDeferred) as deferred:
            run.complete(waiting, event) if looks else run.execute(waiting)
        trigger = deferred.value.trigger
        event = {"changed": False, **_handed_through(trigger)}
        seconds.append(trigger.recheck_seconds)
    assert seconds == [10, 20, 40, 80, 160, 320, 600, 600, 600], "less and less often, up to recheck"
    (said,) = _warnings(logs)
    assert re.search(f"^Waiting until this is corrected; nothing is started: .*{mishap.says}", said)
    assert re.search(mishap.says, run.pushed["changed", "waiting_for"])
    mishap.mend(deployed, monkeypatch)
    assert run.complete(sensor(deployed, **mishap.arguments), event)["reason"].startswith("orders.sql differs")
    assert run.pushed["changed", "waiting_for"] == ""


def test_another_problem_is_said_too(deployed: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]) -> None:
    _gateway_fails(deployed, monkeypatch)
    first = look(deployed)
    assert isinstance(first, FileChangeTrigger)
    _remove(deployed, monkeypatch)
    with pytest.raises(TaskDeferred) as deferred:
        Run().complete(sensor(deployed), {"changed": True, **_handed_through(first)})
    said = _warnings(logs)
    assert ["is away" in text for text in said] == [True, False]
    second = deferred.value.trigger
    assert (second.problems, second.recheck_seconds) == (2, 20)
    # What is in order again begins anew.
    deployed.propose(script())
    with pytest.raises(TaskDeferred) as deferred:
        Run().complete(sensor(deployed), {"changed": True, **_handed_through(second)})
    assert (deferred.value.trigger.problems, deferred.value.trigger.recheck_seconds) == (0, 600)


def test_a_missing_script_is_watched_for(site: Site) -> None:
    trigger = look(site)
    assert isinstance(trigger, FileChangeTrigger)
    assert (trigger.paths, str(site.folder / "orders.sql") in trigger.absent) == ([], True)
    site.propose(script())
    event = asyncio.run(asyncio.wait_for(_first(trigger), 10))
    assert Run().complete(sensor(site), event)["reason"] == "nothing is deployed yet: orders.sql is a new version"


async def _first(trigger: FileChangeTrigger) -> dict[str, Any]:
    trigger.poll_interval = 0.01
    return dict((await anext(trigger.run())).payload)


def test_what_could_not_be_rendered_is_shown_as_given_and_masked(deployed: Site) -> None:
    deployed.propose("SELECT {{ nothing.at.all }};\n")
    waiting = sensor(deployed, settings={"a.password": "planted-pw"})
    with pytest.raises(TaskDeferred) as deferred:
        Run().execute(waiting)
    assert waiting.script == "orders.sql"
    assert "planted-pw" not in f"{waiting.settings} {deferred.value.trigger.serialize()}"


def test_a_bug_fails_the_task(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.propose(script(size=5))
    monkeypatch.setattr(deployed.cluster, "engine", _raise(KeyError("a bug")))
    with pytest.raises(KeyError):
        look(deployed)


@pytest.mark.parametrize(
    ("arguments", "offers"),
    [({}, False), ({"require_cluster": True}, False), ({"require_cluster": False}, True)],
)
def test_a_version_is_offered_without_a_cluster_where_none_is_required(
    arguments: Any, offers: bool, deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gateway_fails(deployed, monkeypatch)
    assert isinstance(look(deployed, **arguments), str) == offers


def test_a_program_needs_no_gateway(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    _gateway_fails(site, monkeypatch)
    waiting = sensor(site, script="print('no job')", language="python")
    assert Run().execute(waiting)["reason"] == "nothing is deployed yet: <script> is a new version"


def test_in_a_worker_a_problem_is_waited_out_too(deployed: Site, logs: list[Any]) -> None:
    (deployed.folder / "orders.sql").unlink()
    waiting = sensor(deployed, deferrable=False)
    run = Run()
    context = run.render(waiting)
    assert [waiting.poke(context) for _ in range(3)] == [False] * 3
    assert len(_warnings(logs)) == 1
    deployed.propose(script(size=5))
    assert waiting.poke(context)


def test_a_job_that_nobody_edits_fails_nothing(deployed: Site) -> None:
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    year = 366 * 86400
    with pytest.raises(TaskDeferred):
        Run().complete(sensor(deployed), {"changed": False, **_handed_through(trigger), "since": trigger.since - year})


def test_it_gives_up_in_time_where_a_time_is_given(deployed: Site) -> None:
    trigger = look(deployed, timeout=60, recheck=timedelta(hours=1))
    assert isinstance(trigger, FileChangeTrigger)
    assert 50 < trigger.recheck_seconds <= 60
    with pytest.raises(AirflowSensorTimeout, match="no new version of orders within 60 s"):
        Run().complete(sensor(deployed, timeout=60), {"changed": False, "since": trigger.since - 61})
    # Airflow takes a task up again by this.
    skipping = sensor(deployed, timeout=timedelta(minutes=1), soft_fail=True)
    context = Run().render(skipping)
    with pytest.raises(AirflowSkipException):
        skipping.resume_execution(
            "execute_complete", {"event": {"changed": False, "since": trigger.since - 61}}, context
        )


def test_in_a_worker_it_reads_the_file_anew(deployed: Site) -> None:
    waiting = sensor(deployed, deferrable=False)
    run = Run()
    context = run.render(waiting)
    assert not waiting.poke(context)
    deployed.propose(script(size=5))
    assert waiting.poke(context)
