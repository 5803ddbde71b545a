"""The benchmark runs and says what it should; what it takes is never tested."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.compat import Outcome, check
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import parse_script
from dev.benchmarks import ledgers
from dev.benchmarks.audit import pairs as audit_pairs
from dev.benchmarks.audit import results as audits
from dev.benchmarks.backfill import CASES, CONTENDERS, GOALS, LARGE, Case, Goal, duckdb, fingerprint, make_data
from dev.benchmarks.check import LEVELS, LINES, SMALL, Timing, batch_rate, changed, fixtures, large, row, timed
from dev.benchmarks.downtime import Downtime
from dev.benchmarks.downtime import results as downtimes
from dev.benchmarks.start import added, seconds
from dev.tools import Cost, cost_of


@pytest.mark.parametrize("lines", [500, 1000])
@pytest.mark.slow
def test_a_large_script_has_its_lines_and_is_read_whole(lines: int) -> None:
    script = parse_script(large(lines))
    assert abs(len(large(lines).splitlines()) - lines) <= LINES
    assert all(statement.tree is not None for statement in script.statements)
    assert (
        sum(statement.text.startswith("CREATE TEMPORARY VIEW") for statement in script.statements)
        == len(large(lines).splitlines()) * LEVELS // LINES
    )


def test_the_pairs_are_changes_that_have_to_be_judged() -> None:
    assert len(SMALL.splitlines()) == 5
    for script in (SMALL, large(100)):
        report = check(script, changed(script))
        assert report.outcome is Outcome.PARTIAL
        assert "statement-not-read" not in {finding.rule for finding in report.findings}


@pytest.mark.slow
def test_the_smallest_case_is_timed_and_printed() -> None:
    timing = timed("five lines", SMALL, changed(SMALL), rounds=1)
    assert timing.check > timing.parse > 0
    assert re.fullmatch(r"\| five lines \| 5 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| ≤ 2: (met|missed) \|", row(timing))


def test_a_row_says_whether_the_goal_is_met() -> None:
    assert row(Timing("a", 1, 10, 20)).endswith("| 2.00 | ≤ 2: met |")
    assert row(Timing("a", 1, 10, 20.1)).endswith("≤ 2: missed |")
    assert row(Timing("a", 1, 10, 15), holds=False).endswith("missed |")


def test_the_batch_rate_counts_pairs() -> None:
    assert batch_rate(fixtures()[:3], seconds=0.01) > 0


# --- downtime ---------------------------------------------------------------------------------------------------------


def test_downtime_is_judged_by_the_ratio_of_the_medians() -> None:
    pairs = [
        (Downtime(100, 500, 1100), Downtime(100, 500, 1000)),
        (Downtime(200, 700, 1300), Downtime(150, 600, 1000)),
    ]
    assert list(downtimes(pairs))[4:] == [
        "| Median | 150 | 600 | 1200 | 125 | 550 | 1000 |",
        "",
        "Downtime, last row of the old job to the first checkpoint of the new one: 1200 ms ours, 1000 ms by raw calls, "
        "ratio 1.20 (goal ≤ 1.2: met).",
    ]
    slow = [(Downtime(0, 0, 1210), Downtime(0, 0, 1000))]
    assert list(downtimes(slow))[-1].endswith("ratio 1.21 (goal ≤ 1.2: missed).")


# --- backfill ---------------------------------------------------------------------------------------------------------

TINY = Case("tiny", "HOP", 2, 10, rows=4_000, keys=3)


def test_every_case_is_a_script_a_backfill_computes(tmp_path: Path) -> None:
    for case in (*CASES, LARGE):
        work = plan(BackfillRequest(JobSpec(case.script(tmp_path / "in", tmp_path / "out"), source=case.name))).work
        (source,) = work.sources
        assert source.place == (tmp_path / "in").as_uri()


@pytest.mark.parametrize("case", [TINY, replace(TINY, format="csv")])
@pytest.mark.slow
def test_data_and_floor_of_the_smallest_case_can_be_compared(tmp_path: Path, case: Case) -> None:
    source = tmp_path / case.data
    source.mkdir()
    make_data(case, source)
    assert len(list(source.glob(f"*.{case.format}"))) == 8
    duckdb(case, source, tmp_path / "a")
    rows, sum_of_hashes = fingerprint(tmp_path / "a")
    assert rows == (4 * 30 + 4) * 3
    duckdb(case, source, tmp_path / "b")
    assert fingerprint(tmp_path / "b") == (rows, sum_of_hashes)
    assert fingerprint(tmp_path / case.data / "none") == (0, None)


def test_goals_are_judged_by_ratios() -> None:
    (dense,) = (case for case in CASES if case.name == "HOP 2/10 min")
    goal = Goal("at most a quarter", "ours", "flink", 0.25, (dense.name,))
    assert goal.judged(dense, {"ours": 10, "flink": 40}) == "at most a quarter: 0.25, met"
    assert goal.judged(dense, {"ours": 11, "flink": 40}) == "at most a quarter: 0.28, missed"
    assert goal.judged(dense, {"ours": 11}) == ""
    assert goal.judged(TINY, {"ours": 10, "flink": 40}) == ""
    assert {goal.one for goal in GOALS} | {goal.other for goal in GOALS} <= set(CONTENDERS)


@pytest.mark.slow
def test_the_whole_process_tree_is_paid_for() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'sum(range(10**7))'])"
    assert cost_of([sys.executable, "-c", code], timeout=60).cpu > cost_of([sys.executable, "-c", ""], timeout=60).cpu
    assert cost_of([sys.executable, "-c", "import sys; print('no'); sys.exit(3)"], timeout=60).status == 3


def test_an_import_is_timed_beside_what_was_loaded_before() -> None:
    work = "sum(range(10**6))"
    assert added(work, "pass", rounds=1) > added("pass", work, rounds=1) > 0


def test_the_list_of_deployments_is_timed_for_each_question(tmp_path: Path) -> None:
    def to_disk(name: str, content: bytes) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)

    names = ledgers.fill(str(tmp_path), 3, to_disk)
    lines = [*ledgers.pages(str(tmp_path), names), *ledgers.lists(str(tmp_path), names, [])]
    rows = [line.split("|")[1].strip() for line in lines]
    assert rows == [
        "the first 50 on a page", "the last 50 on a page", "those that wait, by a word",
        "the page of one deployment of 13 entries, once read", "list by the index", "list by every ledger",
        "one entry, with its index",
    ]  # fmt: skip


# --- audit ------------------------------------------------------------------------------------------------------------


def test_no_two_pairs_of_an_audit_are_the_same() -> None:
    found = list(islice(audit_pairs(), 40))
    assert len({pair.new.digest() for pair in found if pair.new is not None}) == len(found)
    assert [pair.name for pair in found[:2]] == ["job 0", "job 1"]


def test_contenders_that_do_not_say_the_same_are_an_error() -> None:
    def cost(rows: str) -> Cost:
        return Cost(2.0, 4.0, 0, f'noise\n{{"rows": "{rows}", "seconds": 3, "summary": "10 jobs"}}\n')

    *_, one, spark = audits({"one process": cost("a"), "Spark, local[2]": cost("a")}, 10, 10, [1.0])
    assert one == "| one process | 10 | 2 | 4 s | 1.00 times as fast | 200.0 ms | 1.00 times |"
    assert spark == "| Spark, local[2] | 10 | 2 | 4 s | 1.00 times as fast | not known | |"
    with pytest.raises(SystemExit, match="differ"):
        list(audits({"one process": cost("a"), "Spark, local[2]": cost("b")}, 10, 10, [1.0]))


@pytest.mark.slow
def test_a_start_of_the_command_line_is_counted() -> None:
    assert seconds("check old.sql incompatible.sql", rounds=1) > seconds("--version", rounds=1) > 0
    with pytest.raises(RuntimeError, match="exited with 2"):
        seconds("check old.sql", rounds=1)
