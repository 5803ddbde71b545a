"""The connection ``flink``: addresses, authentication, ledger, placeholders."""

from __future__ import annotations

import json
import ssl
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trustme
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowNotFoundException
from airflow.sdk import Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook, connection_lookup
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployError, DeployRefused, PlansUnavailable, targets
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.target import JobRef, PlanCompiler
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.local_flink.cluster import HOME_VARIABLE
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.secrets import placeholders
from tests.support.deploy.servers import basic, proxy_server, rest_server


def hook(
    monkeypatch: pytest.MonkeyPatch, *, asked: str | None = None, conn_type: str = "flink", **fields: Any
) -> FlinkHook:
    connection = Connection(conn_id="f", conn_type=conn_type, **fields)
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _conn_id: connection))
    return FlinkHook("f", target=asked)


@pytest.mark.parametrize(
    ("fields", "gateway", "jobmanager"),
    [
        ({"host": "gw"}, "http://gw:8083", "http://gw:8081"),
        ({"host": "gw", "port": 9000, "schema": "https"}, "https://gw:9000", "https://gw:8081"),
        ({"host": "https://gw.example.com/flink/", "port": 443}, "https://gw.example.com:443/flink", None),
        ({"host": "::1"}, "http://[::1]:8083", "http://[::1]:8081"),
        ({"host": "gw", "extra": '{"jobmanager_url": "http://jm:8089/"}'}, "http://gw:8083", "http://jm:8089"),
    ],
)
def test_addresses(monkeypatch: pytest.MonkeyPatch, fields: Any, gateway: str, jobmanager: str | None) -> None:
    found = hook(monkeypatch, **fields)
    assert found.gateway_url == gateway
    assert jobmanager is None or found.jobmanager_url == jobmanager


@pytest.mark.parametrize(
    ("extra", "link"),
    [
        ({}, "http://gw:8081"),
        ({"jobmanager_url": "http://jm:8081/"}, "http://jm:8081"),
        ({"jobmanager_url": "http://jm:8081", "ui_url": "https://flink.example.com"}, "https://flink.example.com"),
        ({"ui_url": "https://proxy.example.com/team/flink/"}, "https://proxy.example.com/team/flink"),
        ({"ui_url": " https://proxy.example.com/flink/#/overview"}, "https://proxy.example.com/flink"),
        ({"ui_url": "https://me:planted-pw@flink.example.com:444/?a=b"}, "https://flink.example.com:444"),
        ({"jobmanager_url": "http://me:planted-pw@jm:8081"}, "http://jm:8081"),
        ({"ui_url": "flink.example.com/ui"}, "http://gw:8081"),
        ({"ui_url": "https://[::1/ui"}, "http://gw:8081"),
        ({"ui_url": "javascript:alert(1)"}, "http://gw:8081"),
    ],
)
def test_a_browser_opens_the_address_of_the_ui(monkeypatch: pytest.MonkeyPatch, extra: Any, link: str) -> None:
    found = hook(monkeypatch, host="gw", extra=json.dumps(extra))
    assert found.ui_url == link
    assert found.job_url("abc") == f"{link}/#/job/running/abc/overview"
    assert found.job_url(None) == ""


class Depots:
    """A target whose jobs have other names than in Flink."""

    @staticmethod
    def connect(access: Access) -> Any:
        assert access.settings is not None
        if access.settings.get("login") == "nobody":
            raise DeployError("the depot lets nobody in")
        return nullcontext(Depots())

    def page_of(self, job: JobRef, ui_url: str) -> str | None:
        return None if job == "gone/1" else f"{ui_url.replace('{cluster}', 'east')}/#/job/running/0af1/overview"


@pytest.mark.parametrize(
    ("ui_url", "job", "login", "page"),
    [
        ("https://me:pw@flink.example.com/{cluster}?a=b", "orders/1", None, "https://flink.example.com/east/#/job/running/0af1/overview"),
        ("https://flink.example.com", "gone/1", None, "https://flink.example.com"),
        ("https://flink.example.com", "orders/1", "nobody", "https://flink.example.com"),
        ("https://flink.example.com/{cluster}", "gone/1", None, ""),
        ("flink.example.com", "orders/1", None, ""),
        ("", "orders/1", None, ""),
    ],
)  # fmt: skip
def test_a_job_that_is_not_named_as_in_flink_has_the_page_that_its_target_knows(
    monkeypatch: pytest.MonkeyPatch, ui_url: str, job: str, login: str | None, page: str
) -> None:
    monkeypatch.setattr(targets, "target_class", lambda name: Depots)
    extra = {"target": "depots", "ui_url": ui_url}
    found = hook(monkeypatch, login=login, extra=json.dumps(extra))
    assert found.job_url(job) == page
    assert found.job_url(job, asking=False) == ""
    assert not found.names_jobs_as_flink


@pytest.mark.parametrize(
    ("conn_type", "target"), [("flink", "aws"), ("alibaba_realtime_compute", None), ("flink", "kubernetes")]
)
def test_a_platform_without_pages_of_jobs_has_a_console(
    monkeypatch: pytest.MonkeyPatch, conn_type: str, target: str | None
) -> None:
    extra = {"ui_url": "https://console.example.com/flink?region=x"} | ({"target": target} if target else {})
    found = hook(monkeypatch, conn_type=conn_type, extra=json.dumps(extra))
    monkeypatch.setattr(found, "get_conn", lambda: pytest.fail("the target is asked"))
    known = "" if target == "kubernetes" else "https://console.example.com/flink"
    assert found.job_url("orders/1", asking=False) == known
    bare = hook(monkeypatch, conn_type=conn_type, extra=json.dumps({"target": target} if target else {}))
    assert bare.job_url("orders/1", asking=False) == bare.job_url("orders/1") == ""


def test_what_a_target_can_do_is_told_without_opening_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = {name: hook(monkeypatch, asked=name).target_has(PlanCompiler) for name in ("sql-gateway", "aws")}
    assert plans == {"sql-gateway": True, "aws": False}
    assert hook(monkeypatch, asked="k8s").target_has(PlanCompiler), "whoever opens it says that there is none"


@pytest.mark.parametrize(
    "extra",
    [
        {"former_conn_id": "flink_120"},
        {"target": "kubernetes", "former_manifest": "kind: FlinkDeployment"},
        {"target": "aws", "former_runtime_environment": "FLINK-1_20"},
        {"target": "realtime-compute", "former_engine_version": "vvr-8.0.11-flink-1.17"},
    ],
)
def test_a_connection_says_from_where_jobs_move(monkeypatch: pytest.MonkeyPatch, extra: dict[str, str]) -> None:
    assert hook(monkeypatch, extra=json.dumps(extra)).has_former
    assert not hook(monkeypatch, extra=json.dumps({**extra, **dict.fromkeys(extra, "")})).has_former


def test_an_address_that_no_browser_opens_is_named_by_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    with rest_server() as server:
        extra = {"jobmanager_url": server.url, "ui_url": "flink.example.com/ui"}
        fields = {"host": "localhost", "port": server.port}
        good, message = hook(monkeypatch, **fields, extra=json.dumps(extra)).test_connection()
        extra["ui_url"] = "https://flink.example.com/ui"
        assert hook(monkeypatch, **fields, extra=json.dumps(extra)).test_connection()[0]
    assert (good, message) == (
        False,
        "connection 'f': ui_url 'flink.example.com/ui' is not an address for a browser: write https://host/path",
    )


@pytest.mark.parametrize(("fields", "word"), [({}, "no host"), ({"host": "gw", "schema": "ftp"}, "ftp")])
def test_an_unusable_connection_is_named(monkeypatch: pytest.MonkeyPatch, fields: Any, word: str) -> None:
    with pytest.raises(AirflowFailException, match=word):
        _ = hook(monkeypatch, **fields).gateway_url


def endpoints(found: FlinkHook) -> tuple[Endpoint, Endpoint]:
    """How the target's Gateway and its JobManager are reached."""
    with found.get_conn() as target:
        return target._gateway.endpoint, target._jobmanager.endpoint


def test_login_is_basic_and_a_password_alone_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    basic, _ = endpoints(hook(monkeypatch, host="gw", login="me", password="pw"))
    assert (basic.auth, dict(basic.headers)) == (("me", "pw"), {})
    bearer, _ = endpoints(hook(monkeypatch, host="gw", password="t0ken", extra='{"timeout": 5, "verify": false}'))
    assert (bearer.auth, dict(bearer.headers)) == (None, {"Authorization": "Bearer t0ken"})
    assert (bearer.timeout, bearer.verify) == (5.0, False)
    assert "t0ken" not in repr(bearer)


def test_the_jobmanager_takes_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"jobmanager_password": "jm-t0ken", "jobmanager_timeout": 7, "timeout": 5, "proxy": "http://proxy:3128"}
    found = hook(monkeypatch, host="gw", login="me", password="pw", extra=json.dumps(extra))
    gateway, jobmanager = endpoints(found)
    assert (gateway.auth, gateway.timeout) == (("me", "pw"), 5)
    assert (jobmanager.auth, jobmanager.timeout) == (None, 7)
    assert dict(jobmanager.headers) == {"Authorization": "Bearer jm-t0ken"}
    assert [str(e.proxy and e.proxy.url) for e in (gateway, jobmanager)] == ["http://proxy:3128"] * 2


def test_what_the_servers_are_told_is_masked_in_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow_flinkcompat.airflow.hooks.flink.mask_secret", masked.append)
    extra = {"proxy": "http://proxy:3128", "proxy_login": "p", "proxy_password": "proxy-pw"}
    endpoints(hook(monkeypatch, host="gw", login="me", password="my-pw", extra=json.dumps(extra)))
    assert {"my-pw", "proxy-pw", "bWU6bXktcHc=", "cDpwcm94eS1wdw=="} <= set(masked)


def test_a_missing_ca_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowFailException, match=r"connection 'f': ca_file '/no/such\.pem' cannot be used"):
        hook(monkeypatch, host="gw", schema="https", extra='{"ca_file": "/no/such.pem"}').get_conn()


def test_both_servers_are_reached_with_what_the_connection_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, clients = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    clients.issue_cert("me@flink.test").private_key_and_cert_chain_pem.write_to_path(tmp_path / "me.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    clients.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    with (
        rest_server(authorization=basic("me", "planted-pw"), tls=tls) as gateway,
        rest_server(authorization="Bearer planted-jm", tls=tls) as jobmanager,
        proxy_server(authorization=basic("me", "planted-proxy")) as proxy,
    ):
        extra = {
            "jobmanager_url": jobmanager.url,
            "jobmanager_password": "planted-jm",
            "ca_file": str(tmp_path / "ca.pem"),
            "client_cert": str(tmp_path / "me.pem"),
            "proxy": proxy.url,
            "proxy_login": "me",
            "proxy_password": "planted-proxy",
        }
        fields = {"host": "localhost", "port": gateway.port, "schema": "https", "login": "me"}
        right = hook(monkeypatch, **fields, password="planted-pw", extra=json.dumps(extra))
        assert right.test_connection() == (True, "SQL Gateway 2.3.0; it has 0 jobs")
        assert [line for line, _ in proxy.seen] == [f"CONNECT localhost:{s.port}" for s in (gateway, jobmanager)]
        wrong = hook(monkeypatch, **fields, password="planted-other", extra=json.dumps(extra))
        good, message = wrong.test_connection()
    assert not good
    assert "Check login and password of connection 'f'" in message
    assert "planted" not in message


def test_a_connection_names_another_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that needs no Gateway, and so no host."""
    with rest_server() as server:
        extra = json.dumps({"target": "jobmanager", "jobmanager_url": server.url})
        found = hook(monkeypatch, extra=extra)
        assert found.engine() == ("flink", "2.3.0")
        assert found.test_connection() == (True, "target jobmanager, engine flink 2.3.0; it has 0 jobs")
        with (
            found.rehearsal_cluster() as cluster,
            pytest.raises(DeployRefused, match=f"JobManager at {server.url}, because it"),
        ):
            _ = cluster.restore_test_target
        assert cluster.location.addresses == {"jobmanager": server.url}
    with pytest.raises(
        AirflowFailException, match=r"connection 'f': there is no target 'k8s'\. Installed targets: .*jobm"
    ):
        hook(monkeypatch, host="gw", extra='{"target": "k8s"}').get_conn()


@pytest.mark.parametrize(
    ("fields", "asked", "target"),
    [
        ({}, None, "sql-gateway"),
        ({}, "kubernetes", "kubernetes"),
        ({"extra": '{"target": "kubernetes"}'}, None, "kubernetes"),
        ({"extra": '{"target": "kubernetes"}'}, "kubernetes", "kubernetes"),
        ({"conn_type": "alibaba_realtime_compute"}, "realtime-compute", "realtime-compute"),
    ],
)
def test_a_deployment_may_name_its_target(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], asked: str | None, target: str
) -> None:
    assert hook(monkeypatch, asked=asked, **fields).target_name == target


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"extra": '{"target": "aws"}'}, "aws"), ({"conn_type": "alibaba_realtime_compute"}, "realtime-compute")],
)
def test_a_connection_of_another_target_is_refused(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], named: str
) -> None:
    found = hook(monkeypatch, asked="kubernetes", **fields)
    wrong = f"connection 'f' is of target '{named}', and the deployment asks for 'kubernetes': name a connection of"
    with pytest.raises(AirflowFailException, match=wrong):
        found.get_conn()
    assert found.test_connection()[1].startswith(wrong)


def test_a_target_without_a_planner_says_where_to_name_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Flink of this machine tries jobs out in its place; where there is none, both remedies are told."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    found = hook(monkeypatch, extra=json.dumps({"target": "jobmanager", "jobmanager_url": "http://jobs.test:8081"}))
    lacks = r"connection 'f': the target 'jobmanager' plans no scripts; name .* as planner_conn_id in the extra, or "
    with (
        pytest.raises(
            AirflowFailException, match=f"{lacks}let a Flink start on this worker: .*/lib contains no flink-dist"
        ),
        found.planner(),
    ):
        pass
    with pytest.raises(AirflowFailException, match=f"{lacks}run `flinkcompat planner install` on the worker"):
        found.explain_plans(*[Side("INSERT INTO t SELECT 1", engine="flink")] * 2)


def test_a_target_without_a_planner_has_that_of_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the version that is judged, or it is refused; the cluster behind it is where jobs are tried out."""
    with rest_server() as server:
        extra = {"target": "jobmanager", "jobmanager_url": server.url, "planner_conn_id": "planner"}
        connections = {
            "f": Connection(conn_id="f", conn_type="flink", extra=json.dumps(extra)),
            "planner": Connection(
                conn_id="planner", conn_type="flink", host="127.0.0.1", port=server.port,
                extra=json.dumps({"jobmanager_url": server.url}),
            ),
        }  # fmt: skip
        monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(connections.__getitem__))
        found = FlinkHook("f")
        sides = (Side("INSERT INTO t SELECT 1", engine="flink", engine_version="1.20"),) * 2
        with pytest.raises(PlansUnavailable, match=r"will run on Flink 1\.20, but the planner is Flink 2\.3\.0"):
            found.explain_plans(*sides)
        with found.planner() as cluster:
            assert str(cluster.restore_test_target) == f"the SQL Gateway at http://127.0.0.1:{server.port}"
            assert (cluster.location.target, cluster.temporary) == ("sql-gateway", False)


def test_a_target_is_reached_by_what_it_alone_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is in the extra, under the name by which the target asks for it."""

    class Reached:
        connect = staticmethod(lambda access: nullcontext(access.address("depot")))

    monkeypatch.setattr(targets, "target_class", lambda name: Reached)
    with hook(monkeypatch, extra='{"target": "depots", "depot_url": "http://depot:1/"}').get_conn() as reached:
        assert reached == "http://depot:1"
    with pytest.raises(
        AirflowFailException, match=r"connection 'f': target 'depots' needs .* set depot_url in the extra"
    ):
        hook(monkeypatch, extra='{"target": "depots"}').get_conn()


def test_the_ledger_comes_from_argument_connection_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEDGER_VARIABLE, "/env")
    assert hook(monkeypatch, host="gw", extra='{"ledger": "/conn"}').ledger_uri("/arg") == "/arg"
    assert hook(monkeypatch, host="gw", extra='{"ledger": "/conn"}').ledger_uri() == "/conn"
    assert hook(monkeypatch, host="gw").ledger_uri() == "/env"
    monkeypatch.delenv(LEDGER_VARIABLE)
    with pytest.raises(AirflowFailException, match=LEDGER_VARIABLE):
        hook(monkeypatch, host="gw").ledger_uri()


def test_a_ledger_needs_no_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def missing(_conn_id: str) -> Connection:
        raise AirflowNotFoundException("no such connection")

    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(missing))
    assert FlinkHook("f").ledger("orders", str(tmp_path)).head() is None


def test_test_connection_tells_what_is_wrong_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    good, message = hook(monkeypatch, host="127.0.0.1", port=1, login="me", password="planted-pw").test_connection()
    assert not good
    assert "127.0.0.1:1" in message
    assert "planted-pw" not in message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${conn.db.password}", "pw"),
        ("${conn.db.port}", "5432"),
        ("${conn.db.extra.api_key}", "k3y"),
    ],
)
def test_placeholders_are_looked_up(text: str, value: str) -> None:
    connection = Connection(conn_id="db", conn_type="x", port=5432, password="pw", extra='{"api_key": "k3y"}')
    (placeholder,) = placeholders(f"'{text}'")
    assert connection_lookup(lambda _conn_id: connection)(placeholder) == value


def test_what_a_connection_lacks_is_named() -> None:
    (placeholder,) = placeholders("'${conn.db.password}'")
    with pytest.raises(AirflowFailException, match=r"\$\{conn\.db\.password\}: connection 'db' has no password"):
        connection_lookup(lambda _conn_id: Connection(conn_id="db", conn_type="x"))(placeholder)
