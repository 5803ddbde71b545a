"""A real Flink ends a restore as its planner does with the headers of the savepoint, whatever OLD says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_savepoint import read_job
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import install
from airflow_flinkcompat.planner.judgement import DeployedJob, judge
from dev.measure import pairs
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.results import SETTINGS
from dev.measure.savepoint_fixtures import load_scripts

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]
SUM = "SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;\n"
DOUBLE = SUM.replace("SUM(b)", "CAST(SUM(CAST(b AS DOUBLE)) AS BIGINT)")
UNION = SUM.replace("FROM orders", "FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders)")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("stored")
    (folder / "data").mkdir()
    install("2.3")
    with (
        LocalFlink(folder / "flink", slots=4, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as made,
    ):
        yield made
    close_all()


@pytest.mark.parametrize(
    ("deployed", "old", "new", "ends"),
    [
        (SUM, SUM, SUM, None),
        (SUM, SUM, DOUBLE, Consequence.REFUSED_AT_RESTORE),
        (DOUBLE, SUM, SUM, Consequence.REFUSED_AT_RESTORE),
        (UNION, SUM, SUM, Consequence.REFUSED_AT_SUBMIT),
        (DOUBLE, SUM, DOUBLE, None),
    ],
    ids=["unchanged", "changed", "another-aggregate-deployed", "another-query-deployed", "new-is-deployed"],
)
def test_flink_restores_what_is_stored(
    bench: PairRunner, deployed: str, old: str, new: str, ends: Consequence | None
) -> None:
    (given,) = [case.side for case in load_scripts() if case.name == "group"]
    tables = given.script.partition("SELECT")[0]
    runs, before, after = (bench.complete(pairs.Side(tables + query, ())) for query in (deployed, old, new))
    savepoint = bench.savepoint(runs)
    sides = (Side(each.script, SETTINGS, engine="flink", engine_version="2.3") for each in (before, after))
    report = judge(*sides, "always", job=DeployedJob(stored=read_job(savepoint.path)))
    refused = {each.consequence for each in report.deciding} - {None, Consequence.SILENTLY_WRONG}
    assert refused == ({ends} if ends else set())
    assert (report.outcome is Outcome.COMPATIBLE) == (deployed == old == new)
    outcome = bench.attempt(after, savepoint).outcome
    assert outcome == (ends and str(ends).replace(" ", "_"))
