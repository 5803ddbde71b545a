from __future__ import annotations

import pytest

from airflow_flinkcompat.deploy import ScriptRefused
from airflow_flinkcompat.deploy.flink.statements import check_settings, prepare, relocate, resolve_settings
from airflow_flinkcompat.model import Span

DDL = (
    "CREATE TABLE s (a INT) WITH ('connector' = 'datagen');\nCREATE TABLE k (a INT) WITH ('connector' = 'blackhole');\n"
)
INSERT = "INSERT INTO k SELECT a FROM s"


def test_setup_then_job() -> None:
    prepared = prepare(
        f"-- a note\nSET 'pipeline.name' = 'x';\n{DDL}SET 'pipeline.name' = 'orders';\n{INSERT};\n-- end\n"
    )
    assert [statement.span.line for statement in prepared.setup] == [2, 3, 4, 5]
    assert prepared.job_sql == INSERT
    assert prepared.explain_sql == f"EXPLAIN {INSERT}"
    assert prepared.job_name == "orders"


@pytest.mark.parametrize("reset", ["RESET 'pipeline.name';", "RESET;"])
def test_a_name_that_a_reset_took_back_is_none_of_the_job(reset: str) -> None:
    assert prepare(f"SET 'pipeline.name' = 'x';\n{reset}\n{DDL}{INSERT};").job_name is None


@pytest.mark.parametrize(
    ("job", "submitted", "explained"),
    [
        ("insert into k select a from s", "insert into k select a from s", "EXPLAIN insert into k select a from s"),
        (
            f"EXECUTE STATEMENT SET BEGIN {INSERT}; {INSERT}; END",
            f"EXECUTE STATEMENT SET BEGIN {INSERT}; {INSERT}; END",
            f"EXPLAIN STATEMENT SET BEGIN {INSERT}; {INSERT}; END",
        ),
        (
            f"begin  statement /* two */ set ; {INSERT}; {INSERT}; end",
            f"EXECUTE STATEMENT SET BEGIN {INSERT}; {INSERT}; end",
            f"EXPLAIN STATEMENT SET BEGIN {INSERT}; {INSERT}; end",
        ),
        (f"EXECUTE {INSERT}", f"EXECUTE {INSERT}", f"EXPLAIN {INSERT}"),
    ],
)
def test_forms_of_a_job(job: str, submitted: str, explained: str) -> None:
    prepared = prepare(f"{DDL}{job};")
    assert " ".join(prepared.job_sql.split()) == submitted
    assert " ".join(prepared.explain_sql.split()) == explained
    assert prepared.job_name is None


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "contains no SQL statement"),
        (DDL, "the script defines no job, because it contains no INSERT"),
        (
            f"{DDL}{INSERT};\n{INSERT};",
            r"defines 2 jobs \(job\.sql:3:1, job\.sql:4:1\).*wrap the statements in EXECUTE STATEMENT SET",
        ),
        (f"{DDL}{INSERT};SELECT * FROM s;", r"job\.sql:3:31: a bare query has no sink"),
        (f"{DDL}-- c\n/* c */ select a from s;", r"job\.sql:4:9: a bare query has no sink"),
        (f"{DDL}WITH q AS (SELECT a FROM s) SELECT * FROM q;", "bare query"),
        (
            f"{DDL}CREATE TABLE t WITH ('connector' = 'blackhole') AS SELECT a FROM s;{INSERT}",
            "AS SELECT starts a separate job",
        ),
        (f"{DDL}{INSERT}; DROP TABLE s;", r"job\.sql:3:32: a statement after the job's statement"),
        (f"{DDL}STOP JOB 'x' WITH SAVEPOINT; {INSERT};", "the deployment itself stops jobs"),
        (f"{DDL}TRUNCATE TABLE k; {INSERT};", "Move the statement out of"),
        (f"{DDL}EXECUTE PLAN 'x.json';", "compiled plan"),
        (f"SET 'execution.state-recovery.path' = 'x';{DDL}{INSERT}", r"job\.sql:1:1: the SET is refused.*start mode"),
        (f"set execution.savepoint.path = x;{DDL}{INSERT}", r"job\.sql:1:1: the SET is refused"),
        (f"SET 'execution.state-recovery.ignore-unclaimed-state' = 'true';{DDL}{INSERT}", "the SET is refused"),
        (f"SET 'execution.savepoint-restore-mode' = 'CLAIM';{DDL}{INSERT}", "the SET is refused"),
        (
            "CREATE TABLE k (a INT) WITH ('connector' = 'x', 'password' = 'hunter2hunter2'); " + INSERT,
            r"secrets in plain text \(password at job\.sql:1:\d+\).*\$\{conn\.",
        ),
    ],
)
def test_refused(script: str, message: str) -> None:
    with pytest.raises(ScriptRefused, match=message) as caught:
        prepare(script, "job.sql")
    assert "hunter2" not in str(caught.value)


def test_option_that_only_names_another_one_is_no_recovery_option() -> None:
    prepared = prepare(f"SET 'pipeline.name' = 'execution.savepoint.path';{DDL}{INSERT}")
    assert prepared.job_name == "execution.savepoint.path"


def test_placeholders_are_no_secrets() -> None:
    prepare("CREATE TABLE k (a INT) WITH ('password' = '${conn.shop.password}'); " + INSERT)


def test_settings() -> None:
    check_settings({"parallelism.default": "1", "s3.secret-key": "${conn.lake.password}"})
    with pytest.raises(ScriptRefused, match=r"'execution\.state-recovery\.path' is refused"):
        check_settings({"execution.state-recovery.path": "x"})
    with pytest.raises(ScriptRefused, match=r"'s3\.secret-key' contains a secret in plain text") as caught:
        check_settings({"s3.secret-key": "hunter2hunter2"})
    assert "hunter2" not in str(caught.value)


def test_settings_are_resolved_without_sql_escapes() -> None:
    resolved = resolve_settings({"a": "it's ${conn.lake.password}!", "b": "plain"}, lambda _: "o'neil")
    assert {key: each.text for key, each in resolved.items()} == {"a": "it's o'neil!", "b": "plain"}
    assert resolved["a"].redactor("who is o''neil") == "who is ***"
    with pytest.raises(ScriptRefused, match=r"the setting 'a': .*not a placeholder"):
        resolve_settings({"a": "${conn.lake}"}, lambda _: "x")


@pytest.mark.parametrize(
    ("message", "prefix", "expected"),
    [
        ("At line 1, column 12: no", 8, "At line 7, column 8: no"),
        ("From line 2, column 5 to line 3, column 6: no", 8, "From line 8, column 5 to line 9, column 6: no"),
        ("At line 1, column 12: no", 0, "At line 7, column 16: no"),
        ("no place", 0, "no place"),
    ],
)
def test_places_are_those_of_the_script(message: str, prefix: int, expected: str) -> None:
    assert relocate(message, Span("x.sql", 7, 5, 9, 1), prefix=prefix) == expected
