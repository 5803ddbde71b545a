"""The page of Realtime Compute's target, its policy, and the contract that users run against their own account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.deploy.targets.realtime_compute_stand_in import (
    KEY_ID,
    KEY_SECRET,
    NAMESPACE,
    ROUTES,
    WORKSPACE,
    InMemory,
    Service,
    serving,
)

DOCS = Path(__file__).parents[4] / "docs" / "targets"
SOURCE = Path(__file__).parents[4] / "airflow_flinkcompat" / "deploy" / "targets" / "realtime_compute" / "openapi.py"


def test_the_policy_grants_what_is_called_and_nothing_else() -> None:
    (statement,) = json.loads((DOCS / "realtime-compute-ram-policy.json").read_text("utf-8"))["Statement"]
    called = set(re.findall(r'self\.(?:call|_pages|_get)\(\s*"(\w+)"', SOURCE.read_text("utf-8")))
    assert set(statement["Action"]) == {f"stream:{action}" for action in called}
    assert called == set(ROUTES) - {"DeleteDeployment"}, "the clearing up of the users' contract is granted apart"


def test_the_pages_dag_is_one_and_is_short() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "realtime-compute.md").read_text("utf-8"), re.DOTALL)
    assert len(code.splitlines()) < 40
    names: dict[str, Any] = {}
    exec(code, names)
    assert {"check", "approve", "resume", "restart"} <= set(names["dag"].task_ids)


@pytest.mark.slow
def test_the_contract_for_users_runs_and_clears_up_after_itself(tmp_path: Path) -> None:
    service = Service(InMemory())
    with serving(service) as url:
        theirs = [service.add(name)["name"] for name in ("contract-billing", "contract-0123abcd")]
        given = {
            "FLINKCOMPAT_ENDPOINT": url,
            "FLINKCOMPAT_WORKSPACE": WORKSPACE,
            "FLINKCOMPAT_NAMESPACE": NAMESPACE,
            "FLINKCOMPAT_DEPLOYMENT_TARGET": "default-queue",
            "ALIBABA_CLOUD_ACCESS_KEY_ID": KEY_ID,
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": KEY_SECRET,
            "PYTHONPATH": str(DOCS.parents[1]),
        }
        script = DOCS / "realtime_compute_contract.py"
        asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(script)]
        asked += ["--rootdir", str(tmp_path), "-k", "goes_on_from_its_savepoint or names_its_engine"]
        ran = subprocess.run(asked, env={**os.environ, **given}, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
    assert [each["name"] for each in service.deployments.values()] == theirs
    assert len(service.jobs) == 2
    assert service.faults == []
