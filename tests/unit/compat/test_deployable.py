"""Why a proposed side cannot be deployed: errors of syntax and literal secrets, with place and remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.deployable import ObstacleKind, bad_input, obstacles
from airflow_flinkcompat.sql import ScriptError

GOOD = "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'properties.sasl.password' = '${conn.k.password}');\n"
INSERT = "INSERT INTO s SELECT a FROM t;\n"
PROGRAM = "from pyflink.table import TableEnvironment\npassword = 'hunter2-plain'\n"


def shown(script: str, **more: object) -> list[tuple[str, str]]:
    found = obstacles(Side(script, source="orders.sql", **more))  # type: ignore[arg-type]
    return [(each.kind.value, str(each)) for each in found]


def test_a_script_without_errors_and_with_placeholders_has_none() -> None:
    assert shown(GOOD + INSERT, settings={"pipeline.name": "orders"}) == []


@pytest.mark.parametrize(
    ("statement", "place", "words"),
    [
        ("INSERT INTO s SELECT a FROM t GROUP BY;", "orders.sql:2:", "GROUP BY"),
        ("SELEC a FROM t;", "orders.sql:2:1", "query"),
        ("INSERT INTO s SELECT f(a FROM t;", "orders.sql:2:26", "Expected ), found FROM"),
        ("INSERT INTO s SELECT f(a", "orders.sql:2:24", "Expected ) at the end of the statement"),
        ("INSERT INTO s SELECT a FROM t GROUP a;", "orders.sql:2:31", "Unexpected GROUP after the end of"),
        ("SELECT a FROM t PIVOT (SUM(a) FOR a IN (1));", "orders.sql:2:17", "Unexpected PIVOT after the end"),
        ("CREATE TABLE u (a INT) WITH ('password' = hunter2);", "orders.sql:2:43", "quotes, found a name"),
        ("CREATE TABLE u (a INT) 'hunter2';", "orders.sql:2:24", "Unexpected string after the end"),
        ("SELECT a FROM t x hunter2;", "orders.sql:2:19", "Unexpected name after the end"),
        ("INSERT INTO s SELECT 'a FROM t;", "orders.sql:2:22", "a string is never closed"),
        ("CREATE TBALE u (a INT);", "orders.sql:2:8", "TABLE"),
        ("INSERT INTO s SELECT a FROM t /* never closed", "orders.sql:2:31", "a comment is never closed"),
    ],
)
def test_an_error_of_syntax_is_named_with_its_place(statement: str, place: str, words: str) -> None:
    [(kind, message)] = shown(GOOD + statement)
    assert kind == ObstacleKind.SYNTAX
    assert message.startswith(place)
    assert words in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "script",
    [
        "TRUNCATE TABLE t;\n" + GOOD + INSERT,
        "COMPILE PLAN '/plans/p.json' FOR INSERT INTO s SELECT a FROM t;\n" + GOOD + INSERT,
        "ANALYZE TABLE t COMPUTE STATISTICS;\n" + GOOD + INSERT,
        "CREATE OR ALTER MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' MINUTE AS SELECT a FROM t;\n" + GOOD + INSERT,
        "SET 'table.sql-dialect' = 'hive';\nCREATE TABLE h (a STRING) STORED AS parquet TBLPROPERTIES ('k' = 'v');\n",
    ],
)
def test_what_this_grammar_lacks_is_left_to_flink(script: str) -> None:
    assert shown(script) == []


def test_a_setting_of_the_deployment_may_choose_the_dialect_too() -> None:
    hive = "CREATE TABLE h (a STRING) STORED AS parquet;\n" + INSERT
    assert [kind for kind, _ in shown(hive)] == ["syntax"]
    assert shown(hive, settings={"table.sql-dialect": "hive"}) == []


def test_each_secret_is_named_by_key_and_place_and_never_by_value() -> None:
    script = GOOD.replace("${conn.k.password}", "hunter2-plain") + "SET 'api.token' = 'abc-plain-token';\n" + INSERT
    found = shown(script, settings={"s3.secret-key": "plain-s3-key"})
    assert [kind for kind, _ in found] == ["secret"] * 3
    assert [message.partition(" ")[0] for _, message in found] == [
        "orders.sql:1:83:",
        "orders.sql:2:20:",
        "orders.sql:",
    ]
    assert "'s3.secret-key'" in found[2][1]
    assert all("${conn.<connection id>.password}" in message for _, message in found)
    assert not any("plain-" in message or "hunter2" in message for _, message in found)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("'password' = '${P}'", "password needs ${P}, a placeholder that no tool fills in; store it in an"),
        ("'api-token' = 'Bearer ${app.token-1}'", "api-token needs ${app.token-1}, a placeholder that no tool fills"),
        (
            "'url' = 'jdbc:postgresql://shop:${DB_PASSWORD}@db/shop'",
            "user info in a URL needs ${DB_PASSWORD}, a placeholder that no tool fills in",
        ),
        (
            "'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="${KU}" password="${KP}";\'',
            "properties.sasl.jaas.config needs ${KU} and ${KP}, placeholders that no tool fills in",
        ),
    ],
)
def test_a_placeholder_of_another_tool_is_named_and_not_called_a_secret(option: str, says: str) -> None:
    [(kind, message)] = shown(f"CREATE TABLE t (a INT) WITH ('connector' = 'kafka', {option});\n{INSERT}")
    assert kind == ObstacleKind.VARIABLE
    assert says in message
    assert "in plain text" not in message
    assert "replace it with ${conn.<connection id>.password}" in message


@pytest.mark.parametrize(
    "value",
    [
        "${P}hunter2",
        "hunter2${P}",
        "${P:-hunter2}",
        "${P}${conn.k.password}hunter2",
        "$P",
        "{{ hunter2 }}",
        "${}",
        "${ }",
    ],
)
def test_what_may_be_a_secret_beside_a_placeholder_is_one(value: str) -> None:
    script = f"CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'password' = '{value}');\n{INSERT}"
    for found in (shown(script), shown(INSERT, settings={"s3.secret-key": value})):
        assert [kind for kind, _ in found] == ["secret"]
        assert "a secret in plain text" in found[0][1]
        assert "hunter2" not in found[0][1]
        assert "${P" not in found[0][1]


def test_a_setting_may_ask_for_what_nothing_fills_in_too() -> None:
    [(_, message)] = shown(INSERT, settings={"s3.secret-key": "${S3_KEY}"})
    assert message.startswith("orders.sql: the setting 's3.secret-key' needs ${S3_KEY}, a placeholder that no tool")


def test_a_secret_of_a_program_has_the_environment_as_remedy() -> None:
    [(kind, message)] = shown(PROGRAM, language="python")
    assert (kind, message) == (
        "secret",
        "orders.sql:2:12: password is a secret in plain text; read it from the environment with os.environ['NAME']",
    )


def test_a_placeholder_that_a_deployment_cannot_fill_in_is_named_with_its_remedy() -> None:
    script = GOOD.replace("${conn.k.password}", "${env.KAFKA_PASSWORD}") + INSERT
    found = shown(script + "INSERT INTO s SELECT '${conn.k.pasword}' FROM t;", settings={"a": "${env.B}"})
    assert [kind for kind, _ in found] == ["placeholder"] * 3
    assert "orders.sql:3:23: ${conn.k.pasword}: not a placeholder" in found[0][1]
    assert "${env.KAFKA_PASSWORD} is filled in only by a backfill" in found[1][1]
    assert "the setting 'a': ${env.B}" in found[2][1]
    assert all("${conn." in message for _, message in found)


def test_errors_of_syntax_come_first() -> None:
    script = GOOD.replace("${conn.k.password}", "hunter2-plain") + "SELEC a;"
    assert [kind for kind, _ in shown(script)] == ["syntax", "secret"]


def test_a_text_that_is_no_script_is_an_error() -> None:
    with pytest.raises(ScriptError):
        obstacles(Side("  -- nothing\n"))
    with pytest.raises(ScriptError):
        obstacles(Side("def f(:\n", language="python"))


def test_a_missing_semicolon_is_named_where_the_next_statement_begins() -> None:
    script = GOOD.replace(";\n", "\n") + INSERT
    assert shown(script) == [
        (
            "syntax",
            "orders.sql:2:1: a ; is missing before this statement, so Flink can parse neither this nor the previous "
            "statement; end the previous statement with a ;",
        )
    ]
    report = check(Side(script, source="old.sql"), Side(script, source="new.sql"), "flink")
    assert report.outcome is Outcome.COMPATIBLE
    assert [warning.partition(": ")[0] for warning in report.warnings] == ["old.sql:2:1", "new.sql:2:1"]


VARIABLE = "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'password' = '${secret_values.kafka-1}');\n"


def test_a_variable_of_the_namespace_is_filled_in_where_the_engines_platform_does() -> None:
    settings = {"s3.secret-key": "${secret_values.s3}"}
    assert shown(VARIABLE + INSERT, settings=settings, engine="vvr") == []
    in_script, in_settings = shown(VARIABLE + INSERT, settings=settings, engine="flink")
    assert "needs ${secret_values.kafka-1}, a placeholder that no tool fills in" in in_script[1]
    assert "needs ${secret_values.s3}, a placeholder that no tool fills in" in in_settings[1]


@pytest.mark.parametrize("value", ["${secret_values.p}x", "${secret_values.p:-hunter2}", "${secret_values.}", "${P}"])
def test_what_is_more_than_such_a_variable_is_still_refused(value: str) -> None:
    [(kind, _)] = shown(VARIABLE.replace("${secret_values.kafka-1}", value) + INSERT, engine="vvr")
    assert kind in (ObstacleKind.SECRET, ObstacleKind.VARIABLE)


ELSEWHERE = VARIABLE.replace("secret_values.kafka-1", "KAFKA_PASSWORD")


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_where_another_tool_deploys_its_placeholders_are_filled_in(engine: str) -> None:
    settings = {"s3.secret-key": "${S3_KEY}"}
    assert shown(ELSEWHERE + INSERT, settings=settings, engine=engine, filled_elsewhere=True) == []
    literal = ELSEWHERE.replace("${KAFKA_PASSWORD}", "${KAFKA_PASSWORD}hunter2")
    assert [kind for kind, _ in shown(literal + INSERT, filled_elsewhere=True)] == ["secret"]


def test_a_report_calls_a_placeholder_of_another_tool_no_secret() -> None:
    sides = [Side(ELSEWHERE + INSERT, engine="flink", source=name) for name in ("old.sql", "new.sql")]
    remedy = "needs ${KAFKA_PASSWORD}, a placeholder that no tool fills in; use a placeholder such as "
    assert [each.partition("${conn")[0] for each in check(*sides).warnings] == [
        f"old.sql:1:67, new.sql:1:67: password {remedy}"
    ]
    assert check(*(replace(side, filled_elsewhere=True) for side in sides)).warnings == ()
    of_platform = [Side(VARIABLE + INSERT, source=name) for name in ("old.sql", "new.sql")]
    assert check(*of_platform).warnings == ()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO s SELECT a AS rank FROM t;", "orders.sql:1:27: rank is a reserved word in Flink 2.3; write the "),
        ("CREATE TABLE start (a INT) WITH ('connector' = 'print');", "orders.sql:1:14: start is a reserved word"),
        ("CREATE TABLE t (a INT, position AS a + 1) WITH ();", "orders.sql:1:24: position is a reserved word"),
        ("WITH result AS (SELECT 1) SELECT * FROM result;", "orders.sql:1:41: result is a reserved word"),
        ("INSERT INTO s SELECT o.month FROM t AS o;", "orders.sql:1:24: month is a reserved word"),
        ("CREATE VIEW v AS\nSELECT a FROM t WHERE a != 1;", "orders.sql:2:25: Flink does not support !=; write <>"),
    ],
)
def test_a_name_or_comparison_that_flinks_parser_refuses_is_an_error_of_syntax(statement: str, message: str) -> None:
    kind, found = shown(statement, engine="flink", engine_version="2.3")[0]
    assert kind == ObstacleKind.SYNTAX
    assert found.startswith(message)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO s SELECT a AS `rank`, LEFT(b, 3), RANK() OVER (ORDER BY a), CURRENT_DATE FROM t;",
        "INSERT INTO s SELECT CAST(a AS DATE), TIMESTAMP '2026-01-01 00:00:00', EXTRACT(YEAR FROM c) FROM t;",
        "INSERT INTO s SELECT name, type, uuid, session, '!=' FROM t; -- a != b",
        "SET value = 3;",
    ],
)
def test_words_that_flinks_parser_takes_are_no_obstacle(statement: str) -> None:
    assert shown(statement, engine="flink", engine_version="2.3") == []


@pytest.mark.parametrize(
    ("first", "before", "statement"),
    [
        ("2.3", "2.2", "INSERT INTO s SELECT a FROM t ON CONFLICT DO DEDUPLICATE;"),
        ("2.3", "2.2", "CREATE FUNCTION f AS 'a.B' USING ARTIFACT 'x.jar';"),
        ("2.2", "2.1", "CREATE TEMPORARY FUNCTION f AS 'a.B' WITH ('k' = 'v');"),
        ("2.2", "2.1", "WITH RECURSIVE q AS (SELECT a FROM t) SELECT a FROM q;"),
        ("2.2", "2.1", "SHOW MATERIALIZED TABLES LIKE 'x%';"),
        ("2.1", "2.0", "SELECT * FROM TABLE(ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(a)));"),
        ("2.1", "2.0", "CREATE TABLE t (a STRUCTURED<'x', b INT>) WITH ('k' = 'v');"),
        ("2.0", "1.20", "SELECT a FROM t QUALIFY RANK() OVER (PARTITION BY a ORDER BY b) < 3;"),
        ("2.0", "1.20", "CREATE TABLE u (b, a) WITH ('k' = 'v') AS SELECT a, b FROM t;"),
        ("2.0", "1.20", "SHOW CATALOGS LIKE 'x%';"),
        ("2.0", "1.20", "DESCRIBE FUNCTION EXTENDED f;"),
        ("1.20", "1.19", "CREATE TEMPORARY MODEL m INPUT (a INT) OUTPUT (b INT) WITH ('k' = 'v');"),
        ("1.20", "1.19", "DROP MODEL IF EXISTS m;"),
        ("1.20", "1.19", "CREATE TABLE t (a INT) DISTRIBUTED INTO 2 BUCKETS WITH ('k' = 'v');"),
        ("1.20", "1.19", "ALTER CATALOG c COMMENT 'x';"),
        ("1.20", "1.19", "CREATE CATALOG IF NOT EXISTS c WITH ('type' = 'hive');"),
    ],
)
def test_a_clause_is_read_from_the_line_that_brought_it(first: str, before: str, statement: str) -> None:
    assert shown(statement, engine="flink", engine_version=first) == []
    kind, message = shown(statement, engine="flink", engine_version=before)[0]
    assert kind == "syntax"
    assert f"Flink {before} does not support" in message
    assert f"which is new in Flink {first}" in message


def test_a_word_is_reserved_from_the_line_that_reserves_it() -> None:
    statement = "INSERT INTO s SELECT a AS monday FROM t;"
    assert shown(statement, engine="flink", engine_version="1.20.3") == []
    assert "monday" in shown(statement, engine="flink", engine_version="2.0")[0][1]


def test_errors_of_syntax_without_an_engine_are_those_of_every_engine() -> None:
    side = Side("INSERT INTO s SELECT a AS rank FROM t;", source="orders.sql")
    assert bad_input(side, "vvr") == []
    assert len(bad_input(side, None)) == 1


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("execution.checkpointing.min-pause", "2 moments", "a duration such as '10 s'"),
        ("restart-strategy.fixed-delay.delay", "soon", "a duration such as '10 s'"),
        ("state.backend.rocksdb.block.cache-size", "8 boxes", "a memory size such as '64 mb'"),
        ("table.exec.sink.not-null-enforcer", "WARN", "one of ERROR, DROP"),
        ("state.backend.type", "heap", "one of forst, hashmap, rocksdb, or the name of a class"),
        ("execution.checkpointing.timeout", "9 ms", "a duration such as '10 s', at least 10 ms"),
        ("table.local-time-zone", "UTC+8", "a time zone such as 'Europe/Berlin' or 'GMT+01:00'"),
        ("state.backend.incremental", "on", "true or false"),
    ],
)
def test_a_value_that_flink_does_not_take_is_named_with_the_place_of_its_set(
    key: str, text: str, expected: str
) -> None:
    assert shown(f"SET '{key}' = '{text}';\n{GOOD}{INSERT}", engine="flink") == [
        ("setting", f"orders.sql:1:{len(key) + 10}: '{key}' must be {expected}, not '{text}'")
    ]
    assert [kind for kind, _ in shown(GOOD + INSERT, engine="flink", settings={key: text})] == ["setting"]


@pytest.mark.parametrize(
    "setting",
    [
        ("execution.checkpointing.timeout", "PT10S"),
        ("state.backend.type", "org.example.Backend"),
        ("my.own.key", "anything"),
        ("parallelism.default", "${PARALLELISM}"),
        ("table.exec.mini-batch.size", "0"),  # read only where mini-batch is enabled
    ],
)
def test_a_value_that_flink_takes_or_does_not_read_is_no_obstacle(setting: tuple[str, str]) -> None:
    assert shown(GOOD + INSERT, engine="flink", settings=dict([setting])) == []


def test_a_setting_with_which_nothing_is_planned_or_the_deployed_side_runs_is_no_obstacle() -> None:
    bad = "SET 'rest.retry.delay' = 'soon';\n"
    assert shown(f"{bad}RESET 'rest.retry.delay';\n{GOOD}{INSERT}", engine="flink") == []
    assert shown(bad + GOOD + INSERT, engine="flink", beside=Side(bad + INSERT, engine="flink")) == []


def test_an_engine_made_of_flink_may_know_more_names() -> None:
    settings = {"state.backend.type": "gemini", "parallelism.default": "many"}
    assert [message for _, message in shown(GOOD + INSERT, engine="vvr", engine_version="11.1", settings=settings)] == [
        "orders.sql: the setting 'parallelism.default' must be a whole number, not 'many'"
    ]
