"""Findings of a rehearsal, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.savepoint.store import read_metadata

SCHEMA = "flinkcompat-rehearsal/1"
_NOT_PROOF = (
    "A job can restore and still write wrong rows: this is not a verdict on the change. Run `flinkcompat check`."
)


@dataclass(frozen=True)
class StoredOperator:
    """One operator of a savepoint. ``id``: 32 hex digits; ``name`` is empty if the savepoint stores none."""

    id: str
    name: str
    has_state: bool


def read_snapshot(path: str) -> tuple[StoredOperator, ...]:
    """The operators of the savepoint at ``path`` (path or URI of its folder). Raises SavepointUnreadable."""
    return tuple(StoredOperator(each.id, each.name, each.has_state) for each in read_metadata(path).operators)


@dataclass(frozen=True)
class Rehearsal:
    """The finding of one rehearsal.

    ``at``: the place of the refusal, ``submit`` or ``restore``, or ``run`` if it failed right after the restore.
    ``reason``: Flink's message, or why the result is unknown. Operators are those with state: ``claimed`` by the new
    script, ``dropped`` by it and not by the control, ``unclaimed`` by the control already (sinks), ``begun``: operators
    of the new script that found nothing. None: unknown without the savepoint's metadata. ``basis`` names the evidence;
    ``left``: jobs and savepoints that could not be cleaned up.
    """

    finding: RehearsalFinding
    reason: str = ""
    at: str = ""
    job_id: str = ""
    live: str = ""
    claimed: tuple[StoredOperator, ...] | None = None
    dropped: tuple[StoredOperator, ...] | None = None
    unclaimed: tuple[StoredOperator, ...] | None = None
    begun: tuple[StoredOperator, ...] | None = None
    basis: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        texts = {
            "finding": str(self.finding),
            "reason": redact(self.reason),
            "left": [redact(each) for each in self.left],
        }
        return {"schema": SCHEMA, **asdict(self), **texts}

    def lines(self) -> tuple[str, ...]:
        """The text for a person, secrets masked."""
        lines = [f"REHEARSAL: {self._headline()}"]
        if self.reason:
            lines.append(
                f"  {'reason' if self.finding is RehearsalFinding.INCONCLUSIVE else 'Flink says'}: {self.reason}"
            )
        lines += _state("state restored, as in the control", self.claimed)
        lines += _state("state dropped that the control restored", self.dropped)
        lines += _state("stateful operators that started empty", self.begun)
        lines += _state("skipped by the control too (sinks are stand-ins)", self.unclaimed)
        if self.basis:
            lines.append(f"  based on: {'; '.join(self.basis)}")
        if self.live:
            lines.append(f"  live job {self.job_id}: {self.live}")
        lines += [f"  LEFT BEHIND: {each}" for each in self.left]
        if self.finding is RehearsalFinding.RESTORED:
            lines.append(_NOT_PROOF)
        return tuple(map(redact, lines))

    def _headline(self) -> str:
        match self.finding:
            case RehearsalFinding.REFUSED if self.at == "run":
                return "refused: the new script was restored from the live job's state and failed at its first rows"
            case RehearsalFinding.REFUSED:
                return f"refused at {self.at}: the new script does not start from the live job's state"
            case RehearsalFinding.RESTORED if self.begun:
                return "restored: the new script runs from the live job's state, and some operators started empty"
            case RehearsalFinding.RESTORED:
                return "restored: the new script runs from the live job's state"
            case _:
                return "could not tell"


def with_states(
    found: Rehearsal,
    saved: Iterable[StoredOperator] | None,
    by_control: frozenset[str],
    by_new: frozenset[str],
    own: Iterable[StoredOperator] | None,
) -> Rehearsal:
    """Add the operators that hold state, sorted by outcome; ``own`` are those of the new script."""
    if saved is None:
        return found
    held = [each for each in saved if each.has_state]
    known = {each.id for each in held}
    return replace(
        found,
        claimed=tuple(each for each in held if each.id not in by_new),
        dropped=tuple(each for each in held if each.id in by_new - by_control),
        unclaimed=tuple(each for each in held if each.id in by_control),
        begun=None if own is None else tuple(each for each in own if each.has_state and each.id not in known),
    )


def _state(title: str, operators: Iterable[StoredOperator] | None) -> list[str]:
    found = [f"    {operator.name or 'operator'} ({operator.id[:8]})" for operator in operators or ()]
    return [f"  {title}:", *found] if found else []
