"""A query that keeps nothing itself is judged by the positions of its source and the state of its sink's writer."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.model import FunctionDeclaration

SOURCE = "CREATE TABLE {} ({}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = '{}');\n"
SINK = "CREATE TABLE s ({}) WITH ('connector' = '{}', 'topic' = 'u', 'format' = 'json');\n"
QUERY = "INSERT INTO s SELECT a, b FROM k WHERE b > 2;"


def script(
    columns: str = "a STRING, b BIGINT, c STRING",
    sink: str = "kafka",
    query: str = QUERY,
    name: str = "k",
    shown: str = "a STRING, b BIGINT",
    form: str = "json",
) -> str:
    return SOURCE.format(name, columns, form) + SINK.format(shown, sink) + query


def judged(old: str, new: str) -> Report:
    return check(Side(old, engine="flink"), Side(new, engine="flink"))


@pytest.mark.parametrize(
    "new",
    [
        script("a STRING, b BIGINT"),
        script("c INT, a STRING NOT NULL, b BIGINT, d STRING"),
        script("a STRING, b BIGINT, p INT METADATA FROM 'partition', c STRING"),
        script("a STRING, b BIGINT, c STRING, e AS b + 1"),
        script("a STRING, b BIGINT, c STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"),
        script(query="INSERT INTO s SELECT UPPER(c), b * 2 FROM k WHERE b > 7;"),
        script(query="INSERT INTO s (b, a) SELECT b, a FROM k WHERE b > 2;"),
        script("b BIGINT, a STRING", name="k2", query=QUERY.replace("k WHERE", "k2 WHERE")),
    ],
)
@pytest.mark.parametrize("sink", ["kafka", "print", "blackhole"])
def test_what_no_savepoint_holds_may_change(new: str, sink: str) -> None:
    new = new.replace("'connector' = 'kafka', 'topic' = 'u'", f"'connector' = '{sink}', 'topic' = 'u'")
    report = judged(script(sink=sink), new)
    assert report.outcome is Outcome.COMPATIBLE, report.findings
    assert all(finding.evidence for finding in report.findings)


@pytest.mark.parametrize("sink", ["kafka", "filesystem"])
def test_a_calc_that_comes_or_goes_in_front_of_a_writer_is_not_compatible(sink: str) -> None:
    """One that comes takes the writer's id; where one goes, no operator has it any more."""
    bare = script("a STRING, b BIGINT", sink, "INSERT INTO s SELECT a, b FROM k;")
    for new in (script("a STRING, b BIGINT", sink), script(sink=sink, query="INSERT INTO s SELECT a, b FROM k;")):
        assert judged(bare, new).outcome is Outcome.UNKNOWN
        assert judged(new, bare).outcome is Outcome.INCOMPATIBLE


CHANGELOG = pytest.mark.parametrize("form", ["debezium-json", "canal-json"])


@CHANGELOG
@pytest.mark.parametrize(
    "new",
    [
        {"columns": "a STRING, b BIGINT, c STRING, d INT"},
        {"columns": "a STRING, b BIGINT, c STRING", "query": QUERY.replace("2", "9")},
    ],
)
def test_positions_are_all_that_a_whole_changelog_leaves(new: dict[str, str], form: str) -> None:
    keyed = "a STRING, b BIGINT, c STRING, PRIMARY KEY (a) NOT ENFORCED"
    for columns in ("a STRING, b BIGINT, c STRING", keyed):
        key = keyed.removeprefix("a STRING, b BIGINT, c STRING") if columns == keyed else ""
        proposed = script(**{**new, "columns": new["columns"] + key}, sink="print", form=form)
        assert judged(script(columns, "print", form=form), proposed).outcome is Outcome.COMPATIBLE


@CHANGELOG
def test_what_else_may_be_kept_of_a_changelog_is_not_told_of(form: str) -> None:
    more = "a STRING, b BIGINT, c STRING, d INT"
    shown = "a STRING, b BIGINT, PRIMARY KEY (b) NOT ENFORCED"
    loose = "SET 'table.exec.sink.require-on-conflict' = 'false';\n"
    keyed = [
        loose + script(columns, "print", form=form, shown=shown) for columns in ("a STRING, b BIGINT, c STRING", more)
    ]
    assert judged(*keyed).outcome is Outcome.UNKNOWN  # results by another key are kept once more
    written = [script(columns, "kafka", form=form) for columns in ("a STRING, b BIGINT, c STRING", more)]
    assert judged(*written).outcome is not Outcome.COMPATIBLE
    key = ", PRIMARY KEY (a) NOT ENFORCED"
    twice = "SET 'table.exec.source.cdc-events-duplicate' = 'true';\n"
    normalized = [
        twice + script(columns + key, "print", form=form) for columns in ("a STRING, b BIGINT, c STRING", more)
    ]
    assert judged(*normalized).outcome is Outcome.UNKNOWN
    assert judged(normalized[0], normalized[0].replace("> 2", "> 9")).outcome is not Outcome.COMPATIBLE
    upserts = [each.replace("'connector' = 'kafka', 'topic' = 't'", "'connector' = 'upsert-kafka', 'topic' = 't'")
               for each in (script(sink="print"), script(more, "print"))]  # fmt: skip
    assert judged(*upserts).outcome is not Outcome.COMPATIBLE


def test_another_topic_under_another_name_is_not_the_same_place() -> None:
    new = script("b BIGINT, a STRING", name="k2", query=QUERY.replace("k WHERE", "k2 WHERE")).replace("'t'", "'v'")
    assert judged(script(), new).outcome is not Outcome.COMPATIBLE


def test_a_query_that_keeps_something_is_no_case_of_it() -> None:
    query = "INSERT INTO s SELECT a, SUM(b) FROM k GROUP BY a;"
    report = judged(script(sink="print", query=query), script("a STRING, b INT, c STRING", "print", query))
    assert report.outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("language", "outcome"),
    [("java", Outcome.COMPATIBLE), ("scala", Outcome.COMPATIBLE), ("python", Outcome.UNKNOWN), (None, Outcome.UNKNOWN)],
)
def test_a_function_of_the_user_is_called_by_a_calc_where_it_is_told_to_be_scalar(
    language: str | None, outcome: Outcome
) -> None:
    functions = (FunctionDeclaration("shown", "scalar", language),) if language else ()
    old, new = script(sink="print"), script(sink="print", query="INSERT INTO s SELECT shown(a), b FROM k WHERE b > 2;")
    report = check(*(Side(each, engine="flink", functions=functions) for each in (old, new)))
    assert report.outcome is outcome
    (found,) = (each for each in report.findings if each.rule == "output-changed")
    assert found.message == "the output computes its columns differently", "there is no state that it could be above"
