"""A savepoint under the names of a script; the plan of the fixture stands for that of Flink's planner."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner import savepoints
from airflow_flinkcompat.planner.savepoints import open_savepoint
from dev.measure.savepoint_fixtures import FOLDER

HOP = FOLDER / "hopping-windows-become-tumbling-ones"


def test_tables_are_named_after_the_sinks_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = read_plan((HOP / "old.json").read_text("utf-8"))
    monkeypatch.setattr(savepoints, "compile_plans", lambda *_: ((plan,), (plan,)))
    path = HOP / "old.sql"
    for script in (path, str(path), Side(path.read_text("utf-8"), engine="flink")):
        names = [table.name for table in open_savepoint(str(HOP / "old"), script).tables]
        assert names == ["printed", "printed__processing_timers", "printed__timers"]
    assert open_savepoint(str(HOP / "old")).tables[0].name == "globalwindowaggregate"


def test_scripts_that_give_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nowhere.sql cannot be read"):
        open_savepoint(str(HOP / "old"), Path("nowhere.sql"))
    plan = read_plan((HOP / "old.json").read_text("utf-8"))
    monkeypatch.setattr(savepoints, "compile_plans", lambda *_: ((plan, plan), (plan, plan)))
    with pytest.raises(InputError, match="state reads the savepoint of one job"):
        open_savepoint(str(HOP / "old"), HOP / "old.sql")
