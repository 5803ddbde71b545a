"""Flink's messages and REST errors with their remedies, in the terms of whoever configured the target."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from airflow_flinkcompat.deploy.errors import StateFault, StateRefused, TargetError


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
        """The remedy for an answer of this HTTP status; empty if the answer speaks for itself."""
        who = f"{self._of('login', 'password')} (a password alone is a bearer token)"
        match status:
            case 401 if self.credentials:
                return f"it rejects the credentials; check {who}"
            case 401:
                return f"it requires authentication: set {who}"
            case 403:
                return f"the user has no access: grant it there, or set another user in {who}"
            case 407:
                return f"the proxy requires authentication: check {self._of('proxy_login', 'proxy_password')}"
        return ""

    def about_failure(self, error: httpx.HTTPError) -> str:
        """The remedy for a call without an answer."""
        if isinstance(error, httpx.ProxyError):
            refused = self.about_status(407) if is_refused_by_proxy(error) else f"check {self._of('proxy')}"
            return f"the proxy refused the connection; {refused}"
        failure = tls_failure(error)
        if failure is None:
            return "check that it runs and that the address is correct"
        return self._about_tls(failure)

    def _about_tls(self, failure: ssl.SSLError) -> str:
        if isinstance(failure, ssl.SSLCertVerificationError):
            if "ostname mismatch" in failure.verify_message or "IP address mismatch" in failure.verify_message:
                return "its certificate is for another host name: use a name that the certificate lists"
            if "expired" in failure.verify_message or "not yet valid" in failure.verify_message:
                return "its certificate is not valid now: renew it, or correct the clock of this machine"
            if self.ca_file:
                return (
                    f"no authority in {self.ca_file!r} signed its certificate: {self._of('ca_file')} must be "
                    "the PEM file of the authority that did"
                )
            return (
                "no authority that this machine trusts signed its certificate: name the PEM file of the "
                f"authority that did in {self._of('ca_file')}"
            )
        reason = failure.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
            return f"it does not use TLS there: write http instead of https in {self.place} if that is intended"
        if "ALERT" in reason:
            answer = "rejects the" if self.client_cert else "may require a"
            return f"it {answer} client certificate: check {self._of('client_cert', 'client_key')}"
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


# Of Flink 2.3 and 1.20. The first is what the JobManager says where it maps a savepoint to a job.
_SAID = (
    (
        re.compile(
            "Failed to rollback to checkpoint/savepoint|Cannot map checkpoint/savepoint state|Max parallelism mismatch"
        ),
        StateFault.MISFIT,
    ),
    (re.compile("FileNotFound"), StateFault.GONE),
    (re.compile("EOFException|Unexpected magic number"), StateFault.DAMAGED),
)


def fault_of(said: str | None) -> StateFault | None:
    """The fault in the state that a failure's text reports; None if it reports none."""
    return next((fault for words, fault in _SAID if words.search(said or "")), None)


def refusal(message: str, said: str) -> TargetError:
    """The error of a start that was refused with these words."""
    fault = fault_of(said)
    return TargetError(message) if fault is None else StateRefused(message, fault)
