"""What a rewritten savepoint would keep by the scripts alone, beside what Flink's compiled plans tell."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.migration_report import MigratedOperator, MigrationReport
from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.compat.reports.render import render_text
from airflow_flinkcompat.compat.restore_verdict import script_migration
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from dev.measure.measured import pairs, planned
from tests.support.planning import local_planner, read

TABLE = (
    "CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');\n"
)
WINDOW = (
    "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY customer, window_start, window_end"
)
OLD = f"SELECT customer, SUM(amount) {WINDOW};"
NEW = f"SELECT customer, SUM(amount), MAX(amount + 1) {WINDOW};"


def sides(old: str = TABLE + OLD, new: str = TABLE + NEW, **also: Any) -> tuple[Side, Side]:
    return Side(old, engine="flink", source="old.sql"), Side(new, engine="flink", source="new.sql", **also)


ALIASED = frozenset({"rj-cte-alias"})
"""Changes in which plans call columns by names that the new script gives them below the operator."""


def told(migration: Migration, *, named: bool = True) -> tuple[MigrationExtent, list[tuple[object, ...]]]:
    """What a reader learns; names of operators in one phase or two, ids and expressions as plans write them aside."""
    lines = [
        (
            each.operator.removeprefix("global-"),
            RestoreEffect.RIGHT if each.effect is RestoreEffect.MOVED else each.effect,
            each.reason,
            *(
                sorted(name.partition("(")[0] for name in names) if named else len(names)
                for names in (each.keeps, each.begins, each.gone)
            ),
        )
        for each in MigrationReport.of(migration).operators
    ]
    return migration.kept, sorted(lines, key=str)


@pytest.mark.slow
def test_scripts_tell_what_the_plans_of_measured_restores_tell() -> None:
    found: Counter[MigrationExtent] = Counter()
    for name, plans in planned().items():
        old, new = pairs()[name].sides()
        if (by_scripts := script_migration(Change(old, new))) is not None:
            (by_plans,) = migrations(old, new, plans)
            scripts, compiled = (told(each, named=name not in ALIASED) for each in (by_scripts, by_plans))
            assert scripts == compiled, f"{name}\n{old.script}\n{new.script}"
            found[by_scripts.kept] += 1
    assert min(found[kept] for kept in MigrationExtent) > 20, found


SEVERAL_CHANGES = 300


def test_scripts_tell_what_plans_tell_of_several_changes() -> None:
    """Each pair is made of the sides of two measured restores over the same tables."""
    sides_by_tables: dict[Any, dict[str, tuple[Side, Any]]] = {}
    for name, plans in planned().items():
        for side, compiled in zip(pairs()[name].sides(), plans, strict=True):
            tables = tuple(sorted(re.findall(r"CREATE TABLE (\w+)", side.script))), tuple(sorted(side.settings.items()))
            sides_by_tables.setdefault(tables, {})[side.script] = side, compiled
    every = [pair for found in sides_by_tables.values() for pair in permutations(found.values(), 2)]
    found = Counter[MigrationExtent]()
    for (old, old_plans), (new, new_plans) in Random(SEVERAL_CHANGES).sample(every, SEVERAL_CHANGES):
        if (by_scripts := script_migration(Change(old, new))) is not None:
            (by_plans,) = migrations(old, new, (old_plans, new_plans))
            assert by_scripts.kept is by_plans.kept, f"{old.script}\n{new.script}"
            found[by_scripts.kept] += 1
    assert min(found[kept] for kept in (MigrationExtent.PARTIAL, MigrationExtent.NONE)) >= 5, found


FILES = TABLE.replace("'connector' = 'kafka', 'topic' = 'orders'", "'connector' = 'filesystem', 'path' = '/in'")
METRICS = ("SUM(amount)", "SUM(amount), MAX(amount)", "MAX(amount), SUM(amount)", "COUNT(*), AVG(amount)")
SINKS = (
    "'connector' = 'filesystem', 'path' = '/a', 'format' = 'csv'",
    "'connector' = 'filesystem', 'path' = '/b', 'format' = 'csv'",
    "'connector' = 'filesystem', 'path' = '/a', 'format' = 'json'",
    "'connector' = 'filesystem', 'path' = '/b', 'format' = 'json'",
    "'connector' = 'print'",
    "'connector' = 'blackhole'",
)


def into_a_sink(metrics: str, written: str, condition: str) -> str:
    more = "".join(f", m{place} BIGINT" for place in range(metrics.count(",") + 1))
    query = OLD.replace("SUM(amount)", metrics).replace("GROUP BY", f"{condition} GROUP BY")
    return f"{FILES}CREATE TABLE s (customer STRING{more}) WITH ({written});\nINSERT INTO s {query}"


@pytest.mark.nightly
@pytest.mark.slow
def test_scripts_promise_no_less_than_plans_where_query_and_sink_change(tmp_path: Path) -> None:
    scripts = [into_a_sink(*each) for each in product(METRICS, SINKS, ("", "WHERE amount > 0"))]
    with local_planner(tmp_path) as planner:
        compiled = [read(each) for each in planner.plan((script, {}) for script in scripts) if isinstance(each, tuple)]
    assert len(compiled) == len(scripts)
    extents, found = list(MigrationExtent)[::-1], Counter[MigrationExtent]()
    every = list(permutations(zip(scripts, compiled, strict=True), 2))
    for (old, old_plans), (new, new_plans) in Random(0).sample(every, 700):
        changed = sides(old, new)
        if (by_scripts := script_migration(Change(*changed))) is not None:
            (by_plans,) = migrations(*changed, (old_plans, new_plans))
            assert extents.index(by_scripts.kept) >= extents.index(by_plans.kept), f"{old}\n{new}"
            found[by_scripts.kept] += 1
    assert min(found[kept] for kept in MigrationExtent) > 20, found


def test_a_check_says_what_would_be_kept_and_how() -> None:
    report = check(*sides())
    assert report.migration is not None
    assert report.migration.kept is MigrationExtent.PARTIAL
    assert "\n".join(report.migration.lines()) == (
        "  source orders: carried as it is\n"
        "  window-aggregate: rewritten field by field\n"
        "    keeps      SUM(amount)\n"
        "    begins now MAX((amount + 1))"
    )
    assert "flinkcompat migrate apply old.sql new.sql" in render_text(report)


HOPPING = "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)"
IN_A_ZONE = TABLE.replace("ts TIMESTAMP(3)", "ts TIMESTAMP_LTZ(3)")


@pytest.mark.parametrize(
    ("windows", "table", "kept", "reason"),
    [
        (
            "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            TABLE,
            MigrationExtent.WHOLE,
            "consist of stored slices",
        ),
        (
            "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE)",
            TABLE,
            MigrationExtent.NONE,
            "windows are longer",
        ),
        (
            "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND)",
            TABLE,
            MigrationExtent.NONE,
            "begin or end within a stored slice",
        ),
        (
            "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            IN_A_ZONE,
            MigrationExtent.NONE,
            "its rows, windows or",
        ),
    ],
)
def test_other_windows_go_on_where_they_are_made_of_stored_slices(
    windows: str, table: str, kept: MigrationExtent, reason: str
) -> None:
    query = "SELECT customer, window_end, SUM(amount) FROM TABLE({}) GROUP BY customer, window_start, window_end;"
    found = script_migration(Change(*sides(table + query.format(HOPPING), table + query.format(windows))))
    assert found is not None
    assert found.kept is kept
    (aggregation,) = (each for each in MigrationReport.of(found).operators if each.operator == "window-aggregate")
    assert reason in aggregation.reason


def test_literals_that_are_secrets_are_not_shown() -> None:
    new = f"SELECT customer, SUM(amount), MAX(JSON_VALUE('password=hunter2', '$.a')) {WINDOW};"
    assert "hunter2" not in str(check(*sides(new=TABLE + new)).to_dict())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        sides(new=TABLE.replace("'orders'", "'others'") + NEW),
        sides(new=TABLE.replace("amount BIGINT", "amount BIGINT, more INT") + NEW),
        sides(new=TABLE + "SET 'table.exec.mini-batch.enabled' = 'true';\n" + NEW),
        sides(new=TABLE + "SET 'state.backend.type' = 'rocksdb';\n" + NEW),
        sides(engine_version="1.20"),
        sides(TABLE + OLD + OLD, TABLE + NEW + NEW),
        sides(new=TABLE + NEW.replace("MAX(amount + 1)", "own(amount)")),
        sides(new=TABLE + f"SELECT customer, COUNT(*) FROM ({OLD.rstrip(';')}) GROUP BY customer;"),
        sides(OLD, NEW),
    ],
    ids=["topic", "columns", "setting", "backend", "line", "several", "function", "two operators", "undeclared"],
)
def test_nothing_is_said_where_the_scripts_do_not_tell_all(old: Side, new: Side) -> None:
    assert script_migration(Change(old, new)) is None
    assert check(old, new).migration is None


@pytest.mark.parametrize(
    ("connector", "kept"),
    [("kafka", MigrationExtent.PARTIAL), ("filesystem", MigrationExtent.PARTIAL), ("kinesis", MigrationExtent.NONE)],
)
def test_what_a_sink_keeps_under_other_columns(connector: str, kept: MigrationExtent) -> None:
    """Files in progress and transactions hold no columns; of other connectors that was not measured."""
    sink = f"CREATE TABLE s (customer STRING, total BIGINT{{more}}) WITH ('connector' = '{connector}');\n"
    changed = sides(
        TABLE + sink.format(more="") + "INSERT INTO s " + OLD,
        TABLE + sink.format(more=", peak BIGINT") + "INSERT INTO s " + NEW,
    )
    found = script_migration(Change(*changed))
    assert found is not None
    assert found.kept is kept
    report = check(*changed)
    assert report.migration_is_unknown == (kept is MigrationExtent.NONE), "only the planner says that nothing is kept"


@pytest.mark.parametrize(
    ("place", "kept"), [("'path' = '/b', 'format' = 'csv'", "carried"), ("'path' = '/b', 'format' = 'json'", "dropped")]
)
def test_a_sink_at_another_place_beside_a_new_metric(place: str, kept: str) -> None:
    """A file that is not finished goes on at the old place, unless each is finished at a checkpoint, as csv is."""
    sink = "CREATE TABLE s (customer STRING, total BIGINT{}) WITH ('connector' = 'filesystem', {});\n"
    changed = sides(
        TABLE + sink.format("", place.replace("/b", "/a")) + "INSERT INTO s " + OLD,
        TABLE + sink.format(", peak BIGINT", place) + "INSERT INTO s " + NEW,
    )
    found = script_migration(Change(*changed))
    assert found is not None
    *_, written = MigrationReport.of(found).operators
    assert written.effect.value.startswith(kept)


def test_what_a_migration_does_not_see() -> None:
    """A setting that no plan shows is for a person to judge; what plans and declarations show is not."""
    seen = check(*sides(TABLE + OLD, TABLE + NEW))
    assert seen.unseen == ()
    setting = "SET 'table.exec.nobody-knows-it' = '{}';\n"
    report = check(*sides(setting.format(1) + TABLE + OLD, setting.format(2) + TABLE + NEW))
    assert [each.rule for each in report.unseen] == ["setting-changed"]


@pytest.mark.parametrize(("kept", "seen"), [("whole", True), ("partial", False)])
def test_another_condition_is_seen_where_all_state_is_computed_without_the_stored_one(kept: str, seen: bool) -> None:
    report = check(*sides(TABLE + OLD, TABLE + OLD.replace("GROUP BY", "WHERE amount > 3 GROUP BY")))
    assert [each.rule for each in report.unseen] == ["filter-below-state"]
    operators = (MigratedOperator("group-aggregate", RestoreEffect.COMPUTED, ""),)
    computed = replace(report, migration=MigrationReport(MigrationExtent(kept), operators))
    assert (computed.unseen == ()) is seen
    carried = (MigratedOperator("group-aggregate", RestoreEffect.RIGHT, ""),)
    assert replace(report, migration=MigrationReport(MigrationExtent.WHOLE, carried)).unseen == report.unseen
