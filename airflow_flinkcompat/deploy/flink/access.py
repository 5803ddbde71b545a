"""Access to a REST API: credentials, certificates and proxy, from a connection or the environment.

The same keys apply to the SQL Gateway and the JobManager. For the JobManager, keys with the prefix ``jobmanager_``
override the shared keys, a whole group at a time. So with a ``jobmanager_password``, the JobManager never receives
the Gateway's ``login``.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from airflow_flinkcompat.deploy.flink.rest import ApiError, Endpoint, EndpointOrigin

GROUPS = (
    ("login", "password"),
    ("ca_file",),
    ("verify",),
    ("client_cert", "client_key", "client_key_password"),
    ("proxy", "proxy_login", "proxy_password"),
    ("timeout",),
)
KEYS = tuple(key for group in GROUPS for key in group)
JOBMANAGER = "jobmanager_"
VARIABLE = "FLINKCOMPAT_"
_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def endpoint(
    url: str,
    settings: Mapping[str, Any],
    place: str,
    *,
    jobmanager: bool = False,
    spell: Callable[[str], str] = str,
) -> Endpoint:
    """Build the endpoint at ``url`` from the settings named in KEYS. Raises ApiError."""
    return _Settings(settings, place, jobmanager, spell).endpoint(url)


def endpoint_from_environment(url: str, *, jobmanager: bool = False) -> Endpoint:
    """Build the endpoint at ``url`` from variables such as ``FLINKCOMPAT_LOGIN``. Raises ApiError."""

    def variable(key: str) -> str:
        return f"{VARIABLE}{key.upper()}"

    settings = settings_from_environment((*KEYS, *(f"{JOBMANAGER}{key}" for key in KEYS)))
    return endpoint(url, settings, "the environment", jobmanager=jobmanager, spell=variable)


def settings_from_environment(keys: Iterable[str], prefix: str = VARIABLE) -> dict[str, str | None]:
    """Settings from environment variables, used without a connection."""
    return {key: os.environ.get(f"{prefix}{key.upper()}") for key in keys}


@dataclass(frozen=True)
class _Settings:
    settings: Mapping[str, Any]
    place: str
    jobmanager: bool
    spell: Callable[[str], str]

    def endpoint(self, url: str) -> Endpoint:
        login, password = self._get("login"), self._get("password")
        if ":" in login:
            raise self._wrong("login", "contains a colon, which basic authentication does not allow")
        for key in ("login", "password", "proxy_login", "proxy_password"):
            # A pasted token may end with a line break, but HTTP headers cannot contain line breaks.
            if not self._get(key).isprintable() or self._get(key) != self._get(key).strip():
                raise self._wrong(key, "starts or ends with a blank, or contains a line break. Remove it")
        if password and not login and not password.isascii():
            raise self._wrong("password", "is a bearer token (no login is set) and must be ASCII")
        tls = self._tls()
        origin = EndpointOrigin(
            self.place,
            {key: self.spell(self._key(key)) for key in KEYS},
            self._get("ca_file") or None,
            credentials=bool(login or password),
            client_cert=bool(self._get("client_cert")),
        )
        return Endpoint(
            url,
            headers={"Authorization": f"Bearer {password}"} if password and not login else {},
            auth=(login, password) if login else None,
            verify=tls,
            timeout=self._timeout(),
            proxy=self._proxy(tls),
            origin=origin,
        )

    def _key(self, key: str) -> str:
        """The effective key, prefixed with ``jobmanager_`` if the JobManager overrides any key of the group."""
        group = next(group for group in GROUPS if key in group)
        own = self.jobmanager and any(_text(self.settings.get(f"{JOBMANAGER}{other}")) for other in group)
        return f"{JOBMANAGER}{key}" if own else key

    def _get(self, key: str) -> str:
        return _text(self.settings.get(self._key(key)))

    def _wrong(self, key: str, why: str) -> ApiError:
        return ApiError(f"{self.place}: {self.spell(self._key(key))} {why}")

    def _timeout(self) -> float:
        text = self._get("timeout") or "30"
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise self._wrong("timeout", f"{text!r} is not a number of seconds above 0")
        return seconds

    def _verifies(self) -> bool:
        text = (self._get("verify") or "true").lower()
        if text not in (*_YES, *_NO):
            raise self._wrong("verify", f"{text!r} must be true or false")
        return text in _YES

    def _tls(self) -> ssl.SSLContext | bool:
        """TLS settings with the trusted certificate authorities and the client certificate."""
        ca_file, certificate, key = self._get("ca_file"), self._get("client_cert"), self._get("client_key")
        if key and not certificate:
            raise self._wrong("client_key", f"also requires {self.spell(self._key('client_cert'))}")
        if not ca_file and not certificate:
            return self._verifies()
        try:
            context = ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()
        except (OSError, ssl.SSLError) as error:
            raise self._wrong(
                "ca_file", f"{ca_file!r} cannot be used: {_why(error)}. Set the path of a PEM file"
            ) from None
        if not self._verifies():
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            self._show(context, certificate, key)
        return context

    def _show(self, context: ssl.SSLContext, certificate: str, key: str) -> None:
        try:
            # Pass a function. Without it, OpenSSL would prompt for the password.
            context.load_cert_chain(certificate, key or None, lambda: self._get("client_key_password"))
        except (OSError, ssl.SSLError) as error:
            files = f"{certificate!r}" + (f" with {self.spell(self._key('client_key'))} {key!r}" if key else "")
            raise self._wrong(
                "client_cert",
                f"{files} cannot be used: {_why(error)}. Set PEM files of a certificate and its key, and "
                f"{self.spell(self._key('client_key_password'))} if the key is encrypted",
            ) from None

    def _proxy(self, tls: ssl.SSLContext | bool) -> httpx.Proxy | None:
        address, login, password = (self._get(key) for key in GROUPS[4])
        if not address:
            if login or password:
                raise self._wrong("proxy_login", f"also requires {self.spell(self._key('proxy'))}")
            return None
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.userinfo:
            raise self._wrong(
                "proxy",
                "contains a user or password, which messages would show. Use "
                f"{self.spell(self._key('proxy_login'))} and {self.spell(self._key('proxy_password'))}",
            )
        if url.scheme not in ("http", "https") or not url.host:
            raise self._wrong(
                "proxy", f"{address!r} is not a proxy address. Write http://host:port or https://host:port"
            )
        # Verify the certificate of a TLS proxy with the same settings as the server's certificate.
        context = httpx.create_ssl_context(tls) if url.scheme == "https" else None
        return httpx.Proxy(url, auth=(login, password) if login else None, ssl_context=context)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _why(error: OSError) -> str:
    return str(error.strerror or error) if not isinstance(error, ssl.SSLError) else error.reason or str(error)
