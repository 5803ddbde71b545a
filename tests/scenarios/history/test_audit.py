"""What history says is what Flink had stored, byte for byte; and a history that is not whole is told."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.migration import Accept, Migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.history import computing, sources
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.migration import NotMigratable, migrate_savepoint
from airflow_flinkcompat.migration.computed import Differences, HistoryDiffers
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import FilesRead, file_positions
from airflow_flinkcompat.spark_migration import SparkWorkers
from dev.measure.progress import epoch_millis
from dev.measure.savepoint_fixtures import FOLDER as MIGRATIONS
from dev.measure.savepoint_fixtures import NOW, load_changes, load_scripts, migration_of
from dev.measure.savepoint_fixtures import change as migrated
from tests.scenarios.history.stored import Held, stored
from tests.support.savepoint.savepoints import FOLDER

ROWS = Path(__file__).parents[3] / "dev" / "measure" / "data"
EQUAL = {
    "2.3/tumble": 5,
    "2.3/cumulate": 6,
    "2.3/group-rocksdb": 5,
    "2.3/group-compressed": 5,
    "2.3/group-in-files": 5,
    "2.3/group-parallel": 6,
    "2.3/group-all": 1,
    "2.3/hop-distinct": 14,
    "2.3/group-distinct": 26,
    "2.3/top-n-counted": 10,
    "2.3/inner-join": 21,
    "2.3/deduplicated": 5,
    "2.3/top-n": 7,
    "2.3/top-1": 5,
    "2.3/window-first-row": 5,
    "2.3/session": 6,
    "2.3/over-unbounded": 5,
    "2.3/over-rows": 24,
    "1.20/tumble": 5,
}
"""Savepoints of a real Flink, and the number of keys or windows that their first aggregation holds."""

OVER_ONE_ANOTHER = {
    "2.3/group-retracting": (5, 15),
    "2.3/retracting-sum": (5, 3),
    "2.3/retracting-numbers": (5, None),
    "2.3/left-join": (5, 15),
    "2.3/join-of-keyed": (5, None, 10),
    "2.3/top-n-updating": (10, 20),
    "2.3/top-1-counted": (10, 10),
    "2.3/deduplicated-mini-batch": (5, 5, 5, 5),
    "1.20/retracting-numbers": (5, None),
}
"""The same of several operators, of which each gets rows of the one before; None where it is not computed."""

DAILY = {"2.3/group-retracting"}
OVER_BY_TIME = {"accState", "inputState", "lastTriggeringTsState"}
NOT_READ = "came-after-the-savepoint.csv"

pytestmark = pytest.mark.slow
Edit = Callable[[list[str]], list[str]]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a folder of the rows that the job of a savepoint had read, which names files of the machine it ran on."""

    def moved(operator: OperatorState, path: str) -> FilesRead:
        found = file_positions(operator, path)
        names = (each.rpartition("/data/")[2].partition("/")[2] for each in found.seen)
        return replace(found, seen=frozenset((tmp_path / name).as_uri() for name in names))

    monkeypatch.setattr(sources, "file_positions", moved)

    def made(table: str) -> Path:
        folder = tmp_path / table
        folder.mkdir()
        for file in (ROWS / table).glob("before*.csv"):
            if ".filler" not in file.name:
                (folder / file.name).write_bytes(file.read_bytes())
        filler = ROWS / table / "before.filler.csv"
        for number in (1, 2) if filler.is_file() else ():
            (folder / f"before-filler-{number}.csv").write_bytes(filler.read_bytes())
        (folder / NOT_READ).write_bytes((ROWS / table / "after.csv").read_bytes())
        return folder

    return made


@cache
def case(name: str) -> tuple[Side, Migration]:
    """The script of a savepoint, and the migration to itself."""
    plan = (FOLDER / name / "plan.json").read_text("utf-8")
    (side,) = (each.side for each in load_scripts() if each.name == name.partition("/")[2])
    return Side(side.script, dict(side.settings), engine="flink"), migration_of(plan, plan)


def audited(name: str, folder: Path) -> Differences | NotComputable:
    side, change = case(name)
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    return KnownHistory({folder.name: ""}).audit(side, str(FOLDER / name), change)[0][1]


@pytest.mark.parametrize(
    "name", [name if name in DAILY else pytest.param(name, marks=pytest.mark.nightly) for name in EQUAL]
)
def test_history_says_what_flink_stored(name: str, history: Callable[[str], Path], spark: SparkSession) -> None:
    found = audited(name, history("busy" if name == "2.3/group-parallel" else "orders"))
    assert isinstance(found, Differences), found
    assert (str(found) if found else "", found.compared) == ("", EQUAL[name])


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("", "", True),
        ("AS ts", "AS ts - INTERVAL '1' SECOND", False),
        ("ts TIMESTAMP(3)", "written STRING, ts AS TO_TIMESTAMP(written)", False),
    ],
)
def test_timers_tell_what_was_sent_by_their_own_clock(before: str, after: str, told: bool) -> None:
    """The same rows come to both, which Flink's plan does not tell of the event time."""
    (new, _), plan = case("2.3/over-unbounded"), (FOLDER / "2.3/over-unbounded/plan.json").read_text("utf-8")
    assert before in new.script
    old = Side(new.script.replace(before, after) if before else new.script, new.settings, engine="flink")
    lines = (
        replace(line, effect=RestoreEffect.NOT_MIGRATABLE) if line.new and line.new.kind is StateKind.OPERATOR else line
        for line in migration_of(plan, plan).operators
    )
    found, reasons = KnownHistory({"orders": ""}).extend(Migration(tuple(lines)), new, old)
    assert any(line.from_history for line in found.operators) is told
    assert [reason.endswith("and an unchanged event time") for reason in reasons.values()] == [True] * (not told)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["over-unbounded", "over-rows"])
def test_another_frame_holds_what_a_job_holds_that_always_had_it(
    name: str, history: Callable[[str], Path], spark: SparkSession, tmp_path: Path
) -> None:
    """No row waits, so that the timers of the old job tell nothing but that."""
    folder = history("orders")
    plans = [(FOLDER / "2.3" / each / "plan.json").read_text("utf-8") for each in (name, "over")]
    old, new = (
        Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
        for side in (case(f"2.3/{name}")[0], case("2.3/over")[0])
    )
    change, reasons = (known := KnownHistory({"orders": ""})).extend(migration_of(*plans), new, old)
    assert not reasons
    before, template = (str(FOLDER / "2.3" / each) for each in (name, "over"))
    with known.computing(old, new, before, change, lambda line: None) as computer:
        migrate_savepoint(before, template, str(tmp_path / "to"), change, NOW, computer.workers, computer)
    made, held = (
        {state: entries for (_, state), entries in stored(each).items() if state in OVER_BY_TIME}
        for each in (str(tmp_path / "to"), template)
    )
    assert made == held
    assert len(made) == len(OVER_BY_TIME)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OVER_ONE_ANOTHER)
def test_what_operators_make_of_the_rows_of_others(
    name: str, history: Callable[[str], Path], spark: SparkSession
) -> None:
    side, change = case(name)
    folder = history("orders")
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    found = [each for _, each in KnownHistory({folder.name: ""}).audit(side, str(FOLDER / name), change)]
    assert not [str(each) for each in found if isinstance(each, Differences) and each]
    assert tuple(each.compared if isinstance(each, Differences) else None for each in found) == OVER_ONE_ANOTHER[name]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "compared"), [("2.3/first-row", 5), ("2.3/group-window", 5)])
def test_what_is_stored_beside_no_watermark(
    name: str, compared: int, history: Callable[[str], Path], spark: SparkSession
) -> None:
    """Flink was told of all that stood in front of the last row."""
    side, change = case(name)
    folder = history("orders")
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    specs = {line.new.kind: line.new for line in change.operators if line.new is not None}
    spec, source = specs[StateKind.OPERATOR], specs[StateKind.POSITIONS]
    locations = sources.read_positions(str(FOLDER / name), {source.name: source.id}, {})
    reached = {spec.id: epoch_millis("2024-01-01 00:01:40")}
    computer = computing.HistoryComputer(spark, SparkWorkers(spark), side, locations, reached=reached)
    found = computing.audit(computer, str(FOLDER / name), spec)
    assert (str(found) if found else "", found.compared) == ("", compared)
    with pytest.raises(NotComputable, match="the savepoint does not store the watermark"):
        computing.audit(replace(computer, reached={}), str(FOLDER / name), spec)


class Comparing(computing.HistoryComputer):
    """Compares what need not be equal too."""

    def query(self, spec: StateSpec, watermark: int | None, stored_windows_are_open: bool = False) -> StateQuery:
        return replace(super().query(spec, watermark, stored_windows_are_open), incomparable="")


@pytest.mark.nightly
def test_the_rows_that_an_interval_join_still_joins(history: Callable[[str], Path], spark: SparkSession) -> None:
    """And when they are taken away; which of two rows came first Flink stores too, and no result depends on it."""
    name = "2.3/interval-join"
    side, change = case(name)
    folder = history("orders")
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    specs = {line.new.kind: line.new for line in change.operators if line.new is not None}
    spec, source = specs[StateKind.OPERATOR], specs[StateKind.POSITIONS]
    locations = sources.read_positions(str(FOLDER / name), {source.name: source.id}, {})
    with pytest.raises(NotComputable, match="it keeps rows for some time after their last match"):
        computing.audit(
            computing.HistoryComputer(spark, SparkWorkers(spark), side, locations), str(FOLDER / name), spec
        )
    found = computing.audit(Comparing(spark, SparkWorkers(spark), side, locations), str(FOLDER / name), spec)
    assert (found.compared, found.unknown, found.added) == (16, 0, 0)
    assert found.shown == ["a='y' has other right.a, right.d, right.ts in history"]


def test_a_first_row_that_may_have_come_late(history: Callable[[str], Path], spark: SparkSession) -> None:
    """Of a key of which another row came in time it does not matter."""
    side, change = case("2.3/first-row")
    folder = history("orders")
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    (spec,) = (each.new for each in change.operators if each.new is not None and each.new.kind is StateKind.OPERATOR)
    computer = computing.HistoryComputer(spark, SparkWorkers(spark), side, TableLocations())
    (folder / NOT_READ).unlink()
    (file,) = folder.iterdir()
    rows, watermark = file.read_text("utf-8"), epoch_millis("2024-01-01 00:01:40")
    for late in ("", "x,1,a,1,2024-01-01 00:00:05.000\n"):
        file.write_text(rows + late, "utf-8")
        assert computer.query(spec, watermark).states
    file.write_text(rows + "late,1,a,1,2024-01-01 00:00:05.000\n", "utf-8")
    with pytest.raises(NotComputable, match="a first row may have arrived too late"):
        computer.query(spec, watermark)


COUNTED = {
    "2.3/group-rocksdb": ".",
    "2.3/inner-join": ".",
    "2.3/group-compressed": ".",
    "2.3/group-retracting": ".",
    "2.3/left-join": ".",
    "2.3/top-n-counted": ".",
    "2.3/tumble": " 00:01:",
    "2.3/hop-distinct": " 00:01:",
    "2.3/cumulate": " 00:01:",
    "2.3/retracting-sum": ".",
    "1.20/tumble": " 00:01:",
}
"""Savepoints, and which rows the state depends on: those of windows that are open."""


def edits(lines: list[str], counted: str, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Histories that are not what the job had read, each with what is wrong."""
    draw = random.Random(seed)
    choice = [number for number, line in enumerate(lines) if re.search(counted, line)]
    chosen = sorted(draw.sample(choice, draw.randint(1, 3)))
    yield "rows are missing", [line for number, line in enumerate(lines) if number not in chosen]
    yield "rows are there twice", [*lines, *(lines[number] for number in chosen)]
    a, b, *rest = lines[chosen[0]].split(",")
    if counted != "." or seed % len(COUNTED) < 2:  # where no metric or row has it, nobody can tell
        other = [*lines[: chosen[0]], ",".join([a, str(int(b) + 1), *rest]), *lines[chosen[0] + 1 :]]
        yield "a value is another one", other
    yield "a key is another one", [*lines[: chosen[0]], ",".join(["elsewhere", b, *rest]), *lines[chosen[0] + 1 :]]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3 * len(COUNTED)))
def test_a_history_that_is_not_whole_differs(seed: int, history: Callable[[str], Path], spark: SparkSession) -> None:
    name, counted = [*COUNTED.items()][seed % len(COUNTED)]
    folder = history("orders")
    side, change = case(name)
    side = Side(side.script.replace("file://DATA", folder.parent.as_uri()), side.settings, engine="flink")
    known = KnownHistory({folder.name: ""})
    (file,) = (each for each in folder.iterdir() if each.name != NOT_READ)
    for wrong, lines in edits(file.read_text("utf-8").splitlines(), counted, seed):
        file.write_text("\n".join(lines) + "\n", "utf-8")
        found = [each for _, each in known.audit(side, str(FOLDER / name), change)]
        assert any(isinstance(each, Differences) and each and each.shown for each in found), wrong
    file.unlink()
    with pytest.raises((InputError, NotMigratable), match="no longer contains"):
        known.audit(side, str(FOLDER / name), change)


@pytest.mark.slow
@pytest.mark.nightly
def test_what_differs_is_written_on_request_alone(
    history: Callable[[str], Path], spark: SparkSession, tmp_path: Path
) -> None:
    """What is stored stays as it is then, and a key that history alone has is not written."""
    (case,) = (each for each in load_changes() if each.title == "a metric is added to a tumbling window")
    folder, name = history("orders"), case.title.replace(" ", "-")
    old, new = (
        Side(side.script.replace("file://DATA", folder.parent.as_uri()), engine="flink")
        for side in (case.old, case.new)
    )
    (file,) = (each for each in folder.iterdir() if each.name != NOT_READ)
    file.write_text(re.sub("^x,", "elsewhere,", file.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    places = [str(MIGRATIONS / name / side) for side in ("old", "template")]

    def written(known: KnownHistory | None, to: str) -> tuple[list[str], Held]:
        said: list[str] = []
        change = migrated(name)
        if known is None:
            migrate_savepoint(*places, str(tmp_path / to), change, NOW)
        else:
            change = known.applied(change, old, new)
            with known.computing(old, new, places[0], change, said.append) as computer:
                migrate_savepoint(*places, str(tmp_path / to), change, NOW, computer.workers, computer)
        return said, stored(str(tmp_path / to))

    with pytest.raises(HistoryDiffers, match="or accept history"):
        written(KnownHistory({"orders": ""}), "refused")
    assert not (tmp_path / "refused" / "_metadata").exists()
    said, accepted = written(KnownHistory({"orders": ""}, accepted=(Accept.HISTORY,)), "accepted")
    (told,) = (
        line for line in said if "history differs from the rows that the job has read, which was accepted" in line
    )
    assert "missing in the savepoint" in told
    plain = written(None, "plain")[1]
    assert {state: held.total() for state, held in accepted.items()} == {
        state: held.total() for state, held in plain.items()
    }
    assert accepted != plain, "what begins is of history"
