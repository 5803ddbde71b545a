"""The projects of documents without an editor: what they are compared with, and when that is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol.types import PositionEncodingKind
from pygls.workspace import PositionCodec

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.fleet.values import Status
from airflow_flinkcompat.lsp.messages import DeployedTexts, shown_document
from airflow_flinkcompat.lsp.projects import DocumentVerdict, Projects
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.project.job_options import JobOptions
from tests.support.cli.command import COMPATIBLE, INCOMPATIBLE, QUERY, TABLES, V1
from tests.support.fleet.repository import git

ORDERS = '[deployments.orders]\nscript = "orders.sql"\n'


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "FLINKCOMPAT_LEDGER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def projects() -> Iterator[Projects]:
    asked = Projects(JobOptions(engine="flink"))
    yield asked
    asked.close()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script of a deployment with a ledger."""
    root = (tmp_path / "repository").resolve()
    root.mkdir()
    (root / "flinkcompat.toml").write_text(f'ledger = "{tmp_path / "ledger"}"\n{ORDERS}', encoding="utf-8")
    (root / "orders.sql").write_text(V1, encoding="utf-8")
    return root / "orders.sql"


def deploy(script: Path, text: str) -> None:
    start = JobStart("stateless", job_id="1" * 32)
    job = JobSpec(text, engine="flink", engine_version="2.3.0", source="orders.sql")
    entry = DeployedEntry(job=job, start=start, owner="test", message="RUNNING, verified")
    Ledger(script.parents[1] / "ledger", "orders").append(entry)


def said(projects: Projects, script: Path, text: str) -> DocumentVerdict:
    verdict = projects.verdict(script, {script: text})
    assert verdict is not None
    return verdict


def outcome(verdict: DocumentVerdict) -> str:
    (review,) = verdict.fleet.deployments
    return f"{review.outcome or review.status} {review.baseline}"


def test_the_ledger_is_asked_once_and_again_on_request(projects: Projects, script: Path) -> None:
    deploy(script, V1)
    assert outcome(said(projects, script, INCOMPATIBLE)) == "incompatible entry 1 of the ledger"
    deploy(script, INCOMPATIBLE)
    assert outcome(said(projects, script, INCOMPATIBLE)) == "incompatible entry 1 of the ledger"
    projects.refresh()
    verdict = said(projects, script, INCOMPATIBLE)
    assert verdict.fleet.deployments[0].status is Status.UNCHANGED
    assert outcome(said(projects, script, COMPATIBLE)).endswith(" entry 2 of the ledger")


def test_a_ledger_out_of_reach_leaves_the_script_read_by_itself(projects: Projects, script: Path) -> None:
    verdict = said(projects, script, V1)
    assert verdict.warning.startswith("no deployment in ")
    assert [(each.status, each.name) for each in verdict.fleet.deployments] == [(Status.LINTED, "orders.sql")]
    deploy(script, V1)
    assert said(projects, script, V1).warning, "it is not asked again with every change"
    projects.refresh()
    assert said(projects, script, V1).warning == ""


def test_nothing_to_compare_with_is_a_warning(projects: Projects, script: Path) -> None:
    """Neither a ledger nor a repository."""
    (script.parent / "flinkcompat.toml").write_text(ORDERS, encoding="utf-8")
    verdict = said(projects, script, V1)
    assert "is not in a Git repository" in verdict.warning
    assert verdict.fleet.deployments[0].status is Status.LINTED


def test_a_project_file_that_changes_is_read_again(projects: Projects, script: Path) -> None:
    deploy(script, V1)
    file = script.parent / "flinkcompat.toml"
    whole = file.read_text(encoding="utf-8")
    assert outcome(said(projects, script, V1)).startswith("compatible ")
    file.write_text(whole + "engin = 'flink'\n", encoding="utf-8")
    (review,) = said(projects, script, V1).fleet.deployments
    assert "engin: " in review.faults[0].message
    file.write_text("= broken", encoding="utf-8")
    (review,) = said(projects, script, V1).fleet.deployments
    assert review.status is Status.UNREADABLE
    file.write_text(whole, encoding="utf-8")
    assert outcome(said(projects, script, V1)).startswith("compatible ")


def test_a_catalog_that_is_open_counts_as_it_is_typed(projects: Projects, script: Path) -> None:
    deploy(script, V1)
    file = script.parent / "flinkcompat.toml"
    file.write_text(f'catalog = "tables.sql"\n{file.read_text(encoding="utf-8")}', encoding="utf-8")
    catalog = script.parent / "tables.sql"
    verdict = projects.verdict(script, {script: QUERY, catalog: TABLES})
    assert verdict is not None
    assert outcome(verdict) == "compatible entry 1 of the ledger"
    changed = TABLES.replace("'topic' = 'orders'", "'topic' = 'other'")
    verdict = projects.verdict(script, {script: QUERY, catalog: f"-- tables\n{changed}"})
    assert verdict is not None
    codec, deployed = PositionCodec(PositionEncodingKind.Utf16), DeployedTexts()
    shown = shown_document(verdict, QUERY, codec, deployed, related=False)
    deployed.close()
    ((diagnostic, _),) = shown.diagnostics
    assert diagnostic.message.startswith("tables.sql:4:32: source table orders: topic changed")
    assert diagnostic.range.start.line == 0


def test_two_deployments_of_one_script(projects: Projects, script: Path) -> None:
    deploy(script, V1)
    file = script.parent / "flinkcompat.toml"
    file.write_text(f"{file.read_text(encoding='utf-8')}[deployments.copy]\nscript = 'orders.sql'\n", encoding="utf-8")
    verdict = said(projects, script, INCOMPATIBLE)
    assert [(each.name, each.status) for each in verdict.fleet.deployments] == [
        ("orders", Status.CHANGED),
        ("copy", Status.ADDED),
    ]


def test_what_is_kept_of_a_revision_goes_with_the_projects(
    projects: Projects, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (script.parent / "flinkcompat.toml").write_text(ORDERS, encoding="utf-8")
    git(script.parent, "init", "--quiet", "--initial-branch", "main")
    git(script.parent, "add", "--all")
    git(script.parent, "commit", "--quiet", "--message", "first")
    asked = Projects(JobOptions(engine="flink"), "git:HEAD")
    assert outcome(said(asked, script, INCOMPATIBLE)) == "incompatible HEAD"
    asked.refresh()
    said(asked, script, INCOMPATIBLE)
    assert len([*temporary.iterdir()]) == 1, "that of before is gone"
    asked.close()
    assert [*temporary.iterdir()] == []
