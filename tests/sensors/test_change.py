"""The sensor offers what is new, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_flinkcompat.deploy.ledger.history import HEADS, LedgerEntry
from airflow_flinkcompat.operators.approval import REJECT
from airflow_flinkcompat.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.triggers.change import FileChangeTrigger, fingerprint_of
from tests.operators.conftest import Site, deployed, site  # noqa: F401
from tests.operators.fakes import Run, script
from tests.operators.test_approval import ASKING, event


def sensor(site: Site, **arguments: Any) -> FlinkSqlChangeSensor:  # noqa: F811
    with DAG("d", template_searchpath=str(site.folder)):
        return FlinkSqlChangeSensor(
            task_id="changed", deployment="orders", script="orders.sql", ledger=str(site.folder / "ledger"), **arguments
        )


def look(site: Site, **arguments: Any) -> str | FileChangeTrigger:  # noqa: F811
    """The reason for an offer, or the trigger that waits."""
    try:
        return str(Run().execute(sensor(site, **arguments))["reason"])
    except TaskDeferred as deferred:
        return deferred.trigger  # type: ignore[return-value]


def offered(site: Site) -> bool:  # noqa: F811
    return isinstance(look(site), str)


def test_the_first_version_is_offered(site: Site) -> None:  # noqa: F811
    site.propose(script())
    assert look(site) == "nothing is deployed yet: orders.sql is offered"


def test_what_is_deployed_is_waited_for_to_change(deployed: Site) -> None:  # noqa: F811
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    assert trigger.baseline == fingerprint_of(trigger.paths)
    assert trigger.paths == [str(deployed.folder / "orders.sql")]
    deployed.propose(script(size=5))
    assert trigger.baseline != fingerprint_of(trigger.paths)
    assert look(deployed) == f"orders.sql differs from what entry 4 deployed at {deployed.ledger.entries()[3].at}"


@pytest.mark.parametrize("kind", sorted(HEADS))
def test_what_is_in_force_counts_however_it_came_to_be(kind: str, deployed: Site) -> None:  # noqa: F811
    head = deployed.ledger.head()
    assert head is not None
    deployed.ledger.append(replace(head, kind=kind, script=script(size=5)))
    assert isinstance(look(deployed), str)
    deployed.propose(script(size=5))
    assert not offered(deployed)


def test_settings_and_catalog_count_and_the_engines_version_does_not(deployed: Site) -> None:  # noqa: F811
    assert isinstance(look(deployed, settings={"parallelism.default": "2"}), str)
    assert isinstance(look(deployed, catalog="CREATE TABLE x (a INT);"), str)
    deployed.cluster.version = "2.4.0"
    assert not offered(deployed)


def test_a_rejected_version_is_not_offered_again(deployed: Site) -> None:  # noqa: F811
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    assert offered(deployed)
    run.complete(tasks["approve"], event(REJECT))
    assert not offered(deployed)
    deployed.propose(script(size=6))
    assert offered(deployed)
    deployed.propose(script(size=5))
    assert not offered(deployed)


def test_a_failed_version_is_not_offered_again_until_somebody_approves_it(deployed: Site) -> None:  # noqa: F811
    run, tasks, _ = deployed.checked(script(size=5).replace("'/out'", "'/out', 'password' = 'planted-pw'"))
    with pytest.raises(Exception, match="plain text"):
        run.execute(tasks["restart"])
    assert not offered(deployed)
    failed = deployed.ledger.entries()[-1]
    deployed.ledger.append(
        LedgerEntry(kind="approved", engine=failed.engine, engine_version=failed.engine_version, sha256=failed.sha256)
    )
    assert offered(deployed)


def test_a_script_that_cannot_be_read_is_not_offered_for_ever(deployed: Site) -> None:  # noqa: F811
    with pytest.raises(Exception, match="no SQL statement"):
        deployed.checked("-- nothing\n")
    assert not offered(deployed)


def test_it_looks_again_when_the_trigger_fires(deployed: Site) -> None:  # noqa: F811
    trigger = look(deployed)
    assert isinstance(trigger, FileChangeTrigger)
    with pytest.raises(TaskDeferred) as again:  # nothing but the time has changed
        Run().complete(sensor(deployed), {"changed": False, "since": trigger.since})
    assert again.value.trigger.since == trigger.since
    deployed.propose(script(size=5))
    assert Run().complete(sensor(deployed), {"changed": True, "since": trigger.since})["deployment"] == "orders"


def test_it_gives_up_in_time(deployed: Site) -> None:  # noqa: F811
    trigger = look(deployed, timeout=60, recheck=timedelta(hours=1))
    assert isinstance(trigger, FileChangeTrigger)
    assert 50 < trigger.recheck_seconds <= 60
    with pytest.raises(AirflowSensorTimeout, match="nothing new for orders within 60 s"):
        Run().complete(sensor(deployed, timeout=60), {"changed": False, "since": trigger.since - 61})


def test_in_a_worker_it_reads_the_file_anew(deployed: Site) -> None:  # noqa: F811
    waiting = sensor(deployed, deferrable=False)
    run = Run()
    context = run.render(waiting)
    assert not waiting.poke(context)
    deployed.propose(script(size=5))
    assert waiting.poke(context)
