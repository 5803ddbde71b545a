"""REST client of Flink's SQL Gateway (``/v2``, Flink 1.19 to 2.3) that runs a script's statements.

The client resolves placeholders and adds the position in the script to errors.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from airflow_flinkcompat.deploy.errors import SubmissionUnknown, TargetError, refusal
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError, RestClient
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused, relocate, resolve_settings
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, Lookup, redactor_of, resolve_placeholders
from airflow_flinkcompat.secrets.redact import Redactor
from airflow_flinkcompat.sql import ScriptError, Statement

_log = logging.getLogger(__name__)
_API = "v2"
_STATEMENT_SECONDS = 180.0


class GatewayError(ApiError):
    """The SQL Gateway refused a statement or did not answer."""


@dataclass(frozen=True)
class Result:
    """Result of a statement: column names, rows as JSON values, and the id of the started job."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    job_id: str | None = None


class SqlGateway(RestClient):
    """Client of a SQL Gateway."""

    name = "the SQL Gateway"

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Call like ``RestClient.call``, but raise GatewayError."""
        try:
            return super().call(method, path, body, **more)
        except ApiError as error:
            raise GatewayError(str(error), error.status, error.reason) from None

    def info(self) -> tuple[str, str]:
        """The product and version, such as ``("Apache Flink", "2.3.0")``. Raises GatewayError."""
        answer = self.get(f"{_API}/info")
        try:
            return str(answer["productName"]), str(answer["version"])
        except (TypeError, KeyError):
            raise GatewayError(f"{self.endpoint.place} answers, but is not a SQL Gateway") from None

    @contextmanager
    def session(self, properties: Mapping[str, str] | None = None) -> Iterator[Session]:
        """Open a session and close it at the end.

        The jobs that were started in a session outlive the session. Raises GatewayError.
        """
        answer = self.call("POST", f"{_API}/sessions", {"properties": dict(properties or {})})
        path = f"{_API}/sessions/{answer['sessionHandle']}"
        try:
            yield Session(self, path)
        finally:
            try:
                self.call("DELETE", path, idempotent=True)
            except GatewayError as error:  # the session expires by itself, and all of its statements are finished
                _log.warning("the session could not be closed: %s", error)


class Session:
    """A session of the SQL Gateway. Statements of a session share temporary tables, views and settings."""

    def __init__(self, gateway: SqlGateway, path: str) -> None:
        self._gateway = gateway
        self._path = path

    def execute(
        self, statement: str, config: Mapping[str, str] | None = None, *, timeout: float = _STATEMENT_SECONDS
    ) -> Result:
        """Run a statement to its end, or an INSERT until its job is accepted. Raises GatewayError."""
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
            # A failed operation may no longer exist. At its end, the session closes all remaining operations.
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


_log = logging.getLogger(__name__)
_FAILED = 500  # the SQL Gateway's status for a failed statement
_SUBMITTED_BEFORE = re.compile(r"Duplicate(Application|Job)SubmissionException")
_GONE = re.compile(r"(Session|Operation)\b.*(does not exist|not be found|can not find|cannot find)", re.IGNORECASE)


class SubmittedBefore(TargetError):
    """The cluster refused a repeated submission, because it already has a job with the request's id."""


class MaskingClient(Protocol):
    """A client that masks the secrets of its redactor in messages."""

    redactor: Redactor


class ScriptRunner:
    """Runner of statements that masks the values from ``lookup`` in every message."""

    def __init__(self, lookup: Lookup, *clients: MaskingClient) -> None:
        self._lookup = lookup
        self._clients = list(clients)
        self._warned: set[str] = set()
        self.redactor = Redactor()

    def add_client(self, client: MaskingClient) -> None:
        """Make ``client`` mask its messages in the same way."""
        client.redactor |= self.redactor
        self._clients.append(client)

    def run(
        self,
        session: Session,
        statement: Statement,
        sql: str,
        config: Mapping[str, str] | None = None,
        *,
        prefix: int = 0,
        submits: bool = False,
    ) -> Result:
        """Run ``sql``, the form of ``statement`` with ``prefix`` characters in front of its first line.

        Raises TargetError with the statement's position, and SubmissionUnknown if no answer arrived. A submission also
        raises StateRefused and SubmittedBefore.
        """
        try:
            resolved = resolve_placeholders(sql, self.resolve)
            self.register(resolved.redactor)
            return session.execute(resolved.text, config)
        except ScriptError as error:  # the statement has a malformed or misplaced placeholder
            raise TargetError(f"{statement.span}: {error}") from None
        except GatewayError as error:
            # A submission is refused only if the statement itself failed. After any other answer, the job may still
            # start.
            if error.unanswered or (submits and (error.status != _FAILED or _GONE.search(error.reason))):
                raise SubmissionUnknown(f"{statement.span}: {error}") from None
            reason = relocate(error.reason, statement.span, prefix=prefix)
            refused = f"{statement.span}: the SQL Gateway refused the statement: {reason}"
            if submits and _SUBMITTED_BEFORE.search(error.reason):
                raise SubmittedBefore(refused) from None
            raise refusal(refused, error.reason) if submits else TargetError(refused) from None

    def script(self, job: JobSpec) -> str:
        """The script of a job with its placeholders resolved. Raises ScriptRefused, TargetError."""
        try:
            resolved = resolve_placeholders(job.script, self.resolve)
        except ScriptError as error:
            raise ScriptRefused(f"{job.source}: {error}") from None
        self.register(resolved.redactor)
        return resolved.text

    def settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings with their placeholders resolved. Raises ScriptRefused, TargetError."""
        resolved = resolve_settings(settings, self.resolve)
        for each in resolved.values():
            self.register(each.redactor)
        return {key: each.text for key, each in resolved.items()}

    def resolve(self, placeholder: AnyPlaceholder) -> str:
        """The value of a placeholder. Raises TargetError if the placeholder has no value."""
        try:
            return self._lookup(placeholder)
        except LookupError:
            raise TargetError(
                f"{placeholder} cannot be resolved: the connection or its attribute does not exist"
            ) from None

    def register_placeholders(self, job: JobSpec) -> None:
        """Mask the values of those placeholders of a job that can be resolved."""
        for placeholder in placeholders("\n".join((job.script, *job.settings.values()))):
            try:
                self.register(redactor_of((placeholder,), self.resolve))
            except Exception as error:  # ignore any error of the lookup: a start reports missing values
                _log.debug("%s is not resolved, so not masked: %s", placeholder, type(error).__name__)

    def register(self, redactor: Redactor) -> None:
        """Mask additional values in all later messages of the clients."""
        for name in set(redactor.too_short) - self._warned:
            self._warned.add(name)
            _log.warning("%s", Redactor(too_short=(name,)).warnings[0])
        self.redactor |= redactor
        for client in self._clients:
            client.redactor |= redactor
