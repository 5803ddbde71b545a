"""State that a script does not restore in a shadow run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.rehearsal.report import StoredOperator
from airflow_flinkcompat.deploy.rehearsal.restoring import Checked, Inconclusive, cancel_leftovers
from airflow_flinkcompat.deploy.shadow import sequence
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference
from airflow_flinkcompat.deploy.target import JobRef, JobStatus, SinkTable
from airflow_flinkcompat.savepoint.operator_parts import OperatorPart

STATE = "a" * 32
EQUAL = (SinkDifference("totals", ShadowFinding.EQUAL, (1, 1), False),)
Compare = Callable[[str, OperatorPart, Collection[str]], ShadowReport]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """A shadow run with equal rows and one stateful operator, which the jobs ``skipping`` do not restore."""

    def compare(name: str, by_state: OperatorPart, skipping: Collection[str]) -> ShadowReport:
        stored = StoredOperator(STATE, name, True, by_state)
        target = SimpleNamespace(
            location=str,
            describe=lambda _: None,
            left_aside=lambda job: frozenset({STATE} if job in skipping else ()),
        )
        monkeypatch.setattr(sequence, "wait_for_rows", lambda *_: 1.0)
        monkeypatch.setattr(sequence, "write_replay", lambda *_, **__: None)
        monkeypatch.setattr(sequence, "read_snapshot", lambda _: (stored,))
        monkeypatch.setattr(sequence, "compare_rows", lambda *_, **__: EQUAL)
        run: Any = sequence._ShadowRun(
            cast(Any, None), cast(Any, target), JobRef("live"), "live", sequence.ShadowOptions(), "/root", print
        )
        run.runner.savepoint = lambda *_: "savepoint"
        run._run = lambda _watcher, _version, role, _start: role
        checked = Checked(cast(Any, SimpleNamespace(source="a.sql")), cast(Any, None))
        side: Any = SimpleNamespace(written=(), checked=checked)
        found: ShadowReport = run._compare(None, side, side)
        return found

    return compare


@pytest.mark.parametrize(("seconds", "cancelled"), [(7200.0, False), (9000.0, True)])
def test_a_run_is_only_cancelled_after_its_own_timeout(seconds: float, cancelled: bool) -> None:
    """Even if the run that finds its job has a shorter one."""
    nothing = cast(Any, None)
    options = sequence.ShadowOptions(run_seconds=7200)
    run = sequence._ShadowRun(nothing, nothing, JobRef("live"), "live", options, "/root", print)
    job = JobStatus(JobRef("other"), f"{run.prefix} old {run.token}", "RUNNING", seconds=seconds)
    done: list[str] = []
    target: Any = SimpleNamespace(jobs=lambda: (job,), cancel=done.append)
    cancel_leftovers(target, "live", "shadow", print)
    assert done == ["other"] * cancelled


WHOLE = "GroupAggregate(groupBy=[b], select=[b, COUNT(*) AS n])"


@pytest.mark.parametrize(
    ("name", "by_state"),
    [("GroupAggregate[3]", OperatorPart.UNKNOWN), (WHOLE, OperatorPart.UNKNOWN), ("", OperatorPart.QUERY)],
)
def test_state_of_the_query_is_restored_or_the_run_ends(compared: Compare, name: str, by_state: OperatorPart) -> None:
    assert compared(name, by_state, ()).finding is ShadowFinding.EQUAL
    with pytest.raises(
        Inconclusive,
        match=r"a\.sql does not restore all state of the query .* Make sure that this is the script of job live",
    ):
        compared(name, by_state, ("old", "new"))
    found = compared(name, by_state, ("new",))
    assert (found.finding, found.at, [each.id for each in found.dropped]) == (ShadowFinding.REFUSED, "submit", [STATE])


def test_stand_ins_do_not_restore_the_state_of_sinks(compared: Compare) -> None:
    assert compared("totals[9]: Writer", OperatorPart.SINK, ("old", "new")).finding is ShadowFinding.EQUAL
    assert compared("", OperatorPart.SINK, ("old", "new")).finding is ShadowFinding.EQUAL


@pytest.mark.parametrize("skipping", [("old", "new"), ("new",)])
def test_state_of_an_unknown_operator_has_no_result(compared: Compare, skipping: tuple[str, ...]) -> None:
    with pytest.raises(Inconclusive, match=f"the savepoint stores no name of operator {STATE}, so it is unknown"):
        compared("", OperatorPart.UNKNOWN, skipping)


def test_a_misspelled_expected_column_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "require_running", lambda *_: None)
    sink = SinkTable(("c", "d", "totals"), {"revenue": "INT"})
    options = sequence.ShadowOptions(expected=["totals.revenue", "changed", "revnue"])
    run: Any = sequence._ShadowRun(cast(Any, None), cast(Any, None), JobRef("live"), "live", options, "/root", print)
    run._version = lambda *_: SimpleNamespace(sinks=(sink,))
    with pytest.raises(Inconclusive, match=r"no sink of either script has the expected column revnue$"):
        run.check(None, None)
