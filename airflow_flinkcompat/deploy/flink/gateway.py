"""Flink's SQL Gateway over REST (``/v2``, which every line from 1.19 to 2.3 speaks)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError, RestClient

_log = logging.getLogger(__name__)
_API = "v2"
_STATEMENT_SECONDS = 180.0


class GatewayError(ApiError):
    """The SQL Gateway refused a statement, or did not answer."""


@dataclass(frozen=True)
class Result:
    """Result of a statement: column names, rows as JSON values, and the job that it started."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    job_id: str | None = None


class SqlGateway(RestClient):
    """Client of one SQL Gateway."""

    name = "the SQL Gateway"

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Call as ``RestClient.call`` does; raises GatewayError."""
        try:
            return super().call(method, path, body, **more)
        except ApiError as error:
            raise GatewayError(str(error), error.status, error.reason) from None

    def info(self) -> tuple[str, str]:
        """The product and version of the Gateway.

        Returns:
            The name and the version, e.g. ``("Apache Flink", "2.3.0")``.

        Raises:
            GatewayError: Nothing answers there, or something that is no SQL Gateway.
        """
        answer = self.get(f"{_API}/info")
        try:
            return str(answer["productName"]), str(answer["version"])
        except (TypeError, KeyError):
            raise GatewayError(f"{self.endpoint.place} answers, but is not a SQL Gateway") from None

    @contextmanager
    def session(self, properties: Mapping[str, str] | None = None) -> Iterator[Session]:
        """Open a session and close it at the end; jobs that it started go on.

        Args:
            properties: Flink's options by key, in force for the whole session.

        Yields:
            The session.

        Raises:
            GatewayError: The Gateway does not answer or opens no session.
        """
        answer = self.call("POST", f"{_API}/sessions", {"properties": dict(properties or {})})
        path = f"{_API}/sessions/{answer['sessionHandle']}"
        try:
            yield Session(self, path)
        finally:
            try:
                self.call("DELETE", path, idempotent=True)
            except GatewayError as error:  # it expires by itself; what was asked of it is done or has failed already
                _log.warning("the session could not be closed: %s", error)


class Session:
    """One session of the SQL Gateway; statements share its tables, views and settings."""

    def __init__(self, gateway: SqlGateway, path: str) -> None:
        self._gateway = gateway
        self._path = path

    def execute(
        self, statement: str, config: Mapping[str, str] | None = None, *, timeout: float = _STATEMENT_SECONDS
    ) -> Result:
        """Run one statement to its end (an INSERT: until its job is accepted) and read all its results.

        ``config`` holds for this statement alone and wins over the session. Raises GatewayError.
        """
        body: dict[str, Any] = {"statement": statement}
        if config:
            body["executionConfig"] = dict(config)
        handle = self._gateway.call("POST", f"{self._path}/statements", body)["operationHandle"]
        operation = f"{self._path}/operations/{handle}"
        try:
            return self._read(operation, timeout)
        except Overdue:
            with contextlib.suppress(GatewayError):
                self._gateway.call("POST", f"{operation}/cancel")
            raise GatewayError(f"the SQL Gateway did not finish a statement within {timeout:.0f} s") from None
        finally:
            # A failed operation may be gone already; the session's end takes the rest.
            with contextlib.suppress(GatewayError):
                self._gateway.call("DELETE", f"{operation}/close")

    def _read(self, operation: str, timeout: float) -> Result:
        columns: tuple[str, ...] = ()
        rows: list[tuple[Any, ...]] = []
        job_id: str | None = None
        uri: str | None = f"{operation}/result/0?rowFormat=JSON"
        while uri:
            page = poll(partial(self._gateway.get, uri), lambda p: p.get("resultType") == "NOT_READY", timeout=timeout)
            job_id = page.get("jobID") or job_id
            results = page.get("results") or {}
            columns = tuple(column["name"] for column in results.get("columns", ())) or columns
            rows.extend(tuple(row["fields"]) for row in results.get("data", ()))
            uri = page.get("nextResultUri") if page.get("resultType") != "EOS" else None
        return Result(columns, tuple(rows), job_id)
