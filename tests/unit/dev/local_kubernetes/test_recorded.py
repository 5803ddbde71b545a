"""The readers of a status say of each recorded resource what happened to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dev.local_kubernetes.resources import reconciled, runs, savepoint_of, suspended

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[3] / "fixtures" / "recorded"
LIVES = sorted(
    (path.parent.name, path.stem.removesuffix("-suspended")) for path in RECORDED.glob("*/*n-suspended.json")
)
BROKEN = [
    (folder.name, name)
    for folder in sorted(RECORDED.glob("operator-*"))
    for name in ("session-broken-script", "session-operators-do-not-fit", "session-savepoint-missing")
    # Of this one 1.15.0 notices that Flink has a job of it that failed to begin: the error is that job's.
    if (folder.name, name) != ("operator-1.15.0", "session-operators-do-not-fit")
]


def recorded(operator: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / operator / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_record_is_a_resource_of_flinks(path: Path) -> None:
    resource = recorded(path.parent.name, path.stem)
    kind = "FlinkDeployment" if path.stem.startswith(("application", "session-cluster")) else "FlinkSessionJob"
    assert (resource["kind"], resource["apiVersion"]) == (kind, "flink.apache.org/v1beta1")


@pytest.mark.parametrize(("operator", "kind"), LIVES)
def test_what_runs_and_what_was_suspended(operator: str, kind: str) -> None:
    first, stopped, again = (recorded(operator, f"{kind}-{step}") for step in ("running", "suspended", "running-again"))
    assert [runs(each) for each in (first, stopped, again)] == [True, False, True]
    assert [suspended(each) for each in (first, stopped, again)] == [False, True, False]
    assert savepoint_of(first) is None
    assert "/savepoint-" in str(savepoint_of(stopped))
    assert savepoint_of(stopped) == savepoint_of(again)


@pytest.mark.parametrize(("operator", "name"), BROKEN)
def test_a_start_that_failed_is_carried_out_and_does_not_run(operator: str, name: str) -> None:
    broken = recorded(operator, name)
    assert reconciled(broken)
    assert not runs(broken)
    assert json.loads(broken["status"]["error"])["type"].endswith(".ReconciliationException")
