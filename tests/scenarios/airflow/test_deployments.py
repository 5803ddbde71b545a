"""Many deployments in a real Airflow: one run each, only the approvers may answer, import errors beside good DAGs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from dev.demo.airflow_client import AirflowApiError, AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import wait_for
from tests.support.airflow.operators.fakes import script

pytestmark = pytest.mark.slow

DAG_FILE = Path(__file__).parents[3] / "dags" / "flink_deployments.py"
ORDERS, CLICKS = "redeploy_orders", "redeploy_clicks"
# The engine is named and no cluster required, so that no Gateway is asked; every change is put to the approvers.
FILE = """\
[defaults]
ledger = "{ledger}"
changed = {{ poke_interval = 1, require_cluster = false }}
check = {{ engine = "flink", engine_version = "2.3.0", policy = {{ incompatible = "approve" }} }}

[deployments.orders]
script = "orders.sql"
approvers = ["ana"]

[deployments.clicks]
script = "clicks.sql"
"""


@dataclass
class Site:
    folder: Path
    airflow: AirflowStandalone

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @contextmanager
    def signed_in(self, user: str) -> Iterator[AirflowClient]:
        """As one of Airflow's other users, whose password it has made itself."""
        passwords = json.loads((self.airflow.home / "passwords.json").read_text(encoding="utf-8"))
        client = self.airflow.client_of(user, passwords[user])
        try:
            yield client
        finally:
            client.close()

    def ledger(self, deployment: str) -> Ledger:
        return Ledger(self.folder / "ledger", deployment)

    def first_run(self, dag_id: str) -> str:
        """The run of a DAG that was just switched on, once its sensor waits in the triggerer."""
        self.client.unpause(dag_id)
        wait_for(lambda: self.client.runs(dag_id), f"a run of {dag_id}", 60)
        (run,) = self.client.runs(dag_id)
        self.client.wait_for_task(dag_id, run, "changed", ("deferred",))
        return run


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("deployments")
    (root / "dags").mkdir()
    shutil.copy(DAG_FILE, root / "dags")
    (root / "jobs.toml").write_text(FILE.format(ledger=root / "ledger"), encoding="utf-8")
    for name in ("orders", "clicks"):  # both are deployed as they stand
        text = script().rstrip()  # as Jinja leaves it
        (root / f"{name}.sql").write_text(text, encoding="utf-8")
        side = Side(text, engine="flink", engine_version="2.3.0")
        Ledger(root / "ledger", name).append(DeployedEntry(job=side, start=JobStart(job_id="job-1")))
    flink = {"conn_type": "flink", "host": "localhost", "port": 1}
    config = {
        "FLINKCOMPAT_DEPLOYMENTS": str(root / "jobs.toml"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ana:user",
    }
    airflow = AirflowStandalone(
        root / "airflow", root / "dags", connections={"flink_default": flink}, config=config, log=print
    )
    with airflow:
        yield Site(root, airflow)


@pytest.mark.nightly
def test_one_redeploy_at_a_time_and_approvers_of_its_own(site: Site) -> None:
    client = site.client
    first = site.first_run(ORDERS)
    second = client.trigger(ORDERS)
    # Its scheduler starts runs of other DAGs meanwhile, and not this one.
    site.first_run(CLICKS)
    assert (client.run_state(ORDERS, first), client.run_state(ORDERS, second)) == ("running", "queued")

    (site.folder / "orders.sql").write_text(script(size=5), encoding="utf-8")
    client.wait_for_question(ORDERS, first, "approve")
    assert [user["id"] for user in client.question(ORDERS, first, "approve")["assigned_users"]] == ["ana"]
    with pytest.raises(AirflowApiError, match=r"403 .*is not a respondent"):
        client.answer(ORDERS, first, "approve", "Resume from savepoint")
    assert client.run_state(ORDERS, second) == "queued"

    # What an approver answers goes through, as hers.
    with site.signed_in("ana") as ana:
        assert ana.answer(ORDERS, first, "approve", "Resume from savepoint") == "success"
    decision = client.xcom(ORDERS, first, "approve", "decision")
    assert (decision["choice"], decision["by"]) == ("resume", "ana")
    (approved,) = [entry for entry in site.ledger("orders").entries() if entry.kind == "approved"]
    assert (approved.review.approved_by, approved.version.sha256) == ("ana", decision["new_sha256"])
    client.wait_for_task(ORDERS, first, "resume", ("queued", "running", "up_for_retry", "failed"))  # there is no Flink

    client.end_run(ORDERS, first)
    client.wait_for_question(ORDERS, second, "approve")
    assert client.run_state(ORDERS, second) == "running"


@pytest.mark.nightly
def test_a_broken_deployment_is_an_import_error_and_no_other_goes_away(site: Site) -> None:
    file = site.folder / "jobs.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('script = "clicks.sql"', 'skript = "clicks.sql"'), encoding="utf-8")
    wait_for(lambda: site.client.import_errors(), "Airflow shows an import error", 60)
    (error,) = site.client.import_errors()
    assert "flink_deployments.py" in error
    line = text[: text.index('script = "clicks.sql"')].count("\n") + 1
    assert f"{file}:{line}:1: deployment 'clicks': skript: is unknown; did you mean script?" in error
    assert "'orders'" not in error
    file.write_text(text, encoding="utf-8")
    wait_for(lambda: not site.client.import_errors(), "the import error goes away", 60)
    site.client.unpause(ORDERS)
    site.client.unpause(CLICKS)
