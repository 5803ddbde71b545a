"""The page of the Kubernetes target: its DAG is one, and the one that runs on the real operator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.local_kubernetes.gated import DAG_ID, DEPLOYMENT, PAGE, page_dag


@pytest.mark.slow
def test_the_pages_dag_is_one_and_is_short() -> None:
    """``tests/scenarios/local_kubernetes/test_airflow.py`` runs it as it stands on the page."""
    code = page_dag()
    assert len(code.splitlines()) < 40
    names: dict[str, Any] = {}
    exec(code, names)
    dag = names["dag"]
    assert dag.dag_id == DAG_ID
    assert {"changed", "check", "approve", "deploy_first", "resume", "restart", "backfill"} == set(dag.task_ids)
    assert {(task.deployment, task.target) for task in dag.tasks} == {(DEPLOYMENT, "kubernetes")}


def test_its_pictures_are_there() -> None:
    for name in ("graph", "log", "approval"):
        assert f"../images/kubernetes-{name}.png" in PAGE.read_text("utf-8")
        assert (PAGE.parents[1] / "images" / f"kubernetes-{name}.png").is_file()
