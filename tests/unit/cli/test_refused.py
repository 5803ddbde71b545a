"""A statement that the line of Flink refuses, in every command that reads scripts: one rule, one advice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli.command import Run
from tests.support.fleet.repository import git
from tests.unit.cli.project import change, commit

REVENUE = """\
CREATE TABLE payments (shop BIGINT, amount BIGINT, paid TIMESTAMP(3), WATERMARK FOR paid AS paid) WITH (
  'connector' = 'kafka', 'topic' = 'payments', 'properties.bootstrap.servers' = 'h:9092', 'format' = 'json');
CREATE TABLE revenue (
  shop BIGINT, begins TIMESTAMP(3), ends TIMESTAMP(3), total BIGINT, PRIMARY KEY (shop, begins, ends) NOT ENFORCED
) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/shops', 'table-name' = 'revenue');
INSERT INTO revenue SELECT shop, window_start, window_end, SUM(amount)
FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid), INTERVAL '5' MINUTES)) GROUP BY shop, window_start, window_end;
"""
"""Kafka, a window and JDBC with a key over group and window: Flink 2.3 asks for ON CONFLICT, 1.20 does not."""
MENDED = REVENUE.removesuffix(";\n") + "\nON CONFLICT DO DEDUPLICATE;\n"
ENGINE = ("--engine", "flink", "--engine-version", "2.3")
ADVICE = "1. End the INSERT with an ON CONFLICT clause, or set table.exec.sink.require-on-conflict = false."
COMMANDS = {
    "lint": ("lint", "jobs/revenue.sql", *ENGINE),
    "new deployment": ("check", "/dev/null", "jobs/revenue.sql", *ENGINE),
    "upgrade": ("check", "jobs/revenue.sql", "jobs/revenue.sql", *ENGINE, "--old-engine-version", "1.20"),
    "audit": ("audit", "jobs/revenue.sql", *ENGINE, "--old-engine-version", "1.20"),
    "diff of a new deployment": ("diff", "--against", "git:HEAD~2"),
    "diff": ("diff", "--against", "git:HEAD~1"),
    "plan": ("plan", "revenue", "--against", "git:HEAD~1"),
}
LISTS = ("lint", "audit", "diff of a new deployment")
"""Commands that show findings without next steps."""


@pytest.fixture
def project(run: Run) -> None:
    """Three commits: no deployment, one with another table, and the refused script."""
    git(Path(), "init", "--quiet")
    Path("jobs").mkdir()
    Path("flinkcompat.toml").write_text('engine = "flink"\nengine_version = "2.3"\n', encoding="utf-8")
    commit("empty")
    Path("flinkcompat.toml").write_text(
        'engine = "flink"\nengine_version = "2.3"\n[deployments.revenue]\nscript = "jobs/revenue.sql"\n',
        encoding="utf-8",
    )
    change("revenue", REVENUE.replace("'table-name' = 'revenue'", "'table-name' = 'old'"))
    commit("deployed")
    change("revenue", REVENUE)
    commit("another table")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_it_once_and_advises_the_clause(run: Run, command: str) -> None:
    result = run(*COMMANDS[command])
    assert result.code == 1
    text = " ".join(result.out.split())
    assert text.count("is not the upsert key of the query, so Flink 2.3 requires ON CONFLICT") == 1
    assert "not measured between" not in text
    if command not in LISTS:
        assert ADVICE in result.out
    else:
        assert "add ON CONFLICT DO DEDUPLICATE" in text


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["lint", "new deployment"])
def test_the_clause_mends_it(run: Run, command: str) -> None:
    change("revenue", MENDED)
    assert run(*COMMANDS[command]).code == 0


@pytest.mark.usefixtures("project")
def test_a_deployed_script_that_the_line_refuses_is_told(run: Run) -> None:
    Path("mended.sql").write_text(MENDED, encoding="utf-8")
    result = run("check", "jobs/revenue.sql", "mended.sql", *ENGINE, "--format", "json")
    (finding,) = json.loads(result.out)["findings"]
    assert finding["rule"] == "hint-changed"
    assert finding["message"] == (
        "ON CONFLICT DO DEDUPLICATE was added: Flink no longer plans the upsert materializer; on this Flink version, "
        "no job can run from the old script unless table.exec.sink.require-on-conflict = false is set elsewhere"
    )
