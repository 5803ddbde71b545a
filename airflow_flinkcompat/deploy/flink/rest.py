"""Base of REST clients: endpoints, timeouts, safe retries, and one-line errors with remedies."""

from __future__ import annotations

import base64
import ipaddress
import json
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from airflow_flinkcompat.deploy.errors import DeployError, condense, redact
from airflow_flinkcompat.secrets.redact import Redactor

_log = logging.getLogger(__name__)
_ATTEMPTS = 4
_UNAVAILABLE = frozenset({502, 503, 504})
# Errors after which any request can be repeated, because it did not reach the server.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class EndpointOrigin:
    """Origin of an endpoint's settings, for remedies in messages: place, key names and credentials."""

    place: str = "the endpoint"
    names: Mapping[str, str] = field(default_factory=dict)
    ca_file: str | None = None
    credentials: bool = False
    client_cert: bool = False

    def name(self, key: str) -> str:
        return self.names.get(key, key)

    def _of(self, *keys: str) -> str:
        return f"{' and '.join(map(self.name, keys))} of {self.place}"

    def about_status(self, status: int) -> str:
        """The remedy for an HTTP status, or "" if there is none."""
        who = f"{self._of('login', 'password')} (a password alone is a bearer token)"
        match status:
            case 401 if self.credentials:
                return f"the server rejects the credentials. Check {who}"
            case 401:
                return f"the server requires authentication. Set {who}"
            case 403:
                return f"the user has no access. Grant access on the server, or set a different user in {who}"
            case 407:
                return f"the proxy requires authentication. Check {self._of('proxy_login', 'proxy_password')}"
        return ""

    def about_failure(self, error: httpx.HTTPError) -> str:
        if isinstance(error, httpx.ProxyError):
            refused = self.about_status(407) if is_refused_by_proxy(error) else f"check {self._of('proxy')}"
            return f"the proxy refused the connection: {refused}"
        failure = tls_failure(error)
        if failure is None:
            return "check that the server runs and that the address is correct"
        return self._about_tls(failure)

    def _about_tls(self, failure: ssl.SSLError) -> str:
        if isinstance(failure, ssl.SSLCertVerificationError):
            if "ostname mismatch" in failure.verify_message or "IP address mismatch" in failure.verify_message:
                return "the server's certificate is for a different host name. Use a name that the certificate lists"
            if "expired" in failure.verify_message or "not yet valid" in failure.verify_message:
                return (
                    "the server's certificate has expired or is not yet valid. Renew the certificate, or correct the "
                    "clock of this machine"
                )
            if self.ca_file:
                return (
                    f"no authority in {self.ca_file!r} signed the server's certificate. Set {self._of('ca_file')} to "
                    "the PEM file of the authority that signed it"
                )
            return (
                f"no authority that this machine trusts signed the server's certificate. Set {self._of('ca_file')} to "
                "the PEM file of the authority that signed it"
            )
        reason = failure.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
            return (
                "the server does not use TLS at this address. If this is intended, write http instead of https in "
                f"{self.place}"
            )
        if "ALERT" in reason:
            answer = "rejects the" if self.client_cert else "may require a"
            return f"the server {answer} client certificate. Check {self._of('client_cert', 'client_key')}"
        return f"check the certificates of {self.place}"


def tls_failure(error: BaseException) -> ssl.SSLError | None:
    """The TLS error that caused a transport error, or None if there is none or the connection broke."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def is_refused_by_proxy(error: BaseException) -> bool:
    """True if a proxy refused the connection for lack of credentials (status 407)."""
    return isinstance(error, httpx.ProxyError) and str(error).startswith("407")


class ApiError(DeployError):
    """A REST call failed; ``status`` is the HTTP status or None, and ``reason`` is the server's message."""

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = redact(reason or message)

    @property
    def unanswered(self) -> bool:
        """True if no response arrived, or only the response of a proxy that did not reach the server."""
        return self.status is None or self.status in _UNAVAILABLE


class AddressError(ApiError):
    """An address cannot belong to a REST API, so no call was made."""

    @property
    def unanswered(self) -> bool:
        return False


@dataclass(frozen=True)
class Endpoint:
    """Address of a REST API and its access; ``timeout`` is the seconds for each call.

    ``deploy.flink.access`` creates endpoints from a connection or the environment. ``origin`` describes the source of
    the settings.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str, str] | httpx.Auth | None = None
    verify: bool | ssl.SSLContext = True
    timeout: float = 30.0
    # If None, the proxy in the environment variables is used, if set.
    proxy: httpx.Proxy | None = None
    origin: EndpointOrigin = field(default_factory=EndpointOrigin)

    def __repr__(self) -> str:
        return f"Endpoint({self.place!r})"

    def __post_init__(self) -> None:
        parsed = httpx.URL(self.url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise AddressError(
                f"{self.place!r} is not the address of a REST API: write http://host:port or https://host:port"
            )

    @property
    def place(self) -> str:
        """The address without user, password and query."""
        return str(httpx.URL(self.url).copy_with(userinfo=b"", query=None)).rstrip("/")

    @property
    def secrets(self) -> frozenset[str]:
        """Values to mask, including the encoded credentials in headers."""
        pairs = [pair for pair in (self.auth, self.proxy and self.proxy.auth) if isinstance(pair, tuple)]
        headers = (value for name, value in self.headers.items() if name.lower() == "authorization")
        tokens = (value.partition(" ")[2] or value for value in headers)
        encoded = (base64.b64encode(":".join(map(_text, pair)).encode()).decode() for pair in pairs)
        return frozenset(filter(None, (*tokens, *encoded, *(_text(password) for _, password in pairs))))


class Closing:
    """Context manager that calls its method ``close`` on exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""


class RestClient(Closing):
    """JSON client of an endpoint or URL; ``retry_wait``: longest pause between attempts in seconds."""

    name = "the REST API"

    def __init__(
        self,
        endpoint: Endpoint | str,
        *,
        transport: httpx.BaseTransport | None = None,
        retry_wait: float = 2.0,
    ) -> None:
        self.endpoint = Endpoint(endpoint) if isinstance(endpoint, str) else endpoint
        self._retry_wait = retry_wait
        # Mask these values in all messages, because servers may repeat them.
        self.redactor = Redactor.of(("a credential of the connection", value) for value in self.endpoint.secrets)
        for warning in self.redactor.warnings:
            _log.warning("%s: %s", self.endpoint.place, warning)
        self._client = httpx.Client(
            base_url=self.endpoint.url.rstrip("/") + "/",
            headers=dict(self.endpoint.headers),
            auth=self.endpoint.auth,
            verify=_public_certificates() if self.endpoint.verify is True else self.endpoint.verify,
            timeout=self.endpoint.timeout,
            proxy=self.endpoint.proxy,
            transport=transport,
            follow_redirects=True,
            # Do not use the environment's proxy for servers on this machine.
            trust_env=not is_loopback(httpx.URL(self.endpoint.url).host),
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> Any:
        return self.call("GET", path, idempotent=True)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        idempotent: bool = False,
        **more: Any,
    ) -> Any:
        """Call the API and return the JSON answer (None for an empty answer). Raises ApiError.

        ``more`` is passed to the HTTP client. An idempotent call is repeated after transport errors and status 502 to
        504. Any other call is repeated only if it did not reach the server.
        """
        repeating = Retrying(
            retry=retry_if_exception(_may_repeat(idempotent)),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(multiplier=self._retry_wait / 8, max=self._retry_wait),
            reraise=True,
            retry_error_callback=_last_error,
        )
        try:
            response = repeating(self._send, method, path, body, more)
            return response.json() if response.content else None
        except httpx.HTTPStatusError as error:
            status, reason = error.response.status_code, reason_in(error.response, self.redactor)
            message = f"{self.name} answered {status}: {reason}"
            if remedy := self.endpoint.origin.about_status(status):
                message = f"{self.name} at {self.endpoint.place} answered {status} ({reason}): {remedy}"
            raise ApiError(message, status, reason) from None
        except httpx.HTTPError as error:
            why = f"{type(error).__name__}: {condense(str(error), self.redactor)}"
            remedy = self.endpoint.origin.about_failure(error)
            raise ApiError(f"{self.name} at {self.endpoint.place} does not answer ({why}): {remedy}") from None
        except json.JSONDecodeError:
            raise ApiError(f"{self.name} at {self.endpoint.place} did not answer {path} with JSON") from None

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a text, such as a large log, as they arrive. Raises ApiError."""
        try:
            with self._client.stream("GET", path.lstrip("/")) as response:
                response.raise_for_status()
                yield from response.iter_lines()
        except httpx.HTTPError as error:
            why = f"{type(error).__name__}: {condense(str(error), self.redactor)}"
            raise ApiError(f"{self.name} at {self.endpoint.place} does not return {path} ({why})") from None

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        more: Mapping[str, Any],
    ) -> httpx.Response:
        return self._client.request(method, path.lstrip("/"), json=body, **more).raise_for_status()


@cache
def _public_certificates() -> ssl.SSLContext:
    """The certificates that all clients of this process trust by default. Loading them takes about 20 ms."""
    return httpx.create_ssl_context()


def reason_in(response: httpx.Response, redactor: Callable[[str], str] = redact) -> str:
    """The root cause in an error response, as one line with secrets masked."""
    try:
        errors = response.json()["errors"]
        text = "\n".join(str(error) for error in errors)
    except (ValueError, KeyError, TypeError):
        text = response.text
    return condense(text, redactor) or response.reason_phrase or "no reason reported"


def _may_repeat(idempotent: bool) -> Callable[[BaseException], bool]:
    def decide(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return idempotent and error.response.status_code in _UNAVAILABLE
        if tls_failure(error) or is_refused_by_proxy(error):  # a repeated request would fail again
            return False
        return isinstance(error, httpx.TransportError if idempotent else _NEVER_SENT)

    return decide


def _last_error(state: RetryCallState) -> httpx.Response:
    assert state.outcome is not None
    response: httpx.Response = state.outcome.result()  # raises the error of the last attempt
    return response


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
