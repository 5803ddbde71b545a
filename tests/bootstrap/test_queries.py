"""Which operators of stored plans are computed from history, and why the others are not; without Spark or Flink."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.backfill.connectors.locations import AssumedLocations
from airflow_flinkcompat.bootstrap import KnownHistory
from airflow_flinkcompat.bootstrap.queries import state_query
from airflow_flinkcompat.bootstrap.state_rows import NotComputable
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.state.model import StateKind
from measure.savepoints import load_cases
from tests.migration.cases import migration_of
from tests.savepoint.savepoints import FOLDER, TAKEN


def test_each_operator_is_computed_or_says_why_not(snapshot: SnapshotAssertion) -> None:
    sides = {each.name: each.side for each in load_cases()}
    told = []
    for name in TAKEN:
        plan = (FOLDER / name / "plan.json").read_text("utf-8")
        side = sides[name.partition("/")[2]]
        script = Side(side.script.replace("file://DATA", "file:///data"), dict(side.settings), engine="flink")
        for line in migration_of(plan, plan).operators:
            spec = line.new
            if spec is None or spec.kind is not StateKind.OPERATOR:
                continue
            try:
                query = state_query(script, spec, AssumedLocations())
            except NotComputable as error:
                told.append(f"{name} {spec.name}: {error}")
            else:
                told.append(f"{name} {spec.name}: computed of {', '.join(table.name for table in query.tables)}")
    assert told == snapshot


def test_a_table_that_no_script_declares_is_named() -> None:
    plan = (FOLDER / "2.3/tumble/plan.json").read_text("utf-8")
    side = Side("CREATE TABLE t (a INT); CREATE TABLE u (a INT); INSERT INTO u SELECT a FROM t", engine="flink")
    with pytest.raises(InputError, match="history of orders: the new script declares no table of that name; it declar"):
        KnownHistory({"orders": ""}).extend(migration_of(plan, plan), side)
