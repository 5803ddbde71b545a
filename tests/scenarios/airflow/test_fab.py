"""The plugin as the wheel brings it, beside the FAB auth manager: an environment, roles and users of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.repository.test_bare_install import install_wheel
from tests.support.airflow.plugin.ledgers import fill_orders, fill_rejected

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]
FAB = "apache-airflow-providers-fab==3.10.2"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and the FAB provider, with the Airflow of the lock file."""
    return install_wheel(tmp_path_factory.mktemp("fab"), "[deploy]", FAB).home / "bin"


def test_roles_of_fab_decide(environment: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    fill_orders(ledger)
    fill_rejected(ledger, "redeploy_parcels", "parcels")
    fill_rejected(ledger, None, "by-hand")
    program = [environment / "python", Path(__file__).with_name("fab_server.py"), tmp_path / "home", ledger]
    clean = {"PATH": f"{environment}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(program, capture_output=True, text=True, timeout=900, cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: row.pop("deployments") for name, row in found.items()} == {
        "root": ["by-hand", "orders", "parcels"],
        "op": ["by-hand", "orders", "parcels"],
        "viewer": ["orders", "parcels"],
        "ann": ["orders"],
        "bob": ["parcels"],
        "nobody": [],
        "anonymous": 401,
    }
    # Of orders the page, a change and a run.
    assert {name: set(row.values()) for name, row in found.items()} == {
        "root": {200}, "op": {200}, "viewer": {200}, "ann": {200}, "bob": {403}, "nobody": {403}, "anonymous": {401},
    }  # fmt: skip
