"""Statements that are read and not understood: unchanged they are unchanged, changed they are never compatible."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check

TABLES = """\
CREATE TABLE t (a INT, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 't');
CREATE TABLE s (a INT, b BIGINT) WITH ('connector' = 'print');
"""
INSERT = "INSERT INTO s SELECT a, SUM(b) FROM t GROUP BY a;"
COUNT = "INSERT INTO s SELECT a, COUNT(*) FROM t GROUP BY a;"
ENGINES = pytest.mark.parametrize("engine", ["vvr", "flink"])


def report(old: str, new: str, engine: str = "flink") -> Report:
    return check(*(Side(TABLES + text, engine=engine) for text in (old, new)))


def rules(old: str, new: str, engine: str = "flink") -> set[str]:
    return {finding.rule for finding in report(old, new, engine).findings}


# ------------------------------------------------------------------------------------------- compiled plans
COMPILE = "COMPILE PLAN '/p.json' FOR "
EXECUTE = "\nEXECUTE PLAN '/p.json';"


@ENGINES
def test_a_plan_that_the_script_compiles_is_its_queries(engine: str) -> None:
    old, new = COMPILE + INSERT + EXECUTE, COMPILE + COUNT + EXECUTE
    assert rules(old, old, engine) == {"unchanged"}
    assert report(old, new, engine).outcome is not Outcome.COMPATIBLE
    assert "statement-not-read" not in rules(old, new, engine)
    whole = "COMPILE PLAN '/p.json' FOR STATEMENT SET BEGIN " + INSERT + INSERT + " END;" + EXECUTE
    assert rules(whole, whole, engine) == {"unchanged"}


@pytest.mark.parametrize(
    "text",
    [
        EXECUTE,
        "COMPILE PLAN '/p.json' IF NOT EXISTS FOR " + INSERT + EXECUTE,
        "COMPILE AND EXECUTE PLAN '/p.json' FOR " + INSERT,
        COMPILE + INSERT + "EXECUTE PLAN '/other.json';",
    ],
)
@ENGINES
def test_a_file_that_may_hold_another_plan_is_not_compared(text: str, engine: str) -> None:
    found = report(text, text, engine)
    assert found.outcome is Outcome.UNKNOWN
    assert any("runs the content of its file" in finding.message for finding in found.findings)


# --------------------------------------------------------------------------------------------------- Hive
HIVE = "CREATE TABLE h (a STRING, n INT) PARTITIONED BY (day STRING) STORED AS orc TBLPROPERTIES ('k' = 'v');\n"


@ENGINES
def test_hive_ddl_is_known_by_its_table_and_compared_by_its_words(engine: str) -> None:
    respelled = """create table h(
      a string, -- a comment
      n int) partitioned by (day string) stored as ORC
      tblproperties('k'='v');
    """
    assert rules(HIVE + INSERT, HIVE + INSERT, engine) == {"unchanged"}
    other = HIVE.replace("'v'", "'w'")
    reads = "INSERT INTO s SELECT n, COUNT(*) FROM h GROUP BY n;"
    assert report(HIVE + reads, other + reads, engine).outcome is not Outcome.COMPATIBLE
    assert rules(HIVE + INSERT, other + INSERT, engine) == {"statement-without-effect"}
    facts = [fact.kind for fact in Side(TABLES + HIVE + INSERT).program.other_statements]
    assert facts == ["Hive DDL of table h"]
    assert rules(HIVE + INSERT, respelled + INSERT, engine) == {"unchanged"}


def test_the_dialect_is_hives_until_it_is_set_back() -> None:
    plain = "CREATE TABLE p (a STRING);\n"
    hive = "SET 'table.sql-dialect' = 'hive';\n"
    assert [f.kind for f in Side(TABLES + hive + plain + INSERT).program.other_statements] == ["Hive DDL of table p"]
    for back in ("SET 'table.sql-dialect' = 'default';\n", "RESET 'table.sql-dialect';\n", "RESET;\n"):
        assert not Side(TABLES + hive + back + plain + INSERT).program.other_statements
    assert report(plain + INSERT, hive + plain + INSERT).outcome is not Outcome.COMPATIBLE
    # Read along with a side in the other dialect, the same words are still another statement.
    old = Side(TABLES + plain + INSERT)
    new = Side(TABLES + hive + plain + INSERT, beside=old)
    assert [f.kind for f in new.program.other_statements] == ["Hive DDL of table p"]


# ---------------------------------------------------------------------------------------------- templates
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO s SELECT a, SUM(b) FROM ${SOURCE} GROUP BY a;",
        "INSERT INTO ${env}_s SELECT a, SUM(b) FROM t GROUP BY a;",
        "INSERT INTO s SELECT a, SUM(b) FROM t WHERE b > ${least} GROUP BY a;",
        "INSERT INTO s SELECT a, SUM(b) FROM ${db}.${SOURCE} AS x GROUP BY a;",
        "INSERT INTO s SELECT a, SUM(b) FROM `${db}`.`${SOURCE}` AS x GROUP BY a;",
    ],
)
@ENGINES
def test_a_template_variable_is_a_name_nobody_knows(text: str, engine: str) -> None:
    assert rules(text, text, engine) == {"unchanged"}
    for other in (
        text + "\nINSERT INTO s SELECT a, b FROM t;",
        "SET 'pipeline.name' = 'x';\n" + text,
        text.replace("${", "${other_"),
        text.replace("${SOURCE}", "t")
        .replace("${env}_s", "s")
        .replace("${least}", "1")
        .replace("`${db}`.", "")
        .replace("${db}.", ""),
    ):
        for found in (report(text, other, engine), report(other, text, engine)):
            assert found.outcome is not Outcome.COMPATIBLE
            assert any("the value of " in finding.message for finding in found.findings)
