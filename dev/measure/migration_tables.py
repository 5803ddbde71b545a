"""Print the tables of ``docs/state-migration-reference.md``: migrations, and shares of kept state."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from dev.measure import results
from dev.measure.measured import pairs, planned
from dev.measure.migration_cases import ENDINGS
from dev.measure.results import RIGHT as ALONE_RIGHT
from dev.measure.results import WRONG as ALONE_WRONG
from dev.measure.run_migrations import RIGHT

_FOLDER = results.FOLDER / "migrations"
_HEAD = ("run on", "changes", "whole", "in part", "Flink alone: refused", "wrong", "right", "keys", "not right")
_Entry = Mapping[str, Any]
_BACKEND, _COMPRESSED = "state.backend.type", "execution.checkpointing.snapshot-compression"
_CIRCUMSTANCES: Mapping[str, Callable[[_Entry], bool]] = {
    "of these with state in RocksDB on one side or both": lambda entry: "rocksdb" in _values(entry, _BACKEND),
    "of these compressed": lambda entry: "true" in _values(entry, _COMPRESSED),
    "of these with two subtasks": lambda entry: _values(entry, "parallelism.default") == ["2", "2"],
    "of these with a changed number of subtasks": lambda entry: len(set(_values(entry, "parallelism.default"))) > 1,
}


def shares() -> dict[str, Counter[MigrationExtent]]:
    """Changes that Flink refused or restored wrongly, by outcome and kept state; the worst job counts."""
    found: dict[str, Counter[MigrationExtent]] = {ending: Counter() for ending in ENDINGS}
    for name, plans in planned().items():
        restore = pairs()[name]
        if restore.outcome in ENDINGS:
            kept = [each.kept for each in migrations(*restore.sides(), plans)]
            found[restore.outcome][max(kept, key=list(MigrationExtent).index, default=MigrationExtent.NONE)] += 1
    return found


def table_of_shares(found: dict[str, Counter[MigrationExtent]]) -> str:
    """The shares as a table in Markdown."""
    rows = [(words, found[ending]) for ending, words in ENDINGS.items()]
    rows.append(("all", sum((counts for _, counts in rows), Counter())))
    lines = [
        f"| result in Flink | changes | {' | '.join(MigrationExtent)} |",
        f"|---|{'---|' * (len(MigrationExtent) + 1)}",
    ]
    for words, counts in rows:
        every = counts.total()
        cells = (f"{counts[kept]} ({counts[kept] / every:.0%})" for kept in MigrationExtent)
        lines.append(f"| {words} | {every} | {' | '.join(cells)} |")
    return "\n".join(lines)


def files() -> tuple[Path, ...]:
    """The newest results of each kind."""
    found = sorted(_FOLDER.glob("*.json"))
    return tuple({path.name.rsplit("-", 3)[0]: path for path in found}.values())


def table_of_runs() -> str:
    """Migrations and their outcomes, as a table in Markdown."""
    lines = [f"| {' | '.join(_HEAD)} |", f"|{'---|' * len(_HEAD)}"]
    for path in files():
        data = results.read(path)
        lines.append(_row(_words(path, data), data["pairs"]))
    every = [entry for path in files() for entry in results.read(path)["pairs"]]
    lines += [_row(words, list(filter(holds, every))) for words, holds in _CIRCUMSTANCES.items()]
    lines.append(_row("all", every))
    return "\n".join(lines)


def _words(path: Path, data: _Entry) -> str:
    version = f"Flink {data['flink']}"
    if path.name.startswith(results.UPGRADE):
        version = f"Flink {data['pairs'][0]['flink_old']} to {data['flink']}"
    return f"{version}, over connectors" if path.name.startswith("connectors") else version


def _row(words: str, entries: list[_Entry]) -> str:
    def number(holds: Callable[[_Entry], bool]) -> int:
        return sum(map(holds, entries))

    cells = (
        len(entries),
        number(lambda entry: entry["kept"] == "whole"),
        number(lambda entry: entry["kept"] == "partial"),
        number(lambda entry: entry["alone"].startswith("refused")),
        number(lambda entry: entry["alone"] == ALONE_WRONG),
        number(lambda entry: entry["alone"] == ALONE_RIGHT),
        sum(entry["keys"] for entry in entries),
        number(lambda entry: entry["outcome"] != RIGHT),
    )
    return f"| {words} | {' | '.join(map(str, cells))} |"


def _values(entry: _Entry, setting: str) -> list[str]:
    return [
        entry[side].get(setting, "1" if setting.startswith("parallelism") else "")
        for side in ("settings_old", "settings_new")
    ]


if __name__ == "__main__":
    ArgumentParser(prog="python -m dev.measure migration-tables", description=__doc__).parse_args()
    print(f"{table_of_runs()}\n\n{table_of_shares(shares())}")
