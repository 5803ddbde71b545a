"""Parts of a node in which two plans may differ, and the effects of measured restores in which they did."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from airflow_flinkcompat.exec_graph.diff import RestoreEffect

_ANY = "*"


@dataclass(frozen=True)
class FacetRow:
    """A row of ``facets.toml``, whose head describes its fields."""

    operator: str
    facet: str
    effect: RestoreEffect
    evidence: tuple[str, ...]
    compared: bool = True
    changes: tuple[tuple[str, str], ...] = ()
    when: str | Mapping[str, Any] = ""
    why: str = ""

    def speaks_of(self, before: Hashable, after: Hashable) -> bool:
        """Whether the row is about these values of its facet."""
        return not self.changes or (_word(before), _word(after)) in self.changes

    def holds_of(self, config: Mapping[str, Any]) -> bool:
        """Whether a node says what the row asks for."""
        if isinstance(self.when, str):
            return not self.when or bool(config.get(self.when))
        return all(
            bool(config.get(key)) is value if isinstance(value, bool) else _word(config.get(key)) == value
            for key, value in self.when.items()
        )


@cache
def facet_rows() -> Mapping[tuple[str, str], tuple[FacetRow, ...]]:
    """The rows of the table by operator and facet."""
    table = tomllib.loads(files(__package__).joinpath("facets.toml").read_text(encoding="utf-8"))
    found: dict[tuple[str, str], tuple[FacetRow, ...]] = {}
    for each in table["row"]:
        changes = tuple((before, after) for before, after in each.get("changes", ()))
        row = FacetRow(
            each["operator"], each["facet"], RestoreEffect[each["effect"].upper().replace(" ", "_")],
            tuple(each.get("evidence", ())), each.get("compared", True), changes, each.get("when", ""),
            each.get("why", ""),
        )  # fmt: skip
        found[row.operator, row.facet] = (*found.get((row.operator, row.facet), ()), row)
    return found


def rows_about(operator: str, facet: str) -> tuple[FacetRow, ...]:
    """The rows about a facet of an operator."""
    rows = facet_rows()
    return rows.get((operator, facet)) or rows.get((_ANY, facet), ())


def _word(value: Any) -> str:
    """A value as the table writes it: of a piece of configuration with one part that part, "" for none."""
    while isinstance(value, tuple | Mapping) and len(value) == 1:
        value = next(iter(value.values() if isinstance(value, Mapping) else value))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return _word(value[1])
    if isinstance(value, Mapping):
        value = value.get("type", "")
    return "" if value in (None, ()) else str(value)


class Aspect(StrEnum):
    """What of an operator differs. ``OTHER``: something of which it is not known whether it matters to state."""

    LAYOUT = "layout"
    MEANING = "meaning"
    OTHER = "other"


Facets = dict[tuple[Aspect, str], Hashable]


def aspect_of(kind: str, facet: str, config: Mapping[str, Any]) -> Aspect | None:
    """What a facet of a node says by the table of facets; None where it takes no part in state."""
    rows = [row for row in rows_about(kind, facet) if row.holds_of(config)]
    if not all(row.compared for row in rows):
        return None
    wrong = all(row.effect is RestoreEffect.SILENTLY_WRONG for row in rows)
    return Aspect.MEANING if wrong else Aspect.OTHER
