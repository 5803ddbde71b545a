"""The command ``shadow``: its report in each format, its exit codes, and its bad input."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import rehearse
from airflow_flinkcompat.compat.migration_report import MigratedOperator, MigrationReport
from airflow_flinkcompat.deploy.rehearsal.report import StoredOperator
from airflow_flinkcompat.deploy.shadow import sequence
from airflow_flinkcompat.deploy.shadow.report import RENDERERS, ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns
from tests.support.cli.command import Run

ROWS = pa.table(
    {"who": ["ann", None], "change": ["changed", "changed"], "total (old)": ["1", "<b>"], "total (new)": ["2", None]}
)
DIFFERS = ShadowReport(
    ShadowFinding.DIFFERS,
    job_id="a" * 32,
    seconds=(600.0, 31.0, 29.4),
    sinks=(
        SinkDifference("totals", ShadowFinding.DIFFERS, (7, 6), True, 2, {"total": 2}, ("extra",), ROWS),
        SinkDifference("copies", ShadowFinding.EQUAL, (3, 3), False),
    ),
    unnamed="no planner is installed",
)
REPORTS = {
    "differs": DIFFERS,
    "equal": ShadowReport(ShadowFinding.EQUAL, sinks=DIFFERS.sinks[1:], seconds=(1.0, 1.0, 1.0)),
    "expected": ShadowReport(ShadowFinding.EXPECTED, sinks=DIFFERS.sinks[1:], seconds=(1.0, 1.0, 1.0)),
    "changed": ShadowReport(
        ShadowFinding.CHANGED,
        sinks=(
            SinkDifference(
                "totals",
                ShadowFinding.CHANGED,
                (7, 6),
                True,
                2,
                {"total": 2},
                (),
                ROWS,
                changed=ChangedColumns(frozenset({"total"})),
            ),
            SinkDifference(
                "means",
                ShadowFinding.EXPECTED,
                (2, 1),
                False,
                1,
                expected=("mean",),
                changed=ChangedColumns(frozenset({"mean", "who"}), rows=True),
            ),
        ),
        seconds=(1.0, 1.0, 1.0),
    ),
    "migrated": ShadowReport(
        ShadowFinding.EQUAL,
        sinks=DIFFERS.sinks[1:],
        seconds=(1.0, 1.0, 1.0),
        migration=MigrationReport(
            MigrationExtent.PARTIAL,
            (MigratedOperator("group-aggregate", RestoreEffect.REWRITTEN, "", ("SUM(b)",), ("MAX(d)",)),),
        ),
    ),
    "wrong state": ShadowReport(
        ShadowFinding.EQUAL,
        sinks=DIFFERS.sinks[1:],
        seconds=(1.0, 1.0, 1.0),
        state=StateComparison(ShadowFinding.DIFFERS, sinks=DIFFERS.sinks[:1], seconds=61.0),
    ),
    "expected state": ShadowReport(
        ShadowFinding.EQUAL,
        sinks=DIFFERS.sinks[1:],
        seconds=(1.0, 1.0, 1.0),
        state=StateComparison(
            ShadowFinding.EXPECTED,
            sinks=(replace(DIFFERS.sinks[0], finding=ShadowFinding.EXPECTED, expected=("total",)),),
            seconds=61.0,
        ),
    ),
    "right state": replace(DIFFERS, state=StateComparison(ShadowFinding.EQUAL, sinks=DIFFERS.sinks[1:], seconds=9.0)),
    "unknown state": replace(
        DIFFERS, finding=ShadowFinding.EXPECTED, state=StateComparison(ShadowFinding.INCONCLUSIVE, "rows are deleted")
    ),
    "not migratable": ShadowReport(ShadowFinding.REFUSED, "its windows are longer", "migration"),
    "refused": ShadowReport(ShadowFinding.REFUSED, "StateMigrationException: <state>", "restore"),
    "state dropped": ShadowReport(
        ShadowFinding.REFUSED,
        "no operator restores the state",
        "submit",
        dropped=(StoredOperator("b" * 32, "GroupAggregate[3]", True),),
    ),
    "columns of one script": ShadowReport(
        ShadowFinding.EQUAL,
        sinks=(
            replace(DIFFERS.sinks[1], not_compared=("first", "second")),
            SinkDifference("means", ShadowFinding.EQUAL, (1, 1), False, not_compared=("mean",)),
        ),
    ),
    "no common column": ShadowReport(
        ShadowFinding.INCONCLUSIVE,
        "totals: no column is common",
        sinks=(
            SinkDifference(
                "totals",
                ShadowFinding.INCONCLUSIVE,
                (1, 1),
                False,
                not_compared=("v", "w"),
                note="no column is common",
            ),
        ),
    ),
    "could not tell": ShadowReport(ShadowFinding.INCONCLUSIVE, "no task slots", left=("job x may still start",)),
}


@pytest.mark.parametrize("style", RENDERERS)
@pytest.mark.parametrize("name", REPORTS)
def test_reports(name: str, style: str, snapshot: SnapshotAssertion) -> None:
    assert RENDERERS[style](REPORTS[name]) == snapshot


CODES = {"differs": 1, "equal": 0, "expected": 0, "changed": 1, "refused": 1}
CODES |= {"wrong state": 1, "unknown state": 1, "expected state": 0}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_exit_codes_and_files(name: str, code: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def shadow(_cluster: Any, job_id: str, old: Any, new: Any, options: Any, _log: Any, *made: Any) -> ShadowReport:
        assert made[0] is None
        asked.append((job_id, old.source, new.source, options))
        return REPORTS[name]

    monkeypatch.setattr(sequence, "shadow", shadow)
    monkeypatch.setattr(TargetLocation, "open", lambda *_: nullcontext(SimpleNamespace()))
    for each in ("old.sql", "new.sql"):
        Path(each).write_text("SELECT 1;", encoding="utf-8")
    page, rows = tmp_path / "shadow.html", tmp_path / "rows"
    result = run(
        "shadow", "old.sql", "new.sql", "--job-id", "j", "--gateway", "http://g", "--jobmanager", "http://j",
        "--format", "json", "--for", "90s", "--until-rows", "500", "--timeout", "1h", "--expect", "total",
        "--output", f"html={page}", "--rows", str(rows), "--from-earliest",
    )  # fmt: skip
    assert result.code == code, result.err
    assert json.loads(result.out)["finding"] == REPORTS[name].finding
    assert page.read_text(encoding="utf-8") == RENDERERS["html"](REPORTS[name])
    ((job_id, old, new, options),) = asked
    assert (job_id, old, new, rows.is_dir()) == ("j", "old.sql", "new.sql", True)
    assert (options.seconds, options.until_rows, options.run_seconds) == (90.0, 500, 3600.0)
    assert (options.expected, options.from_earliest) == (("total",), True)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing/x.html", "--output missing/x.html cannot be written: No such file or directory"),
        ("folder", "--output folder cannot be written: it is a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    place: str, words: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sequence, "shadow", lambda *given: asked.append(given) or REPORTS["equal"])
    monkeypatch.setattr(TargetLocation, "open", lambda *_: nullcontext(SimpleNamespace()))
    Path("a.sql").write_text("SELECT 1;", encoding="utf-8")
    Path("folder").mkdir()
    more = ("--gateway", "http://g", "--jobmanager", "http://j", "--output", f"html={place}")
    result = run("shadow", "a.sql", "a.sql", "--job-id", "j", *more)
    assert (result.code, result.out, asked) == (2, "", [])
    assert words in result.err


def test_a_target_that_cannot_plan_migrates_with_a_local_flink(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = SimpleNamespace()

    def shadow(*given: Any) -> ShadowReport:
        migration = given[6]
        assert migration._trials is opened
        return REPORTS["migrated"]

    monkeypatch.setattr(sequence, "shadow", shadow)
    monkeypatch.setattr(rehearse, "local_flink", lambda version, _jars: nullcontext(opened) if version else None)
    monkeypatch.setattr(TargetLocation, "open", lambda *_: nullcontext(SimpleNamespace()))
    Path("a.sql").write_text("SELECT 1;", encoding="utf-8")
    more = ("--migrate", "--target", "jobmanager", "--jobmanager", "http://j")
    result = run("shadow", "a.sql", "a.sql", "--job-id", "j", *more)
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--for", "soon"), "--for: 'soon' is not a duration. Write a duration such as"),
        (("--timeout", "soon"), "--timeout: 'soon' is not a duration"),
        (("--output", "html=missing/x.html"), "--output missing/x.html cannot be written"),
        ((), "--gateway"),
    ],
)
def test_options_are_read_before_anything_runs_or_is_written(run: Run, wrong: tuple[str, ...], words: str) -> None:
    Path("a.sql").write_text("SELECT 1;", encoding="utf-8")
    addresses = ("--gateway", "http://g", "--jobmanager", "http://j") if wrong else ()
    result = run("shadow", "a.sql", "a.sql", "--job-id", "j", "--rows", "rows", *addresses, *wrong)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert not Path("rows").exists()


def test_an_accepted_condition_needs_a_migration(run: Run) -> None:
    Path("a.sql").write_text("SELECT 1;", encoding="utf-8")
    result = run("shadow", "a.sql", "a.sql", "--job-id", "j", "--accept", "filter")
    assert (result.code, result.out) == (2, "")
    assert "add --migrate, or leave it out" in result.err
