"""Who sees which deployment."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DeployedEntry, JobStart, JobVersion, LedgerEntry
from airflow_flinkcompat.deploy.ledger.rows import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from dev.benchmarks.rights import OnlyDags
from tests.support.airflow.plugin.ledgers import job, numbered

LEDGER = NamedLedger("memory://nowhere")


def deployed(owner: str) -> LedgerEntry:
    return DeployedEntry(job=job(1), start=JobStart(), owner=owner)


def checked(owner: str) -> LedgerEntry:
    return CheckedEntry(version=JobVersion.of(job(2)), branch="resume", owner=owner)


def row(*entries: LedgerEntry) -> DeploymentRow:
    return DeploymentRow("jobs").after_all(numbered(*entries))


A, B, GONE, HAND = "airflow:a/r/t", "airflow:b/r/t", "airflow:gone/r/t", "ann@host:1"


@pytest.mark.parametrize(
    ("entries", "readable", "connections", "sees"),
    [
        ((deployed(A),), {"a"}, False, True),
        ((deployed(A),), {"b"}, True, False),
        # Every DAG that wrote what is shown.
        ((deployed(A), checked(B)), {"a"}, True, False),
        ((deployed(A), checked(B)), {"a", "b"}, False, True),
        # An earlier entry does not hide the deployment: it is hidden itself (test_what_another_dag_wrote).
        ((deployed(B), deployed(A)), {"a"}, False, True),
        # By hand, or by a DAG that is not in this Airflow: who may read the connection.
        ((deployed(HAND),), {"a", "b"}, False, False),
        ((deployed(HAND),), set(), True, True),
        ((deployed(GONE),), set(), True, True),
        ((deployed(GONE),), {"a"}, False, False),
        ((deployed(GONE), checked(A)), {"a"}, False, True),
        ((deployed(HAND), checked(A)), {"a"}, False, True),
        ((deployed(HAND), checked(A)), set(), True, False),
    ],
)
def test_who_sees_a_deployment(
    entries: tuple[LedgerEntry, ...], readable: set[str], connections: bool, sees: bool
) -> None:
    assert OnlyDags(("a", "b"), readable, connections=connections).sees(LEDGER, row(*entries)) is sees


@pytest.mark.parametrize("connections", [True, False])
def test_of_a_ledger_that_cannot_be_read_nobody_knows_the_dag(connections: bool) -> None:
    assert OnlyDags(("a",), ("a",), connections=connections).sees(LEDGER, LedgerError("damaged")) is connections
