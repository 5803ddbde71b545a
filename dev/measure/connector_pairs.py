"""The pairs over connectors, ``dev/measure/pairs/connectors.toml``: changes of tables below several shapes of a query.

A family is a table with

* ``area``, ``about``: what it measures, in words
* ``given``: what both sides begin with, ``database``: what its PostgreSQL or lake begins with (optional)
* ``line``: the line of Flink that plans it, if that is another than 2.3
* ``shapes``: queries by name, after what is given
* ``cases``: by name, a table with ``change``: texts of the old side and what stands in their place on the new one, and
  optionally ``about``, ``both`` (the same for both sides), ``shapes`` (only these), ``parallelism`` (1 where it is not
  given; 2 reads two partitions), ``settings`` (of the new side), ``rows_before``, ``reference`` (texts of the new side,
  and what stands in their place in what is run from scratch), ``elsewhere`` (the new side reads other rows than the old
  one), ``caveat`` (why it is right on these rows only)

A pair is called ``<family>-<shape>-<case>``, and ``-p2`` behind it at parallelism 2.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure.pairs import FOLDER, Pair, Side

FILE = FOLDER / "connectors.toml"
LAKES = FOLDER / "lakes.toml"
"""Pairs over tables of Iceberg, Paimon, Hudi and Doris."""
TWO_PARTITIONS = {"'topic' = 'orders'": "'topic' = 'busy'", "file://DATA/orders": "file://DATA/busy"}
_CASE = frozenset(
    {"about", "change", "both", "shapes", "parallelism", "settings", "rows_before", "reference", "elsewhere", "caveat"}
)


def load_connector_pairs(only: str = "", file: Path = FILE) -> list[Pair]:
    """Every pair whose id matches ``only``, a regular expression.

    Raises FixtureError, with the pair, where one is malformed, and when nothing matches.
    """
    try:
        families: Mapping[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FixtureError(f"{file.name}: {error}") from None
    pairs = [pair for name, family in families.items() for pair in _pairs(name, family)]
    found = [pair for pair in pairs if re.search(only, pair.id)]
    if not found:
        raise FixtureError(f"{file}: holds no pair{f' that matches {only!r}' if only else ''}")
    return found


def _pairs(name: str, family: Mapping[str, Any]) -> Iterator[Pair]:
    for title, case in family["cases"].items():
        if unknown := case.keys() - _CASE:
            raise FixtureError(f"{name}-{title}: {', '.join(sorted(unknown))} is no part of a case")
        for shape in case.get("shapes", family["shapes"]):
            for parallelism in case.get("parallelism", [1]):
                suffix = f"-p{parallelism}" if parallelism > 1 else ""
                yield _pair(f"{name}-{shape}-{title}{suffix}", family, shape, case, parallelism)


def _pair(id: str, family: Mapping[str, Any], shape: str, case: Mapping[str, Any], parallelism: int) -> Pair:
    if shape not in family["shapes"]:
        raise FixtureError(f"{id}: the family has no shape {shape}")
    script = family["given"] + family["shapes"][shape]
    if parallelism > 1:
        script = _replaced(script, TWO_PARTITIONS, "", lenient=True)
    old = _replaced(script, case.get("both", {}), id)
    new = _replaced(old, case.get("change", {}), id)
    settings = {"parallelism.default": str(parallelism)} if parallelism > 1 else {}
    changed = settings | case.get("settings", {})
    database = family.get("database", "")
    reference = case.get("reference")
    before = Side(old, tuple(settings.items()), case.get("rows_before", 0), database=database)
    after = Side(new, tuple(changed.items()), database=database)
    from_scratch = Side(_replaced(new, reference, id), after.settings, database=database) if reference else None
    changes = "; ".join(f"{old} → {new or 'nothing'}" for old, new in case.get("change", {}).items())
    return Pair(
        id,
        family["area"],
        case.get("about", changes or "nothing"),
        before,
        after,
        caveat=case.get("caveat", ""),
        line=family.get("line", "2.3"),
        reference=from_scratch,
        elsewhere=case.get("elsewhere", False),
    )


def _replaced(script: str, texts: Mapping[str, str], id: str, lenient: bool = False) -> str:
    for old, new in texts.items():
        if old not in script and not lenient:
            raise FixtureError(f"{id}: {old!r} does not stand in the script")
        script = script.replace(old, new)
    return script
