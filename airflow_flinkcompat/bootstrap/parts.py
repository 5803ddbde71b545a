"""Which part of a script a part of a compiled plan is.

Compiled plans number columns, and call them as their planner does. What of the script one is, is told by the columns of
tables that it is computed of, where several are of the same by functions and constants too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Table

_UNTOLD = "which of its {what} stands where in its state is not told: {words} are of the same columns"


@dataclass(frozen=True)
class Part:
    """Something that is stored, by what it is recognised.

    Attributes:
        shape: What has to be equal: the type in which it is stored, of a metric its function and how that is called.
        composition: What it is computed of; None where that is not told.
    """

    shape: Hashable
    composition: Composition | None


@dataclass(frozen=True)
class TableColumns:
    """The columns of the tables of a script, by the names that both plans have for them."""

    tables: tuple[Table, ...]

    def named(self, told: Composition | None) -> Composition | None:
        """What either plan says, down to the columns that are stored, by their names."""
        return told and together([replace(told, columns=frozenset()), *map(self._named, told.columns)])

    def _named(self, column: Hashable) -> Composition | None:
        match column:
            case (kind, str() as identifier, *_, str() | int() as place):  # of a compiled plan
                found = [each for each in self.tables if each.path[2] == last_name(identifier)]
                if len(found) != 1:
                    return None
                (table,) = found
                if kind == "metadata":
                    named = [name for name, key, _ in table.metadata if place in (key, name)]
                    return Composition(frozenset({(table.path[2], *named)})) if len(named) == 1 else None
                return self._stored(table, table.physical[place] if isinstance(place, int) else place)
            case (str() as name, str() as of_table):
                found = [each for each in self.tables if each.name == name]
                return self._stored(found[0], of_table) if len(found) == 1 else None
        return None

    def _stored(self, table: Table, column: str) -> Composition | None:
        computed = dict(table.computed).get(column)
        if computed is None:
            return Composition(frozenset({(table.path[2], column)}))
        return self._computed(table, computed)

    def _computed(self, table: Table, part: Expression) -> Composition | None:
        match part:
            case FunctionCall():
                of = (self._computed(table, each) for each in part.args)
                return together([Composition(functions=frozenset({part.function})), *of])
            case InputRef():
                return self._stored(table, table.columns[part.index].name)
            case Literal():
                return Composition(literals=frozenset({str(part.value)}))
        return None


def align(wanted: Sequence[Part], given: Sequence[Part], what: str, words: Sequence[str]) -> list[int] | None:
    """Which part of a script each part of a compiled plan is."""
    sides = [_by_columns(wanted), _by_columns(given)]
    if len(wanted) != len(given) or {key: len(each) for key, each in sides[0].items()} != {
        key: len(each) for key, each in sides[1].items()
    }:
        return None
    found: dict[int, int] = {}
    for key, places in sides[0].items():
        others = sides[1][key]
        pairs = _told_apart([wanted[i].composition for i in places], [given[i].composition for i in others])
        if pairs is None:
            raise NotComputable(_UNTOLD.format(what=what, words=" and ".join(words[i] for i in others)))
        found |= {places[one]: others[other] for one, other in pairs.items()}
    return [found[i] for i in range(len(wanted))]


def _by_columns(parts: Sequence[Part]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place, part in enumerate(parts):
        found[part.shape, None if part.composition is None else part.composition.columns].append(place)
    return found


def _told_apart(wanted: Sequence[Composition | None], given: Sequence[Composition | None]) -> dict[int, int] | None:
    """The parts that are of the same columns, by whatever of them both plans write alike; None where nothing does."""
    if None in wanted or None in given:
        return None
    if len(wanted) == 1:
        return {0: 0}
    tell: tuple[Callable[[Composition], Hashable], ...] = (
        lambda part: part.literals,
        lambda part: part.functions,
        lambda part: part,
    )
    for by in tell:
        told, own = ([by(each) for each in side if each is not None] for side in (wanted, given))
        if len({*told}) == len(told) and {*told} == {*own}:
            return {place: own.index(each) for place, each in enumerate(told)}
    return None
