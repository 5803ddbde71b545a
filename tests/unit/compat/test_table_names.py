"""A table is one table however its name is written, and another one wherever Flink resolves the name otherwise."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from tests.support.nightly import mostly_slow

SCRIPT = """\
CREATE TABLE {t} (a INT, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 't');
CREATE TABLE {s} WITH ('connector' = 'print') LIKE {t} (EXCLUDING ALL);
CREATE FUNCTION {f} AS 'org.example.F';
ALTER TABLE {t} SET ('k' = 'v');
CREATE VIEW {v} AS SELECT a, {f}(b) AS b FROM {t} /*+ OPTIONS('x' = 'y') */ WHERE a IN (SELECT a FROM {t});
DROP TABLE IF EXISTS {u};
EXECUTE STATEMENT SET BEGIN
INSERT INTO {s} SELECT a, b, CURRENT_TIMESTAMP FROM {v};
INSERT INTO {s} WITH {c} AS (SELECT a, SUM(b) AS b FROM {v} GROUP BY a) SELECT a, b, CURRENT_TIMESTAMP FROM {c};
INSERT INTO {s} SELECT x.a, y.b, x.ts FROM {t} x JOIN {t} FOR SYSTEM_TIME AS OF x.ts AS y ON x.a = y.a;
INSERT INTO {s} SELECT a, COUNT(*), window_end FROM TABLE(TUMBLE(TABLE {t}, DESCRIPTOR(ts), INTERVAL '1' DAY))
GROUP BY a, window_start, window_end;
INSERT INTO {s} SELECT * FROM {t} INTERSECT SELECT * FROM {t};
END;
"""
NAMES = "tsfvu"


def script(prefix: str = "", before: str = "", quote: str = "") -> str:
    names = {name: f"{prefix}{quote}{name}{quote}" for name in NAMES}
    return before + SCRIPT.format(**names, c="c")


PLACES = "CREATE DATABASE other;\nCREATE CATALOG lake WITH ('type' = 'generic_in_memory');\n"


@pytest.mark.parametrize("engine", ["flink", "vvr"])
@pytest.mark.parametrize(
    "same",
    [
        script(quote="`"),
        script("default_database."),
        script("default_catalog.default_database."),
        script("`default_catalog`.`default_database`.", quote="`"),
        script(before="USE default_database;\n"),
        script(before="USE CATALOG default_catalog;\n"),
        script(before="USE `default_catalog`.`default_database`;\n"),
        script("default_database.", before="USE other;\nUSE CATALOG default_catalog;\n"),
        script("default_catalog.default_database.", before="USE CATALOG lake;\n"),
        script(before="USE CATALOG lake;\nUSE default_catalog.default_database;\n"),
    ],
)
def test_every_spelling_is_the_same_table(engine: str, same: str) -> None:
    old, new = Side(PLACES + script(), engine=engine), Side(PLACES + same, engine=engine)
    for report in (check(old, new), check(new, old)):
        assert [finding.rule for finding in report.findings] == ["unchanged"]
        assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (script("lake.d."), script(before="USE lake.d;\n")),
        (script("lake.d."), script("d.", before="USE CATALOG lake;\n")),
        (script("d."), script(before="USE d;\n")),
        (script("d."), script("default_catalog.d.")),
        (script("d."), script(before="USE CATALOG default_catalog;\nUSE d;\n")),
        (script("d."), script("d.", before="USE other;\n")),
    ],
)
def test_names_resolve_in_the_current_catalog_and_database(one: str, same: str) -> None:
    assert check(one, same).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("kind", ["'type' = 'generic_in_memory'", "'type' = 'x', 'default-database' = 'default'"])
def test_a_catalog_begins_with_its_own_database(kind: str) -> None:
    create = f"CREATE CATALOG lake WITH ({kind});\n"
    old = script("lake.`default`.", before=create)
    assert check(old, script(before=create + "USE CATALOG lake;\n")).outcome is Outcome.COMPATIBLE
    assert check(old, script("lake.other.", before=create)).outcome is not Outcome.COMPATIBLE
    unknown = "CREATE CATALOG lake WITH ('type' = 'x');\n"
    left = script("lake.`default`.", before=unknown)
    assert check(left, script(before=unknown + "USE CATALOG lake;\n")).outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    "other",
    [
        script("other."),
        script(before="USE other;\n"),
        script(before="USE CATALOG lake;\n"),
        script("default_database.", before="USE CATALOG lake;\n"),
        script("Default_Database."),
        script("default_catalog.other."),
        script("`default_catalog.default_database`."),
    ],
)
@pytest.mark.parametrize("engine", mostly_slow(["flink", "vvr"], 2))
def test_another_table_is_another_table(other: str, engine: str) -> None:
    sides = Side(script(), engine=engine), Side(other, engine=engine)
    assert check(*sides).outcome is not Outcome.COMPATIBLE
    assert check(*reversed(sides)).outcome is not Outcome.COMPATIBLE


def test_a_database_is_not_taken_for_a_catalog() -> None:
    """``c.t`` is the table t of the database c; after USE CATALOG c it is t of that catalog's own database."""
    assert check(script("c."), script(before="USE CATALOG c;\n")).outcome is not Outcome.COMPATIBLE


def test_a_qualified_function_is_never_one_of_flinks_own() -> None:
    table = "CREATE TABLE t (a INT) WITH ('connector' = 'kafka');\n"
    create = "CREATE FUNCTION upper AS 'org.example.Upper';\n"
    call = "SELECT {}(CAST(a AS STRING)) FROM t;"
    qualified = table + create + call.format("default_catalog.default_database.upper")
    assert check(qualified, qualified).outcome is Outcome.COMPATIBLE
    assert check(table + create + call.format("UPPER"), qualified).outcome is not Outcome.COMPATIBLE
