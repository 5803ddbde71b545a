"""Fixtures with savepoints of a real Flink, which ``python -m dev.measure savepoints`` writes.

``tests/fixtures/savepoints`` holds one savepoint of each script; ``tests/fixtures/migrations`` holds, for changes of
``migrations.sql``, the savepoint of the old job, a template of the new one, and the compiled plans of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.migration import Accept, Migration, migration
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.testing import fixture_cases
from dev.measure.pairs import Side

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "migrations"
FILE = FOLDER.with_suffix(".sql")
CASES = sorted(path.name for path in FOLDER.iterdir())
"""Names of the changes whose savepoints are stored."""
SAVEPOINTS = FOLDER.with_name("savepoints")
NEWEST = "2.3"
SINKS = frozenset(f"`default_catalog`.`default_database`.`{name}`" for name in ("Printed", "keyed", "s1", "s2"))
"""The sinks of measured plans, which keep no state."""
NOW = 1_800_000_000_000


@dataclass(frozen=True)
class Change:
    """One change: places of new columns that are kept, Flink's own result, or why no savepoint is written."""

    title: str
    old: Side
    new: Side
    kept: tuple[int, ...]
    alone: str
    refused: str
    accepted: tuple[Accept, ...] = ()


def load_changes() -> Iterator[Change]:
    _, shared, cases = fixture_cases.read(FILE.read_text("utf-8"), FILE.name)
    for head, old, new in cases:
        found = fixture_cases.headers(
            head, {"kept", "alone", "refused", "accept", "old-settings", "settings"}, FILE.name
        )
        settings, before = (
            tuple(fixture_cases.settings(found, key, FILE.name).items()) for key in ("settings", "old-settings")
        )
        kept, alone, refused = ("".join(text for _, text in found.get(key, ())) for key in ("kept", "alone", "refused"))
        yield Change(
            head.title,
            Side(shared + old.text, before),
            Side(shared + new.text, settings),
            tuple(map(int, kept.split())),
            alone,
            refused,
            tuple(Accept(text) for _, text in found.get("accept", ())),
        )


def change(name: str) -> Migration:
    """The migration of one of ``CASES``."""
    old, new = ((FOLDER / name / f"{side}.json").read_text("utf-8") for side in ("old", "new"))
    return migration_of(old, new)


def migration_of(old: str, new: str, accepted: Sequence[Accept] = (), stateless_sinks: Set[str] = SINKS) -> Migration:
    """The migration of a job of one compiled plan to that of another one."""
    symbols = Symbols()
    before, after = (
        job_state(compiled_state(read_plan(plan), symbols, {}, stateless_sinks), symbols) for plan in (old, new)
    )
    return migration(before, after, accepted=accepted)


@dataclass(frozen=True)
class Script:
    """One script to take a savepoint of."""

    name: str
    side: Side
    lines: frozenset[str]


def load_scripts(file: Path = SAVEPOINTS / "scripts.sql") -> Iterator[Script]:
    """The scripts whose savepoints are stored, with their settings and lines of Flink."""
    _, shared, *rest = fixture_cases.split(file.read_text("utf-8"), file.name, ("given", "case", "sql"))
    for head, script in zip(rest[::2], rest[1::2], strict=True):
        found = fixture_cases.headers(head, {"settings", "flink"}, file.name, {"settings", "flink"})
        settings = tuple(fixture_cases.settings(found, "settings", file.name).items())
        lines = frozenset({NEWEST, *(value for _, value in found.get("flink", []))})
        yield Script(head.title, Side(shared.text + script.text, settings), lines)
