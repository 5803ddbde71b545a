"""Statements of a script in a SQL Gateway session: placeholders resolved, errors placed in the script."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Protocol

from airflow_flinkcompat.deploy.errors import SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.error_hints import refusal
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Result, Session
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused, relocate, resolve_settings
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import (
    AnyPlaceholder,
    Lookup,
    Redactor,
    placeholders,
    redactor_of,
    resolve_placeholders,
)
from airflow_flinkcompat.sql import ScriptError, Statement

_log = logging.getLogger(__name__)
_FAILED = 500  # what the SQL Gateway answers where a statement failed
_SUBMITTED_BEFORE = re.compile(r"Duplicate(Application|Job)SubmissionException")
_GONE = re.compile(r"(Session|Operation)\b.*(does not exist|not be found|can not find|cannot find)", re.IGNORECASE)


class SubmittedBefore(TargetError):
    """A repeated submission: the cluster has a job of this id already."""


class MaskingClient(Protocol):
    """A client whose messages hide the secrets of its redactor."""

    redactor: Redactor


class ScriptRunner:
    """Runner of statements; values that ``lookup`` returns are masked in every message."""

    def __init__(self, lookup: Lookup, *clients: MaskingClient) -> None:
        self._lookup = lookup
        self._clients = list(clients)
        self._warned: set[str] = set()
        self.redactor = Redactor()

    def add_client(self, client: MaskingClient) -> None:
        """Have the messages of one more client masked."""
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
        """Run ``sql``, which was made of ``statement`` by putting ``prefix`` characters before its first line.

        Raises TargetError with the statement's place; SubmissionUnknown when no answer to it came. Of a submission it
        raises StateRefused and SubmittedBefore, too.
        """
        try:
            resolved = resolve_placeholders(sql, self.resolve)
            self.register(resolved.redactor)
            return session.execute(resolved.text, config)
        except ScriptError as error:  # a placeholder that is none, or stands in the wrong place
            raise TargetError(f"{statement.span}: {error}") from None
        except GatewayError as error:
            # Of a submission only the statement's own failure is a refusal: the job may come after any other answer.
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
        """The value of a placeholder. Raises TargetError: there is none."""
        try:
            return self._lookup(placeholder)
        except LookupError:
            raise TargetError(f"{placeholder} cannot be resolved: there is no such connection or attribute") from None

    def register_placeholders(self, job: JobSpec) -> None:
        """Mask the values of a job's placeholders, as far as they can be resolved."""
        for placeholder in placeholders("\n".join((job.script, *job.settings.values()))):
            try:
                self.register(redactor_of((placeholder,), self.resolve))
            except Exception as error:  # whatever a lookup raises: the start, if there is one, says what is missing
                _log.debug("%s is not resolved, so not masked: %s", placeholder, type(error).__name__)

    def register(self, redactor: Redactor) -> None:
        """Have more values masked in every message of the clients from now on."""
        for name in set(redactor.too_short) - self._warned:
            self._warned.add(name)
            _log.warning("%s", Redactor(too_short=(name,)).warnings[0])
        self.redactor |= redactor
        for client in self._clients:
            client.redactor |= redactor
