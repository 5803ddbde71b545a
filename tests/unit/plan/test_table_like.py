"""LIKE with its options, each as Flink 2.3 showed it with SHOW CREATE TABLE."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.sql import parse_script

BASE = """\
CREATE TABLE base (
  id INT NOT NULL, m TIMESTAMP(3) METADATA FROM 'timestamp', v STRING, g AS CHAR_LENGTH(v), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (id) NOT ENFORCED
) DISTRIBUTED BY HASH(id) INTO 4 BUCKETS PARTITIONED BY (v) WITH ('connector' = 'kafka', 'k' = '1');
"""
COMPUTED = "CREATE TABLE base (ts TIMESTAMP(3), c AS ts, WATERMARK FOR c AS c) WITH ('connector' = 'kafka');\n"


def program(statement: str, base: str = BASE) -> Program:
    return build_program(parse_script(base + statement))


def derived(statement: str, base: str = BASE) -> Table:
    result = program(statement, base)
    assert result.problems == ()
    return next(table for table in result.tables if table.name == "d")


WRITTEN = {
    "{id}": "id INT NOT NULL",
    "{m}": "m TIMESTAMP(3) METADATA FROM 'timestamp'",
    "{g}": "g AS CHAR_LENGTH(v)",
    "{ts}": "ts TIMESTAMP(3)",
    "{mark}": "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND",
    "{key}": "PRIMARY KEY (id) NOT ENFORCED",
    "{parts}": "DISTRIBUTED BY HASH(id) INTO 4 BUCKETS PARTITIONED BY (v)",
    "{options}": "'connector' = 'kafka', 'k' = '1'",
}


@pytest.mark.parametrize(
    ("like", "written"),
    [
        ("LIKE base", "({id}, {m}, v STRING, {g}, {ts}, {mark}, {key}) {parts} WITH ({options})"),
        ("LIKE base (EXCLUDING ALL)", "({id}, v STRING, {ts}) {parts}"),
        (
            "(w INT) WITH ('a' = 'b') LIKE base (EXCLUDING ALL)",
            "({id}, v STRING, {ts}, w INT) {parts} WITH ('a' = 'b')",
        ),
        ("LIKE base (EXCLUDING ALL INCLUDING GENERATED)", "({id}, v STRING, {g}, {ts}) {parts}"),
        (
            "LIKE base (EXCLUDING GENERATED EXCLUDING METADATA)",
            "({id}, v STRING, {ts}, {mark}, {key}) {parts} WITH ({options})",
        ),
        (
            "(g AS id + 2) LIKE base (OVERWRITING GENERATED)",
            "({id}, {m}, v STRING, g AS id + 2, {ts}, {mark}, {key}) {parts} WITH ({options})",
        ),
        (
            "(WATERMARK FOR ts AS ts) LIKE base (EXCLUDING ALL OVERWRITING WATERMARKS)",
            "({id}, v STRING, {ts}, WATERMARK FOR ts AS ts) {parts}",
        ),
        (
            "WITH ('k' = '2') LIKE base (EXCLUDING METADATA EXCLUDING CONSTRAINTS)",
            "({id}, v STRING, {g}, {ts}, {mark}) {parts} WITH ('connector' = 'kafka', 'k' = '2')",
        ),
        (
            "WITH ('x' = '2') LIKE base (EXCLUDING ALL INCLUDING OPTIONS)",
            "({id}, v STRING, {ts}) {parts} WITH ({options}, 'x' = '2')",
        ),
        (
            "PARTITIONED BY (id) LIKE base (EXCLUDING ALL)",
            "({id}, v STRING, {ts}) DISTRIBUTED BY HASH(id) INTO 4 BUCKETS PARTITIONED BY (id)",
        ),
    ],
)
def test_parts_are_taken_over(like: str, written: str) -> None:
    for name, text in WRITTEN.items():
        written = written.replace(name, text)
    assert derived(f"CREATE TABLE d {like};") == derived(f"CREATE TABLE d {written};")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("(v BIGINT) LIKE base", "A column named 'v' already exists in the base table"),
        ("(v BIGINT) LIKE base (EXCLUDING ALL)", "A column named 'v' already exists in the base table"),
        ("(g AS id + 2) LIKE base", "A generated column named 'g' already exists in the base table"),
        ("(m TIMESTAMP(3) METADATA) LIKE base", "A metadata column named 'm' already exists in the base table"),
        ("(v AS 1) LIKE base (OVERWRITING GENERATED)", "A column named 'v' already exists in the base table"),
        ("(WATERMARK FOR ts AS ts) LIKE base", "There already exists a watermark spec for column 'ts'"),
        ("(PRIMARY KEY (id) NOT ENFORCED) LIKE base", "The base table already has a primary key"),
        ("PARTITIONED BY (v) LIKE base", "The base table already has partitions defined"),
        ("DISTRIBUTED BY HASH(id) INTO 2 BUCKETS LIKE base", "The base table already has a distribution defined"),
        ("WITH ('k' = '2') LIKE base (INCLUDING OPTIONS)", "There already exists an option 'k' in the base table"),
        ("WITH ('k' = '2') LIKE base (INCLUDING ALL)", "There already exists an option 'k' in the base table"),
        ("LIKE base (OVERWRITING CONSTRAINTS)", "Illegal merging strategy 'OVERWRITING' for 'CONSTRAINTS' option"),
        ("LIKE base (OVERWRITING ALL)", "Illegal merging strategy 'OVERWRITING' for 'ALL' option"),
        ("LIKE base (EXCLUDING OPTIONS INCLUDING OPTIONS)", "Each like option feature can be declared only once"),
    ],
)
def test_what_cannot_be_merged_is_refused(statement: str, words: str) -> None:
    (problem,) = program(f"CREATE TABLE d {statement};").problems
    assert problem.reason == "refused"
    assert words in problem.message
    assert "; " in problem.message


def test_a_watermark_needs_its_column() -> None:
    (problem,) = program("CREATE TABLE d LIKE base (EXCLUDING GENERATED);", COMPUTED).problems
    assert problem.reason == "refused"
    found = derived("CREATE TABLE d (c TIMESTAMP(3)) LIKE base (EXCLUDING GENERATED);", COMPUTED)
    columns = "ts TIMESTAMP(3), c TIMESTAMP(3), WATERMARK FOR c AS c"
    assert found == derived(f"CREATE TABLE d ({columns}) WITH ('connector' = 'kafka');", "")
    assert derived("CREATE TABLE d LIKE base (EXCLUDING ALL);", COMPUTED).watermark is None
