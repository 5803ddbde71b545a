"""Assumed declarations that follow from the use of a table and from Flink's messages, without Java."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_flinkcompat.planner.assumptions import OTHER_NUMBERS, Assumptions
from airflow_flinkcompat.planner.column_uses import ColumnUses
from airflow_flinkcompat.sql import parse_script

WATERMARK = "WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND"


def declared(script: str) -> list[str]:
    """The columns of the assumed tables of a script's last statement, each with its name in front."""
    statements = parse_script(script, "a.sql").statements
    made = Assumptions(statements)
    last = len(statements) - 1
    assert made.learn(["Object 'x' not found"], last)
    texts = made.question()["assumed"]["before"][str(last)]
    return [
        text.removeprefix("CREATE TABLE IF NOT EXISTS ").removesuffix(" WITH ('connector' = 'flinkcompat-assumed')")
        for text in texts
    ]


def without_order(table: str) -> tuple[str, ...]:
    name, _, columns = table.removesuffix(")").partition(" (")
    return (name, *sorted(columns.split(", ")))


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT * FROM t", ["`t` (assumed STRING, assumed_2 STRING)"]),
        ("SELECT k, SUM(v) FROM t WHERE s LIKE 'a%' GROUP BY k", ["`t` (`k` STRING, `v` BIGINT, `s` STRING)"]),
        ("SELECT a FROM t WHERE b > 1.5 AND c = 'x' AND d", ["`t` (`a` STRING, `d` BOOLEAN, `b` DOUBLE, `c` STRING)"]),
        ("SELECT COALESCE(IF(f, a, b), 1), CASE WHEN c = 'x' THEN d ELSE 2 END FROM t",
         ["`t` (`f` BOOLEAN, `a` BIGINT, `b` BIGINT, `c` STRING, `d` BIGINT)"]),
        ("SELECT a FROM c.d.t", ["`c`.`d`.`t` (`a` STRING, assumed STRING)"]),
        ("SELECT t.data.id, arr[1], m['x'] FROM t",
         ["`t` (`data` ROW<`id` STRING>, `arr` ARRAY<STRING>, `m` MAP<STRING, STRING>)"]),
        ("SELECT x.id FROM t CROSS JOIN UNNEST(t.items) AS x",
         ["`t` (`items` ARRAY<ROW<`id` STRING, `assumed` STRING>>, assumed STRING)"]),
        ("SELECT k FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start",
         [f"`t` (`k` STRING, `ts` TIMESTAMP(3), {WATERMARK})"]),
        ("SELECT SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
         [f"`t` (`k` STRING, `v` BIGINT, `ts` TIMESTAMP(3), {WATERMARK})"]),
        ("SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r = 1",
         ["`t` (`k` STRING, `v` STRING)"]),
        ("SELECT a, d FROM l JOIN r ON b = c",
         ["`l` (`b` STRING, `a` STRING, `d` STRING)", "`r` (`c` STRING, assumed STRING)"]),
        ("SELECT o.a FROM o JOIN d FOR SYSTEM_TIME AS OF o.proctime AS d ON o.k = d.k",
         ["`o` (`k` STRING, `proctime` AS PROCTIME(), `a` STRING)", "`d` (`k` STRING, assumed STRING)"]),
        ("WITH c AS (SELECT * FROM t) SELECT SUM(v) FROM c", ["`t` (`v` BIGINT, assumed STRING)"]),
    ],
)  # fmt: skip
def test_columns_have_the_types_that_their_use_suggests(query: str, tables: list[str]) -> None:
    assert sorted(map(without_order, declared(query))) == sorted(map(without_order, tables))


def test_a_versioned_table_has_a_key_and_a_time_attribute() -> None:
    query = "SELECT o.a FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k = r.id"
    assert declared(query)[1] == (
        "`r` (`id` STRING, `assumed_time` TIMESTAMP(3), WATERMARK FOR `assumed_time` AS `assumed_time` - INTERVAL '5' "
        "SECOND, PRIMARY KEY (`id`) NOT ENFORCED)"
    )


def test_tables_and_views_of_the_script_are_not_assumed() -> None:
    script = "CREATE TABLE a (x INT) WITH ('connector' = 'print'); CREATE VIEW v AS SELECT * FROM b; "
    assert declared(f"{script} SELECT v.y FROM a, v, t") == ["`t` (assumed STRING, assumed_2 STRING)"]


def test_a_sink_has_its_target_columns_and_then_the_columns_of_its_query() -> None:
    made = Assumptions(parse_script("INSERT INTO s (a, b) SELECT x, y FROM t", "a.sql").statements)
    assert made.learn(["Cannot find table '`default_catalog`.`default_database`.`s`' in any of the catalogs"], 0)
    refusal = (
        "Column types of query result and sink for 'default_catalog.default_database.s' do not match.\nCause: "
        "Incompatible types for sink column 'b' at position 1.\n\nQuery schema: [x: STRING, y: ROW<`a` INT, `b` "
        "STRING> NOT NULL]\nSink schema:  [a: STRING, b: STRING]"
    )
    assert made.learn([refusal], 0)
    assert made.question()["assumed"]["before"]["0"][0].startswith(
        "CREATE TABLE IF NOT EXISTS `s` (`a` STRING, `b` ROW<`a` INT, `b` STRING>) WITH"
    )
    assert not made.learn([refusal], 0)
    assert made.names == ("s", "t")
    keys = [each.question["assumed"]["before"]["0"][0] for each in made.variants]
    assert ["PRIMARY KEY (`a`)" in keys[0], "PRIMARY KEY (`b`)" in keys[1], len(keys)] == [True, True, 2]


def test_a_refused_argument_changes_the_type_of_its_column() -> None:
    query = "SELECT f(n) FROM (SELECT k AS n FROM t)"
    made = Assumptions(parse_script(query, "a.sql").statements)
    made.learn(["Object 't' not found"], 0)
    refusal = (
        "From line 1, column 8 to line 1, column 11: Cannot apply 'f' to arguments of type 'f(<VARCHAR>)'. Supported "
        "form(s): 'f(<BOOLEAN>)'"
    )
    assert made.learn([refusal], 0)
    assert "`k` BOOLEAN" in made.question()["assumed"]["before"]["0"][0]


@pytest.mark.parametrize(
    ("script", "functions"),
    [
        ("SELECT f(a) FROM t", {"f": {"kind": "scalar", "types": {"": "STRING"}}}),
        ("SELECT b FROM t, LATERAL TABLE(f(a)) AS x(b)",
         {"f": {"kind": "table", "types": {"1": "ROW<`b` STRING>", "": "ROW<`b` STRING>"}}}),
        ("SELECT b FROM t, LATERAL TABLE(`c`.`d`.`f`(a)) AS x(b)",
         {"`c`.`d`.`f`": {"kind": "table", "types": {"1": "ROW<`b` STRING>", "": "ROW<`b` STRING>"}}}),
    ],
)  # fmt: skip
def test_functions_have_the_kind_of_their_use(script: str, functions: Mapping[str, Any]) -> None:
    made = Assumptions(parse_script(script, "a.sql").statements)
    assert made.learn(["No match found for function signature f(<CHARACTER>)"], 0)
    assert made.question()["assumed"]["functions"] == functions


def test_a_function_over_a_window_is_an_aggregate_function() -> None:
    made = Assumptions(parse_script("SELECT f(a) OVER (ORDER BY ts) FROM t", "a.sql").statements)
    assert made.learn(["No match found for function signature f(<CHARACTER>)"], 0)
    assert (made.functions.of_kind("aggregate"), made.functions.of_kind("scalar")) == (("f",), ())


def test_a_function_of_a_column_that_is_not_grouped_is_an_aggregate_function() -> None:
    made = Assumptions(parse_script("SELECT f(k), g(a) FROM t GROUP BY k", "a.sql").statements)
    for name in "fg":
        assert made.learn([f"No match found for function signature {name}(<CHARACTER>)"], 0)
    refusal = "At line 1, column 16: Expression 'a' is not being grouped"
    assert made.learn([refusal], 0)
    assert (made.functions.of_kind("aggregate"), made.functions.of_kind("scalar")) == (("g",), ("f",))
    assert not made.learn([refusal], 0)


@pytest.mark.parametrize(
    ("script", "messages", "table"),
    [
        ("CREATE TABLE s (PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts) LIKE `files/*`",
         ["Source table '`c`.`d`.`files/*`' of the LIKE clause not found", "Primary key column 'k' is not defined in",
          "The rowtime attribute field 'ts' is not defined in the table schema"],
         "`files/*` (`k` STRING NOT NULL, `ts` TIMESTAMP(3))"),
        ("INSERT INTO s PARTITION (day = 1) SELECT a FROM VALUES (1)", ["Object 's' not found"],
         "`s` (`a` STRING, `day` STRING) PARTITIONED BY (`day`)"),
        ("WITH c AS (SELECT a, b AS d FROM x) SELECT * FROM c UNION ALL SELECT * FROM t",
         ["Object 't' not found", "Column count mismatch in UNION ALL"], "`t` (`a` STRING, `d` STRING)"),
    ],
)  # fmt: skip
def test_messages_lead_to_the_columns_of_a_table(script: str, messages: list[str], table: str) -> None:
    made = Assumptions(parse_script(script, "a.sql").statements)
    for message in messages:
        assert made.learn([message], 0)
    assert (
        f"CREATE TABLE IF NOT EXISTS {table} WITH ('connector' = 'flinkcompat-assumed')"
        in (made.question()["assumed"]["before"]["0"])
    )


def test_the_type_of_a_declared_column_reaches_the_function_and_the_source_of_its_query() -> None:
    script = "CREATE TABLE s (n INT, m INT) WITH ('a' = 'b'); INSERT INTO s SELECT f(x), y AS z FROM t"
    made = Assumptions(parse_script(script, "a.sql").statements)
    made.learn(["Object 't' not found"], 1)
    made.learn(["No match found for function signature f(<CHARACTER>)"], 1)
    for place, query in enumerate(("EXPR$0: STRING, z: STRING", "EXPR$0: INT, z: STRING")):
        refusal = (
            f"Column types of query result and sink for 'c.d.s' do not match.\nCause: Incompatible types for sink "
            f"column 'n' at position {place}.\n\nQuery schema: [{query}]\nSink schema:  [n: INT, m: INT]"
        )
        while "`y` INT" not in made.question()["assumed"]["before"]["1"][0] and made.learn([refusal], 1):
            pass
    assumed = made.question()["assumed"]
    assert "`y` INT" in assumed["before"]["1"][0]
    assert assumed["functions"]["f"]["types"] == {"": "INT"}


def test_a_refused_argument_changes_the_type_of_a_table_functions_column() -> None:
    script = "SELECT MOD(n, 3) FROM LATERAL TABLE(numbers(1, 9)) AS t(n)"
    made = Assumptions(parse_script(script, "a.sql").statements)
    assert made.learn(["No match found for function signature numbers(<NUMERIC>, <NUMERIC>)"], 0)
    refusal = (
        "From line 1, column 8 to line 1, column 16: Cannot apply 'MOD' to arguments. Supported form(s): <NUMERIC>"
    )
    assert made.learn([refusal], 0)
    assert set(made.question()["assumed"]["functions"]["numbers"]["types"].values()) == {"ROW<`n` BIGINT>"}


def test_a_sink_of_several_queries_has_types_to_which_flink_converts_those_of_each() -> None:
    script = "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT 'a', 1; INSERT INTO s SELECT 'abc', b FROM t; END"
    made = Assumptions(parse_script(script, "a.sql").statements)
    made.learn(["Cannot find table 's'"], 0)
    for query in ("a: CHAR(1) NOT NULL, b: INT NOT NULL", "a: CHAR(3) NOT NULL, b: BIGINT", "a: CHAR(1), b: INT"):
        made.learn(
            [f"sink for 'c.d.s' do not match.\n\nQuery schema: [{query}]\nSink schema:  [a: STRING, b: STRING]"], 0
        )
    sink = next(each for each in made.question()["assumed"]["before"]["0"] if "`s`" in each)
    assert "STRING" in sink
    assert "BIGINT" in sink
    assert "CHAR" not in sink


def test_a_declaration_of_an_absent_class_is_passed_over() -> None:
    made = Assumptions(parse_script("CREATE FUNCTION f AS 'x.F'; SELECT f(a) FROM t", "a.sql").statements)
    assert made.learn(["java.lang.ClassNotFoundException x.F"], 0)
    assert made.question()["assumed"]["replaced"] == [0]
    assert made.functions.of_kind("scalar") == ("f",)


def test_declarations_in_an_absent_dialect_are_passed_over() -> None:
    script = (
        "SET 'table.sql-dialect' = 'hive'; CREATE TABLE t (a INT) STORED AS ORC; SET 'table.sql-dialect' = 'default'; "
        "SELECT b FROM t"
    )
    made = Assumptions(parse_script(script, "a.sql").statements)
    refusal = "Could not find any factory for identifier 'hive' that implements 'org.apache.flink.x.ParserFactory' in"
    assert made.learn([refusal], 1)
    assert made.learn(["Object 't' not found"], 3)
    assert made.question()["assumed"]["replaced"] == [0, 1]
    assert "`t` (`b` STRING, assumed STRING)" in made.question()["assumed"]["before"]["3"][0]
    assert not made.learn([refusal], 1)


def test_a_declared_sink_gives_the_source_its_types() -> None:
    script = "CREATE TABLE s (n INT) WITH ('connector' = 'print'); INSERT INTO s SELECT v FROM t"
    made = Assumptions(parse_script(script, "a.sql").statements)
    made.learn(["Object 't' not found"], 1)
    refusal = (
        "Column types of query result and sink for 'c.d.s' do not match.\nCause: Incompatible types for sink column "
        "'n' at position 0.\n\nQuery schema: [v: STRING]\nSink schema:  [n: INT]"
    )
    assert made.learn([refusal], 1)
    assert "`t` (`v` INT, assumed STRING)" in made.question()["assumed"]["before"]["1"][0]


def test_catalogs_and_databases_are_declared_before_the_statement() -> None:
    made = Assumptions(parse_script("USE CATALOG hive; USE sales; SELECT a FROM t", "a.sql").statements)
    assert made.learn(["A catalog with name [hive] does not exist."], 0)
    assert made.learn(["A database with name [sales] does not exist in the catalog: [hive]."], 1)
    assert made.question()["assumed"]["before"] == {
        "0": ["CREATE CATALOG `hive` WITH ('type' = 'assumed')"],
        "1": ["CREATE DATABASE IF NOT EXISTS `sales`"],
    }


def test_questions_end_when_flinks_message_does_not_help() -> None:
    asked = []

    def ask(question: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(question)
        return {"refusal": [{"class": "x.Y", "message": "something else"}], "statement": 0}

    made = Assumptions(parse_script("SELECT a FROM t", "a.sql").statements)
    assert not made.settle(ask)
    assert len(asked) == 1
    assert made.refused is not None


def test_a_question_stays_as_it_was_asked_while_assumptions_change() -> None:
    made = Assumptions(parse_script("SELECT f(a) FROM t", "a.sql").statements)
    made.learn(["No match found for function signature f(<CHARACTER>)"], 0)
    made.learn(["Object 't' not found"], 0)
    former = made.question()
    made.number = OTHER_NUMBERS[0]
    made.learn(["Invalid function call: f(<VARCHAR>). Supported form(s): f(<BOOLEAN>)"], 0)
    assert former["assumed"]["functions"]["f"] == {"kind": "scalar", "types": {"": "STRING"}}


def test_uses_of_one_table_in_several_queries_are_collected() -> None:
    uses = ColumnUses()
    for statement in parse_script("SELECT a FROM t; SELECT b FROM t", "a.sql").statements:
        assert statement.tree is not None
        uses.read(statement.tree)
    assert list(uses.tables["t",]) == ["a", "b"]
