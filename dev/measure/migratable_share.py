"""Share of refused or silently wrong changes whose state a migration keeps.

It prints the table of ``docs/state-migration-reference.md`` from the compiled plans of the restores on 2.3.
"""

from __future__ import annotations

from collections import Counter

from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from dev.measure.measured import pairs, planned

ENDINGS = {
    "refused_at_submit": "refused at submit",
    "refused_at_restore": "failed while it was restored",
    "restored_WRONG": "ran on with wrong rows",
}


def shares() -> dict[str, Counter[MigrationExtent]]:
    """How much would be kept of the measured changes that Flink does not take."""
    found: dict[str, Counter[MigrationExtent]] = {ending: Counter() for ending in ENDINGS}
    for name, plans in planned().items():
        restore = pairs()[name]
        if restore.outcome in ENDINGS:
            kept = [each.kept for each in migrations(*restore.sides(), plans)]
            found[restore.outcome][max(kept, key=list(MigrationExtent).index, default=MigrationExtent.NONE)] += 1
    return found


def table(found: dict[str, Counter[MigrationExtent]]) -> str:
    """The shares as a table in Markdown."""
    rows = [(words, found[ending]) for ending, words in ENDINGS.items()]
    rows.append(("all", sum((counts for _, counts in rows), Counter())))
    lines = [
        f"| what Flink did | changes | {' | '.join(MigrationExtent)} |",
        f"|---|{'---|' * (len(MigrationExtent) + 1)}",
    ]
    for words, counts in rows:
        every = counts.total()
        told = (f"{counts[kept]} ({counts[kept] / every:.0%})" for kept in MigrationExtent)
        lines.append(f"| {words} | {every} | {' | '.join(told)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(shares()))
