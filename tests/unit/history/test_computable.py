"""Which tables that come new are read up to the switch, and why the others are not; without Spark or Flink."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.computable import (
    new_sources,
    reason_against_resuming,
    reason_without_watermark,
    resume_after_rows,
)
from airflow_flinkcompat.history.queries import state_query
from airflow_flinkcompat.history.sources import AssumedHistory
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import operators
from tests.unit.history.planned import spec_of

FILES = "'connector' = 'filesystem', 'path' = 'file:///data/{}', 'format' = 'csv'"
EVERY = ", 'source.monitor-interval' = '1 s'"
TABLES = f"""
CREATE TABLE lefts (k STRING, v BIGINT) WITH ({FILES.format("lefts")}{EVERY});
CREATE TABLE rights (k STRING, w BIGINT) WITH ({FILES.format("rights")}{EVERY});
CREATE TABLE printed (v BIGINT, w BIGINT) WITH ('connector' = 'print');
"""
JOIN = "INSERT INTO printed SELECT v, w FROM lefts JOIN rights ON lefts.k = rights.k;"
BOTH = "EXECUTE STATEMENT SET BEGIN {} {} END;"


def queries(side: Side) -> list[StateQuery]:
    """What computes the joins of a script."""
    found = []
    for output in side.outputs[0].values():
        for operator in operators(output):
            layout = operator_layout(operator, Symbols())
            if isinstance(layout, StateLayout) and len(layout.states) == 2:
                spec = spec_of(side, operator, layout)
                found.append(state_query(side, spec, AssumedHistory()))
    return found


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (TABLES + JOIN, ""),
        (TABLES.replace(EVERY, "") + JOIN, "is bounded: set source.monitor-interval"),
        (
            TABLES + BOTH.format(JOIN, "INSERT INTO printed SELECT w, w FROM rights;"),
            "reach a sink unchanged, so the sink would lack the earlier rows",
        ),
        (
            TABLES + BOTH.format(JOIN, "INSERT INTO printed SELECT v, v FROM lefts UNION ALL SELECT w, w FROM rights;"),
            "reach a sink unchanged",
        ),
        (
            TABLES + BOTH.format(JOIN, "INSERT INTO printed SELECT COUNT(*), MAX(w) FROM rights GROUP BY k;"),
            "another operator that reads table",
        ),
        (TABLES + BOTH.format(JOIN, "INSERT INTO printed SELECT v, v FROM lefts;"), ""),
    ],
)
def test_rows_that_come_once_come_to_computed_state_alone(script: str, reason: str) -> None:
    side = Side(script, engine="flink")
    computed = queries(side)
    assert len(computed) == 1
    table = next(table for table in side.program.tables if table.path[2] == "rights")
    told = reason_against_resuming(side, table, {}, computed)
    assert (told == "") if not reason else reason in told


def test_how_far_time_has_come_in_a_new_table_is_not_told() -> None:
    (query,) = queries(Side(TABLES + JOIN, engine="flink"))
    assert reason_without_watermark(query, {"rights"}) == ""
    windows = SlicedWindow(WindowKind.TUMBLE, 1000, 1000)
    in_windows = StateQuery(query.tables, query.key, query.states, windows)
    assert "the savepoint does not store the watermark of table" in reason_without_watermark(in_windows, {"rights"})
    assert reason_without_watermark(in_windows, {"elsewhere"}) == ""


def test_a_source_for_which_there_is_nothing_goes_on_behind_its_rows() -> None:
    """One that begins anew on request has a place, at which it began before."""
    new, anew = (StateSpec(StateKind.POSITIONS, f"`default_catalog`.`db`.`{name}`", name) for name in ("new", "anew"))
    begun = [OperatorMigration(RestoreEffect.EMPTY, old, spec, "") for old, spec in ((None, new), (anew, anew))]
    found = Migration(tuple(begun))
    assert [*new_sources(found)] == ["new"]
    made = resume_after_rows(found, ["new", "anew"])
    assert [line.effect for line in made.operators] == [RestoreEffect.COMPUTED, RestoreEffect.EMPTY]
    assert resume_after_rows(found, []) == found
    assert resume_after_rows(Migration(tuple(begun[:1])), ["new"]).kept is MigrationExtent.WHOLE


def test_decisions_need_no_spark() -> None:
    script = (
        "import sys, airflow_flinkcompat.history.known_history, airflow_flinkcompat.history.warm_start; "
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
