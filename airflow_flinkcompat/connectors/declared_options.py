"""Options that connector artifacts declare, with the parts of Flink's plan that each option changes.

``python -m dev.measure connectors`` writes the data. An option that never changes a plan may still change the rows
that are read or written. The module :mod:`~airflow_flinkcompat.connectors.definitions` describes such options.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_flinkcompat.connectors.facts import BEGINNINGS, OptionEffect, OptionFact, TableUse

DATA = Path(__file__).with_name("connector_options.json.gz")
"""Options by artifact and connector, with the effect of each option on ids and state in Flink's plan."""
_USES: Mapping[TableUse, str] = {TableUse.SOURCE: "source", TableUse.SINK: "sink", TableUse.LOOKUP: "lookup"}
_OF_EVERY_SOURCE = frozenset(
    f"scan.watermark.{name}"
    for name in ("alignment.group", "alignment.max-drift", "alignment.update-interval", "emit.strategy", "idle-timeout")
)
"""Options that Flink's FactoryUtil accepts for every source."""
_WORDS = {"ids": "ids of operators", "state": "what operators keep", "serializers": "the state of sources or sinks"}


@dataclass(frozen=True)
class DeclaredOption:
    """An option as declared by one connector artifact.

    Attributes:
        artifact: The name and version of the artifact.
        key: The current name of the option.
        default: The connector's default value; "" if there is none, or if it is not a string.
        moves: The parts of the plan (ids, state, serializers) that change with the value; None if no plans were
            compared.
    """

    artifact: str
    key: str
    type: str
    default: str = ""
    older: tuple[str, ...] = ()
    moves: tuple[str, ...] | None = None


def declared(connector: str | None, use: TableUse, key: str) -> tuple[DeclaredOption, ...]:
    """The declarations of an option in all artifacts of a connector."""
    return tuple(
        each for each in _by_connector().get(connector or "", {}).get(use, ()) if key in (each.key, *each.older)
    )


def undeclared(connector: str | None, key: str) -> bool:
    """True if artifacts of a connector are known, but none of them declares the option.

    False for options that Flink or another library declares for every connector.
    """
    known = _by_connector().get(connector or "", {})
    of_others = key.startswith("properties.") or key in _OF_EVERY_SOURCE
    return bool(known) and not of_others and not any(declared(connector or "", use, key) for use in known)


def fact(connector: str | None, use: TableUse, key: str, *, in_table: bool) -> OptionFact | None:
    """Derive facts about an option without a definition from the connector's artifacts."""
    found = declared(connector, use, key)
    if not found:
        return None
    document = f"code of {found[0].artifact}"
    if moved := next((each for each in found if each.moves), None):
        what = " and ".join(_WORDS[each] for each in moved.moves or ())
        return OptionFact(
            key,
            OptionEffect.STATE,
            document=f"code of {moved.artifact}",
            note=f"a different value changes {what} in Flink's plan (code of {moved.artifact})",
        )
    if use is TableUse.LOOKUP:
        return None
    if any(each.moves is None for each in found):
        note = (
            f"the connector declares this option ({document}), but the effect of a different "
            "value on a restored job is unknown"
        )
        return OptionFact(key, OptionEffect.NOT_KNOWN, document=document, note=note)
    if not in_table and any(key.startswith(begins) for other, begins in BEGINNINGS.items() if other is not use):
        return OptionFact(key, OptionEffect.IGNORED, document=document)
    defaults = {each.default for each in found}
    return OptionFact(
        key,
        OptionEffect.NOT_KNOWN,
        document=document,
        note=f"a different value changes no id and no state in Flink's plan ({document}), but "
        "the meaning of the option is unknown",
        default=defaults.pop() or None if len(found) > 1 == len(defaults) and not in_table else None,
    )


@dataclass(frozen=True)
class OptionCounts:
    """Numbers of known options of a connector.

    Attributes:
        planned: The number of options whose values were compared in plans, for at least one use of a table.
        moving: The number of options that change ids, state or serializers.
    """

    declared: int
    planned: int
    moving: int


def counts() -> Mapping[str, Mapping[str, OptionCounts]]:
    """The numbers of known options, by artifact and connector."""
    return {
        artifact: {name: _counts(table) for name, table in row["connectors"].items()}
        for artifact, row in stored()["artifacts"].items()
    }


def _counts(table: Mapping[str, Any]) -> OptionCounts:
    shown = [pair for use in _USES.values() for pair in table[use].get("moves", {}).items()]
    planned = {key for key, each in shown if each == "=" or "moves" in each}
    return OptionCounts(len(table["options"]), len(planned), len({key for key, each in shown if "moves" in each}))


@lru_cache
def stored() -> Mapping[str, Any]:
    """Read the data that ``python -m dev.measure connectors`` wrote."""
    found: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


@lru_cache
def _by_connector() -> Mapping[str, Mapping[TableUse, tuple[DeclaredOption, ...]]]:
    found: dict[str, dict[TableUse, tuple[DeclaredOption, ...]]] = {}
    for artifact, row in stored()["artifacts"].items():
        for connector, table in row["connectors"].items():
            by_use = found.setdefault(connector, {})
            for use, name in _USES.items():
                by_use[use] = (*by_use.get(use, ()), *_declared(artifact, table, name))
    return found


def _declared(artifact: str, table: Mapping[str, Any], use: str) -> Iterator[DeclaredOption]:
    moves = table[use].get("moves", {})
    for key, row in table["options"].items():
        shown = moves.get(key, {})
        moved = () if shown == "=" else tuple(shown["moves"]) if "moves" in shown else None
        yield DeclaredOption(artifact, key, row["type"], row.get("default", ""), tuple(row.get("older", ())), moved)
