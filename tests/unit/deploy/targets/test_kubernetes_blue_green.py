"""``FlinkBlueGreenDeployment``: redeploys in place, and plans that the operator carries out as a change of color."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from airflow_flinkcompat.deploy import DeployRefused
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT
from tests.support.deploy.targets.blue_green_stand_in import BlueGreenStandIn
from tests.support.deploy.targets.kubernetes_deployments import BLUE_GREEN, Deployments, operator
from tests.unit.deploy.targets.test_kubernetes import KubernetesContract
from tests.unit.deploy.targets.test_kubernetes_gitops import merge, plan, recorded


@pytest.fixture
def stand_in() -> Iterator[Any]:
    with operator("1.10", BlueGreenStandIn) as stand_in:
        yield stand_in


@pytest.mark.nightly
class TestBlueGreen(KubernetesContract):
    """The contract of targets."""

    settings: ClassVar = {"manifest": BLUE_GREEN}

    @pytest.fixture
    def stand_in(self) -> Iterator[Any]:
        with operator("1.10", BlueGreenStandIn) as stand_in:
            yield stand_in


@pytest.fixture
def orders(stand_in: BlueGreenStandIn, tmp_path: Path) -> Deployments:
    """A deployment whose blue color runs the first script."""
    found = Deployments(stand_in, tmp_path, {"manifest": BLUE_GREEN})
    found.deploy(SCRIPT)
    stand_in.calls.clear()
    return found


def state(orders: Deployments) -> str:
    return str(orders.resource["status"]["blueGreenState"])


def test_a_redeploy_suspends_and_resumes_the_color_in_force(orders: Deployments) -> None:
    """So no two jobs write at the same time, and the new job starts from exactly the savepoint of the stop."""
    entry = orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.calls == ["patch flinkbluegreendeployments"] * 2
    (job,) = orders.runs
    assert (job.restored, entry.start.savepoint) == ("file:/savepoints/savepoint-1",) * 2
    assert (state(orders), ("flinkdeployments", "orders-green") in orders.stand_in.objects) == ("ACTIVE_BLUE", False)
    assert set(orders.resource["spec"]) == {"configuration", "template"}


def test_a_rollback_makes_the_resource_anew(orders: Deployments) -> None:
    orders.stand_in.flink.misfits.add("orders")
    with pytest.raises(DeployError, match="Rolled back: the script of entry 4 runs again"):
        orders.deploy(MISFIT, owner="second")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert orders.resource["spec"]["configuration"] == {"kubernetes.operator.bluegreen.abort.grace-period": "2 min"}


def test_a_merged_plan_is_a_change_of_color(orders: Deployments) -> None:
    """It is recorded when green is in force and blue is gone, from the savepoint that the operator took of blue."""
    orders.stand_in.overlap = True
    planned = plan(orders, CHANGED)
    (document,) = yaml.safe_load_all(planned.plan.text)
    assert document["kind"] == "FlinkBlueGreenDeployment"
    assert document["spec"]["template"]["spec"]["job"]["args"] == ["--script", CHANGED]
    assert "Both jobs write the rows of this time" in planned.plan.text
    merge(orders.stand_in, planned.plan.documents)
    with pytest.raises(DeployError, match="so the plan is not verified yet"):
        recorded(orders)
    assert len(orders.runs) == 2
    with orders.target() as target, pytest.raises(DeployRefused, match="is TRANSITIONING_TO_GREEN, so two jobs may"):
        target.stop(JobRef("orders"), "1" * 32, None)
    orders.stand_in.overlap = False
    entry = recorded(orders)
    assert entry is not None
    (job,) = orders.runs
    assert state(orders) == "ACTIVE_GREEN"
    assert (job.restored, entry.start.savepoint) == ("file:/savepoints/savepoint-1",) * 2
    back = orders.deploy(SCRIPT, owner="third")
    (job,) = orders.runs
    assert (state(orders), job.restored) == ("ACTIVE_GREEN", back.start.savepoint)


def test_an_aborted_change_leaves_the_former_job_in_force(orders: Deployments) -> None:
    """The template has the new script, but blue runs the former one, which is what the ledger says."""
    orders.stand_in.aborts = True
    planned = plan(orders, MISFIT)
    orders.stand_in.flink.misfits.add("orders")
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:
        assert [status.state for status in target.jobs() for _ in range(3)]
    with pytest.raises(DeployError, match=r"aborted the change of FlinkBlueGreenDeployment orders \(.*The former job"):
        recorded(orders)
    assert state(orders) == "ACTIVE_BLUE"
    (job,) = orders.runs
    head = orders.ledger.head()
    assert head is not None
    assert (head.kind, head.job.script, job.restored) == ("deployed", SCRIPT, None)
