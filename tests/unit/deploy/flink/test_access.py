"""Credentials, certificates and proxies, against servers that really ask for them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat import InputError
from airflow_flinkcompat.deploy import ApiError
from airflow_flinkcompat.deploy.flink.access import KEYS, VARIABLE, endpoint, endpoint_from_environment
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from tests.support.deploy.servers import Running, basic, proxy_server, rest_server

PLACE = "connection 'flink_prod'"
LOGIN = {"login": "me", "password": "planted-pw"}
BEARER = {"password": "planted-token"}
CLIENTS = [SqlGateway, JobManager]


@dataclass(frozen=True)
class Certificates:
    """An authority, a certificate for localhost, one for a client (with an encrypted key), and another authority."""

    folder: Path
    authority: trustme.CA
    clients: trustme.CA

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def server(self, *, asks_clients: bool = False, name: str = "localhost") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(name).configure_cert(context)
        if asks_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            self.clients.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority, clients, other = trustme.CA(), trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    mine = clients.issue_cert("me@flink.test")
    mine.cert_chain_pems[0].write_to_path(folder / "client.pem")
    mine.private_key_pem.write_to_path(folder / "client.key")
    mine.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    key = load_pem_private_key(mine.private_key_pem.bytes(), None)
    locked = BestAvailableEncryption(b"planted-key-pw")
    (folder / "locked.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    other.issue_cert("me@flink.test").private_key_and_cert_chain_pem.write_to_path(folder / "stranger.pem")
    return Certificates(folder, authority, clients)


@pytest.fixture(scope="module")
def https(certificates: Certificates) -> Iterator[Running]:
    with rest_server(tls=certificates.server()) as running:
        yield running


@pytest.fixture(scope="module")
def mutual(certificates: Certificates) -> Iterator[Running]:
    with rest_server(tls=certificates.server(asks_clients=True)) as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def ask(client: type[SqlGateway] | type[JobManager], found: Endpoint) -> Any:
    with client(found, retry_wait=0.01) as connected:
        return connected.info() if isinstance(connected, SqlGateway) else connected.jobs()


def refused(url: str, given: dict[str, Any], *, client: Any = SqlGateway) -> str:
    """What is said when it does not work; no planted secret is in it."""
    with pytest.raises(ApiError) as caught:
        ask(client, endpoint(url, given, PLACE))
    message = f"{caught.value} {caught.value.reason}"
    assert "planted" not in message
    for name, password in (("me", "planted-pw"), ("me", "planted-proxy-pw")):
        assert basic(name, password).split()[1] not in message
    return str(caught.value)


# --- who asks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("given", "header"), [(LOGIN, basic("me", "planted-pw")), (BEARER, "Bearer planted-token")])
def test_basic_and_bearer(client: Any, given: dict[str, str], header: str) -> None:
    with rest_server(authorization=header) as server:
        ask(client, endpoint(server.url, given, PLACE))
        assert server.authorizations == [header]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("given", [LOGIN, BEARER])
def test_wrong_credentials_say_whose_they_are(client: Any, given: dict[str, str]) -> None:
    with rest_server(authorization="Basic other") as server:
        message = refused(server.url, given, client=client)
        assert len(server.seen) == 1, "the same credentials are not tried again"
    assert f"{server.url} answered 401" in message
    assert "the server rejects the credentials. Check login and password of connection 'flink_prod'" in message


def test_missing_credentials_say_where_they_belong() -> None:
    with rest_server(authorization="Bearer x") as server:
        assert f"Set login and password of {PLACE} (a password alone is a bearer token)" in refused(server.url, {})


def test_a_user_without_rights() -> None:
    with rest_server(authorization="Bearer x", refuse=403) as server:
        message = refused(server.url, LOGIN)
    assert "answered 403" in message
    assert f"Grant access on the server, or set a different user in login and password of {PLACE}" in message


def test_an_endpoint_of_ones_own_has_a_remedy_too() -> None:
    with rest_server(authorization="Bearer x") as server, pytest.raises(ApiError, match="login and password of the"):
        ask(SqlGateway, Endpoint(server.url))


def test_the_jobmanager_may_know_others() -> None:
    given = {**LOGIN, "jobmanager_password": "planted-jm-token"}
    with rest_server(authorization="Bearer planted-jm-token") as server:
        ask(JobManager, endpoint(server.url, given, PLACE, jobmanager=True))
        assert "Check" in refused(server.url, given), "these are the Gateway's"
    with rest_server(authorization="Bearer x") as server, pytest.raises(ApiError) as caught:
        ask(JobManager, endpoint(server.url, given, PLACE, jobmanager=True))
    assert f"Check jobmanager_login and jobmanager_password of {PLACE}" in str(caught.value)


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_an_authority_of_ones_own(client: Any, https: Running, certificates: Certificates) -> None:
    ask(client, endpoint(https.url, {"ca_file": certificates.path("ca.pem")}, PLACE))


def test_a_wrong_authority_is_named(https: Running, certificates: Certificates) -> None:
    other = certificates.path("other.pem")
    message = refused(https.url, {"ca_file": other})
    assert f"no authority in {other!r} signed the server's certificate. Set ca_file of {PLACE} to" in message
    assert "CERTIFICATE_VERIFY_FAILED" in message


def test_no_authority_is_asked_for(https: Running) -> None:
    assert f"Set ca_file of {PLACE} to the PEM file of the authority that signed it" in refused(https.url, {})


def test_verification_can_be_switched_off(https: Running, certificates: Certificates, mutual: Running) -> None:
    ask(SqlGateway, endpoint(https.url, {"verify": "False"}, PLACE))
    ask(SqlGateway, endpoint(mutual.url, {"verify": False, "client_cert": certificates.path("both.pem")}, PLACE))


def test_a_certificate_for_another_name(certificates: Certificates) -> None:
    with rest_server(tls=certificates.server(name="flink.example.com")) as server:
        message = refused(server.url, {"ca_file": certificates.path("ca.pem")})
    assert "certificate is for a different host name" in message


def test_a_server_without_tls() -> None:
    with rest_server() as server:
        message = refused(server.url.replace("http:", "https:"), {})
    assert f"does not use TLS at this address. If this is intended, write http instead of https in {PLACE}" in message


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "files",
    [
        {"client_cert": "client.pem", "client_key": "client.key"},
        {"client_cert": "both.pem"},
        {"client_cert": "client.pem", "client_key": "locked.key", "client_key_password": "planted-key-pw"},
    ],
)
def test_a_client_certificate(client: Any, files: dict[str, str], mutual: Running, certificates: Certificates) -> None:
    given = {key: certificates.path(file) if file.endswith((".pem", ".key")) else file for key, file in files.items()}
    ask(client, endpoint(mutual.url, {"ca_file": certificates.path("ca.pem"), **given}, PLACE))


@pytest.mark.parametrize(("file", "words"), [(None, "may require a"), ("stranger.pem", "rejects the")])
def test_a_client_certificate_that_is_missing_or_foreign(
    file: str | None, words: str, mutual: Running, certificates: Certificates
) -> None:
    given = {"client_cert": certificates.path(file)} if file else {}
    message = refused(mutual.url, {"ca_file": certificates.path("ca.pem"), **given})
    assert f"the server {words} client certificate. Check client_cert and client_key of {PLACE}" in message


# --- proxies ----------------------------------------------------------------------------------------------------------

PROXY_LOGIN = {"proxy_login": "me", "proxy_password": "planted-proxy-pw"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("proxy_tls", [False, True])
def test_https_through_a_proxy(client: Any, proxy_tls: bool, https: Running, certificates: Certificates) -> None:
    wanted = basic("me", "planted-proxy-pw")
    tls = certificates.server() if proxy_tls else None
    with proxy_server(authorization=wanted, tls=tls) as proxy:
        given = {"ca_file": certificates.path("ca.pem"), "proxy": proxy.url, **PROXY_LOGIN}
        ask(client, endpoint(https.url, given, PLACE))
        (asked, headers) = proxy.seen[0]
    assert asked == f"CONNECT localhost:{https.port}"
    assert headers["proxy-authorization"] == wanted
    assert "proxy-authorization" not in https.seen[-1][1]


def test_http_through_a_proxy_and_back_to_one_that_asks_for_both() -> None:
    with (
        rest_server(authorization=basic("me", "planted-pw")) as server,
        proxy_server(authorization=basic("me", "planted-proxy-pw")) as proxy,
    ):
        ask(SqlGateway, endpoint(server.url, {**LOGIN, "proxy": proxy.url, **PROXY_LOGIN}, PLACE))
        assert [line for line, _ in proxy.seen] == [f"GET {server.url}/v2/info"]


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("given", [{}, PROXY_LOGIN])
def test_a_proxy_that_does_not_know_us(
    secure: bool, given: dict[str, str], https: Running, certificates: Certificates
) -> None:
    with rest_server() as plain, proxy_server(authorization="Basic other") as proxy:
        url = https.url if secure else plain.url
        given = {"ca_file": certificates.path("ca.pem"), "proxy": proxy.url, **given}
        message = refused(url, given)
        assert (len(proxy.seen), plain.seen) == (1, [])
    assert "407" in message
    assert f"the proxy requires authentication. Check proxy_login and proxy_password of {PLACE}" in message


def test_a_proxy_that_cannot_reach_the_server(certificates: Certificates) -> None:
    with proxy_server() as proxy:
        message = refused("https://localhost:1", {"proxy": proxy.url})
    assert f"the proxy refused the connection: check proxy of {PLACE}" in message
    assert "502" in message


def test_the_environments_proxy_holds_where_none_is_given(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    """Its credentials are not ours to configure, and no less secret."""
    with proxy_server(authorization="Basic other") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:planted-proxy-pw@localhost:{proxy.port}")
        message = refused("https://gateway.test", {})
        assert proxy.seen[0][0] == "CONNECT gateway.test:443"
    assert "407" in message


def test_the_jobmanager_may_have_a_proxy_of_its_own() -> None:
    with rest_server() as server, proxy_server() as near, proxy_server() as far:
        given = {"proxy": near.url, "jobmanager_proxy": far.url}
        ask(SqlGateway, endpoint(server.url, given, PLACE))
        ask(JobManager, endpoint(server.url, given, PLACE, jobmanager=True))
        assert [line for line, _ in near.seen] == [f"GET {server.url}/v2/info"]
        assert [line for line, _ in far.seen] == [f"GET {server.url}/jobs/overview"]


# --- what cannot be right ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"login": "a:b", "password": "planted"}, "login contains a colon"),
        ({"password": "planted-token\n"}, "password starts or ends with a blank, or contains a line break"),
        ({"password": "planted-tökén"}, "password is a bearer token"),
        ({"timeout": "soon"}, "timeout 'soon' is not a number of seconds above 0"),
        ({"timeout": 0}, "timeout '0' is not a number"),
        ({"timeout": "nan"}, "timeout 'nan' is not a number"),
        ({"verify": "maybe"}, "verify 'maybe' must be true or false"),
        ({"ca_file": "/no/such.pem"}, "ca_file '/no/such.pem' cannot be used: No such file"),
        ({"ca_file": __file__}, "Set the path of a PEM file"),
        ({"client_cert": "/no/such.pem"}, "client_cert '/no/such.pem' cannot be used: No such file"),
        ({"client_cert": __file__}, "Set PEM files of a certificate and its key"),
        ({"client_key": "/k.pem"}, "client_key also requires client_cert"),
        ({"proxy": "proxy:3128"}, "proxy 'proxy:3128' is not a proxy address"),
        ({"proxy": "socks5://proxy:1"}, "Write http://host:port"),
        ({"proxy": "http://[::1"}, "is not a proxy address"),
        ({"proxy": "http://me:planted@proxy:1"}, "Use proxy_login and proxy_password"),
        ({"proxy_login": "me"}, "proxy_login also requires proxy"),
    ],
)
def test_settings_that_cannot_be_right(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError) as caught:
        endpoint("https://gw", given, PLACE)
    assert str(caught.value).startswith(PLACE)
    assert words in str(caught.value)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("password", [None, "planted-wrong"])
def test_an_encrypted_key_is_never_asked_for_at_the_terminal(certificates: Certificates, password: str | None) -> None:
    given = {
        "client_cert": certificates.path("client.pem"),
        "client_key": certificates.path("locked.key"),
        "client_key_password": password,
    }
    with pytest.raises(ApiError, match="client_key_password if the key is encrypted") as caught:
        endpoint("https://gw", given, PLACE)
    assert "planted" not in str(caught.value)


def test_the_environment_names_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_PASSWORD", "planted-token")
    monkeypatch.setenv("FLINKCOMPAT_JOBMANAGER_LOGIN", "jm")
    monkeypatch.setenv("FLINKCOMPAT_TIMEOUT", "7")
    with rest_server(authorization="Bearer planted-token") as server:
        ask(SqlGateway, endpoint_from_environment(server.url))
    assert endpoint_from_environment("http://jm", jobmanager=True).auth == ("jm", "")
    assert endpoint_from_environment("http://jm", jobmanager=True).timeout == 7
    monkeypatch.setenv("FLINKCOMPAT_CA_FILE", "/no/such.pem")
    with pytest.raises(ApiError, match=r"the environment: FLINKCOMPAT_CA_FILE '/no/such\.pem' cannot be used"):
        endpoint_from_environment("https://gw")


def test_nothing_given_is_nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(f"{VARIABLE}{key.upper()}", raising=False)
    found = endpoint_from_environment("http://gw")
    assert (found.auth, dict(found.headers), found.verify, found.proxy, found.timeout) == (None, {}, True, None, 30)


def test_the_command_line_asks_with_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;", encoding="utf-8")
    monkeypatch.setenv("FLINKCOMPAT_PASSWORD", "planted-token")
    arguments = ["check", *[str(tmp_path / "a.sql")] * 2, "--engine", "flink", "--explain-plan", "--gateway"]
    with rest_server(authorization="Bearer other") as server, pytest.raises(InputError) as caught:
        cli.main([*arguments, server.url], standalone_mode=False)
    assert server.authorizations == ["Bearer planted-token"]
    assert "Check FLINKCOMPAT_LOGIN and FLINKCOMPAT_PASSWORD of the environment" in str(caught.value)
    assert "planted" not in str(caught.value)
