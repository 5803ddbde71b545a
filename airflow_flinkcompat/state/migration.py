"""What of a job's state another job could keep, were the savepoint rewritten for it.

Whether a rewritten savepoint is read right was measured (``state-migration.md``, §2 and §4); a case that is not named
there is not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from airflow_flinkcompat.state.layout import LayoutUnknown, NamedState, StateField, StateLayout
from airflow_flinkcompat.state.model import JobState, StateKind, StateSpec

ROWS = frozenset({"row", "List<row>"})
"""Forms of values that are rewritten field by field."""
_HOLD_ROWS = frozenset({"deduplicate", "rank"})


class Keep(StrEnum):
    """What becomes of the state of one operator."""

    CARRIED = "carried as it is"
    MOVED = "carried to another identity"
    REWRITTEN = "rewritten field by field"
    BEGINS = "begins empty"
    DROPPED = "dropped"
    IMPOSSIBLE = "cannot be kept"


@dataclass(frozen=True)
class StateRewrite:
    """Where the parts of one named state come from.

    Attributes:
        new: The state as the new operator stores it.
        old: The state of the old operator that it is made of; None: it begins empty.
        fields: For each field of a stored value the place of the old field; None: it begins as Flink begins it.
    """

    new: NamedState
    old: NamedState | None
    fields: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class OperatorMigration:
    """What becomes of the state of one operator.

    Attributes:
        keep: In a word.
        old: What the old job kept, None where nothing stands for it.
        new: What the new job keeps, None where nothing does.
        reason: Why, as a clause.
        key: For each field of the new key the place of the old one, where the operator is rewritten.
        states: Where its states come from, where the operator is rewritten.
    """

    keep: Keep
    old: StateSpec | None
    new: StateSpec | None
    reason: str
    key: tuple[int, ...] = ()
    states: tuple[StateRewrite, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether anything of the old state goes on."""
        if self.keep is Keep.REWRITTEN:
            return any(source is not None for state in self.states for source in state.fields)
        return self.keep in (Keep.CARRIED, Keep.MOVED)

    @property
    def begun(self) -> tuple[str, ...]:
        """The metrics that begin now, in SQL's words."""
        fields = (
            state.new.value.fields[place].words
            for state in self.states
            for place, source in enumerate(state.fields)
            if source is None
        )
        return tuple(dict.fromkeys(fields))

    @property
    def lost(self) -> tuple[str, ...]:
        """The metrics that nothing of the new job keeps, in SQL's words."""
        fields = (
            field.words
            for state in self.states
            if state.old is not None
            for place, field in enumerate(state.old.value.fields)
            if place not in state.fields
        )
        return tuple(dict.fromkeys(fields))


@dataclass(frozen=True)
class Declarations:
    """What the declarations of tables say of state beside compiled plans, by the names that plans have for them.

    Attributes:
        any_columns: Sinks whose state goes on under other columns of their table.
        replaced: Sinks of another connector now, which does not know what the former one has stored.
        moved: Sources that read another place now, with the reason; stored positions are those of the old one.
        restarted: Sources that are to begin anew.
    """

    any_columns: Set[str] = frozenset()
    replaced: Set[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    restarted: Set[str] = frozenset()


class Kept(StrEnum):
    """How much a migration keeps; none also where no savepoint is written, as a state cannot be kept."""

    WHOLE = "whole"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True)
class Migration:
    """What of a job's state another job could keep: a line for each of its states, and of those that are dropped."""

    operators: tuple[OperatorMigration, ...]

    def of_savepoint(self, stored: Container[str]) -> Iterator[OperatorMigration]:
        """The lines of a savepoint.

        Args:
            stored: The ids of the operators that it holds state of.

        Yields:
            The lines, and one for each operator that commits for a sink which goes on, where it keeps something.
        """
        for line in self.operators:
            yield line
            if line.old is not None and line.new is not None:
                for old, new in zip(line.old.behind, line.new.behind, strict=False):
                    if old in stored:
                        yield replace(line, old=replace(line.old, id=old), new=replace(line.new, id=new))

    @property
    def refused(self) -> bool:
        """Whether no savepoint is written: a state cannot be kept, or what a sink has not committed would be lost."""
        return any(
            each.keep is Keep.IMPOSSIBLE
            or (each.keep is Keep.DROPPED and each.old is not None and each.old.kind is StateKind.SINK)
            for each in self.operators
        )

    @property
    def kept(self) -> Kept:
        """``whole``: no old state is lost, and nothing begins empty; ``none``: no state of an operator is kept."""
        if self.refused:
            return Kept.NONE
        if all(each.keeps and not each.begun and not each.lost for each in self.operators):
            return Kept.WHOLE
        stateful = [each for each in self.operators if each.old and each.old.kind is StateKind.OPERATOR]
        return Kept.PARTIAL if any(each.keeps for each in stateful) else Kept.NONE


def migration(old: JobState, new: JobState, declared: Declarations | None = None) -> Migration:
    """What of a job's state another job could keep.

    Args:
        old: What the deployed job keeps, told with the same table of meanings as ``new``.
        new: What the proposed job would keep.
        declared: What the tables' declarations say beside; None: nothing of them changed.

    Returns:
        A line for each state of the new job, then for each of the old one that nothing takes.
    """
    declared, left = declared or Declarations(), list(old.specs)
    found: dict[int, OperatorMigration] = {}
    # What means the same goes first, so that a rewriting takes nothing from it.
    told = partial(_moved, declared=declared), partial(_carried, declared=declared)
    for step in (*told, _rewritten, _impossible):
        for place, spec in enumerate(new.specs):
            if place not in found and (line := next(step(spec, left), None)) is not None:
                found[place] = line
                if line.old is not None:
                    left.remove(line.old)
    begun = (
        found.get(place) or OperatorMigration(Keep.BEGINS, None, spec, "nothing of the old job means the same")
        for place, spec in enumerate(new.specs)
    )
    dropped = (OperatorMigration(Keep.DROPPED, spec, None, "nothing of the new job means the same") for spec in left)
    return Migration((*begun, *dropped))


def _moved(new: StateSpec, left: Sequence[StateSpec], *, declared: Declarations) -> Iterator[OperatorMigration]:
    """A source that begins anew, or would go on from positions of another place."""
    if new.kind is not StateKind.POSITIONS or new.name not in {*declared.moved, *declared.restarted}:
        return
    for old in left:
        if old.kind is StateKind.POSITIONS and old.meaning == new.meaning:
            if new.name in declared.restarted:
                yield OperatorMigration(Keep.BEGINS, old, new, "it is to begin anew")
            yield OperatorMigration(Keep.IMPOSSIBLE, old, new, declared.moved.get(new.name, ""))


def _carried(new: StateSpec, left: Sequence[StateSpec], *, declared: Declarations) -> Iterator[OperatorMigration]:
    if new.kind is StateKind.SINK and new.name in declared.replaced:
        return
    written = new.kind is StateKind.SINK and new.layout is None and new.name in declared.any_columns
    for old in left:
        if old.kind is not new.kind or _family(old) != _family(new) or isinstance(old.layout, LayoutUnknown):
            continue
        if old.kind is StateKind.SINK and old.name != new.name:
            continue
        if (old.layout, old.meaning) == (new.layout, new.meaning) and (
            old.unmeasured == new.unmeasured or _aggregates(new) or new.kind is StateKind.POSITIONS or written
        ):
            moved = old.id != new.id
            yield OperatorMigration(Keep.MOVED if moved else Keep.CARRIED, old, new, "it means and stores the same")


def _rewritten(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Operators of the same rows, windows and keys: accumulators by what they compute, stored rows by their columns."""
    for old in _alike(new, left):
        made = _rewriting(old, new)
        if isinstance(made, OperatorMigration):
            yield made


def _impossible(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """The same operator that no rewriting keeps, or an operator of that kind that stores or means something else."""
    for old in _alike(new, left):
        made = _rewriting(old, new)
        if isinstance(made, str):
            yield OperatorMigration(Keep.IMPOSSIBLE, old, new, made)
    for old in left:
        if old.kind is StateKind.OPERATOR is new.kind and _family(old) == _family(new):
            yield OperatorMigration(Keep.IMPOSSIBLE, old, new, _apart(old, new))


def _apart(old: StateSpec, new: StateSpec) -> str:
    for layout in (old.layout, new.layout):
        if isinstance(layout, LayoutUnknown):
            return layout.reason
    if old.meaning != new.meaning:
        return "it is over other rows, windows or conditions"
    if Counter(_means(_layout(old).key)) != Counter(_means(_layout(new).key)):
        return "its keys are others"
    return "what it stores is laid out otherwise"


def _alike(new: StateSpec, left: Iterable[StateSpec]) -> list[StateSpec]:
    """Operators over the same rows, windows and keys, those that share most first."""
    if not (_aggregates(new) or _holds_rows(new)):
        return []
    found = [old for old in left if _family(old) == _family(new) and old.meaning == new.meaning]
    found = [old for old in found if _aggregates(old) or (_holds_rows(old) and old.unmeasured == new.unmeasured)]
    found = [old for old in found if Counter(_means(_layout(old).key)) == Counter(_means(_layout(new).key))]
    return sorted(found, key=lambda old: -len(set(_fields(_layout(old))) & set(_fields(_layout(new)))))


def _family(spec: StateSpec) -> str:
    return spec.name.removeprefix("global-") if spec.kind is StateKind.OPERATOR else ""


def _aggregates(spec: StateSpec) -> bool:
    return (
        _family(spec).endswith("aggregate")
        and _family(spec) != "over-aggregate"
        and isinstance(spec.layout, StateLayout)
    )


def _holds_rows(spec: StateSpec) -> bool:
    return _family(spec) in _HOLD_ROWS and isinstance(spec.layout, StateLayout)


def _layout(spec: StateSpec) -> StateLayout:
    assert isinstance(spec.layout, StateLayout)
    return spec.layout


def _means(fields: Iterable[StateField]) -> list[object]:
    return [field.meaning for field in fields]


def _fields(layout: StateLayout) -> list[StateField]:
    return [field for state in layout.states for field in state.value.fields]


def _rewriting(old: StateSpec, new: StateSpec) -> OperatorMigration | str:
    """How the states of one operator become those of the other, or why they cannot."""
    before, after = _layout(old), _layout(new)
    old_key = _means(before.key)
    key = tuple(old_key.index(field.meaning) for field in after.key)
    if any(before.key[place].type != field.type for place, field in zip(key, after.key, strict=True)):
        return "its keys are of other types"
    states = tuple(_state(state, before) for state in after.states)
    made = OperatorMigration(Keep.REWRITTEN, old, new, "it is over the same rows, windows and keys", key, states)
    refused = _rows_refused(made, before) if _holds_rows(new) else _refused(made, before, after)
    return refused or made


def _state(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields; a map or list beside a row of accumulators by what it is of."""
    if new.value.form in ROWS:
        alike = (state for state in before.states if (state.value.form, state.kind) == (new.value.form, new.kind))
        old = next((state for state in alike if state.map_key == new.map_key), None)
        if old is None:
            return StateRewrite(new, None, (None,) * len(new.value.fields))
        known = {field: place for place, field in enumerate(old.value.fields)}
        return StateRewrite(new, old, tuple(known.get(field) for field in new.value.fields))
    same = (state for state in before.states if (state.value, state.map_key) == (new.value, new.map_key))
    if new.value.fields:
        old_view = next((state for state in same if state.kind is new.kind), None)
    else:  # the windows that sessions are merged from
        old_view = next((state for state in before.states if state.name == new.name), None)
    places = range(len(new.value.fields))
    return StateRewrite(new, old_view, tuple(place if old_view else None for place in places))


def _rows_refused(made: OperatorMigration, before: StateLayout) -> str:
    """Why rewritten rows would be read wrong, "" where they would not."""
    if any(state.old is None for state in made.states) or len(made.states) != len(before.states):
        return "what it stores is laid out otherwise"
    begun = [
        field
        for state in made.states
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
        if place is None
    ]
    if retyped := {field.meaning for field in begun} & set(_means(_fields(before))):
        return f"{', '.join(field.words for field in begun if field.meaning in retyped)} is of another type"
    if begun and before.retracting:
        return f"rows that are taken back have {', '.join(made.begun)}, which the stored ones have not"
    if needed := [field.words for field in begun if field.begins is None]:
        return f"{', '.join(needed)} takes no NULL, and stored rows have nothing else there"
    return ""


def _refused(made: OperatorMigration, before: StateLayout, after: StateLayout) -> str:
    """Why a rewriting would be read wrong, "" where it would not."""
    if not made.begun:
        return ""
    if after.retracting:
        return f"{', '.join(made.begun)} would count rows as taken back that it never saw"
    if any(field.shared for field in (*_fields(before), *_fields(after))):
        return "a metric may be computed of fields that are kept and fields that begin now"
    kept = {field.words for field in _fields(before)}
    distinct = [words for words in made.begun if words in kept and words.startswith("distinct values")]
    return f"other metrics share the {distinct[0]}" if distinct else ""
