"""Changes to migrate on a real Flink: measured changes that Flink refused or misread, and own cases.

* restores measured elsewhere that were refused or wrong, whose compiled plans
  (``dev/measure/measured.py``) say that a migration keeps something, over rows of ours
* pairs of ``dev/measure/pairs`` that were refused or wrong on that line, or for two lines of ``dev/measure/upgrades``
* ``tests/fixtures/migrations.sql``, and ``dev/measure/migrations/*.sql`` in the form of ``dev/measure/pairs``
* variants of these (``dev/measure/migrations/variants.toml``): other settings or rows for every pair that a pattern
  names
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results
from dev.measure.measured import AS_RUN, Restore, planned
from dev.measure.measured import pairs as measured_pairs
from dev.measure.pairs import UPGRADES, Pair, Side, load_connector_pairs, load_pairs
from dev.measure.progress import HELD_BACK
from dev.measure.savepoint_fixtures import load_changes

OWN = Path(__file__).parent / "migrations"
CONNECTORS = OWN / "connectors.toml"
VARIANTS = OWN / "variants.toml"
_ROWS = {
    "": "orders", "MyTable": "orders", "MyDelay": "orders", "T1": "orders", "T2": "clicks", "T3": "clicks",
    "Plain": "untimed", "P1": "untimed", "P2": "untimed_clicks", "P3": "untimed_clicks",
    "L": "lefts", "R": "rights", "LP": "untimed_lefts", "RP": "untimed_rights", "TP": "untimed_thirds",
}  # fmt: skip
"""Our rows in place of those of a table that was measured elsewhere."""
_PATH = re.compile(r"'path' = 'file:///data(?:/(\w+))?'")
ENDINGS = {
    "refused_at_submit": "refused at submit",
    "refused_at_restore": "failed while it was restored",
    "restored_WRONG": "ran on with wrong rows",
}
"""Outcomes in words for restores that failed or were wrong."""
_ENDLESS = "'connector' = 'datagen', 'rows-per-second' = '1'"
_INSTEAD = "'connector' = 'filesystem', 'path' = 'file://DATA/counts', 'format' = 'csv'"


@dataclass(frozen=True)
class Migrated:
    """A change to migrate, with Flink's outcome without a migration if that was measured."""

    pair: Pair
    alone: str = ""


NOT_RUN = "not_run"
"""Flink's outcome without a migration, for variants of a change that was run."""


def load(line: str, only: str = "", old_line: str = "") -> list[Migrated]:
    """Changes to migrate on a line, or from ``old_line`` to it, by id. Raises FixtureError."""
    own = list(own_pairs(line))
    every = [*map(Migrated, own), *variants(own)]
    if old_line:
        every += _not_taken(load_pairs(line, folder=UPGRADES), f"{old_line}-to-{line}", results.UPGRADE)
    else:
        every += _not_taken(load_pairs(line), line, "flink")
    # Mix the kinds of changes, so that a run that ends early contains some of each.
    every.sort(key=lambda each: sha256(each.pair.id.encode()).digest())
    if line == "2.3" and not old_line:
        every = [*measured(), *every]
    found = [each for each in every if re.search(only, each.pair.id)]
    if not found:
        raise FixtureError(f"no change to migrate{f' matches {only!r}' if only else ''}")
    return found


def load_over_connectors(only: str = "") -> list[Migrated]:
    """Changes over Kafka and PostgreSQL: measured changes that Flink did not restore right, and own cases."""
    own = [Migrated(pair) for pair in load_connector_pairs(file=CONNECTORS)]
    every = [*own, *_not_taken(load_connector_pairs(), "2.3", "connectors")]
    return [each for each in every if re.search(only, each.pair.id)]


def _not_taken(pairs: Iterable[Pair], line: str, name: str) -> Iterator[Migrated]:
    """Our pairs that Flink refused or restored wrongly; a run shows the state that is kept."""
    newest = results.newest(line, name)
    ended = {entry["id"]: entry["outcome"] for entry in results.read(newest)["pairs"]} if newest else {}
    for pair in pairs:
        if ended.get(pair.id) in ENDINGS and not pair.elsewhere:
            yield Migrated(pair, ended[pair.id])


def own_pairs(line: str) -> Iterator[Pair]:
    """Cases for migration that have no recorded outcome."""
    for case in load_changes():
        if case.refused or case.accepted:
            continue
        id = f"case-{re.sub('[^a-z0-9]+', '-', case.title)}"
        yield Pair(id, "state migration", case.title, case.old, case.new)
    yield from load_pairs(line, folder=OWN)


@cache
def migratable() -> frozenset[str]:
    """Ids of failed or wrong measured restores that the compiled plans can migrate at least partly."""
    found = set()
    for name, plans in planned().items():
        restore = measured_pairs()[name]
        if restore.outcome in ENDINGS:
            kept = [each.kept for each in migrations(*restore.sides(), plans)]
            if len(kept) == 1 and MigrationExtent.NONE not in kept:
                found.add(name)
    return frozenset(found)


def measured() -> list[Migrated]:
    """Those restores as pairs, but for the few that read rows of which we have none."""
    restores = (measured_pairs()[name] for name in sorted(migratable()))
    return [_measured(each) for each in restores if {*_PATH.findall(_spaced(each.old + each.new))} <= _ROWS.keys()]


def _measured(restore: Restore) -> Migrated:
    # These operators emit an older watermark than their sources, or none.
    kinds = {node.kind for side in planned()[restore.id] for plan in side for node in plan.nodes}
    untimed = restore.old.count("WATERMARK FOR") < restore.old.count("CREATE TABLE")
    held_back = "interval-join" in kinds or ("union" in kinds and untimed)
    old, new = (
        Side(_over_our_rows(script, held_back=held_back), tuple(sorted(settings.items() - AS_RUN.items())))
        for script, settings in ((restore.old, restore.settings_old), (restore.new, restore.settings_new))
    )
    return Migrated(Pair(restore.id, "measured restores", "as measured", old, new), restore.outcome)


def _over_our_rows(script: str, *, held_back: bool) -> str:
    """The script in the spelling of our pairs, with spaced options and a sink that is not a reserved word."""
    script = re.sub(r"\b(CREATE TABLE|INSERT INTO) Result\b", r"\1 Printed", _spaced(script))
    script = re.sub(r"'print',\s*'print-identifier' = '\w+'", "'print'", script)
    script = re.sub(r"'datagen',\s*", "'datagen', ", script).replace(_ENDLESS, _INSTEAD)
    if held_back:
        script = re.sub(r"\bCREATE TABLE \w+ \(", rf"\g<0>  {HELD_BACK}\n", script, count=1)
    return _PATH.sub(lambda match: f"'path' = 'file://DATA/{_ROWS[match[1] or '']}'", script)


def _spaced(script: str) -> str:
    return re.sub(r"'\s*=\s*'", "' = '", script)


def variants(pairs: Iterable[Pair], file: Path = VARIANTS) -> list[Migrated]:
    """Variants of the changes."""
    told = tomllib.loads(file.read_text("utf-8"))
    return [
        Migrated(_variant(pair, name, variant), NOT_RUN)
        for name, variant in told.items()
        for pair in pairs
        if re.fullmatch(variant["pairs"], pair.id)
    ]


def _variant(pair: Pair, name: str, variant: Mapping[str, Any]) -> Pair:
    def side(which: str, side: Side) -> Side:
        script = side.script
        for rows, others in variant.get("rows", {}).items():
            script = script.replace(f"file://DATA/{rows}'", f"file://DATA/{others}'")
        settings = dict(side.settings) | variant.get("both", {}) | variant.get(which, {})
        return replace(side, script=script, settings=tuple(sorted(settings.items())))

    # What comes out from scratch is the same whatever state lies in, and how many subtasks there are.
    rows_alone = replace(side("", pair.new), settings=pair.new.settings)
    old, new = side("old", pair.old), side("new", pair.new)
    about = f"{pair.about}; {variant['about']}"
    return replace(pair, id=f"{pair.id}-{name}", about=about, old=old, new=new, reference=rows_alone)
