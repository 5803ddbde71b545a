"""Result of a rehearsal, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.deploy.rehearsal.restoring import Checked, Inconclusive, RestoreRunner
from airflow_flinkcompat.deploy.target import JobDescription, JobRef
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.savepoint.operator_parts import OperatorPart, part_by_name, part_by_state
from airflow_flinkcompat.savepoint.store import read_metadata

SCHEMA = "flinkcompat-rehearsal/1"
_NOT_PROOF = (
    "A restored job can still write wrong rows, so this is not a verdict on the change. Run `flinkcompat check`."
)


@dataclass(frozen=True)
class StoredOperator:
    """An operator of a savepoint; ``id``: 32 hex digits, ``name``: "" if the savepoint stores no names.

    ``by_state``: the part of the job that its state shows.
    """

    id: str
    name: str
    has_state: bool
    by_state: OperatorPart = OperatorPart.UNKNOWN

    @property
    def part(self) -> OperatorPart:
        """The part of the job, by a name of the planner, else by the state, else by another name."""
        known = part_by_name(self.name)
        return known if known is OperatorPart.QUERY or self.by_state is OperatorPart.UNKNOWN else self.by_state

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "has_state": self.has_state}


def read_snapshot(path: str) -> tuple[StoredOperator, ...]:
    """The operators of the savepoint in the folder ``path`` (path or URI). Raises SavepointUnreadable."""
    operators = read_metadata(path, headers=True).operators
    return tuple(StoredOperator(each.id, each.name, each.has_state, part_by_state(each)) for each in operators)


def with_names(stored: Iterable[StoredOperator], described: JobDescription | None) -> tuple[StoredOperator, ...]:
    """Name the operators of a job without a stored name, as in savepoints of Flink 1.20.

    They get the names of the job's vertices, which begin with their first operator.
    """
    heads = {each.id: each.name.partition(" -> ")[0] for each in (described.vertices if described else ())}
    return tuple(replace(each, name=each.name or heads.get(each.id, "")) for each in stored)


def with_state_of_the_query(operators: Iterable[StoredOperator]) -> tuple[StoredOperator, ...]:
    """Select the operators of the query that have state.

    Args:
        operators: Operators that a job with stand-ins for its sinks did not restore.

    Returns:
        The operators, without those of sinks.

    Raises:
        Inconclusive: An operator with state may belong to the query or to a sink.
    """
    held = [each for each in operators if each.has_state]
    if unknown := [each.id for each in held if each.part is OperatorPart.UNKNOWN]:
        raise Inconclusive(
            f"the savepoint stores no name of operator {', '.join(unknown)}, so it is unknown if its state, which was "
            "not restored, belongs to the query or to a sink. Savepoints of Flink 1.20 store no names"
        )
    return tuple(each for each in held if each.part is OperatorPart.QUERY)


def require_restored(
    runner: RestoreRunner, checked: Checked, job: JobRef, stored: Iterable[StoredOperator], hint: str = ""
) -> frozenset[str]:
    """Check that a job with stand-ins restored all state of the query, and return the ids that it skipped.

    ``stored`` are the operators of the savepoint. Raises Inconclusive, with ``hint``.
    """
    skipped = runner.left_aside(checked, job)
    held = [each for each in stored if each.id in skipped and each.has_state]
    lost = [each for each in held if each.id in checked.ids.ids] or with_state_of_the_query(held)
    if lost:
        names = ", ".join(each.name or each.id for each in lost)
        raise Inconclusive(
            f"with stand-ins for its sinks, {checked.version.source} does not restore all state of the query "
            f"({names}){hint}"
        )
    return skipped


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal.

    ``at`` is the phase of a refusal: ``submit``, ``restore``, ``run`` if the job failed directly after the restore, or
    ``rows`` if two versions of Flink computed different state from the same rows.
    ``reason`` is Flink's message, or the reason why the result is unknown.

    The following fields contain only stateful operators. A control run restores the old script. ``claimed`` are the
    operators whose state the new script restored. ``dropped`` are the operators whose state only the control run
    restored. ``unclaimed`` are the operators whose state the control run also skipped, because stand-ins replace the
    sinks. ``begun`` are new operators, which started empty. Each of these fields is None if the savepoint's metadata
    cannot be read.

    ``basis`` lists the evidence. ``left`` lists jobs and savepoints that could not be removed.
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
        shown: dict[str, Any] = {
            "finding": str(self.finding),
            "reason": redact(self.reason),
            "left": [redact(each) for each in self.left],
        }
        for name in ("claimed", "dropped", "unclaimed", "begun"):
            operators = getattr(self, name)
            shown[name] = None if operators is None else [each.to_dict() for each in operators]
        return {"schema": SCHEMA, **asdict(self), **shown}

    def lines(self) -> tuple[str, ...]:
        """The result of the rehearsal as text for people, with secrets masked."""
        lines = [f"REHEARSAL: {self._headline()}"]
        if self.reason:
            by_flink = self.finding is not RehearsalFinding.INCONCLUSIVE and self.at != "rows"
            lines.append(f"  {'Flink says' if by_flink else 'reason'}: {self.reason}")
        lines += _state("state restored, as in the control", self.claimed)
        lines += _state("state dropped that the control restored", self.dropped)
        lines += _state("stateful operators that started empty", self.begun)
        lines += _state("state that the control also skipped (sinks have stand-ins)", self.unclaimed)
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
                return "refused: the new script was restored from the live job's state, but failed at its first rows"
            case RehearsalFinding.REFUSED if self.at == "rows":
                return "wrong rows: the new line computes other state than the old line from the same rows"
            case RehearsalFinding.REFUSED:
                return f"refused at {self.at}: the new script does not start from the live job's state"
            case RehearsalFinding.RESTORED if self.begun:
                return "restored: the new script runs from the live job's state, but some operators started empty"
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
    """Add the stateful operators, grouped by restore outcome; ``own`` are the new script's operators."""
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
