"""``flinkcompat check``: exit codes, every option, what a reader sees (snapshots), JSON by its schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.compat import Report
from airflow_flinkcompat.compat.plan_comparison import example_plans
from airflow_flinkcompat.compat.rules import ALL
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayPlanner
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from tests.support.cli.command import (
    BROKEN,
    COMPATIBLE,
    INCOMPATIBLE,
    OF_OUTCOME,
    PARTIAL,
    QUERY,
    SCHEMA,
    SECRETIVE,
    TABLES,
    V1,
    VALIDATOR,
    VALIDATOR_OF_BOTH,
    Run,
    answers,
    lines,
    report_of,
    save,
)
from tests.support.nightly import mostly_slow


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
    assert "refused at submit" in {f["consequence"] for f in data["findings"]}, "the table is now read whole: no Calc"
    save(new=COMPATIBLE)
    args = ("check", "old.sql", "new.sql", "--engine", "flink", "--format", "json")
    assert report_of(run(*args, "--engine-version", "1.20.3"))["outcome"] == "compatible"
    assert report_of(run(*args, "--engine-version", "1.18"))["outcome"] == "unknown"
    moved = report_of(run(*args, "--old-engine-version", "1.20", "--engine-version", "2.3"))
    assert moved["outcome"] == "unknown"  # no planner is installed
    assert "engine-version-changed" in {f["rule"] for f in moved["findings"]}
    assert run("check", "old.sql", "old.sql", *args[3:], "--engine-version", "9.9").code == 2


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
        assert f"{option}: the engine of the version is unknown: add --engine vvr or --engine flink" in result.err


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
        assert f"of old.sql is not a version of {engine}: write numbers separated by points" in refused.err
    Path("pairs.jsonl").write_bytes(lines({"id": 1, "old": V1, "new": V1}))
    (answer,) = answers(run("batch", "pairs.jsonl", "--engine", engine, f"--engine-version={version}"))
    assert "is not a version of" in answer["error"]


@pytest.mark.parametrize("version", ["2.3", "1.20.3", "8.0.11", "11.1", "8", "2.4-SNAPSHOT", "1.20.1-csa1.15.1"])
def test_versions_of_every_form_are_taken(run: Run, version: str) -> None:
    save(old=V1, new=V1)
    for engine in ("flink", "vvr"):
        there = engine == "vvr" or version.startswith(("1.", "2."))
        done = run("check", "old.sql", "new.sql", "--engine", engine, "--engine-version", version)
        assert (done.code, "open-source Flink has no such version" in done.err) == ((0, False) if there else (2, True))


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
    assert line.startswith(f"flinkcompat: {which}.sql:5:1: Expected something after SELECT")
    assert ("pass the script that is really deployed" in line) is (which == "old")


def test_a_statement_that_is_merely_not_understood_is_a_finding(run: Run) -> None:
    save(old=V1, new=TABLES + "TRUNCATE TABLE totals;\n" + QUERY)
    result = run("check", "old.sql", "new.sql", "--format", "json")
    assert result.code == 1
    data = report_of(result)
    (finding,) = [f for f in data["findings"] if f["rule"] == "statement-not-read"]
    assert (finding["outcome"], finding["reason"]) == ("unknown", "not_read")
    assert finding["after_span"]["source"] == "new.sql"
    assert finding["after_span"]["line"] == 5


def test_literal_secrets_of_the_proposed_side_are_bad_input_unless_they_are_allowed(run: Run) -> None:
    save(old=V1, new=SECRETIVE + "SET 'api.token' = 'other-plain-value';\n")
    refused = run("check", "old.sql", "new.sql", "--fail-on", "never")
    assert refused.code == 2
    assert "COMPATIBLE" in refused.out, "it is judged all the same"
    first, second, remedy = refused.err.splitlines()
    assert first.startswith("flinkcompat: new.sql:3:")
    assert "properties.sasl.password is a secret in plain text; store it in an Airflow connection" in first
    assert second.startswith("  new.sql:9:")
    assert "--allow-secrets" in remedy
    allowed = run("check", "old.sql", "new.sql", "--fail-on", "never", "--allow-secrets")
    assert allowed.code == 0
    assert "Warning: new.sql:3:" in allowed.out
    for each in (refused, allowed):
        assert not re.search("hunter2|other-plain", each.out + each.err)
    setting = run("check", "old.sql", "old.sql", "--set", "s3.secret-key=hunter2-plain")
    assert setting.code == 2
    assert "'s3.secret-key' contains a secret" in setting.err
    assert run("check", "old.sql", "old.sql", "--set", "s3.secret-key=${conn.s3.password}").code == 0


def test_a_secret_of_both_sides_is_one_warning(run: Run) -> None:
    save(old=SECRETIVE, new=SECRETIVE)
    for new, places in (("new.sql", "old.sql:3:62, new.sql:3:62"), ("old.sql", "old.sql:3:62")):
        said = run("check", "old.sql", new, "--allow-secrets").out
        (warning,) = re.findall(r"^Warning: (.*?): a literal", said, re.M)
        assert warning == places


def test_a_change_that_takes_the_secrets_out_passes(run: Run) -> None:
    save(old=SECRETIVE, new=SECRETIVE.replace("hunter2-plain", "${conn.kafka.password}"))
    assert run("check", "old.sql", "new.sql", "--fail-on", "never").code == 0


LEFT_JOIN = """\
CREATE TABLE a (id BIGINT, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
CREATE TABLE b (id BIGINT, y BIGINT) WITH ('connector' = 'kafka', 'topic' = 'b', 'format' = 'json');
CREATE TABLE o (id BIGINT, y BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o');
SET 'table.exec.sink.require-on-conflict' = 'false';
INSERT INTO o SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id;
"""


@pytest.mark.parametrize("options", [(), ("--engine", "flink"), ("--engine", "vvr"), ("--format", "markdown")], ids=str)
def test_a_backfill_that_the_product_refuses_is_not_advised(run: Run, options: tuple[str, ...]) -> None:
    save(old=LEFT_JOIN, new=LEFT_JOIN.replace("a.id = b.id", "a.x = b.id"))
    if "markdown" not in options:
        assert "A backfill of new.sql cannot recompute history." in run("check", "old.sql", "new.sql", *options).out
        options = (*options, "--verbose")
    out = " ".join(run("check", "old.sql", "new.sql", *options).out.split())
    assert "A backfill of new.sql cannot recompute history: new.sql:5:" in out
    assert "a backfill does not support a LEFT join yet" in out
    assert "flinkcompat backfill new.sql" not in out
    save(old=V1, new=INCOMPATIBLE)
    assert "flinkcompat backfill new.sql" in run("check", "old.sql", "new.sql", *options).out


def test_errors_of_syntax_come_before_secrets(run: Run) -> None:
    save(old=V1, new=SECRETIVE + "SELECT FROM WHERE;\n")
    first, *others = run("check", "old.sql", "new.sql").err.splitlines()
    assert "Expected something after SELECT" in first
    assert others == []
    assert run("check", "old.sql", "new.sql", "--allow-secrets").err.splitlines() == [first]


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--explain-plan"], "add --engine flink"),
        (["--engine", "flink", "--gateway", "http://localhost:1"], "need --explain-plan"),
        (["--engine", "flink", "--explain-plan", "--gateway", "ftp://x"], "is not the address of a REST API"),
        (["--engine", "flink", "--explain-plan", "--gateway", "http://127.0.0.1:1"], "does not answer"),
        (["--engine", "flink", "--explain-plan"], "run flinkcompat planner install 2.3"),
    ],
)
def test_plans_that_cannot_be_had_are_an_error(
    options: list[str], said: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINKCOMPAT_FLINK_HOME", str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    save(old=V1, new=PARTIAL)
    result = run("check", "old.sql", "new.sql", *options)
    assert (result.code, result.out) == (3 if said == "does not answer" else 2, "")
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
