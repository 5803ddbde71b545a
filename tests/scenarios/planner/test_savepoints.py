"""What Flink's planner restores where a savepoint of the deployed job is at hand: the state that is really stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.compat import Report, Side
from airflow_flinkcompat.exec_graph.from_savepoint import read_job
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import install
from airflow_flinkcompat.planner.judgement import DeployedJob, judge
from tests.support.savepoint.savepoints import FOLDER

pytestmark = pytest.mark.slow

SCRIPT = """\
SET 'parallelism.default' = '1';
CREATE TABLE orders (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = '/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms');
CREATE TABLE totals (a STRING, x BIGINT, y BIGINT) WITH ('connector' = 'print');
INSERT INTO totals SELECT {};
"""
SUM_MAX = "a, SUM(b), CAST(CHAR_LENGTH(MAX(c)) AS BIGINT) FROM orders GROUP BY a"
"""As the savepoint 2.3/group-rocksdb stores it, on heap state or RocksDB."""
GROUP = (
    "a, SUM(b), COUNT(d) + AVG(b) + CHAR_LENGTH(MIN(c)) + FIRST_VALUE(d) + CHAR_LENGTH(LISTAGG(c)) + STDDEV_POP(d) "
    "FROM orders GROUP BY a"
)
TUMBLE = (
    "a, SUM(b), COUNT(*) + AVG(d) + CHAR_LENGTH(MAX(c)) "
    "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end"
)


@pytest.fixture(scope="module", autouse=True)
def flink() -> Iterator[None]:
    install("2.3")
    yield
    close_all()


def judged(old: str, new: str, savepoint: str, *, line: str = "2.3") -> Report:
    before, after = (
        Side(SCRIPT.format(each), engine="flink", engine_version=version, source=f"{name}.sql")
        for name, each, version in (("old", old, line), ("new", new, "2.3"))
    )
    job = DeployedJob(stored=read_job(str(FOLDER / savepoint)))
    return judge(before, after, "always", job=job)


def refusal(report: Report) -> Consequence | None:
    return next((each.consequence for each in report.deciding if each.rule == "plan-differs"), None)


@pytest.mark.parametrize("new", [SUM_MAX, SUM_MAX.replace("SUM(b)", "SUM(b) + 1")], ids=["unchanged", "output"])
def test_what_fits_its_own_savepoint_stays_compatible(new: str) -> None:
    report = judged(SUM_MAX, new, "2.3/group-rocksdb")
    assert (report.outcome, report.ground, report.warnings) == (Outcome.COMPATIBLE, "planned by Flink 2.3.0", ())


def test_a_changed_aggregate_is_refused_on_the_stored_serializer() -> None:
    report = judged(SUM_MAX, SUM_MAX.replace("SUM(b)", "CAST(SUM(CAST(b AS DOUBLE)) AS BIGINT)"), "2.3/group-rocksdb")
    assert (report.outcome, refusal(report)) == (Outcome.INCOMPATIBLE, Consequence.REFUSED_AT_RESTORE)


def test_a_script_that_was_not_deployed_says_nothing_about_the_job() -> None:
    """Both scripts are equal, and neither reads what is stored; then both read it, and mean something else."""
    other = SUM_MAX.replace("SUM(b)", "CAST(SUM(CAST(b AS DOUBLE)) AS BIGINT)")
    report = judged(other, other, "2.3/group-rocksdb")
    assert (report.outcome, refusal(report)) == (Outcome.INCOMPATIBLE, Consequence.REFUSED_AT_RESTORE)
    report = judged(other, SUM_MAX, "2.3/group-rocksdb")
    assert report.outcome is not Outcome.COMPATIBLE
    assert not any(each.consequence is Consequence.REFUSED_AT_RESTORE for each in report.deciding), "Flink takes it"
    report = judged(other, other.replace("a, ", "UPPER(a), "), "2.3/top-1")
    assert report.outcome is not Outcome.COMPATIBLE
    assert any("GroupAggregate" in each and "Top1-Rank-State" in each for each in said(report))
    report = judged(SUM_MAX, SUM_MAX.replace("a, ", "UPPER(a), "), "2.3/group-ttl")
    assert report.outcome is not Outcome.COMPATIBLE
    assert any("different settings (--old-set)" in each for each in said(report))


def said(report: Report) -> list[str]:
    return [*report.warnings, *(each.message for each in report.findings)]


def test_operators_that_only_the_savepoint_has_are_refused_at_submit() -> None:
    report = judged(SUM_MAX, SUM_MAX, "2.3/inner-join")
    assert (report.outcome, refusal(report)) == (Outcome.INCOMPATIBLE, Consequence.REFUSED_AT_SUBMIT)
    assert report.migration is None
    assert any("the savepoint contains state of" in each and "Join (29c6" in each for each in report.warnings)


def test_a_savepoint_of_another_line_is_known_by_its_form_and_restored_by_its_serializers() -> None:
    report = judged(TUMBLE, TUMBLE, "1.20/tumble")
    assert any("plans the deployed script (2.3.0)" in each for each in said(report))
    assert report.outcome is not Outcome.COMPATIBLE


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("savepoint", "query", "expected", "at"),
    [
        ("1.20/tumble", TUMBLE, Outcome.COMPATIBLE, None),
        ("1.20/group", GROUP, Outcome.INCOMPATIBLE, Consequence.REFUSED_AT_RESTORE),  # STDDEV stores something else
    ],
)
def test_a_job_of_another_line_is_judged_by_what_that_line_stored(
    savepoint: str, query: str, expected: Outcome, at: Consequence | None
) -> None:
    install("1.20")
    report = judged(query, query, savepoint, line="1.20")
    assert (report.outcome, refusal(report), report.warnings) == (expected, at, ())


def test_a_guess_about_an_absent_jar_refuses_nothing_and_names_the_jar() -> None:
    """Where rows may change, the aggregation counts them too, which the savepoint of new rows alone does not hold."""
    by_stand_in = SCRIPT.replace("'filesystem'", "'absent-cdc'").format(SUM_MAX)
    same = Side(by_stand_in, engine="flink", engine_version="2.3")
    report = judge(same, same, "always", job=DeployedJob(stored=read_job(str(FOLDER / "2.3/group-rocksdb"))))
    assert report.outcome is Outcome.UNKNOWN
    assert any(
        "the missing jar of absent-cdc is the reason for the difference (--jar)" in each for each in said(report)
    )
