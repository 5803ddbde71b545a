"""A shadow run in the question of an approval, and the choice of the run."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.deploy.ledger.entries import JobVersion, Review, ShadowedEntry
from airflow_flinkcompat.deploy.shadow.question import MEANINGS, last_shadow_run, render_question
from airflow_flinkcompat.deploy.shadow.report import ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns
from tests.support.airflow.plugin.ledgers import numbered, shadow_report, shadowed, wrong_state_report

ONE, TWO = JobVersion("flink", "2.3.0", "1" * 64), JobVersion("flink", "2.3.0", "2" * 64)


def question(report: ShadowReport) -> str:
    (entry,) = numbered(shadowed(ONE, Review(), report))
    assert isinstance(entry, ShadowedEntry)
    return render_question(entry)


def test_every_finding_has_a_meaning() -> None:
    assert [*MEANINGS] == [*map(str, ShadowFinding)]


@pytest.mark.parametrize("finding", ShadowFinding)
def test_the_question_names_what_a_finding_proves(finding: ShadowFinding, snapshot: SnapshotAssertion) -> None:
    reason = {"refused": "StateMigrationException: <state> | of `a`", "could not tell": "no task slots"}
    report = ShadowReport(finding, reason.get(finding, ""), "restore" if finding == "refused" else "")
    assert question(report) == snapshot


def test_the_question_has_the_first_differing_rows(snapshot: SnapshotAssertion) -> None:
    assert question(shadow_report("<b>|`gold`", "a|b")) == snapshot


def test_the_question_begins_with_wrong_state_and_its_rows(snapshot: SnapshotAssertion) -> None:
    text = question(wrong_state_report())
    lines = [line for line in text.splitlines() if line and "|---" not in line]
    assert len({*lines}) == len(lines), "no line is repeated"
    assert text == snapshot


def test_the_question_has_rows_of_scripts_before_rows_of_the_state() -> None:
    report = replace(wrong_state_report(), finding=ShadowFinding.DIFFERS, sinks=shadow_report().sinks)
    text = question(report)
    parts = ("differs: the new script", MEANINGS["differs"], "### `bookings`", "**STATE: wrong: ", "### `totals`")
    assert (places := [text.index(each) for each in parts]) == sorted(places)
    assert report.state is not None
    right = question(replace(report, state=replace(report.state, finding=ShadowFinding.EQUAL)))
    assert "**STATE: equal: " in right
    assert "`totals`" not in right


@pytest.mark.parametrize(
    ("state", "meaning"),
    [
        (ShadowFinding.EXPECTED, "The run does not prove that the stored values of these columns are right."),
        (ShadowFinding.INCONCLUSIVE, "The state was not compared."),
    ],
)
def test_the_meaning_is_that_of_the_decisive_state(state: ShadowFinding, meaning: str) -> None:
    text = question(ShadowReport(ShadowFinding.EQUAL, state=StateComparison(state, "rows are deleted")))
    assert meaning in text
    assert MEANINGS["equal"] not in text


def test_the_question_stays_readable() -> None:
    wide = pa.table({f"column{number}": ["x" * 500] * 20 for number in range(40)})
    sinks = [SinkDifference(f"sink{n}", ShadowFinding.DIFFERS, (90, 90), False, 90, rows=wide) for n in range(30)]
    text = question(replace(shadow_report(), sinks=tuple(sinks)))
    assert "*Not shown: 85 of the differences, 32 of the columns*" in text
    assert "26 more sinks differ: `sink4`, " in text
    assert len(text) < 12_000


def test_columns_that_the_change_names() -> None:
    none = SinkDifference("t", ShadowFinding.DIFFERS, (1, 1), False, 1, changed=ChangedColumns())
    assert "* columns that the change names: none" in question(replace(shadow_report(), sinks=(none,)))
    unknown = replace(shadow_report(), sinks=(replace(none, changed=None),), unnamed="no planner is installed")
    assert "* columns that the change names" not in question(unknown)


def test_equal_rows_name_columns_that_are_not_compared() -> None:
    equal = SinkDifference("t", ShadowFinding.EQUAL, (1, 1), False, not_compared=("v", "w"))
    unknown = SinkDifference("u", ShadowFinding.INCONCLUSIVE, (1, 1), True, not_compared=("x",), note="no value")
    text = question(ShadowReport(ShadowFinding.INCONCLUSIVE, sinks=(equal, unknown)))
    assert "Equal rows: `t` (not compared, of only one script: `v`, `w`)\n" in text
    assert "Could not tell: `u`: no value\n" in text


def test_the_last_run_of_a_version_counts() -> None:
    runs = numbered(*(shadowed(each, Review(), shadow_report()) for each in (ONE, ONE, TWO)))
    found = last_shadow_run(runs, ONE.sha256)
    assert found is not None
    assert found.number == 2
    assert last_shadow_run(runs, "3" * 64) is None
