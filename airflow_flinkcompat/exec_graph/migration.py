"""Migration of a job's state to a changed job by a rewritten savepoint.

Restores proved that Flink reads these rewritten savepoints (``docs/state-migration-reference.md``, "What is proven"). A
migration only keeps a kind of state if a restore of that kind returned the right rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import CallPart, StateField, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.matching import (
    aggregates,
    family,
    key_meanings,
    known_layout,
    matching_operators,
    only_windows_differ,
    other_condition,
    same_properties,
    shared_fields,
    states_for,
)
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes import FAMILIES
from airflow_flinkcompat.exec_graph.nodes.aggregate import merge_refusal
from airflow_flinkcompat.exec_graph.rewriting import (
    StateRewrite,
    key_places,
    mixing_refusal,
    new_fields,
    reused_fields,
    stored_fields,
    words,
)
from airflow_flinkcompat.exec_graph.windows import SlicedWindow

SAMPLED_KEYS = 20
"""Default number of keys per operator that a migration also computes in plain Python, as a check."""


class Accept(StrEnum):
    """Consequences of a migration that a user must accept."""

    DROPPED = "dropped"
    """State is lost."""
    FILTER = "filter"
    """Stored state is kept although the operator reads different rows from now on."""
    SOURCE_MOVED = "source-moved"
    """A source restarts, because its stored positions belong to a place that it may no longer read."""
    UNSEEN = "unseen"
    """A change that neither plans nor declarations show may affect the state in an unknown way."""
    HISTORY = "history"
    """Stored state is kept although it disagrees with history. New fields are computed from history."""


_EQUAL, _SAME = "its meaning and layout are unchanged", "it has the same rows, windows and keys"
UNREMARKABLE = frozenset({_EQUAL, _SAME})
"""Reasons to keep state. Reports do not mention these reasons."""
NEEDLESS = "the new version plans the temporal join after it directly after the source, with equal results"
"""Reason to drop state without a loss."""
OTHER_CONDITION = "its condition changed, but the stored state comes from rows that met the former condition"
"""Reason to keep state, if the user accepts :attr:`Accept.FILTER`."""


@dataclass(frozen=True)
class OperatorMigration:
    """The effect of a migration on the state of one operator.

    Attributes:
        effect: The effect on the state.
        old: The state in the old job; None if the old job has no such state.
        new: The state in the new job; None if the new job has no such state.
        reason: The reason for the effect, as a clause.
        key: For a rewritten operator, the position in the old key of each field of the new key.
        states: For a rewritten operator, the origin of each of its states.
        accepted: The exception that the user accepted so that the state is kept; None if none was needed.
        taken_by_other_operators: The fields of the old state that other new operators reuse, if several share the
            old state.
        from_history: True if fields without an old value are computed from history.
        below: The ids of the upstream operators in the new job.
    """

    effect: RestoreEffect
    old: StateSpec | None
    new: StateSpec | None
    reason: str
    key: tuple[int, ...] = ()
    states: tuple[StateRewrite, ...] = ()
    accepted: Accept | None = None
    taken_by_other_operators: Set[StateField] = frozenset()
    from_history: bool = False
    below: Set[str] = field(default=frozenset(), compare=False)

    @property
    def keeps(self) -> bool:
        """True if some old state is kept, or if history replaces all of it."""
        if self.effect is RestoreEffect.REWRITTEN:
            return any(source is not None for state in self.states for source in state.fields)
        return self.effect in (RestoreEffect.RIGHT, RestoreEffect.MOVED, RestoreEffect.COMPUTED)

    @property
    def loses_nothing(self) -> bool:
        """True if the results of the new job do not depend on any state that is lost."""
        return self.reason == NEEDLESS or (self.keeps and not (self.new_fields or self.dropped_fields or self.accepted))

    @property
    def new_fields(self) -> tuple[str, ...]:
        """SQL texts of the metrics that begin empty."""
        return () if self.from_history else words(new_fields(self.states))

    @property
    def _null_fields(self) -> tuple[StateField, ...]:
        """The new columns in stored rows, whose values are NULL."""
        if self.from_history or self.new is None or aggregates(self.new):
            return ()
        return tuple(field for field in new_fields(self.states) if not isinstance(field.meaning, CallPart))

    @property
    def null_columns(self) -> tuple[str, ...]:
        """SQL texts of the new columns, which are NULL in stored rows."""
        return words(self._null_fields)

    @property
    def null_outputs(self) -> tuple[str, ...]:
        """The sink columns that are computed from NULL columns of stored rows."""
        null = {field.meaning for field in self._null_fields}
        return tuple(sorted({name for name, of in self.new.outputs if of & null})) if self.new else ()

    @property
    def computed(self) -> tuple[str, ...]:
        """SQL texts of the metrics that are computed from history."""
        return words(field for field in new_fields(self.states) if not field.hidden) if self.from_history else ()

    @property
    def stored_windows_are_open(self) -> bool:
        """True if the old state contains only windows that were not emitted yet.

        Legacy group windows store no watermark, and retract results that they emitted.
        """
        beside = self.effect is RestoreEffect.REWRITTEN and self.from_history
        return beside and self.new is not None and self.new.name == ExecKind.GROUP_WINDOW_AGGREGATE

    @property
    def dropped_fields(self) -> tuple[str, ...]:
        """SQL texts of the metrics and keys that the new job drops."""
        lost = (
            field
            for state in self.states
            for field in state.dropped_fields
            if field not in self.taken_by_other_operators
        )
        return words((*lost, *self.dropped_keys))

    @property
    def merges(self) -> bool:
        """True if several old keys, or several slices of a window, may become one."""
        old = self.old.windows if self.old is not None else None
        return bool(self.dropped_keys) or (self.windows is not None and old is not None and self.windows.merges(old))

    @property
    def windows(self) -> SlicedWindow | None:
        """The new windows of the stored state; None if they are unchanged."""
        if self.effect is not RestoreEffect.REWRITTEN or self.old is None or self.new is None:
            return None
        return self.new.windows if self.old.windows != self.new.windows else None

    @property
    def dropped_keys(self) -> tuple[StateField, ...]:
        """The fields of the old key that the new key lacks."""
        if (
            self.effect is not RestoreEffect.REWRITTEN
            or self.old is None
            or not isinstance(self.old.layout, StateLayout)
        ):
            return ()
        return tuple(field for place, field in enumerate(self.old.layout.key) if place not in self.key)


@dataclass(frozen=True)
class DdlEffects:
    """State effects of table declarations that compiled plans do not show, by table name in the plan.

    Attributes:
        column_independent_sinks: Sinks whose state remains valid if the columns of their table change.
        replaced: Sinks with a new connector, which cannot read the state of the former connector.
        moved: Sources that now read a different place, with the reason. Stored positions belong to the old place.
        restarted: Sources that start without stored positions.
        converted: The reason why stored values differ from newly computed values; "" if they do not.
        stored_otherwise: Operators whose stored form differs in the new version of Flink, with the facts that are
        known.
    """

    column_independent_sinks: Set[str] = frozenset()
    replaced: Set[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    restarted: Set[str] = frozenset()
    converted: str = ""
    stored_otherwise: Mapping[str, str] = field(default_factory=dict)


class MigrationExtent(StrEnum):
    """The share of the state that a migration keeps."""

    WHOLE = "whole"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True)
class Migration:
    """The effects of a migration: one line (:class:`OperatorMigration`) for each state of both jobs."""

    operators: tuple[OperatorMigration, ...]

    def of_savepoint(self, stored: Container[str]) -> Iterator[OperatorMigration]:
        """All lines, plus a line for each further operator of a sink if the savepoint stores its state."""
        for line in self.operators:
            yield line
            if line.old is not None and line.new is not None:
                for old, new in zip(line.old.further_ids, line.new.further_ids, strict=False):
                    if old in stored:
                        yield replace(line, old=replace(line.old, id=old), new=replace(line.new, id=new))

    @property
    def refused(self) -> bool:
        """True if no savepoint is written, because some state cannot be kept or committed."""
        return any(
            each.effect is RestoreEffect.NOT_MIGRATABLE
            or (each.effect is RestoreEffect.DROPPED and each.old is not None and each.old.kind is StateKind.SINK)
            for each in self.operators
        )

    @property
    def kept(self) -> MigrationExtent:
        """The share of the old state that is kept.

        ``whole`` means that no old state is lost and no new state begins empty. Source positions only matter if no
        operator of either job keeps state.
        """
        if self.refused:
            return MigrationExtent.NONE
        if all(each.loses_nothing for each in self.operators):
            return MigrationExtent.WHOLE
        kept: dict[StateKind, list[bool]] = {kind: [] for kind in StateKind}
        for each in self.operators:
            if (spec := each.old or each.new) is not None:
                kept[spec.kind].append(each.keeps)
        return (
            MigrationExtent.PARTIAL
            if any(kept[StateKind.OPERATOR] or kept[StateKind.POSITIONS])
            else MigrationExtent.NONE
        )


def migration(
    old: ExecGraph, new: ExecGraph, declared: DdlEffects | None = None, accepted: Container[Accept] = ()
) -> Migration:
    """Decide for each state of two jobs whether and how a migration keeps it."""
    declared, left = declared or DdlEffects(), list(old.specs)
    found: dict[int, OperatorMigration] = {}
    # Assign state with the same meaning first, before a rewrite can use this state.
    carried: _Step = partial(_carried, declared=declared)
    begin_anew = declared.restarted | (declared.moved.keys() if Accept.SOURCE_MOVED in accepted else set())
    moved: _Step = partial(_moved, declared=declared, begin_anew=begin_anew)
    converted: _Step = partial(_converted, declared=declared)
    first_steps: tuple[_Step, ...] = (converted, partial(_read_twice, jobs=(old, new)), moved, carried)
    to_rewrite: tuple[_Step, ...] = (_rewritten, _merged, _windowed)
    on_request = (_refiltered,) if Accept.FILTER in accepted else ()
    aggregations = list(filter(aggregates, old.specs))
    steps: tuple[tuple[_Step, Sequence[StateSpec]], ...] = (
        *((step, left) for step in (*first_steps, *to_rewrite)),
        # If queries no longer share an operator, each new operator resumes from the shared state.
        *((partial(_shared, step=step), aggregations) for step in (carried, *to_rewrite)),
        *((step, left) for step in (*on_request, _impossible)),
    )
    sinks = tuple(frozenset().union(*(spec.sinks for spec in job.specs)) for job in (old, new))
    for step, pool in steps:
        for place, spec in enumerate(new.specs):
            if place in found:
                continue
            if (line := next(step(spec, states_for(spec, pool, sinks=sinks)), None)) is not None:
                found[place] = line
                if line.old in left:
                    left.remove(line.old)
    empty = {spec.id for place, spec in enumerate(new.specs) if place not in found and spec.kind is StateKind.OPERATOR}
    found = {place: _refused_above_empty(line, found.values(), new, empty) for place, line in found.items()}
    begun = [found.get(place) or _new_state_line(spec, new, found.values()) for place, spec in enumerate(new.specs)]
    begun = [replace(line, below=_upstream(line.new.id, new)) if line.new is not None else line for line in begun]
    shared = Counter(line.old for line in begun if line.old is not None and line.old.kind is StateKind.OPERATOR)
    begun = [
        replace(
            line,
            taken_by_other_operators=_kept_fields(each for each in begun if each is not line and each.old == line.old),
        )
        if line.old is not None and shared[line.old] > 1
        else line
        for line in begun
    ]
    dropped = (OperatorMigration(RestoreEffect.DROPPED, spec, None, _reason_to_drop(spec, begun)) for spec in left)
    return Migration((*begun, *dropped))


def _reason_to_drop(spec: StateSpec, lines: Iterable[OperatorMigration]) -> str:
    """Reason to drop a state: a temporal join resumes without it, or no new operator uses it."""
    joins = (line for line in lines if line.keeps and line.old is not None)
    if any(_completes_versions(spec, line.old) for line in joins if line.old is not None):
        return NEEDLESS
    return "no state of the new job has the same meaning"


def _completes_versions(spec: StateSpec, join: StateSpec) -> bool:
    """True if a ChangelogNormalize is read only by the versioned side of a temporal join."""
    if (spec.name, join.name) != (ExecKind.CHANGELOG_NORMALIZE, ExecKind.TEMPORAL_JOIN):
        return False
    if spec.compiled is None or join.compiled is None:
        return False
    plan, place = join.compiled
    below = plan.nodes[place].inputs[1]
    while below != spec.compiled[1]:
        node = plan.nodes[below]
        if len(node.inputs) != 1 or len(plan.readers[below]) != 1 or Trait.STATELESS not in node.kind.traits:
            return False
        below = node.inputs[0]
    return len(plan.readers[below]) == 1


def with_history(found: Migration, computable: Callable[[StateSpec], bool]) -> Migration:
    """Replace empty and unmigratable states by states that are computed from history, if possible."""
    made = {place: _with_history(line, computable) for place, line in enumerate(found.operators)}
    while True:
        partial = {line.new.id for line in made.values() if line.new and _has_partial_history(line)}
        above = [place for place, line in made.items() if line.from_history and line.below & partial]
        if not above:
            return Migration(tuple(made.values()))
        made |= {place: found.operators[place] for place in above}


def _has_partial_history(line: OperatorMigration) -> bool:
    """True if an operator's state lacks some rows of its history."""
    if line.new is None or line.new.kind is not StateKind.OPERATOR:
        return False
    return line.effect is RestoreEffect.EMPTY or bool(line.new_fields or line.accepted)


def _with_history(line: OperatorMigration, computable: Callable[[StateSpec], bool]) -> OperatorMigration:
    new = line.new
    if new is None or new.kind is not StateKind.OPERATOR or not isinstance(new.layout, StateLayout):
        return line
    rewritten = line.effect is RestoreEffect.REWRITTEN
    lacks = (
        line.new_fields or line.accepted
        if rewritten
        else line.effect in (RestoreEffect.EMPTY, RestoreEffect.NOT_MIGRATABLE)
    )
    if not lacks or not computable(new):
        return line
    if rewritten and line.keeps and aggregates(new) and not (line.merges or line.accepted):
        return replace(line, from_history=True)
    states = tuple(StateRewrite(state, None, (None,) * len(state.row)) for state in new.layout.states)
    return OperatorMigration(RestoreEffect.COMPUTED, line.old, new, "", states=states, from_history=True)


def _kept_fields(lines: Iterable[OperatorMigration]) -> frozenset[StateField]:
    """The fields of old states that a migration with these lines keeps."""
    found: set[StateField] = set()
    for line in lines:
        if line.effect is RestoreEffect.REWRITTEN:
            found.update(field for state in line.states for field in state.used)
        elif line.keeps and line.old is not None and isinstance(line.old.layout, StateLayout):
            found.update(stored_fields(line.old.layout))
    return frozenset(found)


_GOES_ON = frozenset({RestoreEffect.RIGHT, RestoreEffect.MOVED, RestoreEffect.REWRITTEN})


def _upstream(id: str, job: ExecGraph) -> frozenset[str]:
    return frozenset(graph.ids[place] for graph in job.graphs for place in graph.upstream_of(id))


def _below(spec: StateSpec, job: ExecGraph, lines: Iterable[OperatorMigration]) -> list[OperatorMigration]:
    """The lines of those upstream operators whose state a migration keeps."""
    below = _upstream(spec.id, job)
    going_on = (line for line in lines if line.effect in _GOES_ON and line.new is not None)
    return [line for line in going_on if line.new and line.new.kind is StateKind.OPERATOR and line.new.id in below]


def _refused_above_empty(
    line: OperatorMigration, lines: Iterable[OperatorMigration], job: ExecGraph, empty: Set[str]
) -> OperatorMigration:
    """Refuse to keep state if an upstream operator begins empty, or restarts a metric in that state.

    The operators in ``empty`` begin without state, and therefore emit their former results again.
    """
    if line.new is None or line.effect not in _GOES_ON or line.new.kind is StateKind.POSITIONS:
        return line
    below = _upstream(line.new.id, job)
    if line.new.layout is not None and (begins := [spec.name for spec in job.specs if spec.id in below & empty]):
        reason = f"it stores results of the upstream operator {begins[0]}, which begins empty"
        return OperatorMigration(RestoreEffect.NOT_MIGRATABLE, line.old, line.new, reason)
    for each in _below(line.new, job, lines):
        if anew := {*each.new_fields} & {*each.dropped_fields}:
            reason = f"it stores {', '.join(sorted(anew))}, which an upstream operator restarts"
            return OperatorMigration(RestoreEffect.NOT_MIGRATABLE, line.old, line.new, reason)
    return line


def _new_state_line(spec: StateSpec, job: ExecGraph, lines: Iterable[OperatorMigration]) -> OperatorMigration:
    """The line of a new state without an old state: empty, or refused if it would miss past rows.

    A resumed operator never emits its past rows again, but may retract them (measured: rj-third-add). A window emits
    all its rows at its end, so a downstream window of the same length misses no row.
    """
    below = _below(spec, job, lines)
    kinds = {graph.nodes[place].kind for graph in job.graphs for place in graph.upstream_of(spec.id)}
    stores = spec.kind is StateKind.OPERATOR or spec.layout is not None
    at_their_end = Trait.OF_WINDOWS in ExecKind(spec.name).traits and ExecKind.WINDOW_TABLE_FUNCTION not in kinds
    at_their_end &= all(each.new and family(each.new).endswith(ExecKind.WINDOW_AGGREGATE) for each in below)
    if stores and below and not at_their_end:
        name = below[0].new.name if below[0].new else ""
        reason = f"it would begin empty, without the rows that {name} emitted before"
        return OperatorMigration(RestoreEffect.NOT_MIGRATABLE, None, spec, reason)
    return OperatorMigration(RestoreEffect.EMPTY, None, spec, "no state of the old job has the same meaning")


_ANEW = (
    "it starts at the position that its options set: rows that it reads again count twice in the kept state downstream"
)
_Step = Callable[[StateSpec, Sequence[StateSpec]], Iterator[OperatorMigration]]


def _moved(
    new: StateSpec, left: Sequence[StateSpec], *, declared: DdlEffects, begin_anew: Set[str]
) -> Iterator[OperatorMigration]:
    """A source that restarts, or whose stored positions belong to a different place."""
    if new.kind is not StateKind.POSITIONS or new.name not in begin_anew | declared.moved.keys():
        return
    for old in left:
        if old.kind is StateKind.POSITIONS and old.meaning == new.meaning:
            if new.name in begin_anew:
                yield OperatorMigration(RestoreEffect.EMPTY, old, new, _ANEW)
            yield OperatorMigration(RestoreEffect.NOT_MIGRATABLE, old, new, declared.moved.get(new.name, ""))


def _read_twice(
    new: StateSpec, left: Sequence[StateSpec], *, jobs: tuple[ExecGraph, ExecGraph]
) -> Iterator[OperatorMigration]:
    """Sources of a table that is read several times; only operator ids distinguish their positions."""
    if new.kind is not StateKind.POSITIONS:
        return
    alike = [
        [spec for spec in job.specs if spec.kind is StateKind.POSITIONS and spec.meaning == new.meaning] for job in jobs
    ]
    old_readers, new_readers = ({spec.id: spec.reads for spec in specs} for specs in alike)
    if max(map(len, alike)) > 1 and old_readers != new_readers:
        reason = "its table is read several times, so stored positions cannot be assigned to sources"
        yield OperatorMigration(
            RestoreEffect.NOT_MIGRATABLE, next((old for old in left if old in alike[0]), None), new, reason
        )


def _converted(new: StateSpec, left: Sequence[StateSpec], *, declared: DdlEffects) -> Iterator[OperatorMigration]:
    """State whose values are now computed or stored differently (measured: zoned-group-other-zone)."""
    reason = declared.converted or declared.stored_otherwise.get(new.name, "")
    if reason and new.layout is not None:
        for old in left:
            if old.kind is new.kind and family(old) == family(new):
                yield OperatorMigration(RestoreEffect.NOT_MIGRATABLE, old, new, reason)


def _carried(new: StateSpec, left: Sequence[StateSpec], *, declared: DdlEffects) -> Iterator[OperatorMigration]:
    if new.kind is StateKind.SINK and new.name in declared.replaced:
        return
    written = new.kind is StateKind.SINK and new.layout is None and new.name in declared.column_independent_sinks
    # If several sources read one table, each resumes from the positions with its id.
    for old in sorted(left, key=lambda old: old.id != new.id) if new.kind is StateKind.POSITIONS else left:
        if old.kind is not new.kind or family(old) != family(new):
            continue
        if (old.layout, old.meaning) == (new.layout, new.meaning) and (
            same_properties(old, new) or aggregates(new) or new.kind is StateKind.POSITIONS or written
        ):
            moved = old.id != new.id
            yield OperatorMigration(RestoreEffect.MOVED if moved else RestoreEffect.RIGHT, old, new, _EQUAL)


def _rewritten(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Operators with the same rows, windows and keys, rewritten field by field."""
    for old in matching_operators(new, left, Counter.__eq__):
        made = _rewriting(old, new)
        if isinstance(made, OperatorMigration):
            yield made


def _merged(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Aggregations that lose a key: accumulators of keys that become equal are merged."""
    for old in matching_operators(new, left, Counter.__lt__) if aggregates(new) else ():
        made = _rewriting(old, new)
        if isinstance(made, OperatorMigration) and not any(state.new.row for state in made.states):
            # Flink emits a result only when it changes. A result without a metric never changes, and the sink
            # contains none of the merged keys.
            yield OperatorMigration(
                RestoreEffect.NOT_MIGRATABLE,
                old,
                new,
                "it has no metric, so Flink would emit no result for merged keys",
            )
        elif isinstance(made, OperatorMigration):
            yield made


def _refiltered(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Aggregations with the same windows and keys, but a different condition on their rows."""
    for old in left:
        if other_condition(old, new):
            made = _rewriting(old, new)
            if isinstance(made, OperatorMigration):
                yield replace(made, reason=OTHER_CONDITION, accepted=Accept.FILTER)


def _shared(new: StateSpec, left: Sequence[StateSpec], *, step: _Step) -> Iterator[OperatorMigration]:
    """Aggregations that share one old state and keep at least one of its metrics.

    The sinks of these aggregations contain the former results. A new sink would never receive results for keys without
    new rows.
    """
    for line in step(new, [old for old in left if new.sinks <= old.sinks]):
        if line.effect is not RestoreEffect.REWRITTEN or not all(field.hidden for field in reused_fields(line.states)):
            yield line


def _windowed(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Aggregations with the same rows and keys, whose windows consist of the old slices."""
    alike = [old for old in left if only_windows_differ(old, new)]
    for old in sorted(alike, key=lambda old: -shared_fields(old, new)):
        made = _in_other_windows(old, new)
        if isinstance(made, OperatorMigration):
            yield made


def _in_other_windows(old: StateSpec, new: StateSpec) -> OperatorMigration | str:
    """Rewrite an aggregation for different windows, or return the reason why that is impossible."""
    assert old.windows is not None
    assert new.windows is not None
    if known_layout(old).retracting or known_layout(new).retracting:
        return "its windows changed, and it receives retractions"
    return new.windows.unfit(old.windows) or _rewriting(old, new)


def _impossible(new: StateSpec, left: Sequence[StateSpec]) -> Iterator[OperatorMigration]:
    """Operators of the same kind whose state cannot be rewritten, with the reason."""
    for old in matching_operators(new, left, Counter.__le__):
        made = _rewriting(old, new)
        if isinstance(made, str):
            yield OperatorMigration(RestoreEffect.NOT_MIGRATABLE, old, new, made)
    for old in left:
        if old.kind is StateKind.OPERATOR is new.kind and family(old) == family(new):
            yield OperatorMigration(RestoreEffect.NOT_MIGRATABLE, old, new, _refusal_reason(old, new))


def _refusal_reason(old: StateSpec, new: StateSpec) -> str:
    for layout in (old.layout, new.layout):
        if isinstance(layout, Unknown):
            return layout.reason
    if old.layout is None or new.layout is None:
        return "it keeps no keyed state that a rewritten savepoint could contain"
    if other_condition(old, new):
        return OTHER_CONDITION
    if only_windows_differ(old, new) and isinstance(refused := _in_other_windows(old, new), str):
        return refused
    if old.meaning != new.meaning:
        return "its rows, windows or conditions changed"
    if key_meanings(old) < key_meanings(new) and aggregates(new):
        added = words(field for field in known_layout(new).key if field.meaning not in key_meanings(old))
        return f"{', '.join(added)} is a new key, by which stored values cannot be separated"
    if key_meanings(old) != key_meanings(new):
        return "its keys changed"
    if old.layout == new.layout:
        return "one of its conditions or clauses changed, and the effect on stored rows was not verified"
    return "its stored layout differs"


def _rewriting(old: StateSpec, new: StateSpec) -> OperatorMigration | str:
    """Rewrite one operator's states for another, or return the reason why that is impossible."""
    before, after = known_layout(old), known_layout(new)
    if before.carried_only or after.carried_only:
        return "it can only be carried unchanged: no rewriting of this state was measured"
    key = key_places(before.key, after.key)
    if isinstance(key, str):
        return key
    rewrite = FAMILIES[ExecKind(new.name)].rewrite
    assert rewrite is not None
    states = rewrite(before, after)
    if isinstance(states, str):
        return states
    made = OperatorMigration(RestoreEffect.REWRITTEN, old, new, _SAME, key, states)
    what = "slice" if made.windows else "key"
    if made.merges and (refused := merge_refusal(states, before, what) if aggregates(new) else "its keys changed"):
        return refused
    if refused := mixing_refusal(
        reused_fields(states), new_fields(states), new.co_dependent_calls, new.filtering_calls
    ):
        return refused
    if gone := ", ".join(words(made.dropped_keys)):
        return replace(made, reason=f"{gone} is no longer a key: values of keys that become equal are merged")
    if made.windows:
        return replace(made, reason="its windows changed, but consist of stored slices")
    return made
