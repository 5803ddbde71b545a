"""Facets (parts in which two exec nodes may differ) and the effect of each difference on state."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import CallPart, StateLayout
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols

_ANY = "*"
COLUMN_INDEPENDENT, BARE = "independent of columns", "nothing in front"
"""Conditions on a sink: its state does not depend on columns; no materializer precedes it."""
WAITING = "may be asynchronous"
"""Condition on a lookup: it may be asynchronous, so that rows may wait in its state."""
_ROWS_BELOW = (MEANING, "rows below")
_OF_ACCUMULATORS = frozenset(
    {(LAYOUT, "accumulators"), (LAYOUT, "retraction"), (MEANING, "aggregates"), (UNSURE, "argument types")}
)


@dataclass(frozen=True)
class FacetRow:
    """A row of ``facets.toml``. The head of that file describes the fields."""

    operator: str
    facet: str
    effect: RestoreEffect
    evidence: tuple[str, ...]
    compared: bool = True
    changes: tuple[tuple[str, str], ...] = ()
    when: str | Mapping[str, Any] = ""

    def covers(self, before: Hashable, after: Hashable) -> bool:
        """True if this row applies to a change of the facet's value."""
        return not self.changes or (_word(before), _word(after)) in self.changes

    def applies_to(self, config: Mapping[str, Any]) -> bool:
        """True if the configuration of a node meets the condition of this row."""
        if isinstance(self.when, str):
            return not self.when or bool(config.get(self.when))
        return all(
            bool(config.get(key)) is value if isinstance(value, bool) else _word(config.get(key)) == value
            for key, value in self.when.items()
        )


@cache
def facet_rows() -> Mapping[tuple[str, str], tuple[FacetRow, ...]]:
    """The rows of ``facets.toml``, by operator and facet."""
    table = tomllib.loads(files(__package__).joinpath("facets.toml").read_text(encoding="utf-8"))
    return {
        (operator, facet): tuple(_read(operator, facet, row) for row in rows)
        for operator, facets in table.items()
        for facet, rows in facets.items()
    }


def _read(operator: str, facet: str, row: Mapping[str, Any]) -> FacetRow:
    return FacetRow(
        operator, facet, RestoreEffect[row["effect"].upper().replace(" ", "_")], tuple(row.get("evidence", ())),
        row.get("compared", True), tuple((before, after) for before, after in row.get("changes", ())),
        row.get("when", ""),
    )  # fmt: skip


def rows_about(operator: str, facet: str) -> tuple[FacetRow, ...]:
    """The rows of ``facets.toml`` about one facet of an operator."""
    rows = facet_rows()
    return rows.get((operator, facet)) or rows.get((_ANY, facet), ())


def _word(value: Any) -> str:
    """A facet value in the notation of ``facets.toml``; "" for an empty value."""
    while isinstance(value, tuple | Mapping) and len(value) == 1:
        value = next(iter(value.values() if isinstance(value, Mapping) else value))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return _word(value[1])
    if isinstance(value, Mapping):
        value = value.get("type", "")
    return "" if value in (None, ()) else str(value)


def facet_effect(kind: str, facet: str, config: Mapping[str, Any]) -> RestoreEffect | None:
    """The effect of a changed facet by ``facets.toml``; None if the facet does not affect state."""
    rows = [row for row in rows_about(kind, facet) if row.applies_to(config)]
    if not all(row.compared for row in rows):
        return None
    return MEANING if all(row.effect is MEANING for row in rows) else UNSURE


def differing_facets(old: StateSpec, new: StateSpec, symbols: Symbols) -> list[tuple[RestoreEffect, str]]:
    """The facets that differ between two states; accumulators with equal content do not differ."""
    keys = dict.fromkeys((*old.facets, *new.facets))
    found = [key for key in keys if old.facets.get(key) != new.facets.get(key)]
    if not all(Trait.AGGREGATES in ExecKind(each.operator).traits for each in (old, new)):
        return found
    if _ROWS_BELOW in found and _fewer_keys(old, new, symbols):
        found.remove(_ROWS_BELOW)
    if not _OF_ACCUMULATORS.isdisjoint(found):
        before, after = map(_contents, (old, new))
        if before is not None and before == after:
            return [key for key in found if key not in _OF_ACCUMULATORS]
    return found


def _fewer_keys(old: StateSpec, new: StateSpec, symbols: Symbols) -> bool:
    """True if a condition on the keys is the only reason why an aggregation reads fewer rows."""
    keys = new.facets.get((MEANING, "keys"))
    before, after = (each.facets[_ROWS_BELOW] for each in (old, new))
    if not (isinstance(keys, tuple) and isinstance(before, int) and isinstance(after, int)):
        return False
    more = symbols.narrowed(after, before)
    known = frozenset(each for each in keys if isinstance(each, int))
    return bool(more) and all(symbols.is_decided_by(each, known) for each in more or ())


def _contents(spec: StateSpec) -> Hashable:
    """The content of each stored field of an aggregation; None if the content of any field is unknown."""
    if not isinstance(spec.layout, StateLayout):
        return None
    fields = [
        (state, each)
        for state in spec.layout.states
        for each in (*(state.map_key.fields if state.map_key else ()), *state.value.fields)
    ]
    if any(each.meaning is None for _, each in fields):
        return None
    return tuple((state.name, state.kind, state.namespace, each.type, _content(each.meaning)) for state, each in fields)


def _content(meaning: Hashable) -> Hashable:
    """The stored value of a field, regardless of the call; sums that start as NULL or as 0 differ."""
    if isinstance(meaning, CallPart) and meaning.content is not None:
        return meaning.content, meaning.null_at_first
    return meaning


def facet_effects(
    old: StateSpec, new: StateSpec, differing: Sequence[tuple[RestoreEffect, str]], *, restored: bool
) -> Iterator[tuple[RestoreEffect, tuple[str, ...], tuple[str, ...]]]:
    """Group the facets that differ by effect, with the restores that prove some of them harmless."""
    found = {effect for effect, _ in differing}
    conditions = old.conditions & new.conditions | new.conditions & {COLUMN_INDEPENDENT}
    for effect in (LAYOUT, MEANING, UNSURE):
        if effect is MEANING and LAYOUT in found and not restored:
            continue  # the restore fails first, so the different meaning produces no row
        rows = {key[1]: _row(old, new, key, conditions) for key in differing if key[0] is effect}
        effects = {name: UNSURE if row is None else row.effect for name, row in rows.items()}
        wrong = tuple(name for name, each in effects.items() if each is MEANING)
        unsure = tuple(name for name, each in effects.items() if each is UNSURE)
        if wrong:
            yield MEANING, wrong, ()
        if unsure:  # Flink read the state, so a layout that differs only in the plan may be harmless
            yield UNSURE if effect is LAYOUT and restored else effect, unsure, ()
        for name, row in rows.items():
            if row is not None and row.effect is RestoreEffect.RIGHT:
                yield UNSURE, (name,), row.evidence


def _row(old: StateSpec, new: StateSpec, key: tuple[RestoreEffect, str], conditions: Set[str]) -> FacetRow | None:
    """The row of ``facets.toml`` that covers a difference; None if there is none."""
    effect, name = key
    if effect is LAYOUT or (effect is MEANING and new.kind is not StateKind.SINK):
        return None
    return next(
        (
            row
            for row in rows_about(new.operator, name)
            if row.covers(old.facets.get(key), new.facets.get(key))
            and (row.when not in (BARE, COLUMN_INDEPENDENT) or conditions >= {BARE, row.when})
        ),
        None,
    )
