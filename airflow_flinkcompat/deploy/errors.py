"""Errors of a deployment in one line: secrets masked, stack traces condensed to their root cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

_LIMIT = 600

_FRAME = re.compile(r"^\s*(at\s+\S+\(.*\)|\.\.\. \d+ (more|common frames omitted))\s*$")
# A class alone is a heading only if its name is that of an exception: Flink lists the factories that it has in lines.
_HEADING = re.compile(
    r"^(?:Caused by:\s*)?(\[?(?:[a-z][\w$]*\.)+[A-Z][\w$.]*(?::.*|(?:(?<=Exception)|(?<=Error)|(?<=Throwable))$))"
)
# Exceptions carried inside the message of another one: only the innermost class is of use.
_NESTED = re.compile(r"^(?:\[?(?:[a-z][\w$]*\.)+(?:[\w.]+\$)?([A-Z]\w*)(?::\s+|(?=:?\s*$)))+")
_NOISE = ("<Exception on server side:", "End of exception on server side>", "Internal server error.")
# A parser error goes on with every token that would have been welcome.
_EXPECTING = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)


class DeployError(Exception):
    """A deployment step failed; the text is one masked, readable message."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))

    @property
    def unanswered(self) -> bool:
        """True if no answer arrived: the request may still take effect."""
        return False


class DeployRefused(DeployError):
    """A refusal before anything was touched: the running job or the ledger is not in the checked state."""


class TargetError(DeployError):
    """The target refused a script, or an operation on a job failed."""


class SubmissionUnknown(TargetError):
    """A statement or a start without a complete answer: it may have taken effect or not."""

    @property
    def unanswered(self) -> bool:
        return True


class StateFault(StrEnum):
    """Reason why a target refuses to start a job from a savepoint or checkpoint.

    ``MISFIT``: it does not fit the job. ``GONE``: it was moved or deleted. ``DAMAGED``: it cannot be read.
    """

    MISFIT = "misfit"
    GONE = "gone"
    DAMAGED = "damaged"


class StateRefused(TargetError):
    """A state from which the target does not start the job, for the reason in ``fault``."""

    def __init__(self, message: str, fault: StateFault) -> None:
        super().__init__(message)
        self.fault = fault


class SnapshotGone(TargetError):
    """A savepoint that is no longer at its path."""


class StopFailed(TargetError):
    """The target reports that a stop failed and left no savepoint."""


class SavepointFailed(TargetError):
    """The target reports that a savepoint of a running job failed, or that it knows of none."""


class CannotRehearse(DeployError):
    """The job cannot be rehearsed without touching resources that it shares with the live one."""


class PlansUnavailable(DeployError):
    """A lack of compiled plans; the message names the reason and the remedy."""


def redact(text: str) -> str:
    """``text`` with everything that looks like a secret masked."""
    # On first use: whoever reads the ledger (a trigger, many times) must not pay for the SQL parser.
    from airflow_flinkcompat.secrets import mask_secrets

    return mask_secrets(text)


def condense(text: str, redactor: Callable[[str], str] = redact) -> str:
    """The root cause of a Java stack trace in one line of at most 600 characters, secrets masked."""
    causes = _causes(redactor(text))
    if not causes:
        return ""
    chosen = causes[-1]
    if len(causes) > 1 and _message(chosen) != _message(causes[-2]) and _message(chosen) in _message(causes[-2]):
        chosen = causes[-2]
    from airflow_flinkcompat.secrets.redact import shortened

    return shortened(chosen, _LIMIT)


def _message(cause: str) -> str:
    """The message of a cause, without the class of the exception in front of it."""
    head, separator, rest = cause.partition(": ")
    return rest if separator and re.fullmatch(r"\w+", head) else cause


def _causes(text: str) -> list[str]:
    """The messages of a chain of exceptions, outermost first: ``Class: message``."""
    causes: list[list[str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or _FRAME.match(line) or stripped.startswith(_NOISE):
            continue
        heading = _HEADING.match(stripped)
        if heading or not causes:
            causes.append([_shorten(heading.group(1)) if heading else stripped])
        else:
            causes[-1].append(stripped)
    return [re.sub(r"\s+", " ", _EXPECTING.sub("", "\n".join(lines))).strip() for lines in causes]


def _shorten(heading: str) -> str:
    nested = _NESTED.match(heading)
    if not nested:
        return heading
    rest = heading[nested.end() :].rstrip("] ").strip(": ")
    return f"{nested.group(1)}: {rest}" if rest else nested.group(1)


# Of Flink 2.3 and 1.20. The first is what the JobManager says where it maps a savepoint to a job.
_FAULTS = (
    (
        re.compile(
            "Failed to rollback to checkpoint/savepoint|Cannot map checkpoint/savepoint state|Max parallelism mismatch"
        ),
        StateFault.MISFIT,
    ),
    (re.compile("FileNotFound"), StateFault.GONE),
    (re.compile("EOFException|Unexpected magic number"), StateFault.DAMAGED),
)


def fault_of(text: str | None) -> StateFault | None:
    """The fault in the state that a failure's text reports; None if it reports none."""
    return next((fault for words, fault in _FAULTS if words.search(text or "")), None)


def refusal(message: str, reason: str) -> TargetError:
    """The error of a refused start, from the text of the refusal."""
    fault = fault_of(reason)
    return TargetError(message) if fault is None else StateRefused(message, fault)
