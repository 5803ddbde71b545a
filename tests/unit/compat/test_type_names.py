"""A type by a name that is none of Flink's is refused wherever it stands; one behind a database is not known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.deployable import obstacles
from airflow_flinkcompat.compat.single_script import lint
from tests.support.planning import local_planner

TABLE = "CREATE TABLE t (id INT, a {}) WITH ('connector' = 'datagen');\n"
SINK = "CREATE TABLE s (id INT, n BIGINT) WITH ('connector' = 'blackhole');\n"
QUERY = "INSERT INTO s SELECT id, COUNT(*) FROM t GROUP BY id;"
PLACES = {
    "column": TABLE + SINK + QUERY,
    "field of a row": TABLE.replace("{}", "ROW<x {}>") + SINK + QUERY,
    "element": TABLE.replace("{}", "ARRAY<{}>") + SINK + QUERY,
    "cast": TABLE.replace("{}", "INT") + SINK + "INSERT INTO s SELECT CAST(a AS {}), COUNT(*) FROM t GROUP BY a;",
    "table that nothing uses": TABLE.replace(" t ", " u ") + TABLE.replace("{}", "INT") + SINK + QUERY,
}
UNKNOWN_IDENTIFIERS: Mapping[str, tuple[str, str]] = {
    "DECIMALL": ("program-refused", "DECIMALL is not a Flink type; DECIMAL is probably meant"),
    "TEXT": ("program-refused", "TEXT is not a Flink type; write an existing type"),
    "BOOL": ("program-refused", "BOOL is not a Flink type"),
    "JSON": ("program-refused", "JSON is not a Flink type"),
    "`INT`": ("program-refused", "INT is not a Flink type; INT is probably meant"),
    "mydb.MyType": ("statement-not-read", "the fields of the type mydb.MyType are unknown"),
}
TAKEN = ("DECIMAL(10, 2)", "STRING", "VARIANT", "BITMAP", "DOUBLE PRECISION", "STRUCTURED<'x.Y', b INT>")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("type", ["DECIMALL", "mydb.MyType"])
def test_it_is_found_wherever_it_stands(place: str, type: str) -> None:
    script = PLACES[place].replace("{}", type)
    rule, words = UNKNOWN_IDENTIFIERS[type]
    for engine in ("flink", "vvr"):
        (found,) = (each for each in lint(Side(script, engine=engine)) if each.rule == rule)
        assert words in found.message
        refused = rule == "program-refused" and engine == "flink"
        assert found.outcome is (Outcome.INCOMPATIBLE if refused else Outcome.UNKNOWN)
        span, line = found.after_span, script[: script.index(type)].count("\n") + 1
        assert span is not None
        assert (span.line, script.splitlines()[line - 1][span.column - 1 : span.end_column]) == (line, type)


@pytest.mark.parametrize("type", UNKNOWN_IDENTIFIERS)
def test_each_is_told_with_what_may_be_meant(type: str) -> None:
    rule, words = UNKNOWN_IDENTIFIERS[type]
    (found,) = lint(Side(PLACES["column"].replace("{}", type), engine="flink"))
    assert (found.rule, words in found.message) == (rule, True)


@pytest.mark.parametrize("type", TAKEN)
def test_a_type_of_flink_is_none(type: str) -> None:
    assert lint(Side(PLACES["column"].replace("{}", type), engine="flink")) == ()


def test_with_parentheses_it_is_no_sql() -> None:
    (found,) = obstacles(Side(PLACES["column"].replace("{}", "DECIMALL(10, 2)"), engine="flink"))
    assert "not a Flink type: DECIMAL is probably meant" in found.message


def test_of_a_catalog_the_tables_that_a_query_uses_alone_count() -> None:
    def side(catalog: str) -> Side:
        return Side(SINK + QUERY, engine="flink", catalog=catalog, catalog_sources=(("catalog.sql", 9),))

    good, unused = TABLE.format("INT"), TABLE.replace(" t ", " u ").format("DECIMALL")
    (found,) = lint(side(TABLE.format("DECIMALL")))
    assert (found.rule, str(found.after_span)) == ("program-refused", "catalog.sql:1:27")
    assert lint(side(good + unused)) == ()
    assert check(side(good), side(good + unused)).outcome is Outcome.COMPATIBLE
    assert check(side(good), side(TABLE.format("DECIMALL"))).outcome is Outcome.INCOMPATIBLE


@pytest.mark.nightly
def test_flink_refuses_and_takes_the_same(tmp_path: Path) -> None:
    types = [*UNKNOWN_IDENTIFIERS, *TAKEN]
    with local_planner(tmp_path / "flink") as planner:
        answers = planner.plan([(PLACES["column"].replace("{}", type), {}) for type in types])
    for type, answer in zip(types, answers, strict=True):
        # What the generator of rows cannot make is a type all the same.
        unknown = f"Unknown identifier '{type.strip('`')}'" in str(answer)
        assert unknown is (type in UNKNOWN_IDENTIFIERS), type
