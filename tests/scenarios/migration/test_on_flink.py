"""A real Flink goes on from rewritten savepoints: what was kept equals the new SQL over all rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.migration.workers import LocalWorkers, Workers
from airflow_flinkcompat.spark_migration import SparkWorkers, migration_workers
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import Pair
from dev.measure.savepoint_fixtures import CASES as FIXTURES
from dev.measure.savepoint_fixtures import FOLDER, Change, load_changes, migration_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
NOW = 1_800_000_000_000
DAILY = frozenset(
    {
        "a metric is added to a tumbling window",
        "a key leaves an aggregation over results that change",
    }
)
"""Of several kinds of operators and rewrites; each takes about six seconds."""
CASES = [
    case if case.title in DAILY else pytest.param(case, marks=pytest.mark.nightly, id=case.title)
    for case in load_changes()
    if not case.refused
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("migration")
    with (
        LocalFlink(folder / "flink", slots=4, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as made,
    ):
        (folder / "data").mkdir()
        yield made


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkWorkers]:
    with migration_workers(str(FOLDER / FIXTURES[0] / "old"), True, "local[2]", print) as workers:
        assert isinstance(workers, SparkWorkers)
        yield workers


def shown(rows: Iterable[str], kept: Sequence[int]) -> dict[tuple[str, ...], int]:
    """How often each row stands in the end, of its kept columns; what cancels out is left out."""
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        sink, kind, values = re.fullmatch(r"(\w+) (..)\[(.*)\]", row).groups()  # type: ignore[union-attr]
        columns = values.split(", ")
        counts[sink, *(columns[place] for place in kept)] += 1 if kind.startswith("+") else -1
    return {row: count for row, count in counts.items() if count}


@pytest.mark.parametrize("case", [case for case in load_changes() if case.refused], ids=lambda case: case.title)
def test_what_would_be_read_wrong_is_refused(case: Change, bench: PairRunner) -> None:
    old, new = bench.complete(case.old), bench.complete(case.new)
    lines = migration_of(bench.compiled(old), bench.compiled(new)).operators
    assert [each.reason for each in lines if each.effect is RestoreEffect.NOT_MIGRATABLE] == [case.refused]


def test_each_kind_is_run_every_day() -> None:
    assert {case.title for case in load_changes()} >= DAILY


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_is_kept_goes_on(case: Change, bench: PairRunner) -> None:
    alone = bench.run(Pair(case.title, "migration", case.title, case.old, case.new))
    assert alone.outcome == case.alone
    _goes_on(case, bench, LocalWorkers())


@pytest.mark.nightly
@pytest.mark.parametrize("title", sorted(DAILY))
def test_what_several_tasks_of_spark_wrote_goes_on(title: str, bench: PairRunner, spark: SparkWorkers) -> None:
    """Each task writes a state file of its own, of which Flink reads several for one subtask."""
    (case,) = (case for case in load_changes() if case.title == title)
    _goes_on(case, bench, spark)


def _goes_on(case: Change, bench: PairRunner, workers: Workers) -> None:
    old, new = bench.complete(case.old), bench.complete(case.new)
    savepoint = bench.savepoint(old)
    target = f"{savepoint.folder}/migrated"
    change = migration_of(bench.compiled(old), bench.compiled(new), case.accepted)
    written = migrate_savepoint(savepoint.path, bench.template(new), target, change, NOW, workers)
    assert any(each.entries for each in written)
    restored = bench.restored(new, replace(savepoint, path=f"file:{target}"))
    _, expected = bench.from_scratch(new)
    assert shown(restored, case.kept) == shown(expected, case.kept)
    assert shown(restored, case.kept)
