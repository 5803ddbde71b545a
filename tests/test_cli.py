"""The command line: exit codes, every option, what a reader sees (snapshots), JSON by its schema, no secrets."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.cli import main
from airflow_flinkcompat.compat import Report, render_markdown, render_text, report_rows
from airflow_flinkcompat.compat.pages import pages
from airflow_flinkcompat.compat.planner import example_plans
from airflow_flinkcompat.compat.rules import ALL
from airflow_flinkcompat.deploy import SqlGatewayPlanner
from tests.nightly import mostly_slow

SCHEMA = json.loads(files("airflow_flinkcompat.compat").joinpath("report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
SCHEMA_OF_BOTH = json.loads(
    files("airflow_flinkcompat.compat").joinpath("reports.schema.json").read_text(encoding="utf-8")
)
VALIDATOR_OF_BOTH = Draft202012Validator(
    SCHEMA_OF_BOTH, registry=Registry().with_resource("report.schema.json", Resource.from_contents(SCHEMA))
)

TABLES = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time
) WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = """\
INSERT INTO totals
SELECT customer, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))
GROUP BY customer, window_start, window_end;
"""
V1 = TABLES + QUERY
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
"""Of a process of its own: also where the package is not installed."""
COMPATIBLE = V1.replace("SUM(amount)", "SUM(amount) * 100")
PARTIAL = V1.replace("SUM(amount)", "SUM(amount) + COUNT(item)")
UNKNOWN = V1.replace("SELECT", "SET 'table.exec.mini-batch.enabled' = 'true';\nINSERT INTO totals SELECT").replace(
    "INSERT INTO totals\nSET", "SET"
)
INCOMPATIBLE = V1.replace("'1' MINUTE", "'2' MINUTE")
OF_OUTCOME = {"compatible": COMPATIBLE, "partial": PARTIAL, "unknown": UNKNOWN, "incompatible": INCOMPATIBLE}


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs the command in a folder of its own, as the installed entry point does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["flinkcompat", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(int(exited.value.code or 0), captured.out, captured.err)

    return call


def save(**scripts: str) -> None:
    """Scripts as files of the current folder."""
    for name, text in scripts.items():
        Path(f"{name}.sql").write_text(text, encoding="utf-8")


def report_of(result: Result) -> dict[str, Any]:
    """The report of one engine, of ``vvr`` where both were asked."""
    data = json.loads(result.out)
    if data["schema"] == "flinkcompat-reports/1":
        VALIDATOR_OF_BOTH.validate(data)
        return data["engines"]["vvr"]
    VALIDATOR.validate(data)
    return data


# ---------------------------------------------------------------------------------------------------- check
@pytest.mark.parametrize("outcome", list(OF_OUTCOME))
@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_what_a_reader_sees(run: Run, snapshot: SnapshotAssertion, outcome: str, style: str) -> None:
    save(old=V1, new=OF_OUTCOME[outcome])
    result = run("check", "old.sql", "new.sql", "--engine", "vvr", "--format", style, "--fail-on", "never")
    assert result.code == 0
    assert not result.err
    if style == "json":
        data = report_of(result)
        data["tool"]["version"] = "(version)"
        assert data["outcome"] == outcome
        assert data == snapshot
    else:
        assert result.out == snapshot


@pytest.mark.parametrize("outcome", list(OF_OUTCOME))
@pytest.mark.parametrize("gate", ["partial", "unknown", "incompatible", "never", None])
def test_the_gate(run: Run, outcome: str, gate: str | None) -> None:
    """That and worse fails; unknown where nothing is said."""
    order = ["compatible", "partial", "unknown", "incompatible", "never"]
    save(old=V1, new=OF_OUTCOME[outcome])
    result = run("check", "old.sql", "new.sql", "--engine", "vvr", *(("--fail-on", gate) if gate else ()))
    assert result.code == int(order.index(outcome) >= order.index(gate or "unknown"))


def test_engines_and_versions(run: Run) -> None:
    save(old=V1, new=PARTIAL)
    data = report_of(run("check", "old.sql", "new.sql", "--format", "json"))
    assert (data["engine"], data["outcome"]) == ("vvr", "partial")
    assert data["other_engine"] == {"engine": "flink", "outcome": "incompatible"}
    data = report_of(run("check", "old.sql", "new.sql", "--engine", "flink", "--format", "json"))
    assert (data["engine"], data["engine_version"], data["outcome"]) == ("flink", "2.3", "incompatible")
    assert "refused at restore" in {f["consequence"] for f in data["findings"]}
    save(new=COMPATIBLE)
    args = ("check", "old.sql", "new.sql", "--engine", "flink", "--format", "json")
    assert report_of(run(*args, "--engine-version", "1.20.3"))["outcome"] == "compatible"
    assert report_of(run(*args, "--engine-version", "1.18"))["outcome"] == "unknown"
    moved = report_of(run(*args, "--old-engine-version", "1.20", "--engine-version", "2.3"))
    assert moved["outcome"] == "compatible"  # the change is on both lines, and each part of the job was upgraded right
    assert "engine-version-changed" in {f["rule"] for f in moved["findings"]}
    moved = report_of(run(*args, "--old-engine-version", "1.18", "--engine-version", "2.3"))
    assert moved["outcome"] == "unknown"
    assert (
        report_of(run("check", "old.sql", "old.sql", *args[3:], "--engine-version", "9.9"))["outcome"] == "compatible"
    )


@pytest.mark.parametrize("outcome", [*OF_OUTCOME, "unchanged"])
@pytest.mark.parametrize("style", ["text", "markdown"])
def test_what_a_reader_sees_where_no_engine_is_named(
    run: Run, snapshot: SnapshotAssertion, outcome: str, style: str
) -> None:
    save(old=V1, new={**OF_OUTCOME, "unchanged": V1}[outcome])
    result = run("check", "old.sql", "new.sql", "--format", style, "--fail-on", "never")
    assert (result.code, result.err) == (0, "")
    assert result.out == snapshot


def test_where_no_engine_is_named_the_worse_of_both_counts(run: Run) -> None:
    """A metric is added: VVR resumes in part, open-source Flink fails while it restores."""
    save(old=V1, new=PARTIAL)
    of_each = {
        engine: report_of(run("check", "old.sql", "new.sql", "--engine", engine, "--format", "json"))
        for engine in ("vvr", "flink")
    }
    assert [report["outcome"] for report in of_each.values()] == ["partial", "incompatible"]
    both = run("check", "old.sql", "new.sql", "--format", "json")
    assert both.code == 1
    data = json.loads(both.out)
    VALIDATOR_OF_BOTH.validate(data)
    assert data == {"schema": "flinkcompat-reports/1", "outcome": "incompatible", "engines": of_each}
    assert run("check", "old.sql", "new.sql", "--fail-on", "never").code == 0
    save(new=INCOMPATIBLE.replace("SUM(amount)", "SUM(amount) + COUNT(item)"))
    assert run("check", "old.sql", "new.sql").code == 1
    save(new=COMPATIBLE)
    assert run("check", "old.sql", "new.sql", "--fail-on", "partial").code == 0


def test_the_engine_may_be_configured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(old=V1, new=PARTIAL)
    for engine in ("vvr", "flink"):
        monkeypatch.setenv("FLINKCOMPAT_ENGINE", engine)
        for options in ((), ("--format", "json"), ("--format", "markdown"), ("--engine", "flink")):
            configured = run("check", "old.sql", "new.sql", *options)
            monkeypatch.delenv("FLINKCOMPAT_ENGINE")
            named = run(
                "check", "old.sql", "new.sql", *(options if "--engine" in options else (*options, "--engine", engine))
            )
            monkeypatch.setenv("FLINKCOMPAT_ENGINE", engine)
            assert configured == named
    data = report_of(run("check", "old.sql", "new.sql", "--engine-version", "1.20", "--format", "json"))
    assert (data["engine"], data["engine_version"]) == ("flink", "1.20")
    pair = lines({"id": 1, "old": V1, "new": PARTIAL})
    assert [a["outcome"] for a in answers(run("batch", "-", stdin=pair))] == ["incompatible"]
    monkeypatch.setenv("FLINKCOMPAT_ENGINE", "spark")
    wrong = run("check", "old.sql", "new.sql")
    assert (wrong.code, wrong.out) == (2, "")
    assert "FLINKCOMPAT_ENGINE" in wrong.err
    assert "'spark'" in wrong.err


@pytest.mark.parametrize("command", [("check", "old.sql", "new.sql"), ("batch", "-")], ids=lambda command: command[0])
@pytest.mark.parametrize("option", ["--engine-version", "--old-engine-version"])
def test_a_version_without_its_engine_is_an_error(run: Run, command: tuple[str, ...], option: str) -> None:
    save(old=V1, new=V1)
    result = run(*command, option, "2.3")
    assert (result.code, result.out) == (2, "")
    if not (command[0] == "batch" and option == "--old-engine-version"):  # an option that batch does not have
        assert f"{option}: a version of which engine? Add --engine vvr or --engine flink" in result.err


def test_the_engine_is_in_the_help(run: Run) -> None:
    for command in ("check", "batch"):
        assert "FLINKCOMPAT_ENGINE" in run(command, "--help").out


@pytest.mark.parametrize("version", ["banana", "", "2.x", "v2.3", "2..3", "2.3 ", "2.3\n", "-1", "٢.٣", "vvr-8.0.11"])
@pytest.mark.parametrize("engine", ["flink", "vvr"])
def test_an_engine_version_is_a_version(run: Run, engine: str, version: str) -> None:
    save(old=V1, new=V1)
    for option in ((f"--engine-version={version}",), (f"--old-engine-version={version or '.'}",)):
        refused = run("check", "old.sql", "new.sql", "--engine", engine, *option)
        assert (refused.code, refused.out) == (2, "")
        assert f"of old.sql is no version of {engine}: write numbers with points between them" in refused.err
    Path("pairs.jsonl").write_bytes(lines({"id": 1, "old": V1, "new": V1}))
    (answer,) = answers(run("batch", "pairs.jsonl", "--engine", engine, f"--engine-version={version}"))
    assert "is no version of" in answer["error"]


@pytest.mark.parametrize("version", ["2.3", "1.20.3", "8.0.11", "11.1", "8", "2.4-SNAPSHOT", "1.20.1-csa1.15.1"])
def test_versions_of_every_form_are_taken(run: Run, version: str) -> None:
    save(old=V1, new=V1)
    for engine in ("flink", "vvr"):
        assert run("check", "old.sql", "new.sql", "--engine", engine, "--engine-version", version).code == 0


def test_settings(run: Run) -> None:
    save(old=V1, new=V1)
    check_ = ("check", "old.sql", "new.sql", "--format", "json")
    both = report_of(run(*check_, "--set", "table.exec.mini-batch.enabled=true"))
    assert both["outcome"] == "compatible"
    one = report_of(run(*check_, "--set", "pipeline.name=a", "--old-set", "table.exec.mini-batch.enabled=true"))
    assert one["outcome"] == "unknown"
    assert [f["rule"] for f in one["findings"]] == ["setting-changed"]
    assert (one["findings"][0]["before"], one["findings"][0]["after"]) == (
        "table.exec.mini-batch.enabled = true",
        "table.exec.mini-batch.enabled: not set",
    )
    replaced = report_of(run(*check_, "--set", "pipeline.name=a", "--old-set", "pipeline.name=b = c"))
    assert replaced["findings"][0]["before"] == "pipeline.name = b = c"


def test_functions_and_catalog(run: Run) -> None:
    query = QUERY.replace("SUM(amount)", "SUM(amount), weigh(amount)")
    save(old=query, new=query.replace("customer, SUM", "customer, window_start, SUM"), tables=TABLES)
    check_ = ("check", "old.sql", "new.sql", "--format", "json", "--catalog", "tables.sql")

    def rules(*args: str) -> set[str]:
        return {f["rule"] for f in report_of(run(*check_, *args))["findings"]}

    assert "undeclared-aggregate" in rules()
    assert "user-aggregate" in rules("--function", "weigh=aggregate:java")
    assert "python-aggregate" in rules("--function", "weigh=aggregate:python")
    bare = report_of(run("check", "old.sql", "new.sql", "--format", "json"))
    assert "undeclared-table" in {f["rule"] for f in bare["findings"]}
    assert "undeclared-table" not in rules()


BROKEN = TABLES + "SELECT FROM\n  WHERE;\n" + QUERY


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
@pytest.mark.parametrize("engine", [(), ("--engine", "vvr"), ("--engine", "flink")], ids=["both", "vvr", "flink"])
@pytest.mark.parametrize("which", ["old", "new"])
def test_an_error_of_syntax_is_bad_input_on_either_side(
    run: Run, which: str, engine: tuple[str, ...], style: str
) -> None:
    """Not "unknown", headed by what follows from it: the query is gone."""
    save(**{"old": V1, "new": V1, which: BROKEN})
    result = run("check", "old.sql", "new.sql", *engine, "--format", style, "--fail-on", "never")
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith(f"flinkcompat: {which}.sql:5:1: Expected something after SELECT; mend the statement")
    assert ("name the script that is really deployed" in line) is (which == "old")


def test_a_statement_that_is_merely_not_understood_is_a_finding(run: Run) -> None:
    save(old=V1, new=TABLES + "TRUNCATE TABLE totals;\n" + QUERY)
    result = run("check", "old.sql", "new.sql", "--format", "json")
    assert result.code == 1
    data = report_of(result)
    (finding,) = [f for f in data["findings"] if f["rule"] == "statement-not-read"]
    assert (finding["outcome"], finding["reason"]) == ("unknown", "not_read")
    assert finding["after_span"]["source"] == "new.sql"
    assert finding["after_span"]["line"] == 5


SECRETIVE = V1.replace("'topic' =", "'properties.sasl.password' = 'hunter2-plain', 'topic' =")


def test_literal_secrets_of_the_proposed_side_are_bad_input_unless_they_are_allowed(run: Run) -> None:
    save(old=V1, new=SECRETIVE + "SET 'api.token' = 'other-plain-value';\n")
    refused = run("check", "old.sql", "new.sql", "--fail-on", "never")
    assert (refused.code, refused.out) == (2, "")
    first, second, remedy = refused.err.splitlines()
    assert first.startswith("flinkcompat: new.sql:3:")
    assert "properties.sasl.password is a secret in plain text; put it into a connection" in first
    assert second.startswith("  new.sql:9:")
    assert "--allow-secrets" in remedy
    allowed = run("check", "old.sql", "new.sql", "--fail-on", "never", "--allow-secrets")
    assert allowed.code == 0
    assert "Warning: new.sql:3:" in allowed.out
    for each in (refused, allowed):
        assert not re.search("hunter2|other-plain", each.out + each.err)
    setting = run("check", "old.sql", "old.sql", "--set", "s3.secret-key=hunter2-plain")
    assert setting.code == 2
    assert "'s3.secret-key' holds a secret" in setting.err
    assert run("check", "old.sql", "old.sql", "--set", "s3.secret-key=${conn.s3.password}").code == 0


def test_a_change_that_takes_the_secrets_out_passes(run: Run) -> None:
    save(old=SECRETIVE, new=SECRETIVE.replace("hunter2-plain", "${conn.kafka.password}"))
    assert run("check", "old.sql", "new.sql", "--fail-on", "never").code == 0


LEFT_JOIN = """\
CREATE TABLE a (id BIGINT, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
CREATE TABLE b (id BIGINT, y BIGINT) WITH ('connector' = 'kafka', 'topic' = 'b', 'format' = 'json');
CREATE TABLE o (id BIGINT, y BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o');
INSERT INTO o SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id;
"""


@pytest.mark.parametrize("options", [(), ("--engine", "flink"), ("--engine", "vvr"), ("--format", "markdown")], ids=str)
def test_a_backfill_that_the_product_refuses_is_not_advised(run: Run, options: tuple[str, ...]) -> None:
    save(old=LEFT_JOIN, new=LEFT_JOIN.replace("a.id = b.id", "a.x = b.id"))
    out = " ".join(run("check", "old.sql", "new.sql", *options).out.split())
    assert "History cannot be recomputed by a backfill of new.sql: new.sql:4:" in out
    assert "a LEFT join is not recomputed by a backfill yet" in out
    assert "flinkcompat backfill new.sql" not in out
    save(old=V1, new=INCOMPATIBLE)
    assert "flinkcompat backfill new.sql" in run("check", "old.sql", "new.sql", *options).out


def test_errors_of_syntax_come_before_secrets(run: Run) -> None:
    save(old=V1, new=SECRETIVE + "SELECT FROM WHERE;\n")
    first, *others = run("check", "old.sql", "new.sql").err.splitlines()
    assert "mend the statement" in first
    assert "properties.sasl.password is a secret" in others[0]
    assert run("check", "old.sql", "new.sql", "--allow-secrets").err.splitlines() == [first]


def test_batch_names_secrets_and_judges_all_the_same(run: Run) -> None:
    """An audit of a fleet loses no verdict; an error of syntax leaves none to give."""
    judged, broken = answers(
        run(
            "batch",
            "-",
            "--fail-on",
            "never",
            stdin=lines({"id": 1, "old": V1, "new": SECRETIVE}, {"id": 2, "old": BROKEN, "new": V1}),
        )
    )
    assert judged["outcome"] in OF_OUTCOME
    (warning,) = judged["warnings"]
    assert warning.startswith("new:3:")
    assert "properties.sasl.password is a secret in plain text" in warning
    assert "hunter2" not in json.dumps(judged)
    assert broken == {"id": 2, "line": 2, "error": "old:5:1: Expected something after SELECT; mend the statement"}


BAD_INPUT = {
    "missing": (b"", "cannot be read"),
    "not UTF-8": (b"SELECT '\xff\xfe'", "not UTF-8"),
    "only comments": (b"-- nothing\n/* here */\n", "no SQL statement"),
    "no query": (TABLES.encode() + b"SET 'a' = 'b';\n", "no INSERT and no SELECT"),
}


@pytest.mark.parametrize("which", ["old", "new"])
@pytest.mark.parametrize("case", list(BAD_INPUT))
def test_bad_input_is_exit_2_and_says_where(run: Run, case: str, which: str) -> None:
    save(old=V1, new=V1)
    content, message = BAD_INPUT[case]
    if case == "missing":
        Path(f"{which}.sql").unlink()
    else:
        Path(f"{which}.sql").write_bytes(content)
    result = run("check", "old.sql", "new.sql")
    assert result.code == 2
    assert not result.out
    assert message in result.err
    assert f"{which}.sql" in result.err
    assert len(result.err.splitlines()) == 1


# ------------------------------------------------------------------------------------- what names a script
@pytest.fixture
def repository(run: Run, tmp_path: Path) -> Path:
    """A repository whose only commit holds ``jobs/orders.sql``; in the working tree its window is another one."""
    Path("jobs").mkdir()
    Path("jobs/orders.sql").write_text(V1, encoding="utf-8")
    Path("jobs/job.py").write_text(PROGRAM, encoding="utf-8")
    for command in (
        ("init", "--quiet"),
        ("add", "--all"),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "first"),
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    Path("jobs/orders.sql").write_text(INCOMPATIBLE, encoding="utf-8")
    return tmp_path


def test_a_side_may_be_a_file_of_a_revision(run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql", "--engine", "flink")
    assert result.code == 1
    assert "HEAD:jobs/orders.sql -> jobs/orders.sql, open-source Flink 2.3" in result.out
    assert "before HEAD:jobs/orders.sql:7:6" in result.out
    data = report_of(run("check", "HEAD:jobs/orders.sql", "HEAD:jobs/orders.sql", "--format", "json"))
    assert (data["outcome"], data["old"]["source"]) == ("compatible", "HEAD:jobs/orders.sql")
    subprocess.run(["git", "add", "jobs/orders.sql"], check=True)
    assert run("check", "HEAD:jobs/orders.sql", ":jobs/orders.sql").code == 1, "what is staged"
    monkeypatch.chdir(repository / "jobs")
    assert run("check", "HEAD:./orders.sql", "orders.sql").code == 1


def test_a_side_may_be_standard_input(run: Run) -> None:
    save(old=V1)
    result = run("check", "old.sql", "-", "--engine", "flink", stdin=INCOMPATIBLE.encode())
    assert result.code == 1
    assert "old.sql -> <stdin>, open-source Flink 2.3" in result.out
    assert run("check", "-", "old.sql", stdin=b"\xef\xbb\xbf" + V1.encode()).code == 0
    for stdin, words in ((b"", "holds no SQL statement"), (b"\xff", "is not UTF-8"), (b"SELECT FROM;", "mend")):
        for sides in (("old.sql", "-"), ("-", "old.sql")):
            result = run("check", *sides, stdin=stdin)
            assert (result.code, result.out) == (2, "")
            assert words in result.err
            assert "<stdin>" in result.err
    assert "holds one script" in run("check", "-", "-", stdin=V1.encode()).err


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (("HEAD~3:jobs/orders.sql", "jobs/orders.sql"), "there is no such file, and no revision 'HEAD~3'"),
        (("nosuch:orders.sql", "jobs/orders.sql"), "no revision 'nosuch'"),
        (("--output=x:y", "jobs/orders.sql"), "No such option"),
        (("HEAD:jobs", "jobs/orders.sql"), "HEAD:jobs: is no file in that revision but a folder"),
        (("HEAD:job/orders.sql", "jobs/orders.sql"), "there is no such file; where the script was added or deleted"),
        (("jobs/orders.sql", "HEAD:jobs/other.sql"), "there is no such file; where the script was added or deleted"),
        (("jobs/other.sql", "jobs/orders.sql"), "there is no such file; where the script was added or deleted"),
        (("HEAD:jobs/job.py", "jobs/job.py"), "check the revision out (git worktree add"),
        (("s3://bucket/orders.sql", "jobs/orders.sql"), "s3://bucket/orders.sql: cannot be read"),
        (("/dev/null", "/dev/null"), "there is no script on either side"),
        (("HEAD:none.sql", "none.sql"), "there is no script on either side"),
    ],
)
def test_a_name_that_stands_for_no_script(run: Run, repository: Path, sides: tuple[str, str], words: str) -> None:
    result = run("check", *sides)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_a_revision_needs_git_and_a_repository(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save(new=V1)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("GIT_DIR", raising=False)
    result = run("check", "HEAD:new.sql", "new.sql")
    assert (result.code, result.out) == (2, "")
    assert "REV:path needs a Git repository, which this folder is not in" in result.err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs git, which is not installed" in run("check", "HEAD:new.sql", "new.sql").err
    Path("a:b.sql").write_text(V1, encoding="utf-8")
    assert run("check", "a:b.sql", "new.sql").code == 0, "a file comes before a revision"


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_new_deployment_is_only_read(run: Run, repository: Path, snapshot: SnapshotAssertion, style: str) -> None:
    save(**{"jobs/clicks": V1})
    result = run("check", "/dev/null", "jobs/clicks.sql", "--engine", "flink", "--format", style)
    assert (result.code, result.err) == (0, "")
    if style == "json":
        assert [finding["rule"] for finding in report_of(result)["findings"]] == ["deployment-added"]
    else:
        assert result.out == snapshot
    assert run("check", "HEAD:jobs/clicks.sql", "jobs/clicks.sql", "--fail-on", "partial").code == 0
    assert "NEW DEPLOYMENT on open-source Flink 2.3 and on VVR" in run("check", "/dev/null", "jobs/clicks.sql").out
    save(**{"jobs/clicks": BROKEN})
    broken = run("check", "/dev/null", "jobs/clicks.sql")
    assert (broken.code, broken.out) == (2, "")
    save(**{"jobs/clicks": SECRETIVE})
    assert run("check", "/dev/null", "jobs/clicks.sql").code == 2
    save(**{"jobs/clicks": TABLES})
    assert "no INSERT and no SELECT" in run("check", "/dev/null", "jobs/clicks.sql").err
    save(empty="")
    assert "name /dev/null as OLD" in run("check", "empty.sql", "jobs/orders.sql").err, "it may be a failed redirection"


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_deleted_script_fails_the_gate(run: Run, repository: Path, snapshot: SnapshotAssertion, style: str) -> None:
    given = ("--format", style, "--engine", "flink")
    result = run("check", "jobs/orders.sql", "/dev/null", *given)
    assert (result.code, result.err) == (1, "")
    if style == "json":
        assert [finding["rule"] for finding in report_of(result)["findings"]] == ["deployment-removed"]
    else:
        assert result.out == snapshot
    assert run("check", "jobs/orders.sql", "/dev/null", "--fail-on", "incompatible").code == 1
    assert run("check", "jobs/orders.sql", "/dev/null", "--fail-on", "never").code == 0
    save(empty="\n", broken=BROKEN)
    assert run("check", "broken.sql", "/dev/null").code == 1, "what is gone need not be read"
    assert "DELETED" in run("check", "jobs/orders.sql", "empty.sql").out
    Path("jobs/orders.sql").unlink()
    deleted = run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql")
    assert deleted.code == 1
    assert deleted.out.startswith("DELETED on open-source Flink 2.3 and on VVR")


def test_rehearse_takes_the_same_names(run: Run, repository: Path) -> None:
    given = ("--job-id", "a" * 32, "--gateway", "http://127.0.0.1:9", "--jobmanager", "http://127.0.0.1:9")
    assert "does not answer" in run("rehearse", "HEAD:jobs/orders.sql", "-", *given, stdin=V1.encode()).err
    assert "no revision 'nosuch'" in run("rehearse", "nosuch:jobs/orders.sql", "jobs/orders.sql", *given).err
    assert "cannot be read" in run("rehearse", "/dev/null", "jobs/orders.sql", *given).err
    assert "holds one script" in run("rehearse", "-", "-", *given).err


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("old.sql",),
        ("old.sql", "new.sql", "more.sql"),
        ("old.sql", "new.sql", "--engine", "spark"),
        ("old.sql", "new.sql", "--format", "xml"),
        ("old.sql", "new.sql", "--fail-on", "compatible"),
        ("old.sql", "new.sql", "--set", "novalue"),
        ("old.sql", "new.sql", "--set", "=value"),
        ("old.sql", "new.sql", "--old-set", "novalue"),
        ("old.sql", "new.sql", "--function", "f"),
        ("old.sql", "new.sql", "--function", "f=window"),
        ("old.sql", "new.sql", "--function", "f=scalar:cobol"),
        ("old.sql", "new.sql", "--function", "=scalar"),
        ("old.sql", "new.sql", "--catalog", "missing.sql"),
        ("old.sql", "new.sql", "--nonsense"),
        (".", "new.sql"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_exit_2(run: Run, args: tuple[str, ...]) -> None:
    save(old=V1, new=V1)
    result = run("check", *args)
    assert result.code == 2
    assert not result.out
    assert result.err.strip()


def test_help_and_version(run: Run) -> None:
    for args in (("--help",), ("check", "--help"), ("batch", "-h"), ("rules", "--help"), ("backfill", "--help")):
        result = run(*args)
        assert (result.code, result.err) == (0, "")
        assert "Usage: flinkcompat" in result.out
    assert run("--version").out.startswith("flinkcompat")
    assert run("nonsense").code == 2


@pytest.mark.slow
def test_the_installed_module_runs(tmp_path: Path) -> None:
    """Through a real process: the exit code and nothing on standard error."""
    for name, text in (("old", V1), ("new", INCOMPATIBLE)):
        (tmp_path / f"{name}.sql").write_text(text, encoding="utf-8")
    args = [sys.executable, "-m", "airflow_flinkcompat.cli", "check", "old.sql", "new.sql"]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stdout.startswith("INCOMPATIBLE")
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("args", [("check", "old.sql", "old.sql"), ("batch", "pairs.jsonl"), ("rules",)], ids=" ".join)
def test_a_full_disk_is_exit_2(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "old.sql").write_text(V1, encoding="utf-8")
    (tmp_path / "pairs.jsonl").write_bytes(lines({"id": 1, "old": V1, "new": V1}))
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", *args]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["flinkcompat: input or output failed: No space left on device"]


@pytest.mark.parametrize("what", ["table", "sink"])
def test_a_backfill_s_places_are_given_once(run: Run, what: str) -> None:
    pytest.importorskip("pyspark")
    save(ok=V1)
    result = run("backfill", "ok.sql", f"--{what}", "orders=/a", f"--{what}", "orders=/b")
    assert (result.code, result.err) == (2, f"flinkcompat: {what} orders is given twice, with other values\n")


@pytest.mark.parametrize("what", ["table", "sink"])
@pytest.mark.parametrize("pair", ["x", "=file:///x"])
def test_a_backfill_s_places_are_asked_for_by_their_name(run: Run, what: str, pair: str) -> None:
    pytest.importorskip("pyspark")
    save(ok=V1)
    result = run("backfill", "ok.sql", f"--{what}", pair)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"flinkcompat: {what} {pair!r} is not of the form NAME=URI\n"


WINDOWED = """\
CREATE TABLE orders (ts TIMESTAMP(3), price INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE totals (ws TIMESTAMP(3), we TIMESTAMP(3), total INT)
  WITH ('connector' = 'filesystem', 'path' = '/out', 'format' = 'csv');
INSERT INTO totals SELECT window_start, window_end, SUM(price)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end;
"""


def test_a_dry_run_of_a_backfill_needs_no_spark_and_writes_the_hand_over(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    save(ok=WINDOWED)
    given = ("--sink", "totals=/else", "--boundary", "2026-01-02", "--hand-over", "over.json", "--late", "drop")
    result = run("backfill", "ok.sql", "--dry-run", *given)
    assert (result.code, result.err) == (0, "")
    assert "aggregate   SUM(price) GROUP BY window_start, window_end" in result.out
    record = json.loads(Path("over.json").read_text(encoding="utf-8"))
    assert record["schema"] == "flinkcompat-handover/1"
    assert record["sources"][0]["live_from"] == "2026-01-01 23:59:55"
    assert run("backfill", "ok.sql", *given).err.startswith("flinkcompat: backfill needs Spark")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--boundary", "2026-01-02 00:01"), "cuts a window: take 2026-01-02 00:00:00 or 2026-01-02 00:10:00"),
        (("--boundary", "2026-01-02"), "--sink totals=URI"),
        (("--boundary", "2026-01-02", "--to", "2026-01-03"), "leave out --to, or leave out --boundary"),
        (("--hand-over", "x.json"), "belong to --boundary"),
        (("--allow-incomplete",), "belong to --boundary"),
        (("--journal", "/x"), "belongs to --chunk"),
        (("--chunk", "1d"), "need a range with both ends"),
        (("--chunk", "soon"), "'soon' is no length of time"),
        (("--chunk", "1s", "--from", "2026-01-01", "--to", "2026-01-02"), "has to last 10min or longer"),
        (("--from", "yesterday"), "'yesterday' is no time"),
        (("--late", "sometimes"), "'sometimes' is not one of"),
    ],
)
def test_a_backfill_that_cannot_be_is_exit_2(run: Run, args: tuple[str, ...], words: str) -> None:
    save(ok=WINDOWED)
    result = run("backfill", "ok.sql", "--dry-run", *args)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert "Traceback" not in result.err


# ---------------------------------------------------------------------------------------------------- batch
def lines(*pairs: Any) -> bytes:
    return b"".join(p if isinstance(p, bytes) else json.dumps(p).encode() + b"\n" for p in pairs)


def answers(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0
    return [json.loads(line) for line in result.out.splitlines()]


def test_batch_keeps_the_order_and_goes_on_after_bad_lines(run: Run) -> None:
    found = answers(
        run(
            "batch",
            "-",
            "--engine",
            "vvr",
            stdin=lines(
                {"id": 1, "old": V1, "new": COMPATIBLE},
                b"\n",
                b"not json\n",
                {"id": "two", "old": V1, "new": INCOMPATIBLE},
                b"[1, 2]\n",
                {"id": 3, "old": V1},
                {"id": 4, "old": "", "new": V1},
                {"id": 5, "old": TABLES, "new": V1},
                b"\xff\xfe\n",
                {"id": 6, "old": V1, "new": V1, "engine": "spark"},
                {"id": 7, "old": V1, "new": V1, "settings_old": "x"},
                {"id": 8, "old": V1, "new": V1, "functions": ["f"]},
                {"id": 9, "old": V1, "new": "TRUNCATE TABLE t;" + V1},
                {"old": V1, "new": V1},
            ),
        )
    )
    assert [a.get("id") for a in found] == [1, None, "two", None, 3, 4, 5, None, 6, 7, 8, 9, None]
    assert [a.get("outcome") for a in found] == [
        "compatible", None, "incompatible", *[None] * 8, "unknown", "compatible",
    ]  # fmt: skip
    failed = [a for a in found if "error" in a]
    assert [a["line"] for a in failed] == [3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert all(set(a) == {"id", "line", "error"} and a["error"] for a in failed)
    assert all(set(a) == {"id", "outcome", "findings"} for a in found if "error" not in a)


ODD_LINES = {
    "engine list": (b'"engine": ["flink"]', 1, "engine ['flink'] is not one of"),
    "engine object": (b'"engine": {"a": 1}', 1, "is not one of"),
    "engine null": (b'"engine": null', 1, "is not one of"),
    "functions number": (b'"functions": 5', 1, '"functions" must be a list'),
    "functions true": (b'"functions": true', 1, '"functions" must be a list'),
    "functions text": (b'"functions": "f=scalar"', 1, '"functions" must be a list'),
    "functions of numbers": (b'"functions": [1]', 1, '"functions" must be a list'),
    "functions of lists": (b'"functions": {"f": ["scalar"]}', 1, "is not of the form NAME=KIND"),
    "settings list": (b'"settings_old": []', 1, '"settings_old" must be an object'),
    "settings of null": (b'"settings_new": {"a.b": null}', 1, "the value of 'a.b' must be"),
    "settings of objects": (b'"settings_new": {"a.b": {"c": "d"}}', 1, "the value of 'a.b' must be"),
    "surrogate setting": (b'"settings_new": {"a.b": "\\udfff"}', 1, "half of a surrogate pair"),
    "surrogate id": (b'"id": "\\ud800"', None, "half of a surrogate pair"),
    "NaN": (b'"id": NaN', None, "NaN is no number in JSON"),
    "infinite": (b'"id": -Infinity', None, "-Infinity is no number in JSON"),
    "too large": (b'"id": 1e999', None, "1e999 is no number in JSON"),
    "too many digits": (b'"id": ' + b"9" * 5000, None, "digits"),
    "too deep": (b'"x": ' + b"[" * 100_000, None, "nested too deeply"),
}


@pytest.mark.parametrize("case", list(ODD_LINES))
def test_batch_answers_an_odd_line_and_goes_on(run: Run, case: str) -> None:
    text, identity, message = ODD_LINES[case]
    pair = json.dumps({"id": 1, "old": V1, "new": V1}).encode()
    result = run(
        "batch",
        "-",
        "--fail-on",
        "never",
        stdin=pair[:-1] + b", " + text + b"}\n" + lines({"id": "next", "old": V1, "new": V1}),
    )
    assert result.code == 0
    first, second = (json.loads(line, parse_constant=pytest.fail) for line in result.out.splitlines())
    assert set(first) == {"id", "line", "error"}
    assert (first["id"], first["line"]) == (identity, 1)
    assert message in first["error"]
    assert (second["id"], second["outcome"]) == ("next", "compatible")


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (1.5, "1.5")])
def test_batch_settings_are_texts_as_json_writes_them(run: Run, value: Any, text: str) -> None:
    pair = {"id": 1, "old": V1, "new": V1, "settings_old": {"a.b": value}}
    changes = lines(*({**pair, "settings_new": {"a.b": value}} for value in (text, "x")))
    same, other = answers(run("batch", "-", "--fail-on", "never", stdin=changes))
    assert same["outcome"] == "compatible"
    assert other["findings"][0]["before"] == f"a.b = {text}"


def test_batch_reads_settings_functions_and_engine(run: Run) -> None:
    weighed = V1.replace("SUM(amount)", "weigh(amount)")
    changed = weighed.replace("SELECT customer", "SELECT UPPER(customer)")
    pairs = [
        {"id": "settings", "old": V1, "new": V1, "settings_old": {"a.b": 1}, "settings_new": {"a.b": "2"}},
        {"id": "same", "old": V1, "new": V1, "settings_old": {"a.b": 1}, "settings_new": {"a.b": "1"}},
        {"id": "list", "old": weighed, "new": changed, "functions": ["weigh=aggregate:python"]},
        {"id": "mapping", "old": weighed, "new": changed, "functions": {"weigh": "aggregate:java"}},
        {"id": "engine", "old": V1, "new": PARTIAL, "engine": "flink"},
        {"id": "other", "old": V1, "new": PARTIAL, "engine": "vvr"},
    ]
    Path("pairs.jsonl").write_bytes(lines(*pairs))
    found = {a["id"]: a for a in answers(run("batch", "pairs.jsonl", "--engine", "vvr"))}
    assert [found[i]["outcome"] for i in ("settings", "same", "list", "mapping", "engine", "other")] == [
        "unknown", "compatible", "unknown", "compatible", "incompatible", "partial",
    ]  # fmt: skip
    assert "python-aggregate" in {f["rule"] for f in found["list"]["findings"]}
    assert "user-aggregate" in {f["rule"] for f in found["mapping"]["findings"]}
    on_flink = answers(run("batch", "pairs.jsonl", "--engine", "flink", "--engine-version", "2.0"))
    assert [a["outcome"] for a in on_flink[:2]] == ["unknown", "compatible"]


def test_batch_judges_both_engines_where_none_is_named(run: Run) -> None:
    pairs = [{"id": name, "old": V1, "new": text} for name, text in OF_OUTCOME.items()]
    named = [
        {**pair, "id": f"{engine} {pair['id']}", "engine": engine} for engine in ("vvr", "flink") for pair in pairs
    ]
    result = run("batch", "-", "--fail-on", "never", stdin=lines(*pairs, *named))
    found = {answer["id"]: answer for answer in answers(result)}
    order = ["compatible", "partial", "unknown", "incompatible"]
    for name in OF_OUTCOME:
        each = {engine: found[f"{engine} {name}"] for engine in ("vvr", "flink")}
        assert all(set(answer) == {"id", "outcome", "findings"} for answer in each.values())
        own = {engine: {key: answer[key] for key in ("outcome", "findings")} for engine, answer in each.items()}
        assert found[name]["engines"] == own
        assert found[name]["outcome"] == max((answer["outcome"] for answer in own.values()), key=order.index)
        assert {key: found[name][key] for key in ("outcome", "findings")} in own.values()
    assert found["partial"]["outcome"] == "incompatible"


@pytest.mark.parametrize("outcome", mostly_slow(tuple(OF_OUTCOME), 4))
def test_batch_exits_by_the_worse_verdict_where_no_engine_is_named(run: Run, outcome: str) -> None:
    pairs = [{"id": name, "old": V1, "new": OF_OUTCOME[name]} for name in ("compatible", outcome)]
    save(old=V1, new=OF_OUTCOME[outcome])
    both = run("batch", "-", stdin=lines(*pairs))
    worse = json.loads(both.out.splitlines()[-1])["outcome"]
    assert both.code == (worse in ("unknown", "incompatible")) == run("check", "old.sql", "new.sql").code
    for code, gate in ((0, "never"), (int(worse == "incompatible"), "incompatible")):
        assert run("batch", "-", "--fail-on", gate, stdin=lines(*pairs)).code == code
    for engine in ("vvr", "flink"):
        named = lines(*({**pair, "engine": engine} for pair in pairs))
        assert run("batch", "-", stdin=named).code == 0
        assert run("batch", "-", "--engine", engine, stdin=lines(*pairs)).code == 0
        gated = run("batch", "-", "--engine", engine, "--fail-on", "partial", stdin=lines(*pairs))
        assert gated.code == (json.loads(gated.out.splitlines()[-1])["outcome"] != "compatible")


def test_a_gate_of_batch_is_not_passed_by_what_cannot_be_read(run: Run) -> None:
    pairs = lines({"id": 1, "old": V1, "new": INCOMPATIBLE}, b"no json\n", {"id": 2, "old": V1, "new": BROKEN})
    assert run("batch", "-", stdin=pairs).code == 2
    assert run("batch", "-", "--engine", "flink", "--fail-on", "partial", stdin=pairs).code == 2
    assert run("batch", "-", "--fail-on", "never", stdin=pairs).code == 0
    assert run("batch", "-", "--engine", "flink", stdin=pairs).code == 0


@pytest.mark.slow
def test_batch_streams(tmp_path: Path) -> None:
    """Each answer comes before the next line is asked for."""
    args = [sys.executable, "-m", "airflow_flinkcompat.cli", "batch", "-"]
    with subprocess.Popen(
        args, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(lines({"id": number, "old": V1, "new": V1}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_batch_findings_hold_the_schema(run: Run) -> None:
    validator = Draft202012Validator({**SCHEMA["$defs"]["finding"], "$defs": SCHEMA["$defs"]})
    pairs = [{"id": name, "old": V1, "new": text} for name, text in OF_OUTCOME.items()]
    for answer in answers(run("batch", "-", "--engine", "vvr", stdin=lines(*pairs))):
        assert answer["outcome"] == answer["id"]
        for finding in answer["findings"]:
            validator.validate(finding)


def test_batch_bad_usage(run: Run) -> None:
    assert run("batch", "missing.jsonl").code == 2
    assert run("batch").code == 2
    assert run("batch", "-", "--engine", "x").code == 2


# ---------------------------------------------------------------------------------------------------- rules
def test_rules(run: Run, snapshot: SnapshotAssertion) -> None:
    result = run("rules")
    assert result.code == 0
    assert all(rule.code in result.out for rule in ALL)
    explained = run("rules", "aggregate-added").out
    place = Path(explained.splitlines()[-1].removeprefix("page   "))
    assert explained.replace(str(place), "(page)") == snapshot
    assert place.read_text(encoding="utf-8") == pages()["aggregate-added.md"]
    unknown = run("rules", "no-such-rule")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no-such-rule" in unknown.err


def test_rules_near_to_what_was_written(run: Run) -> None:
    result = run("rules", "window-chnaged")
    assert (result.code, result.out) == (2, "")
    assert "did you mean window-changed" in result.err
    assert "`flinkcompat rules` lists them" in run("rules", "qqqq").err


def test_rules_as_data_and_filtered(run: Run) -> None:
    found = json.loads(run("rules", "--format", "json", "--engine", "vvr", "--outcome", "partial").out)
    assert {rule["engines"]["vvr"]["outcome"] for rule in found} == {"partial"}
    assert json.loads(run("rules", "aggregate-added", "--format", "json").out) in found
    table = run("rules", "--engine", "vvr", "--outcome", "partial").out
    assert "aggregate-added " in table
    assert "window-changed" not in table


def test_a_published_page_is_named_by_its_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(old=V1, new=INCOMPATIBLE)
    check_ = ("check", "old.sql", "new.sql", "--engine", "flink")
    assert "    page    flinkcompat rules window-changed\n" in run(*check_).out
    assert "Page: `flinkcompat rules window-changed`" in run(*check_, "--format", "markdown").out
    for base in ("https://docs.example.org/rules/", "https://docs.example.org/rules/{code}.md"):
        monkeypatch.setenv("FLINKCOMPAT_RULES_URL", base)
        address = "https://docs.example.org/rules/window-changed.md"
        assert f"    page    {address}\n" in run(*check_).out
        assert f"Page: [window-changed]({address})" in run(*check_, "--format", "markdown").out
        assert run("rules", "window-changed").out.endswith(f"page   {address}\n")
        assert json.loads(run("rules", "window-changed", "--format", "json").out)["page"] == address
    monkeypatch.setenv("FLINKCOMPAT_RULES_URL", "no address")
    assert "    page    flinkcompat rules window-changed\n" in run(*check_).out


def test_rules_writes_pages_and_keeps_what_is_not_its_own(run: Run) -> None:
    assert "pages changed" in run("rules", "--write", "pages").out
    assert run("rules", "--write", "pages").out == "pages: up to date\n"
    assert Path("pages/window-changed.md").read_text(encoding="utf-8").count("```sql") >= 2
    Path("README.md").write_text("mine", encoding="utf-8")
    refused = run("rules", "--write", ".")
    assert refused.code == 2
    assert "README.md" in refused.err


# --------------------------------------------------------------------------------------------------- report
def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "flinkcompat-report/1"


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize("rule", mostly_slow(ALL, 8), ids=lambda rule: rule.code)
def test_every_rule_s_report_holds_the_schema_and_reads_back(rule: Any, engine: str) -> None:
    old, new = (
        Side(text, engine=engine, language=rule.example.language) for text in (rule.example.old, rule.example.new)
    )
    report = check(old, new)
    data = json.loads(json.dumps(report.to_dict()))
    VALIDATOR.validate(data)
    assert Report.from_dict(data) == report


# -------------------------------------------------------------------------------------------------- secrets
LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
SECRETS = st.text(LETTERS, min_size=12, max_size=24).map("Zq9{}".format)
HIDING_PLACES = """\
CREATE TABLE source (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'password' = '{0}',
  'properties.sasl.jaas.config' = 'org.example.Login required username="u" password="{0}";',
  'url' = 'jdbc:postgresql://user:{0}@db:5432/x', 'api.token' = '{0}');
-- the password = '{0}' of the old cluster
SET 's3.secret-key' = '{0}';
ADD JAR 'https://me:{0}@files.example.com/x.jar';
CREATE CATALOG lake WITH ('type' = 'jdbc', 'password' = '{0}');
CREATE TEMPORARY FUNCTION tidy AS 'com.example.Tidy' USING JAR 'https://me:{0}@files.example.com/tidy.jar';
CREATE TEMPORARY VIEW calls AS SELECT CONCAT('https://me:{0}@api.example.com/', a) AS a, b, ts FROM source;
CREATE TABLE broken (a STRING) WITH ('password' = '{0}', nonsense);
INSERT INTO sink /*+ OPTIONS('password' = '{0}') */
SELECT a, MAX(CONCAT(a, 'https://me:{0}@api.example.com/'))
FROM TABLE(TUMBLE(TABLE calls, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE a <> 'https://me:{0}@api.example.com/' GROUP BY a, window_start, window_end;
"""


@settings(max_examples=20)
@given(old=SECRETS, new=SECRETS, engine=st.sampled_from(["vvr", "flink"]))
def test_no_output_shows_a_secret(old: str, new: str, engine: str) -> None:
    in_force = [{"fs.azure.account.key": secret, "my.auth.token": secret} for secret in (old, new)]
    report = check(
        Side(HIDING_PLACES.format(old), in_force[0], engine=engine),
        Side(HIDING_PLACES.format(new), in_force[1], engine=engine),
        with_other_engine=True,
    )
    outputs = (
        json.dumps(report.to_dict()),
        render_text(report),
        render_markdown(report),
        "\n".join(report_rows(report)),
    )
    for output in outputs:
        assert old not in output
        assert new not in output
    assert report.warnings


ODD = "ab1 '\"`,;=:#\t\n\r\\"
ODD_SECRETS = st.lists(SECRETS, min_size=2, max_size=3, unique=True).flatmap(
    lambda cores: st.lists(st.text(ODD, max_size=3), min_size=len(cores) + 1, max_size=len(cores) + 1).map(
        lambda gaps: (cores, gaps[0] + "".join(core + gap for core, gap in zip(cores, gaps[1:], strict=True)))
    )
)
"""The parts that must not show, and a value with them between blanks, quotes, commas and line breaks."""
ODD_PLACES = """\
CREATE TABLE source (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'password' = '{0}', 'properties.sasl.jaas.config' = '{0}', 'basic-auth' = '{0}', 'z' = 'y');
CREATE TABLE sink (a STRING, n BIGINT) WITH ('connector' = 'jdbc', 'api.token' = '{0}', 'url' = 'jdbc:x');
SET 's3.secret-key' = '{0}';
INSERT INTO sink /*+ OPTIONS('password' = '{0}') */ SELECT a, COUNT(*)
FROM TABLE(TUMBLE(TABLE source, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
"""


@settings(max_examples=30, deadline=None)
@given(planted=ODD_SECRETS, engine=st.sampled_from(["vvr", "flink"]), is_old=st.booleans())
def test_no_output_shows_the_tail_of_a_secret(planted: tuple[list[str], str], engine: str, is_old: bool) -> None:
    """Where key and value are known it does not matter what the value holds."""
    cores, secret = planted

    def side(value: str) -> Side:
        return Side(ODD_PLACES.format(value.replace("'", "''")), {"a.token": value, "basic_auth": value}, engine=engine)

    sides = (side(secret), side("other")) if is_old else (side("other"), side(secret))
    report = check(*sides, with_other_engine=True)
    assert {"source-table-changed", "setting-changed"} <= {finding.rule for finding in report.findings}
    outputs = (
        *(finding.before + finding.after for finding in report.findings),
        json.dumps(report.to_dict()),
        *(render_text(report), render_markdown(report), "\n".join(report_rows(report))),
    )
    assert [core for core in cores for output in outputs if core in output] == []


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_a_setting_with_blanks_and_quotes_is_masked_whole(run: Run, style: str) -> None:
    save(old=V1, new=V1)
    pairs = ("my.password=one 'hunter2', \"hunter3\"\nhunter4", "basic-auth=bob:a hunter5")
    args = [part for pair in pairs for part in ("--set", pair, "--old-set", pair + " hunter6")]
    result = run("check", "old.sql", "new.sql", "--allow-secrets", "--format", style, *args)
    assert "my.password = ***" in result.out
    assert "hunter" not in result.out + result.err


def test_the_command_line_shows_no_secret(run: Run) -> None:
    secret = "hunter2isnotgood"
    readable = "\n".join(line for line in HIDING_PLACES.splitlines() if "broken" not in line)
    for script, codes in ((HIDING_PLACES, {2}), (readable, {0, 1})):
        save(old=script.format(secret), new=script.format(secret + "2"))
        for style in ("text", "json", "markdown"):
            options = ("--allow-secrets", "--format", style, "--old-set", f"my.password={secret}")
            result = run("check", "old.sql", "new.sql", *options)
            assert result.code in codes
            assert secret not in result.out + result.err
            assert secret not in run("check", "old.sql", "new.sql").err
    pair = {"id": 1, "old": readable.format(secret), "new": V1, "settings_old": {"my.password": secret}}
    assert secret not in run("batch", "-", stdin=lines(pair)).out
    assert secret not in run("check", "old.sql", "new.sql", "--set", f"password:{secret}").err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--explain-plan"], "add --engine flink"),
        (["--engine", "flink", "--gateway", "http://localhost:1"], "belong to --explain-plan"),
        (["--engine", "flink", "--explain-plan", "--gateway", "ftp://x"], "is no address of a REST API"),
        (["--engine", "flink", "--explain-plan", "--gateway", "http://127.0.0.1:1"], "does not answer"),
        (["--engine", "flink", "--explain-plan"], "holds no flink-dist"),
    ],
)
def test_plans_that_cannot_be_had_are_an_error(
    options: list[str], said: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINKCOMPAT_FLINK_HOME", str(tmp_path))
    save(old=V1, new=PARTIAL)
    result = run("check", "old.sql", "new.sql", *options)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_plans_sharpen_a_check(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def explain(old: Side, new: Side, planner: SqlGatewayPlanner, *, folder: str | None) -> Any:
        asked.append((old.source, new.source, str(planner), folder))
        return example_plans("plan-differs")

    monkeypatch.setattr("airflow_flinkcompat.deploy.plans.explain_plans", explain)
    monkeypatch.setattr("airflow_flinkcompat.deploy.explain_plans", explain, raising=False)
    save(old=V1, new=V1)
    arguments = ["check", "old.sql", "new.sql", "--engine", "flink", "--format", "json"]
    assert report_of(run(*arguments))["outcome"] == "compatible"
    result = run(*arguments, "--explain-plan", "--gateway", "http://gateway:8083", "--plan-dir", "s3://plans")
    assert asked == [("old.sql", "new.sql", "the SQL Gateway at http://gateway:8083", "s3://plans")]
    assert result.code == 1
    assert "plan-differs" in {finding["rule"] for finding in report_of(result)["findings"]}
    assert report_of(result)["migration"]["kept"] == "none"
    VALIDATOR.validate(report_of(result))


# -------------------------------------------------------------------------------------------------- programs
PROGRAM = """\
import os
from pyflink.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')")
t_env.execute_sql(f"CREATE TABLE s (a STRING) WITH ('connector' = '{os.environ['SINK']}')")
t_env.from_path("o").distinct().execute_insert("s")
"""


def test_a_program_is_checked_with_what_its_environment_knows(run: Run) -> None:
    Path("job.py").write_text(PROGRAM, encoding="utf-8")
    assert run("check", "job.py", "job.py", "--var", "SINK=print").code == 0
    left_open = run("check", "job.py", "job.py", "--format", "json")
    assert left_open.code == 0
    (warning,) = report_of(left_open)["warnings"]
    assert "only the environment knows" in warning
    assert "SINK; give them with --var" in warning
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
    assert ["link.sql does not lie beside" in message for message in unread] == [True, True]


def test_a_backfill_reads_what_lies_beside_a_program(run: Run) -> None:
    ddl = "CREATE TABLE {} (a STRING, b INT) WITH ('connector' = 'filesystem', 'path' = '/{}', 'format' = 'csv')"
    Path("tables.py").write_text(f'DDL = ["""{ddl.format("o", "in")}""", """{ddl.format("s", "out")}"""]\n')
    Path("job.py").write_text(
        "from pyflink.table import EnvironmentSettings, TableEnvironment\n"
        "from tables import DDL\n"
        "t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        "for ddl in DDL:\n    t_env.execute_sql(ddl)\n"
        't_env.from_path("o").execute_insert("s")\n'
    )
    planned = run("backfill", "job.py", "--dry-run")
    assert (planned.err, planned.code) == ("", 0)
    assert "/out" in planned.out
    Path("tables.py").unlink()
    unread = run("backfill", "job.py", "--dry-run")
    assert unread.code == 2
    assert "job.py:4:1: how often this loop runs is not known" in unread.err


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
        (("check", "a.sql", "a.sql", "--var", "A=1"), "--var belongs to programs: no file ends in .py or .table"),
        (("check", "a.sql", "job.py", "--engine", "flink", "--explain-plan"), "--explain-plan compiles SQL scripts"),
        (("check", "broken.py", "job.py"), "broken.py:1: is not Python"),
        (
            ("check", "a.sql", "job.py", "--catalog", "job.py"),
            "job.py: is a program of the Table API, and this takes an SQL script",
        ),
        (("backfill", "job.py"), "only the environment of the program knows SINK: give it with --var NAME=…"),
        (("backfill", "a.sql", "--var", "A=1"), "--var belongs to programs"),
        (("backfill", "a.sql", "--order-by", "t="), "names no column"),
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
