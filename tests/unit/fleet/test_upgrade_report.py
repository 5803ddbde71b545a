"""The report of an upgrade in each format: counts first, then one line for each job, and nothing that is markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.fleet.audit.values import AuditResult, AuditRow, Cause
from airflow_flinkcompat.fleet.upgrade_report import RENDERERS
from airflow_flinkcompat.fleet.upgrades import JobUpgrade, UpgradeSummary, Way
from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.planner.upgrade_edits import Edit, EditedJob

RESULTS = {
    Way.UNTOUCHED: AuditResult.COMPATIBLE,
    Way.EDITED: AuditResult.COMPATIBLE,
    Way.CONDITIONAL: AuditResult.CONDITIONAL,
    Way.MIGRATED: AuditResult.INCOMPATIBLE,
    Way.RESTARTED: AuditResult.INCOMPATIBLE,
    Way.REFUSED: AuditResult.INCOMPATIBLE,
    Way.UNDECIDED: AuditResult.UNKNOWN,
    Way.UNREADABLE: AuditResult.UNREADABLE,
}
_SUM = RestoredOperator("GroupAggregate", "right", "", ("Double", "RowData"))
OPERATORS = {
    Way.EDITED: (_SUM, RestoredOperator("orders (read, kafka)", "right")),
    Way.RESTARTED: (
        _SUM,
        RestoredOperator("OverAggregate", "refused at restore", "its stored state has a different layout", ("Kryo",)),
        RestoredOperator("t (read, x)", "unknown"),
    ),
}
HOSTILE = "<script>alert(1)</script> | `x` # y"


def fleet() -> UpgradeSummary:
    found = UpgradeSummary("the scripts of jobs", ("1.20", "2.3"), notes=["skipped: 2 programs"])
    places = [Span("jobs/with edits.sql", line, 5, line, 9) for line in (2, 7)]
    edits = (
        Edit(20, places[0], "bitmap", "`bitmap`", "BITMAP is a reserved word in Flink 2.3, but not in Flink 1.20"),
        Edit(90, places[1], "", "\nON CONFLICT DO DEDUPLICATE", "Flink 2.3 requires ON CONFLICT"),
    )
    ignored = ("jobs/with edits.sql:1:1: Flink 2.3 ignores the setting old.key, which it does not have",)
    for way, result in RESULTS.items():
        reason = "" if way is Way.UNTOUCHED else f"the reason of a job that moves {way}"
        row = AuditRow(f"jobs/{way}.sql", result, (Cause("a-rule", reason),), operators=OPERATORS.get(way, ()))
        edited = EditedJob(JobSpec("SELECT 1"), edits, ignored) if way is Way.EDITED else None
        found.add(JobUpgrade(row, way, reason, edited))
    return found


def test_text(snapshot: SnapshotAssertion) -> None:
    assert RENDERERS["text"](fleet()) == snapshot


def test_markdown(snapshot: SnapshotAssertion) -> None:
    assert RENDERERS["markdown"](fleet()) == snapshot


def test_json_holds_every_edit_and_verdict() -> None:
    found = json.loads(RENDERERS["json"](fleet()))
    assert found["summary"].startswith("8 jobs: 1 untouched, 1 with edits")
    edited = found["jobs"][1]
    assert [(each["line"], each["old"], each["new"]) for each in edited["edits"]] == [
        (2, "bitmap", "`bitmap`"),
        (7, "", "\nON CONFLICT DO DEDUPLICATE"),
    ]
    assert edited["verdict"]["result"] == "compatible"


def test_names_and_messages_are_text_in_every_format() -> None:
    found = UpgradeSummary("jobs", ("1.20", "2.3"))
    row = AuditRow(HOSTILE, AuditResult.UNKNOWN, ())
    found.add(JobUpgrade(row, Way.UNDECIDED, HOSTILE))
    texts = {name: render(found) for name, render in RENDERERS.items()}
    tags: set[str] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.add(tag)  # type: ignore[method-assign]
    parser.feed(texts["html"])
    assert "script" not in tags
    table = [line for line in texts["markdown"].splitlines() if "alert" in line]
    assert [line.replace("\\|", "").count("|") for line in table] == [5]


def test_only_jobs_that_keep_their_state_pass() -> None:
    for way, result in RESULTS.items():
        found = UpgradeSummary("jobs", ("1.20", "2.3"))
        assert found.exit_code == 1
        found.add(JobUpgrade(AuditRow("a.sql", result, ()), way, ""))
        assert found.exit_code == (0 if way in (Way.UNTOUCHED, Way.EDITED) else 1)
