"""What declarations say of stored positions and of what sinks have not committed: compiled plans hold no options."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import InputError, Side
from airflow_flinkcompat.compat.plan_comparison import SourceOverrides, migrations
from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.connectors.registry import column_identity
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.migration import Accept, Migration, MigrationExtent, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind

CASE = Path(__file__).parents[2] / "fixtures" / "migrations" / "a-metric-is-added-to-a-tumbling-window"
KAFKA = {
    "connector": "kafka",
    "topic": "shop",
    "properties.bootstrap.servers": "a:9092,b:9092",
    "scan.startup.mode": "earliest-offset",
    "format": "csv",
}


def migrated(
    old: Mapping[str, str] | None,
    new: Mapping[str, str] | None,
    *restarted: str,
    name: str = "orders",
    renamed: Mapping[str, str] | None = None,
    sinks: tuple[str, str] = ("print", "print"),
    accepted: Collection[Accept] = (),
    price: bool = False,
) -> Migration:
    """The fixture's change, its source declared with these options, or nowhere, and named so by the new script.

    With ``price`` the column of which a sum is gathered, b, has that name in the new script.
    """
    sides, plans = [], []
    for side, options, sink in (("old", old, sinks[0]), ("new", new, sinks[1])):
        declared = ", ".join(f"'{key}' = '{value}'" for key, value in (options or {}).items())
        text, plan = ((CASE / f"{side}.{kind}").read_text("utf-8") for kind in ("sql", "json"))
        head, rest = text.split(") WITH (\n", 1)
        behind = rest[rest.index("\n);") :]
        script = behind[3:] if options is None else f"{head}) WITH ({declared}{behind}"
        script = script.replace("'connector' = 'print'", f"'connector' = '{sink}'")
        if side == "new":
            script, plan = script.replace("orders", name), plan.replace("`orders`", f"`{name}`")
        if side == "new" and price:
            script, plan = (re.sub(r"\bb\b", "price", text) for text in (script, plan))
        sides.append(Side(script, engine="flink"))
        plans.append((read_plan(plan),))
    (made,) = migrations(sides[0], sides[1], (plans[0], plans[1]), SourceOverrides(restarted, renamed or {}), accepted)
    return made


def source(made: Migration) -> OperatorMigration:
    (line,) = (each for each in made.operators if (each.new or each.old).kind is StateKind.POSITIONS)  # type: ignore[union-attr]
    return line


@pytest.mark.parametrize(
    "other",
    [
        {"scan.startup.mode": "latest-offset"},
        {"properties.group.id": "another"},
        {"properties.bootstrap.servers": "b:9092"},
        {"csv.ignore-parse-errors": "true"},
        {},
    ],
)
def test_positions_are_kept_of_the_same_place(other: Mapping[str, str]) -> None:
    made = migrated(KAFKA, {**KAFKA, **other})
    assert (source(made).effect, made.kept) == (RestoreEffect.RIGHT, MigrationExtent.PARTIAL)


@pytest.mark.parametrize(
    ("old", "other", "says"),
    [
        (KAFKA, {"topic": "clicks"}, "topic changed, so it may read different data"),
        (KAFKA, {"topic": "shop;clicks"}, "topic changed"),
        (KAFKA, {"properties.bootstrap.servers": "c:9092"}, "properties.bootstrap.servers changed"),
        (KAFKA, {"nobody.knows": "1"}, "nobody.knows changed"),
        (KAFKA, {"connector": "pulsar"}, "connector changed"),
        ({"connector": "filesystem", "path": "/a", "format": "csv"}, {"path": "/b"}, "path changed"),
        ({"connector": "mine", "place": "a"}, {"place": "b"}, "place changed"),
    ],
)
def test_positions_of_another_place_are_no_start(old: Mapping[str, str], other: Mapping[str, str], says: str) -> None:
    """Flink would read the old topic on, and a new one from its beginning, without a word."""
    new = {**old, **other}
    made = migrated(old, new)
    line = source(made)
    assert (line.effect, made.kept, made.refused) == (RestoreEffect.NOT_MIGRATABLE, MigrationExtent.NONE, True)
    assert line.reason.startswith(says)
    assert "restart it with --restart-source orders, or in a DAG with source-moved in check.accept" in line.reason
    for anew in (migrated(old, new, "orders"), migrated(old, new, accepted=(Accept.SOURCE_MOVED,))):
        assert (source(anew).effect, anew.kept, anew.refused) == (RestoreEffect.EMPTY, MigrationExtent.PARTIAL, False)


def test_only_what_moved_begins_anew_by_itself() -> None:
    made = migrated(KAFKA, {**KAFKA, "scan.startup.mode": "latest-offset"}, accepted=(Accept.SOURCE_MOVED,))
    assert source(made).effect is RestoreEffect.RIGHT


AVRO_FILES = {"connector": "filesystem", "path": "/a", "format": "avro"}


@pytest.mark.parametrize(
    ("options", "begun"),
    [
        (KAFKA, ("MAX(d)",)),
        ({**KAFKA, "format": "json"}, ("SUM(price)", "MAX(d)")),
        ({**KAFKA, "key.format": "csv", "key.fields": "a", "value.format": "json"}, ("SUM(price)", "MAX(d)")),
        ({**KAFKA, "format": "avro"}, ("MAX(d)",)),
        (AVRO_FILES, ("SUM(price)", "MAX(d)")),
    ],
)
def test_a_column_of_another_name_is_the_same_where_rows_say_no_names(
    options: Mapping[str, str], begun: tuple[str, ...]
) -> None:
    made = migrated(options, options, price=True)
    assert [line.new_fields for line in made.operators if line.effect is RestoreEffect.REWRITTEN] == [begun]


@pytest.mark.parametrize(
    ("options", "partitioned", "identity"),
    [
        ({"format": "csv"}, False, ColumnIdentity.PLACE),
        ({"format": "csv"}, True, ColumnIdentity.BOTH),
        ({"format": "json"}, True, ColumnIdentity.NAME),
        ({"key.format": "csv", "value.format": "csv"}, False, ColumnIdentity.BOTH),
        ({"key.format": "json", "value.format": "json"}, False, ColumnIdentity.NAME),
    ],
)
def test_what_makes_a_column_the_same_one(
    options: Mapping[str, str], partitioned: bool, identity: ColumnIdentity
) -> None:
    assert column_identity(options, partitioned=partitioned) is identity


def test_a_source_that_is_not_there() -> None:
    with pytest.raises(
        InputError, match="no source is named order; choose from the sources that store positions: orders"
    ):
        migrated(KAFKA, KAFKA, "order")


def test_a_source_of_another_name_is_the_same_by_its_options() -> None:
    assert source(migrated(KAFKA, KAFKA, name="purchases")).effect is RestoreEffect.RIGHT
    moved = source(migrated(KAFKA, {**KAFKA, "topic": "clicks"}, name="purchases"))
    assert (moved.effect, moved.reason.partition(",")[0]) == (RestoreEffect.NOT_MIGRATABLE, "topic changed")
    told = migrated(KAFKA, {**KAFKA, "topic": "clicks"}, name="purchases", renamed={"purchases": "orders"})
    assert source(told).effect is RestoreEffect.NOT_MIGRATABLE, "its name is not what changed"


def test_of_tables_that_nobody_declares_the_name_is_all_there_is() -> None:
    assert source(migrated(None, None)).effect is RestoreEffect.RIGHT
    line = source(migrated(None, None, name="purchases"))
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert line.reason == (
        "it has a different name than orders; if it is the same table, pass --source-renamed orders=purchases, or "
        "restart it with --restart-source purchases, or in a DAG with source-moved in check.accept"
    )
    told = migrated(None, None, name="purchases", renamed={"purchases": "orders"})
    assert source(told).effect is RestoreEffect.RIGHT


@pytest.mark.parametrize("renamed", [{"purchases": "order"}, {"purchase": "orders"}])
def test_a_renamed_source_that_is_not_there(renamed: Mapping[str, str]) -> None:
    with pytest.raises(
        InputError,
        match=r"no source is named (order|purchase); choose from the sources that store "
        r"positions: ",
    ):
        migrated(KAFKA, KAFKA, name="purchases", renamed=renamed)


@pytest.mark.parametrize(
    ("connectors", "kept", "refused"),
    [
        (("filesystem", "filesystem"), RestoreEffect.RIGHT, False),
        (("kafka", "kafka"), RestoreEffect.RIGHT, False),
        (("filesystem", "kafka"), RestoreEffect.EMPTY, True),
        (("print", "filesystem"), RestoreEffect.EMPTY, True),
    ],
)
def test_what_a_sink_has_not_committed_is_its_own_connectors(
    connectors: tuple[str, str], kept: RestoreEffect, refused: bool
) -> None:
    """Another connector would pass over what the former one has stored, and its rows would be lost."""
    made = migrated(KAFKA, KAFKA, sinks=connectors)
    (line,) = (each for each in made.operators if each.new and each.new.kind is StateKind.SINK)
    assert (line.effect, made.refused) == (kept, refused)


@pytest.mark.parametrize("connectors", [("jdbc", "jdbc"), ("print", "jdbc"), ("jdbc", "blackhole")])
def test_a_sink_that_keeps_nothing_takes_other_columns(connectors: tuple[str, str]) -> None:
    """A metric is added, so that the sink's columns are others."""
    made = migrated(KAFKA, KAFKA, sinks=connectors)
    assert not [each for each in made.operators if (each.new or each.old).kind is StateKind.SINK]  # type: ignore[union-attr]
    assert (made.kept, made.refused) == (MigrationExtent.PARTIAL, False)


BROKERS = {"topic": "sums", "properties.bootstrap.servers": "one:9092", "format": "json"}


@pytest.mark.parametrize(
    ("connector", "other", "kept"),
    [
        ("kafka", {"topic": "others"}, RestoreEffect.RIGHT),
        ("kafka", {"properties.linger.ms": "5"}, RestoreEffect.RIGHT),
        ("kafka", {"nobody.knows": "1"}, RestoreEffect.EMPTY),
        (
            "kafka",
            {"properties.bootstrap.servers": "two:9092", "sink.delivery-guarantee": "exactly-once"},
            RestoreEffect.EMPTY,
        ),
    ],
)
def test_what_a_sink_has_begun_stays_at_its_place(
    connector: str, other: Mapping[str, str], kept: RestoreEffect
) -> None:
    """Transactions that are not committed are asked for at the brokers that the new script names."""
    exactly = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "x"}
    both = {**BROKERS, **(exactly if "sink.delivery-guarantee" in other else {})}
    old, new = (
        f"{connector}', " + ", ".join(f"'{key}' = '{value}" + "'" for key, value in options.items())
        for options in (both, {**both, **other})
    )
    made = migrated(KAFKA, KAFKA, sinks=(old.removesuffix("'"), new.removesuffix("'")))
    (line,) = (each for each in made.operators if each.new and each.new.kind is StateKind.SINK)
    assert (line.effect, made.refused) == (kept, kept is not RestoreEffect.RIGHT)


@pytest.mark.parametrize(("format", "gone"), [("csv", set()), ("json", {"SUM(b)"})])
def test_rows_without_names_say_by_place_which_column_is_meant(format: str, gone: set[str]) -> None:
    """Two columns change places, and the new plan goes on to pick the second one, which has another name now."""
    sides, plans = [], []
    for side in ("old", "new"):
        text, plan = ((CASE / f"{side}.{kind}").read_text("utf-8") for kind in ("sql", "json"))
        sides.append(Side(text.replace("'csv'", f"'{format}'"), engine="flink"))
        if side == "new":
            written = json.loads(plan)
            columns = written["nodes"][0]["scanTableSource"]["table"]["resolvedTable"]["schema"]["columns"]
            columns[1]["name"], columns[3]["name"] = columns[3]["name"], columns[1]["name"]
            plan = json.dumps(written)
        plans.append((read_plan(plan),))
    (made,) = migrations(sides[0], sides[1], (plans[0], plans[1]))
    assert {metric for line in made.operators for metric in line.dropped_fields} == gone


def test_a_function_that_was_registered_keeps_what_nobody_measured() -> None:
    sides, plans = [], []
    for side in ("old", "new"):
        text, plan = ((CASE / f"{side}.{kind}").read_text("utf-8") for kind in ("sql", "json"))
        sides.append(Side(text, engine="flink"))
        registered = '"catalogName": "`default_catalog`.`default_database`.`middle`"'
        plans.append((read_plan(re.sub(r'"internalName" ?: "\$MAX\$1"', registered, plan)),))
    (made,) = migrations(sides[0], sides[1], (plans[0], plans[1]))
    assert made.kept is MigrationExtent.NONE
    assert [line.reason for line in made.operators if line.effect is RestoreEffect.NOT_MIGRATABLE] == [
        "the state of middle was not measured"
    ]
