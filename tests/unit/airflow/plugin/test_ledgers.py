"""Which ledgers the pages show, by connections and settings, and where a job's page is."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger, find_ledgers
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DeployedEntry, JobStart, JobVersion, LedgerEntry
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from dev.benchmarks.ledgers import OnlyDags
from tests.support.airflow.plugin.ledgers import fill_rejected, job, numbered
from tests.unit.airflow.plugin.conftest import Server
from tests.unit.airflow.plugin.test_app import names

Add = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def add(server: Server) -> Add:
    """Puts a connection into Airflow's database until the test is over."""
    return server.add_connection


def uris(server: Server) -> list[str]:
    return [each.uri for each in find_ledgers().ledgers if each.uri not in (str(server.named), str(server.unnamed))]


@pytest.mark.slow
def test_connections_of_the_deployment_types_name_ledgers(server: Server, add: Add) -> None:
    with (
        add("again", "flink", {"ledger": f"{server.named}/"}),
        add("other", "alibaba_realtime_compute", {"ledger": "memory://b"}),
        add("http", "http", {"ledger": "memory://c"}),
        add("without", "flink", {}),
    ):
        assert uris(server) == ["memory://b"]
        found = next(each for each in find_ledgers().ledgers if each.uri == str(server.named))
        assert [each.conn_id for each in found.connections] == ["again", "flink_default"]
        # Whose jobs they are is not known any more.
        assert found.job_url("ab") is None
    assert uris(server) == []


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "url"), [({}, None), ({"ui_url": "https://console/vvp"}, "https://console/vvp")])
def test_a_job_of_a_platform_links_to_its_console_or_to_nothing(
    server: Server, add: Add, extra: dict[str, str], url: str | None
) -> None:
    with add("vvp", "alibaba_realtime_compute", {"ledger": "memory://b", **extra}):
        found = next(each for each in find_ledgers().ledgers if each.uri == "memory://b")
        assert (found.job_url("some-deployment/7"), found.takes_commands) == (url, False)


@pytest.mark.slow
def test_settings_name_what_cannot_be_listed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    of_environment = {"conn_type": "flink", "extra": {"ledger": "memory://e"}}
    monkeypatch.setenv("AIRFLOW_CONN_OF_ENVIRONMENT", json.dumps(of_environment))
    monkeypatch.setenv("AIRFLOW__FLINKCOMPAT__CONNECTIONS", "of_environment, missing, flink_default")
    monkeypatch.setenv("FLINKCOMPAT_LEDGER", "memory://v/")
    assert uris(server) == ["memory://e", "memory://v"]
    problem = "[flinkcompat] connections lists 'missing', but there is no such connection"
    assert server.get("op", "deployments")["problems"] == [problem]
    assert server.get("ann", "deployments")["problems"] == []


@pytest.mark.slow
def test_a_connection_that_cannot_be_read_hides_no_other(
    server: Server, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.connection import Connection

    def unreadable(connection: Connection) -> dict[str, str]:
        if connection.conn_id == "locked":
            raise ValueError("Can't decrypt `extra`")
        return json.loads(connection.get_extra() or "{}")

    monkeypatch.setattr(Connection, "extra_dejson", property(unreadable))
    with add("locked", "flink", {"ledger": "memory://l"}):
        assert server.get("op", "deployments")["problems"] == [
            "connection 'locked' cannot be read: Can't decrypt `extra`"
        ]
        assert names(server, "ann") == ["orders", "shared"]


@pytest.mark.slow
def test_a_ledger_that_cannot_be_listed_hides_no_other(server: Server, add: Add) -> None:
    with add("elsewhere", "flink", {"ledger": "nosuch://user:hunter2hunter2@host/ledger"}):
        told = {each["id"]: each["error"] for each in server.get("op", "deployments")["ledgers"]}
        (error,) = filter(None, told.values())
        assert error.startswith("the ledger address 'nosuch://user:***@host/ledger' cannot be used: ")
        for_others = [each["error"] for each in server.get("ann", "deployments")["ledgers"]]
        assert sorted(filter(None, for_others)) == ["this ledger cannot be listed: ask the administrator of Airflow"]
        assert names(server, "ann") == ["orders", "shared"]


def test_entries_are_read_again_only_where_there_are_newer_ones(tmp_path: Path) -> None:
    ledger = fill_rejected(tmp_path, "dag", "jobs")
    found = NamedLedger(str(tmp_path))
    first = found.entries("jobs")
    assert found.entries("jobs") is first
    ledger.append(DeployedEntry(job=job(2), start=JobStart()))
    assert found.entries("jobs")[:-1] == first
    assert found.entries("nothing") == ()


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
