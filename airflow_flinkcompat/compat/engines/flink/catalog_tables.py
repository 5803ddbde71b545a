"""Engine ``flink``: tables of a catalog that the script creates itself, which are of the catalog's kind unsaid."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Verdict
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import Basis, Consequence, Outcome
from airflow_flinkcompat.plan.catalog import options
from airflow_flinkcompat.sql import nodes

_ICEBERG = "iceberg"
RECOMMITTED = Verdict(
    Outcome.INCOMPATIBLE,
    Basis.INFERRED,
    "IcebergFilesCommitter, IcebergCommitter (1.10): files that the savepoint holds are committed once more, into the "
    "table that is written now, whose history does not know their job",
    consequence=Consequence.SILENTLY_WRONG,
)


def another_table(pair: PipelinePair, change: Change) -> Verdict | None:
    """What a restore does whose results go into another table of the same Iceberg catalog."""
    names = [name.split(".") for name in (pair.old.sink, pair.new.sink)]
    if any(len(parts) != 3 or "`" in "".join(parts) for parts in names) or names[0][0] != names[1][0]:
        return None
    old, new = (_catalogs(side).get(names[0][0]) for side in (change.old, change.new))
    return RECOMMITTED if old is not None and old == new and old.get("type") == _ICEBERG else None


def _catalogs(side: Side) -> Mapping[str, Mapping[str, str]]:
    """The options of every catalog that a script creates."""
    created = (node for statement in side.parsed.statements for node in statement.nodes[:1])
    return {
        node.this.name: dict(options(node.args.get("options")))
        for node in created
        if isinstance(node, nodes.CreateNamespace) and node.args["kind"] == "CATALOG"
    }
