"""The connection ``alibaba_realtime_compute`` opens its target, with a key of its own or a borrowed one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook, RealtimeComputeHook
from airflow_flinkcompat.deploy import targets
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget
from tests.support.deploy.targets.realtime_compute_stand_in import (
    KEY_ID,
    KEY_SECRET,
    NAMESPACE,
    WORKSPACE,
    InMemory,
    Service,
    serving,
)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(targets, "target_class", {"realtime-compute": RealtimeComputeTarget}.__getitem__)
    with serving(Service(InMemory())) as url:
        yield url


def hook(monkeypatch: pytest.MonkeyPatch, url: str, borrowed: Any = None, **fields: Any) -> RealtimeComputeHook:
    extra = {"endpoint": url, "workspace": WORKSPACE, "namespace": NAMESPACE, **fields.pop("extra", {})}
    own = Connection(conn_id="vvr", conn_type="alibaba_realtime_compute", extra=json.dumps(extra), **fields)
    ali = Connection(conn_id="ali", conn_type="alibaba_cloud", extra=json.dumps(borrowed or {}))
    found = {"vvr": own, "ali": ali}
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(found.__getitem__))
    return RealtimeComputeHook("vvr")


def test_login_and_password_are_its_access_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = hook(monkeypatch, url, login=KEY_ID, password=KEY_SECRET)
    assert found.engine() == ("vvr", "8.0.11")
    assert found.test_connection() == (True, "target realtime-compute, engine vvr 8.0.11")
    # The operators open a connection of any type so.
    assert FlinkHook("vvr").target_name == "realtime-compute"


def test_a_key_is_borrowed_from_a_connection_whose_provider_is_not_installed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"access_key_id": KEY_ID, "access_key_secret": KEY_SECRET}
    assert hook(monkeypatch, url, key, extra={"alibaba_conn_id": "ali"}).engine() == ("vvr", "8.0.11")
    with pytest.raises(AirflowFailException, match=r"'ali' has no extra\.access_key_secret"):
        hook(monkeypatch, url, {"access_key_id": KEY_ID}, extra={"alibaba_conn_id": "ali"}).engine()
