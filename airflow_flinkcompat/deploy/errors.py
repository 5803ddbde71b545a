"""One-line errors of deployments: secrets are masked and stack traces condensed to the root cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

_LIMIT = 600

_FRAME = re.compile(r"^\s*(at\s+\S+\(.*\)|\.\.\. \d+ (more|common frames omitted))\s*$")
# A line with only a class name begins an error only if the class is an exception. Flink also lists factories,
# one class name a line.
_HEADING = re.compile(
    r"^(?:Caused by:\s*)?(\[?(?:[a-z][\w$]*\.)+[A-Z][\w$.]*(?::.*|(?:(?<=Exception)|(?<=Error)|(?<=Throwable))$))"
)
# Exceptions nested in the message of another exception. Only the innermost class is informative.
_NESTED = re.compile(r"^(?:\[?(?:[a-z][\w$]*\.)+(?:[\w.]+\$)?([A-Z]\w*)(?::\s+|(?=:?\s*$)))+")
_NOISE = ("<Exception on server side:", "End of exception on server side>", "Internal server error.")
# The end of a parser error, which lists every token that the parser expected.
_EXPECTING = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)


class DeployError(Exception):
    """A deployment step failed. The text is one readable message with secrets masked."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))

    @property
    def unanswered(self) -> bool:
        """True if no response arrived, so that the request may still take effect."""
        return False


class DeployRefused(DeployError):
    """A refusal before any change: the running job or the ledger differs from the checked state."""


class StateNotKept(DeployRefused):
    """A migration of the job's state would keep less state than was decided, or cannot be written."""


class TargetError(DeployError):
    """The target refused a script, or an operation of the target on a job failed."""


class SubmissionUnknown(TargetError):
    """No complete answer to a statement or a start arrived, so its outcome is unknown."""

    @property
    def unanswered(self) -> bool:
        return True


class StateFault(StrEnum):
    """Reason why a target refuses to start a job from a savepoint or checkpoint.

    ``MISFIT``: the state does not fit the job. ``GONE``: the files were moved or deleted. ``DAMAGED``: the files cannot
    be read.
    """

    MISFIT = "misfit"
    GONE = "gone"
    DAMAGED = "damaged"


class StateRefused(TargetError):
    """The target refuses to start the job from a savepoint or checkpoint, for the reason in ``fault``."""

    def __init__(self, message: str, fault: StateFault) -> None:
        super().__init__(message)
        self.fault = fault


class SnapshotGone(TargetError):
    """A savepoint was moved or deleted."""


class StopFailed(TargetError):
    """The target reports that a stop failed and left no savepoint."""


class SavepointFailed(TargetError):
    """The target reports that a savepoint of a running job failed or was never requested."""


class CannotRehearse(DeployError):
    """The job cannot be rehearsed without the use of resources of the live job."""


class PlansUnavailable(DeployError):
    """The compiled plans of a script are unavailable. The error message names the reason and the remedy."""


def redact(text: str) -> str:
    """``text`` with everything that looks like a secret masked."""
    # Import on first use. Readers of the ledger, such as triggers, must not load the SQL parser.
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
    """The message of an exception without its class name."""
    head, separator, rest = cause.partition(": ")
    return rest if separator and re.fullmatch(r"\w+", head) else cause


def _causes(text: str) -> list[str]:
    """The exceptions of a chain as ``Class: message``, outermost first."""
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


# Texts in errors of Flink 2.3 and 1.20. The JobManager reports MISFIT when it maps a savepoint to a job.
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
    """The state fault that Flink's error text reports, or None."""
    return next((fault for words, fault in _FAULTS if words.search(text or "")), None)


def refusal(message: str, reason: str) -> TargetError:
    """The error of a refused start: StateRefused if ``reason`` reports a fault of the state."""
    fault = fault_of(reason)
    return TargetError(message) if fault is None else StateRefused(message, fault)
