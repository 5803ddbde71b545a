"""Edits of a script for a newer line of Flink; a stand-in for the planner refuses scripts as Flink 2.3 does."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_planner import PlannerRefusal
from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.planner import questions
from airflow_flinkcompat.planner.upgrade_edits import EditedJob, edit_for

CONFLICT = (
    "The query has an upsert key that differs from the primary key of the sink table 'default_catalog.db.{}'. Please "
    "specify an ON CONFLICT clause"
)
TABLES = """\
CREATE TABLE a (x INT, bitmap INT) WITH ('connector' = 'datagen');
CREATE TABLE b (n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'upsert-kafka');
"""


def reserved(side: Side) -> PlannerRefusal | None:
    """The refusal of the first name ``bitmap`` without backticks."""
    found = re.search(r"(?<!`)\bbitmap\b", side.script)
    if found is None:
        return None
    line = side.script.count("\n", 0, found.start()) + 1
    column = found.start() - side.script.rfind("\n", 0, found.start())
    return PlannerRefusal('Encountered "bitmap"', Span("job.sql", line, column, line, column), conclusive=True)


def unresolved(side: Side) -> PlannerRefusal | None:
    """The refusal of the first INSERT into ``b`` without ON CONFLICT."""
    for statement in side.parsed.statements:
        for insert in re.split(r";", statement.text):
            if "INSERT INTO b" in insert and "ON CONFLICT" not in insert:
                return PlannerRefusal(CONFLICT.format("b"), statement.span, conclusive=False)
    return None


@pytest.fixture(autouse=True)
def planner(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(side: Side, *_: Any) -> Any:
        refusals: tuple[Callable[[Side], PlannerRefusal | None], ...] = (reserved, unresolved)
        return SimpleNamespace(refusal=next(filter(None, (each(side) for each in refusals)), None))

    monkeypatch.setattr(questions, "plan", plan)


def edited(script: str, old: str = "1.20") -> EditedJob:
    return edit_for(JobSpec(script, engine="flink", engine_version="2.3", source="job.sql"), old, None)  # type: ignore[arg-type]


def places(found: EditedJob) -> list[str]:
    return [str(each.place).removeprefix("job.sql:") for each in found.edits]


def test_a_script_that_the_new_line_plans_is_unchanged() -> None:
    script = "CREATE TABLE c (x INT) WITH ('connector' = 'datagen');\nINSERT INTO d SELECT x FROM c;\n"
    found = edited(script)
    assert (found.job.script, found.edits, found.ignored, found.refusal) == (script, (), (), None)


def test_each_name_that_the_new_line_reserves_is_quoted_at_its_place_in_the_original() -> None:
    found = edited(TABLES + "INSERT INTO c SELECT bitmap, bitmap\nFROM a WHERE bitmap > 1;\n")
    assert places(found) == ["1:24", "3:22", "3:30", "4:14"]
    assert "SELECT `bitmap`, `bitmap`\nFROM a WHERE `bitmap` > 1;" in found.job.script


def test_a_name_that_both_lines_reserve_is_no_matter_of_the_upgrade() -> None:
    found = edited("CREATE TABLE a (bitmap INT);\nINSERT INTO c SELECT 1;", old="2.3")
    assert found.edits == ()
    assert found.refusal is not None


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("INSERT INTO b SELECT x FROM a;", "INSERT INTO b SELECT x FROM a\nON CONFLICT DO DEDUPLICATE;"),
        ("INSERT INTO b SELECT x FROM a", "INSERT INTO b SELECT x FROM a\nON CONFLICT DO DEDUPLICATE"),
        (
            "INSERT INTO b SELECT x FROM a -- last; one\n;",
            "INSERT INTO b SELECT x FROM a\nON CONFLICT DO DEDUPLICATE -- last; one\n;",
        ),
        (
            "INSERT INTO b SELECT * FROM (SELECT x FROM a);",
            "INSERT INTO b SELECT * FROM (SELECT x FROM a)\nON CONFLICT DO DEDUPLICATE;",
        ),
    ],
)
def test_an_insert_that_needs_a_clause_keeps_the_latest_row(statement: str, after: str) -> None:
    tables = TABLES.replace("bitmap", "z")
    found = edited(tables + statement)
    assert found.job.script == tables + after
    assert found.refusal is None
    (edit,) = found.edits
    assert edit.old == ""
    assert "DO DEDUPLICATE keeps the latest row of a key, as Flink 1.20 does" in edit.reason


def test_inserts_of_a_statement_set_are_edited_one_by_one() -> None:
    body = "INSERT INTO b SELECT x FROM a;\nINSERT INTO c SELECT x FROM a;\nINSERT INTO b SELECT x + 1 FROM a;\n"
    found = edited(TABLES.replace("bitmap", "z") + f"EXECUTE STATEMENT SET BEGIN\n{body}END;")
    assert found.job.script.count("ON CONFLICT") == 2
    assert "SELECT x FROM a;\nINSERT INTO b SELECT x + 1 FROM a\nON CONFLICT DO DEDUPLICATE;\nEND" in found.job.script
    assert places(found) == ["4:30", "6:34"]


def test_a_former_name_that_the_new_line_does_not_read_is_replaced_and_a_removed_setting_is_named() -> None:
    found = edited(
        "SET\n  'table.exec.topn-cache-size' = '7';\nSET 'table.exec.shuffle-mode' = 'x';\n"
        "SET 'state.backend.type' = 'rocksdb';\nINSERT INTO c SELECT 1;"
    )
    assert places(found) == ["2:4"]
    assert "'table.exec.rank.topn-cache-size' = '7'" in found.job.script
    assert found.edits[0].reason == "Flink 2.3 does not read the former name table.exec.topn-cache-size of this setting"
    assert found.ignored == (
        "job.sql:3:1: Flink 2.3 ignores the setting table.exec.shuffle-mode, which it does not have",
    )


@pytest.mark.parametrize(
    "key",
    [
        "state.checkpoints.dir",
        "state.backend.incremental",
        "state.backend.local-recovery",
        "table.exec.async-scalar.buffer-capacity",
        "execution.checkpointing.alignment-timeout",
    ],
)
def test_a_former_name_that_the_new_line_still_reads_is_unchanged(key: str) -> None:
    found = edited(f"SET '{key}' = 'x';\nINSERT INTO c SELECT 1;", old="1.19")
    assert (found.edits, found.ignored) == ((), ())


def test_a_refusal_that_no_edit_removes_ends_the_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = PlannerRefusal(CONFLICT.format("b"), Span("job.sql", 1, 1, 9, 9), conclusive=False)
    monkeypatch.setattr(questions, "plan", lambda *_: SimpleNamespace(refusal=refusal))
    found = edited("INSERT INTO b SELECT 1;")
    assert len(found.edits) == 1
    assert found.refusal is refusal
