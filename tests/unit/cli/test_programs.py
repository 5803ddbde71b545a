"""Programs of the Table API on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli.command import PROGRAM, V1, Run, report_of
from tests.unit.cli.project import HEAD, commit


def test_a_program_is_checked_with_what_its_environment_knows(run: Run) -> None:
    Path("job.py").write_text(PROGRAM, encoding="utf-8")
    assert run("check", "job.py", "job.py", "--var", "SINK=print").code == 0
    left_open = run("check", "job.py", "job.py", "--format", "json")
    assert left_open.code == 0
    (warning,) = report_of(left_open)["warnings"]
    assert "values from the environment are assumed to be equal" in warning
    assert "SINK; pass them with --var" in warning
    Path("other.py").write_text(PROGRAM.replace("os.environ['SINK']", "os.environ['TARGET']"), encoding="utf-8")
    assert run("check", "job.py", "other.py", "--engine", "flink").code == 1


def test_modules_and_files_beside_a_program_are_read_and_nothing_outside(run: Run, tmp_path: Path) -> None:
    """From the program's folder and the root of its repository; a link out of these is none."""
    outside = tmp_path.parent / f"{tmp_path.name}_outside.sql"
    outside.write_text("INSERT INTO s SELECT a FROM o", encoding="utf-8")
    repository = Path("repository")
    (repository / ".git").mkdir(parents=True)
    for name in ("old", "new"):
        (repository / name).mkdir()
        (repository / name / "tables.py").write_text("DDL = \"CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')\"")
        (repository / name / "job.py").write_text(
            PROGRAM.replace("import os", "import os\nfrom shared.sinks import NAME\nfrom tables import DDL").replace(
                "t_env.execute_sql(\"CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')\")",
                "t_env.execute_sql(DDL)",
            )
            + "t_env.execute_sql(open('link.sql').read() if NAME == 't' else 'SHOW TABLES')\n"
        )
        (repository / name / "link.sql").symlink_to(outside)
    (repository / "shared").mkdir()
    (repository / "shared" / "sinks.py").write_text("NAME = 's'")
    check = ("check", "repository/old/job.py", "repository/new/job.py", "--var", "SINK=print")
    assert run(*check).code == 0
    (repository / "new" / "tables.py").write_text("DDL = \"CREATE TABLE o (a BIGINT) WITH ('connector' = 'kafka')\"")
    assert run(*check).code == 1
    (repository / "new" / "tables.py").write_text((repository / "old" / "tables.py").read_text())
    (repository / "shared" / "sinks.py").write_text("NAME = 't'")
    findings = report_of(run(*check, "--format", "json"))["findings"]
    unread = [finding["message"] for finding in findings if finding["rule"] == "statement-not-read"]
    assert ["link.sql is not next to" in message for message in unread] == [True, True]


TABLE = """\
CREATE TABLE o (a STRING) WITH ('connector' = 'kafka');
CREATE TABLE s (a STRING) WITH ('connector' = 'print');

o.distinct().insertInto("s")
"""


def test_a_program_in_the_notation_of_flip_11_is_checked_beside_the_others(run: Run) -> None:
    Path("job.py").write_text(PROGRAM, encoding="utf-8")
    Path("job.table").write_text(TABLE, encoding="utf-8")
    assert run("check", "job.py", "job.table", "--var", "SINK=print").code == 0
    Path("old.sql").write_text(TABLE.replace('o.distinct().insertInto("s")', "INSERT INTO s SELECT a FROM o;"))
    moved = report_of(run("check", "old.sql", "job.table", "--format", "json"))
    assert "table-api-changed" in {finding["rule"] for finding in moved["findings"]}
    Path("job.table").write_text(TABLE + "#", encoding="utf-8")
    unread = report_of(run("check", "old.sql", "job.table", "--format", "json"))["findings"][0]
    assert (unread["rule"], unread["after_span"]["line"]) == ("statement-not-read", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("check", "a.sql", "a.sql", "--var", "A=1"),
            "--var is for programs, but no file ends in .py or .table: leave the option out",
        ),
        (("check", "a.sql", "job.py", "--engine", "flink", "--explain-plan"), "--explain-plan compiles SQL scripts"),
        (("check", "broken.py", "job.py"), "broken.py:1: is not Python"),
        (
            ("check", "a.sql", "job.py", "--catalog", "job.py"),
            "job.py: is a program of the Table API; an SQL script is expected",
        ),
        (
            ("backfill", "job.py"),
            "only the environment of the program has: SINK. Pass the variables with --var NAME=…",
        ),
        (("backfill", "a.sql", "--var", "A=1"), "--var is for programs"),
        (("backfill", "a.sql", "--order-by", "t="), "contains no column"),
    ],
)
def test_a_program_where_a_script_is_asked_for_is_a_clear_error(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    Path("job.py").write_text(PROGRAM, encoding="utf-8")
    Path("broken.py").write_text("x = (", encoding="utf-8")
    Path("a.sql").write_text(V1, encoding="utf-8")
    refused = run(*arguments)
    assert refused.code == 2
    assert message in refused.err


MODULE = """\
def declare(t_env):
    t_env.execute_sql("CREATE TABLE o (a STRING, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o')")
    t_env.execute_sql("CREATE TABLE s (a STRING, n DECIMALL) WITH ('connector' = 'print')")


def run(t_env):
    t_env.execute_sql("INSERT INTO s SELECT a, COUNT(*) FROM o GROUP BY a")
"""
READS_IT = """\
from pyflink.table import EnvironmentSettings, TableEnvironment
from {} import declare, run

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
declare(t_env)
run(t_env)
"""


@pytest.mark.parametrize(
    ("name", "file"), [("helpers", "jobs/helpers.py"), ("lib.helpers", "jobs/lib/helpers.py"), ("shared", "shared.py")]
)
def test_a_finding_in_a_module_is_told_at_its_place_there(project: Path, run: Run, name: str, file: str) -> None:
    """The last one lies at the root of the repository, and not beside the program."""
    Path("jobs/job.py").write_text(READS_IT.format(name), encoding="utf-8")
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(MODULE, encoding="utf-8")
    Path("flinkcompat.toml").write_text(f'{HEAD}[deployments.job]\nscript = "jobs/job.py"\n', encoding="utf-8")
    commit("a program")
    line, _ = run("lint", "--format", "github").out.splitlines()
    assert line.startswith(f"::error file={file},line=3,endLine=3,col=52,endColumn=60,title=jobs/job.py%3A program-ref")
    assert f"{file}:3:52: error: program-refused: Flink refuses the script: DECIMALL" in run("lint").out
    Path(file).write_text(MODULE.replace("COUNT(*)", "SUM(b)").replace("DECIMALL", "BIGINT"), encoding="utf-8")
    commands = run("diff", "--against", "git:HEAD", "--format", "github").out.splitlines()
    assert any(each.startswith(f"::error file={file},line=7,endLine=7,col=48,endColumn=54") for each in commands), (
        commands
    )
    Path(file).write_text(MODULE.replace("'topic'", "'properties.sasl.password' = 'hunter2-x', 'topic'"), "utf-8")
    (review,) = json.loads(run("diff", "--against", "git:HEAD", "--format", "json").out)["deployments"]
    (fault,) = review["faults"]
    assert (fault["path"], fault["line"]) == (file, 2)
    found = [(each["path"], each["line"]) for each in review["annotations"]]
    assert found == [(file, 2), (file, 3)], "the secret, and what Flink refuses"
