"""How a workspace of Realtime Compute is named, and where its access key comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.rest import ApiError
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget, openapi
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import Credential, WorkspaceSettings, version_of
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder
from tests.support.deploy.targets.realtime_compute_stand_in import InMemory, Service, no_address, serving
from tests.unit.deploy.targets.test_realtime_compute import access as standing_in

GIVEN = {
    "region": "eu-central-1",
    "workspace": "a14bd5d90a4b",
    "namespace": "orders-default",
    "access_key_id": "LTAIplanted",
    "access_key_secret": "planted-secret",
}
KEY = Credential("borrowed-id", "borrowed-secret")


def access(*without: str, **more: Any) -> Access:
    given = {key: value for key, value in {**GIVEN, **more}.items() if key not in without}
    return Access(no_address, given, "connection 'vvr'")


def test_a_connection_names_all_of_it_and_its_secrets_are_told() -> None:
    told: list[str] = []
    found = WorkspaceSettings.of(replace(access(security_token="planted-token", timeout=5), on_secret=told.append))
    assert (found.scheme, found.host) == ("https", "ververica.eu-central-1.aliyuncs.com")
    assert (found.workspace, found.namespace, found.timeout) == ("a14bd5d90a4b", "orders-default", 5.0)
    assert found.credential == Credential("LTAIplanted", "planted-secret", "planted-token")
    assert told == ["planted-secret", "planted-token"]
    assert "planted-secret" not in repr(found)
    assert "planted-token" not in repr(found)


@pytest.mark.parametrize("endpoint", ["ververica.cn-x.aliyuncs.com", "https://ververica.cn-x.aliyuncs.com/"])
def test_an_endpoint_wins_over_a_region(endpoint: str) -> None:
    assert WorkspaceSettings.of(access(endpoint=endpoint)).host == "ververica.cn-x.aliyuncs.com"


def test_login_and_password_are_an_access_key() -> None:
    found = WorkspaceSettings.of(access("access_key_id", "access_key_secret", login="id", password="secret"))
    assert found.credential == Credential("id", "secret")


@pytest.mark.parametrize(
    ("without", "more", "words"),
    [
        (["region"], {}, r"the endpoint is missing\. Set endpoint \(ververica\.<region>\.aliyuncs\.com\), or region"),
        (["workspace"], {}, r"workspace is missing\. Set workspace to the id"),
        (["namespace"], {}, "namespace is missing"),
        (["access_key_secret"], {}, r"the access key is missing\. Set access_key_id and access_key_secret, login"),
        ([], {"endpoint": "ftp://x"}, "endpoint 'ftp://x' is not an endpoint"),
        ([], {"timeout": "soon"}, "timeout 'soon' is not a number of seconds"),
        ([], {"timeout": -1}, "timeout '-1' is not a number"),
        (
            [],
            {"engine_version": "8.0.11"},
            r"engine_version is '8\.0\.11'\. Write the platform's name of the version, for example vvr-8",
        ),
        ([], {"alibaba_conn_id": "ali"}, "alibaba_conn_id 'ali' cannot be used outside Airflow"),
    ],
)
def test_what_is_missing_or_wrong_is_named(without: list[str], more: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError, match=f"connection 'vvr': {words}"):
        WorkspaceSettings.of(access(*without, **more))


def test_outside_of_airflow_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("region", "workspace", "namespace"):
        monkeypatch.setenv(f"FLINKCOMPAT_{key.upper()}", GIVEN[key])
    with pytest.raises(ApiError, match=r"Set FLINKCOMPAT_ACCESS_KEY_ID and FLINKCOMPAT_ACCESS_KEY_SECRET$"):
        WorkspaceSettings.of(Access(no_address))
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "secret")
    assert WorkspaceSettings.of(Access(no_address)).credential == Credential("id", "secret")


# ------------------------------------------------------------------------------------------------------- a borrowed key
def lookup(placeholder: AnyPlaceholder) -> str:
    """The extra of an Airflow connection."""
    found = {"extra.access_key_id": KEY.key_id, "extra.access_key_secret": KEY.key_secret}
    return found[getattr(placeholder, "attribute", "")]


def missing(placeholder: AnyPlaceholder) -> str:
    raise ValueError(f"{placeholder}: there is no Airflow connection")


class Hook:
    """The hook of the provider, as far as it matters here."""

    def __init__(self, *key: str) -> None:
        self._key = key

    def get_access_key_credential(self) -> tuple[str, ...]:
        if not self._key:
            raise ValueError("No access_key_id is specified.")
        return self._key


def unknown(conn_id: str) -> Any:
    raise RuntimeError('Unknown hook type "alibaba_cloud"')


@pytest.mark.parametrize("hook", [lambda _: Hook(KEY.key_id, KEY.key_secret), unknown, lambda _: object(), None])
def test_a_key_is_borrowed_with_and_without_the_provider(hook: Callable[[str], Any] | None) -> None:
    borrowing = access(alibaba_conn_id="ali")
    told: list[str] = []
    found = WorkspaceSettings.of(replace(borrowing, hook=hook, lookup=lookup, on_secret=told.append))
    assert found.credential == KEY
    assert told == [KEY.key_secret]


@pytest.mark.parametrize(
    ("hook", "words"),
    [(lambda _: Hook(), "the connection 'ali': No access_key_id is specified"), (unknown, "there is no Airflow conn")],
)
def test_a_connection_without_a_key_is_named(hook: Callable[[str], Any], words: str) -> None:
    with pytest.raises(ApiError, match=words):
        WorkspaceSettings.of(replace(access(alibaba_conn_id="ali"), hook=hook, lookup=missing))


# -------------------------------------------------------------------------------------------------------------- engine
def test_the_version_is_that_of_the_settings_else_of_all_deployments() -> None:
    service = Service(InMemory())
    with serving(service) as url:
        with RealtimeComputeTarget.connect(standing_in(url)) as target:
            assert target.engine().version == "8.0.11", "of the platform, where there is no deployment"
            service.add(
                "jar", artifact={"kind": "JAR", "jarArtifact": {"jarUri": "x"}}, engineVersion="vvr-6.0.1-flink-1.15"
            )
            service.add("one", engineVersion="vvr-8.0.9-flink-1.17")
            assert (target.engine().engine, target.engine().version) == ("vvr", "8.0.9")
            service.add("other", engineVersion="vvr-11.1-flink-1.20")
            both = r"run on vvr-11\.1-flink-1\.20, vvr-8\.0\.9-flink-1\.17\. Set engine_version of connection"
            with pytest.raises(DeployError, match=both):
                target.engine()
        with RealtimeComputeTarget.connect(standing_in(url, engine_version="vvr-11.1-jdk11-flink-1.20")) as target:
            assert target.engine().version == "11.1"
    assert service.faults == []


def test_versions_are_read_of_the_platforms_names() -> None:
    assert version_of("vvr-4.0.14-flink-1.13", "x") == "4.0.14"
    assert version_of("vvr-8.0.5-flink-1.17-hive", "x") == "8.0.5"


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(openapi, "importlib", SimpleNamespace(import_module=gone))
    with pytest.raises(DeployError, match=r"pip install .*\[vvr\]'"):
        RealtimeComputeTarget.connect(access())
