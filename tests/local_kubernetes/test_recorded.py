"""The readers of a status say of each recorded resource what happened to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.local_kubernetes.resources import reconciled, runs, savepoint_of, suspended

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parent / "recorded" / "operator-1.7.0"


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_every_record_is_a_resource_of_flinks(path: Path) -> None:
    resource = recorded(path.stem)
    kind = "FlinkDeployment" if path.stem.startswith(("application", "session-cluster")) else "FlinkSessionJob"
    assert (resource["kind"], resource["apiVersion"]) == (kind, "flink.apache.org/v1beta1")


@pytest.mark.parametrize("kind", ["session", "application"])
def test_what_runs_and_what_was_suspended(kind: str) -> None:
    first, stopped, again = (recorded(f"{kind}-{step}") for step in ("running", "suspended", "running-again"))
    assert [runs(each) for each in (first, stopped, again)] == [True, False, True]
    assert [suspended(each) for each in (first, stopped, again)] == [False, True, False]
    assert savepoint_of(first) is None
    assert "/savepoint-" in str(savepoint_of(stopped))
    assert savepoint_of(stopped) == savepoint_of(again)


def test_a_start_that_failed_is_carried_out_and_does_not_run() -> None:
    for name in ("session-broken-script", "session-operators-do-not-fit", "session-savepoint-missing"):
        broken = recorded(name)
        assert reconciled(broken)
        assert not runs(broken)
        assert json.loads(broken["status"]["error"])["type"].endswith(".ReconciliationException")
