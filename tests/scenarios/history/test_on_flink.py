"""A real Flink goes on from state that was computed from history, as though the new job had always run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.sources import Until
from airflow_flinkcompat.history.warm_start import WarmStart
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.migration.slices import TIMERS, USER_TIMERS
from airflow_flinkcompat.plan.nodes import Scan, Table, walk_nodes
from airflow_flinkcompat.testing import fixture_cases
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import Side
from dev.measure.savepoint_fixtures import load_scripts, migration_of
from tests.scenarios.history.stored import Held, stored
from tests.scenarios.migration.test_on_flink import NOW, shown

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
NAMES = (
    "cases",
    "expressions",
    "operators",
    "group_windows",
    "joins",
    "over_several",
    "over",
    "over_by_time",
    "at_their_end",
    "first_rows",
    "intervals",
    "moments",
    "moments_twice",
    "out_of_order",
)
FILES = [Path(__file__).with_name(f"{name}.sql") for name in NAMES]
NEW_TABLES = Path(__file__).with_name("new_tables.sql")
REFUSED = Path(__file__).with_name("refused.sql")
TABLE = re.compile(r"CREATE TABLE (\w+)")
PRINTED = re.compile(r"CREATE TABLE (\w+) [^;]*'connector' = 'print'")
DAILY = frozenset({"metrics are added to a tumbling window"})
"""Beside what is kept, and in place of it: a case takes about six seconds."""
SAMPLED = re.compile(r"the state of [1-9]\d* keys is equal when recomputed in plain Python")
NOT_SAMPLED = "no key was recomputed in plain Python: "
NONE_DRAWN = f"{NOT_SAMPLED}there is no key, or the sampled keys have too many rows"
OF_ONE_ROW = r"SESSION\(|ROW_NUMBER\(|RANK\(|\bOVER\b|[+-] INTERVAL '\d+' \w+ (AND|;)|FULL JOIN"
"""In scripts of which some state is of single rows: that is neither computed once more nor prepared."""
NOT_COMPUTED_AGAIN = re.compile(rf"{OF_ONE_ROW}|GROUP BY .*TUMBLE\(|JOIN \(SELECT .*GROUP BY", re.DOTALL)
NOT_PREPARED = re.compile(rf"{OF_ONE_ROW}|LEFT JOIN|JOIN .*(JOIN|GROUP BY)|GROUP BY .*(JOIN|GROUP BY)", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One change: ``computed`` are the metrics that history says, or ``all``; ``refused`` why nothing is."""

    title: str
    old: Side
    new: Side
    computed: str
    refused: str = ""


def load_cases(files: Sequence[Path] = FILES) -> Iterator[Case]:
    for file in files:
        _, given, cases = fixture_cases.read(file.read_text("utf-8"), file.name)
        for head, old, new in cases:
            found = fixture_cases.headers(head, {"computed", "refused", "settings"}, file.name, {"settings"})
            computed, refused = ("".join(text for _, text in found.get(key, ())) for key in ("computed", "refused"))
            settings = tuple(fixture_cases.settings(found, "settings", file.name).items())
            yield Case(
                head.title, Side(given + old.text, settings), Side(given + new.text, settings), computed, refused
            )


CASES = [
    case if case.title in DAILY else pytest.param(case, marks=pytest.mark.nightly, id=case.title)
    for case in load_cases()
]
READ_LATER = [
    case
    for case in CASES
    if not re.search(r"SESSION\(|came DESC", str(case)) and not ("an OVER" in str(case) and "ORDER BY ts" in str(case))
]
"""Changes of which the state is told at a later savepoint too: rows after come late for sessions, and in a second file,
where nothing tells any more which row of a key came last, nor whether one came late for an OVER.
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("bootstrap")
    with (
        LocalFlink(folder / "flink", slots=4, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as made,
    ):
        (folder / "data").mkdir()
        yield made


def in_folder(script: str, folder: Path) -> str:
    """The script over the files of a run."""
    return script.replace("file://DATA", folder.as_uri())


def told(change: Migration) -> str:
    """What is computed, as a case says it, of each operator."""
    lines = (each for each in change.operators if each.from_history)
    return "; ".join("all" if line.effect is RestoreEffect.COMPUTED else ", ".join(line.computed) for line in lines)


def kept(old: Side, new: Side, bench: PairRunner) -> Migration:
    """What the new job keeps without history."""
    printed = {f"`default_catalog`.`default_database`.`{name}`" for name in PRINTED.findall(old.script + new.script)}
    return migration_of(bench.compiled(old), bench.compiled(new), stateless_sinks=printed)


def is_sampled(said: Sequence[str], new: Side) -> bool:
    """Whether keys were computed once more of each state of which that is done."""
    if NOT_COMPUTED_AGAIN.search(new.script):
        return any(SAMPLED.search(line) or NOT_SAMPLED in line for line in said)
    return any(map(SAMPLED.search, said)) and all(NONE_DRAWN in line for line in said if NOT_SAMPLED in line)


def goes_on(
    case: Case,
    bench: PairRunner,
    bound: Callable[[str, Path], str],
    place: Callable[[str, str], str] = lambda savepoint, script: "",
    kept_back: Sequence[str] = (),
) -> Mapping[tuple[str, ...], int]:
    """All rows of the job that starts from the written savepoint are those of the new SQL over all input.

    ``place`` says where the rows lie that a script of a savepoint's job reads; "": where it says so. Rows after come
    to the tables ``kept_back`` once the savepoint is written. What is sent is given back, each row with how often.
    """
    old, new = bench.complete(case.old), bench.complete(case.new)
    savepoint = bench.savepoint(old, kept_back)
    before, side = (
        JobSide(bound(each.script, savepoint.folder), dict(each.settings), engine="flink") for each in (old, new)
    )
    given = place(savepoint.path, before.script)
    history = KnownHistory({name: given for name in TABLE.findall(new.script) if name != "Printed"})
    change, reasons = history.extend(kept(old, new, bench), side, before)
    assert not reasons
    assert told(change) == case.computed
    target = f"{savepoint.folder}/migrated"
    said: list[str] = []
    with history.computing(before, side, savepoint.path, change, said.append) as computer:
        migrate_savepoint(
            savepoint.path, bench.template(new), target, change, round(time.time() * 1000), computer.workers, computer
        )
    bench.bring(savepoint, kept_back)
    assert is_sampled(said, new)
    restored = bench.restored(new, replace(savepoint, path=f"file:{target}"))
    _, expected = bench.from_scratch(new)
    every = range(len(expected[0].split(", ")) if expected else 0)
    sent = shown(restored, every)
    assert sent == shown(expected, every)
    return sent


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_job_goes_on_as_though_it_had_always_run(case: Case, bench: PairRunner, spark: SparkSession) -> None:
    assert goes_on(case, bench, in_folder)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [*load_cases([NEW_TABLES])], ids=lambda case: case.title)
def test_a_table_that_the_old_job_did_not_read_counts_as_always_read(
    case: Case, bench: PairRunner, spark: SparkSession
) -> None:
    """Its source goes on after the rows that were there when the savepoint was written."""
    assert goes_on(case, bench, in_folder, kept_back=["untimed_rights"])


@pytest.mark.nightly
@pytest.mark.parametrize("case", [*load_cases([REFUSED])], ids=lambda case: case.title)
def test_what_is_not_computed_is_told(case: Case, bench: PairRunner) -> None:
    old, new = bench.complete(case.old), bench.complete(case.new)
    before, side = (JobSide(each.script, dict(each.settings), engine="flink") for each in (old, new))
    history = KnownHistory(dict.fromkeys(TABLE.findall(case.new.script), ""))
    change, reasons = history.extend(kept(old, new, bench), side, before)
    assert told(change) == ""
    assert case.refused in [f"{name}: {why}" for name, why in reasons.items()]


EMPTY = "and emits them immediately"
UNMERGED = "are computed from all rows after the job has stopped"


def prepared_is_whole(
    case: Case,
    bench: PairRunner,
    bound: Callable[[str, Path], str],
    folder: Path,
    meanwhile: Callable[[str, str, Sequence[str]], object] = lambda savepoint, script, said: None,
    place: Callable[[str, str], str] = lambda savepoint, script: "",
) -> list[str]:
    """What is prepared at one savepoint and goes on at a later one is what all rows come to there, byte for byte.

    ``meanwhile`` is done before it goes on, to the rows that the script reads, and knows what was said. That is given
    back. ``place`` says where the rows lie that the script of the earlier savepoint reads; "": where it says so.
    """
    old, new = bench.complete(case.old), bench.complete(case.new)
    earlier = bench.savepoint(old)
    later = bench.later(earlier)
    before, side = (
        JobSide(bound(each.script, earlier.folder), dict(each.settings), engine="flink") for each in (old, new)
    )
    given = place(earlier.path, before.script)
    history = KnownHistory({name: given for name in TABLE.findall(new.script) if name != "Printed"})
    change = history.applied(kept(old, new, bench), before, side)
    said: list[str] = []

    def written(known: KnownHistory, name: str) -> Held:
        target = f"{earlier.folder}/{name}"
        with known.computing(before, side, later, change, said.append) as computer:
            migrate_savepoint(later, bench.template(new), target, change, NOW, computer.workers, computer)
        return stored(target)

    whole = written(history, "whole")
    assert is_sampled(said, new)
    sampled = [line for line in said if SAMPLED.search(line)]
    said.clear()
    history.prepare(before, side, earlier.path, change, str(folder), said.append)
    meanwhile(earlier.path, before.script, said)
    assert written(replace(history, prepared=str(folder)), "prepared") == whole
    assert [line for line in said if SAMPLED.search(line)] == sampled
    return said


def is_prepared(said: Sequence[str], new: Side) -> bool:
    """Whether all that can go on from what was prepared went on from it."""
    if any(UNMERGED in line for line in said):
        return bool(NOT_PREPARED.search(new.script))
    return any(line.endswith(("after the prepared rows", EMPTY)) for line in said)


@pytest.mark.nightly
@pytest.mark.parametrize("case", READ_LATER, ids=lambda case: case.title)
def test_what_was_prepared_while_the_job_ran_goes_on(
    case: Case, bench: PairRunner, spark: SparkSession, tmp_path: Path
) -> None:
    said = prepared_is_whole(case, bench, in_folder, tmp_path / "prepared")
    assert is_prepared(said, case.new)


ROWS = {"deduplicate-state", "data-state-with-append", "data-state-with-update", "window_rank"}
"""States that hold rows which no result depends on, or say by a row that it took the place of another one."""
SESSION = {"session-window-mapping", "window-aggs"}
"""What Flink keeps of a session under that one of the windows it was merged of which came first."""
INTERVAL = {f"IntervalJoin{side}{kept}" for side in ("Left", "Right") for kept in ("Cache", "TimerState")}
INTERVAL |= {USER_TIMERS}
"""What Flink keeps of rows that it has not looked after since they were joined for the last time."""
FRAME_OF_TIME = {"cleanupTsState", USER_TIMERS}
"""When Flink takes away what has left a frame."""
Untils = Callable[[str, Sequence[Table]], Mapping[str, Until]]


def begins(
    new: Side,
    bench: PairRunner,
    bound: Callable[[str, Path], str],
    until: Untils,
    told_otherwise: frozenset[str] = frozenset(),
    place: Callable[[str, str], str] = lambda savepoint, script: "",
) -> tuple[str, ...]:
    """The savepoint of a job that has never run holds what one has left which read the same rows, and it goes on so.

    ``told_otherwise`` are states beside those of rows and sessions that may be stored in another way, ``place`` says
    where the rows lie. What is sent of the rows after is given back.
    """
    new = bench.complete(new)
    savepoint = bench.savepoint(new)
    plan = bench.compiled(new)
    side = JobSide(bound(new.script, savepoint.folder), dict(new.settings), engine="flink")
    scans = (node for each in side.program.pipelines for node in walk_nodes(each.sink) if isinstance(node, Scan))
    read = list(dict.fromkeys(scan.table for scan in scans))
    history = KnownHistory(dict.fromkeys((table.path[2] for table in read), place(savepoint.path, side.script)))
    start = WarmStart.of(migration_of(plan, plan), side, read_plan(plan), history, until(savepoint.path, read))
    assert not start.reasons
    target, template = f"{savepoint.folder}/begun", bench.template(new)
    said: list[str] = []
    with start.computing(template, said.append) as (origin, computer):
        migrate_savepoint(origin, template, target, start.state, NOW, computer.workers, computer)
    assert is_sampled(said, new)
    one, other = stored(target), stored(savepoint.path)
    otherwise = {state for of, state in one.keys() | other.keys() if one.get((of, state)) != other.get((of, state))}
    # Of a hopping window Flink sets a timer for the next one, whether or not that holds something.
    timed = ((state, one.get((of, state), ()), entries) for (of, state), entries in other.items())
    if "HOP(" in new.script:
        otherwise -= {state for state, own, entries in timed if state == TIMERS and {*own} <= {*entries}}
    otherwise -= told_otherwise
    kept = (ROWS, SESSION, INTERVAL, FRAME_OF_TIME if "RANGE BETWEEN INTERVAL" in new.script else ROWS)
    assert any(otherwise <= each for each in kept), otherwise
    restored = bench.restored(new, replace(savepoint, path=f"file:{target}"))
    _, expected = bench.from_scratch(new)
    every = range(len(expected[0].split(", ")) if expected else 0)
    assert shown(restored, every) == shown(expected, every)
    return restored


def before_the_rows_after(savepoint: str, tables: Sequence[Table]) -> Mapping[str, Until]:
    """The moment at which the rows after came to each table."""
    found = {}
    for table in tables:
        file = Path(str(table.option("path")).removeprefix("file://"), "after.csv")
        found[table.path[2]] = Until.of(
            "", datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat("T", "milliseconds")
        )
    return found


BEGUN = {case.new: case.title for case in load_cases()}
for script in ("begun.sql", "begun_moments.sql"):
    BEGUN |= {case.side: case.name for case in load_scripts(Path(__file__).with_name(script))}


@pytest.mark.parametrize(
    "new",
    [pytest.param(new, marks=pytest.mark.nightly, id=title) for new, title in BEGUN.items()],
)
def test_a_job_that_has_never_run_begins_as_though_it_had(new: Side, bench: PairRunner, spark: SparkSession) -> None:
    assert begins(new, bench, in_folder, before_the_rows_after)
