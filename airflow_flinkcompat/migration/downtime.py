"""Expected downtime of a migration: stop, rewriting and start of a job, by the size of its state.

The rates are figures of ``python -m dev.benchmarks migrate`` and ``migration-downtime`` on one machine with two cores
and one local disk. The documentation shows the same rates ("Downtime" in ``docs/state-migration-reference.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.migration.entries import key_change
from airflow_flinkcompat.model.text import size_text
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form
from airflow_flinkcompat.savepoint.compiled import COMPILED
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.store import read_metadata

_SOURCE = "The rates were measured on 2 cores with a local disk; other machines, stores and state backends differ."


class Rewriting(StrEnum):
    """Kinds of change to an operator's state, which are written and read back at different rates."""

    COPIED = "copied as a whole"
    FIXED = "rows of fixed length"
    TEXTS = "rows with texts"
    MOVED = "keys that move to other key groups"
    MERGED = "merged keys, windows or rows"


REWRITE_RATES: Mapping[Rewriting, float] = {
    Rewriting.COPIED: 230,
    Rewriting.FIXED: 160,
    Rewriting.TEXTS: 130,
    Rewriting.MOVED: 100,
    Rewriting.MERGED: 45,
}
"""MB of the old savepoint that one core writes and reads back in a second, with compiled loops."""
PLAIN_RATES: Mapping[Rewriting, float] = {
    Rewriting.COPIED: 10,
    Rewriting.FIXED: 4,
    Rewriting.TEXTS: 3,
    Rewriting.MOVED: 2,
    Rewriting.MERGED: 1,
}
"""The same without numba."""
STOP_SECONDS, STOP_RATE = 1, 60
"""Seconds of a stop without state, and MB that a subtask stores in a second."""
START_SECONDS, START_RATE = 2, 30
"""Seconds of a start without state, and MB that a subtask restores in a second, if compressed."""
_MB = 1_000_000


@dataclass(frozen=True)
class StateSize:
    """State of an operator or a vertex: number of bytes, and of the subtasks that share them."""

    bytes: int
    subtasks: int
    rewriting: Rewriting


@dataclass(frozen=True)
class Downtime:
    """Expected time without a running job: bytes of state, and seconds of each step."""

    bytes: int
    stop: float
    rewrite: float
    rehearse: float
    start: float

    @classmethod
    def of(cls, sizes: Iterable[StateSize], *, stop: float | None = None, rehearsed: float | None = None) -> Downtime:
        """Expected downtime. ``stop``: measured seconds.

        ``rehearsed``: seconds for which a rehearsal observes its job, or None without a rehearsal.
        """
        sizes = tuple(sizes)
        rates = REWRITE_RATES if COMPILED else PLAIN_RATES
        of_slot = sum(each.bytes / max(1, each.subtasks) for each in sizes) / _MB
        stop = STOP_SECONDS + of_slot / STOP_RATE if stop is None else stop
        start = START_SECONDS + of_slot / START_RATE
        rewrite = sum(each.bytes / _MB / rates[each.rewriting] for each in sizes)
        rehearse = 0 if rehearsed is None else start + rehearsed + stop
        return cls(sum(each.bytes for each in sizes), stop, rewrite, rehearse, start)

    def __str__(self) -> str:
        rehearse = f"rehearse {_about(self.rehearse)}, " if self.rehearse else ""
        steps = (
            f"stop {_about(self.stop)}, rewrite and verify {_about(self.rewrite)}, {rehearse}start {_about(self.start)}"
        )
        whole = _about(self.stop + self.rewrite + self.rehearse + self.start)
        return f"Expected downtime: about {whole} for {size_text(self.bytes)} of state ({steps}). {_SOURCE}"

    def to_dict(self) -> dict[str, float]:
        """Convert to JSON values."""
        seconds = {"stop": self.stop, "rewrite": self.rewrite, "rehearse": self.rehearse, "start": self.start}
        return {"bytes": self.bytes, **{f"{step}_seconds": round(found, 1) for step, found in seconds.items()}}


def expected_downtime(
    made: Migration, savepoint: str, *, stop: float | None = None, rehearsed: float | None = None
) -> Downtime:
    """Expected downtime, by the metadata of a savepoint; without the computation of state from history."""
    stored = {each.id: each for each in read_metadata(savepoint).operators}
    return Downtime.of(
        (
            _size_of(line, stored[line.old.id])
            for line in made.of_savepoint(stored)
            if line.new is not None and line.old is not None and line.old.id in stored
        ),
        stop=stop,
        rehearsed=rehearsed,
    )


def _size_of(line: OperatorMigration, stored: OperatorState) -> StateSize:
    files = [each.keyed.handle.size for each in stored.subtasks or () if each.keyed and each.keyed.handle]
    return StateSize(sum(files), len(files), _rewriting(line))


def _rewriting(line: OperatorMigration) -> Rewriting:
    if line.effect is not RestoreEffect.REWRITTEN:
        return Rewriting.COPIED
    if line.merges or line.windows is not None or any(state.adds_counts for state in line.states):
        return Rewriting.MERGED
    if key_change(line) is not None:
        return Rewriting.MOVED
    forms = {field_form(field.type) for state in line.states for field in state.new.row}
    return Rewriting.FIXED if forms <= {FieldForm.WORD} else Rewriting.TEXTS


def _about(seconds: float) -> str:
    """A rounded duration for users."""
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    if seconds < 100:
        return f"{5 * round(seconds / 5)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
