"""The changes of ``tests/fixtures/migrations.sql``, and the state that a rewritten savepoint keeps of each."""

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
"""Changes of which the savepoints of both jobs are kept, as ``python -m dev.measure migration-fixtures`` takes them."""
SINKS = frozenset(f"`default_catalog`.`default_database`.`{name}`" for name in ("Printed", "keyed", "s1", "s2"))
"""The sinks of measured plans, which keep no state."""
NOW = 1_800_000_000_000


@dataclass(frozen=True)
class Case:
    """One change: ``kept`` are the places of the new columns that go on, ``alone`` what Flink makes of it alone.

    Or ``refused``: why no savepoint is written.
    """

    title: str
    old: Side
    new: Side
    kept: tuple[int, ...]
    alone: str
    refused: str
    accepted: tuple[Accept, ...] = ()


def load_cases() -> Iterator[Case]:
    _, given, cases = fixture_cases.read(FILE.read_text("utf-8"), FILE.name)
    for head, old, new in cases:
        found = fixture_cases.headers(
            head, {"kept", "alone", "refused", "accept", "old-settings", "settings"}, FILE.name
        )
        settings, before = (
            tuple(fixture_cases.settings(found, key, FILE.name).items()) for key in ("settings", "old-settings")
        )
        kept, alone, refused = ("".join(text for _, text in found.get(key, ())) for key in ("kept", "alone", "refused"))
        yield Case(
            head.title,
            Side(given + old.text, before),
            Side(given + new.text, settings),
            tuple(map(int, kept.split())),
            alone,
            refused,
            tuple(Accept(text) for _, text in found.get("accept", ())),
        )


def change(name: str) -> Migration:
    """What becomes of the state in one of ``CASES``."""
    old, new = ((FOLDER / name / f"{side}.json").read_text("utf-8") for side in ("old", "new"))
    return migration_of(old, new)


def migration_of(old: str, new: str, accepted: Sequence[Accept] = (), stateless_sinks: Set[str] = SINKS) -> Migration:
    """What of the state of one compiled plan another one keeps."""
    symbols = Symbols()
    before, after = (
        job_state(compiled_state(read_plan(plan), symbols, {}, stateless_sinks), symbols) for plan in (old, new)
    )
    return migration(before, after, accepted=accepted)
