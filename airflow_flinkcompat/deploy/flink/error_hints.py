"""Remedies for a REST call that was rejected, in the terms of whoever configured it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx


@dataclass(frozen=True)
class EndpointOrigin:
    """Origin of an endpoint's settings: their place (``connection 'flink_default'``) and key names.

    ``ca_file`` is the one in force; ``credentials`` and ``client_cert`` are True if there are any.
    """

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
        """The remedy for an answer of this HTTP status; empty where the answer speaks for itself."""
        who = f"{self._of('login', 'password')} (a password alone is a bearer token)"
        match status:
            case 401 if self.credentials:
                return f"it does not accept what it was given: check {who}"
            case 401:
                return f"it wants to know who asks: set {who}"
            case 403:
                return f"who asks is not allowed to: give that user access there, or use another one in {who}"
            case 407:
                return f"the proxy wants to know who asks: check {self._of('proxy_login', 'proxy_password')}"
        return ""

    def about_failure(self, error: httpx.HTTPError) -> str:
        """The remedy for a call without an answer."""
        if isinstance(error, httpx.ProxyError):
            refused = self.about_status(407) if is_refused_by_proxy(error) else f"check {self._of('proxy')}"
            return f"the proxy did not let it through; {refused}"
        failure = tls_failure(error)
        if failure is None:
            return "does it run, and is the address right?"
        return self._about_tls(failure)

    def _about_tls(self, failure: ssl.SSLError) -> str:
        if isinstance(failure, ssl.SSLCertVerificationError):
            if "ostname mismatch" in failure.verify_message or "IP address mismatch" in failure.verify_message:
                return "its certificate is for another name: use the name the certificate was made out to"
            if "expired" in failure.verify_message or "not yet valid" in failure.verify_message:
                return "its certificate has to be renewed, or the clock of this machine is wrong"
            if self.ca_file:
                return (
                    f"no authority in {self.ca_file!r} has signed its certificate: "
                    f"{self._of('ca_file')} must be the PEM file of the one that did"
                )
            return (
                "no authority this machine trusts has signed its certificate: name the PEM file of the one that did "
                f"in {self._of('ca_file')}"
            )
        reason = failure.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
            return f"it does not speak TLS there: is its address http instead of https in {self.place}?"
        if "ALERT" in reason:
            given = "does not accept" if self.client_cert else "may want"
            return f"it {given} a client certificate: check {self._of('client_cert', 'client_key')}"
        return f"check the certificates of {self.place}"


def tls_failure(error: BaseException) -> ssl.SSLError | None:
    """The TLS error at the bottom of a transport error; None if there is none or the connection was cut."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def is_refused_by_proxy(error: BaseException) -> bool:
    """True if a proxy asked for credentials when connecting."""
    return isinstance(error, httpx.ProxyError) and str(error).startswith("407")
