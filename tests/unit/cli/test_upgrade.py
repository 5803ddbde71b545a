"""``flinkcompat upgrade --write`` with edits that no planner found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.fleet import upgrades
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow
from airflow_flinkcompat.fleet.upgrades import JobUpgrade, Way
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.planner.upgrade_edits import Edit, EditedJob
from tests.support.cli.command import V1, Run

LINES = ("--old-engine-version", "1.20", "--engine-version", "2.3")


@pytest.fixture(autouse=True)
def edits(monkeypatch: pytest.MonkeyPatch) -> None:
    def edited(pairs: Iterable[AuditPair]) -> Iterator[JobUpgrade]:
        for pair in pairs:
            assert pair.new is not None
            edit = Edit(0, Span(pair.new.source, 1, 1, 1, 1), "", "-- 2.3\n", "a reason")
            job = EditedJob(replace(pair.new, script=f"-- 2.3\n{pair.new.script}"), (edit,))
            yield JobUpgrade(AuditRow(pair.name, AuditResult.COMPATIBLE, ()), Way.EDITED, "a reason", job)

    monkeypatch.setattr(upgrades, "upgrades", edited)


def test_a_script_outside_of_the_project_keeps_its_name(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "orders.sql"
    elsewhere.write_text(V1, "utf-8")
    assert run("upgrade", str(elsewhere), *LINES, "--write", "upgraded").code == 0
    assert Path("upgraded/orders.sql").read_text("utf-8") == f"-- 2.3\n{V1}"


def test_two_different_scripts_of_one_name_do_not_replace_each_other(
    run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scripts = []
    for text in (V1, f"{V1}-- another\n"):
        scripts.append(tmp_path_factory.mktemp("elsewhere") / "orders.sql")
        scripts[-1].write_text(text, "utf-8")
    result = run("upgrade", *map(str, scripts), *LINES, "--write", "upgraded")
    assert result.code == 2
    assert "upgraded/orders.sql would contain two different scripts" in result.err
    assert Path("upgraded/orders.sql").read_text("utf-8") == f"-- 2.3\n{V1}"
