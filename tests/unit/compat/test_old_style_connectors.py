"""Tables declared by ``connector.type``, the options of before Flink 1.11, on lines that know no such connectors."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Report, Side, check
from airflow_flinkcompat.model import Outcome

OLD_KAFKA = "'connector.type' = 'kafka', 'connector.topic' = 't', 'format.type' = 'json'"
KAFKA = "'connector' = 'kafka', 'topic' = 't', 'format' = 'json'"
PRINT = "'connector' = 'print'"
REFUSED = "program-refused"


def script(source: str, sink: str = PRINT, catalog: str = "") -> str:
    return (
        f"{catalog}CREATE TABLE o (a STRING) WITH ({source});\n"
        f"CREATE TABLE s (a STRING) WITH ({sink});\nINSERT INTO s SELECT a FROM o;"
    )


def judged(old: str, new: str, engine: str = "flink", version: str | None = None) -> Report:
    sides = ((old, "old.sql"), (new, "new.sql"))
    return check(*(Side(text, engine=engine, engine_version=version, source=name) for text, name in sides))


@pytest.mark.parametrize("style", ["kafka", "hbase", "jdbc", "elasticsearch"])
def test_the_proposed_script_does_not_start(style: str) -> None:
    table = OLD_KAFKA.replace("kafka", style)
    for old, new in ((KAFKA, table), (table.replace("'t'", "'u'"), table)):
        report = judged(script(old), script(new))
        assert report.outcome is Outcome.INCOMPATIBLE
        (finding,) = (each for each in report.deciding if each.rule == REFUSED)
        assert f"'connector.type' = '{style}'" in finding.message
        assert "pass --engine-version" in finding.message
        assert str(finding.after_span) == "new.sql:1:1"


def test_what_goes_on_unchanged_is_not_refused() -> None:
    old = script(OLD_KAFKA)
    for new in (old, "-- the same\n" + old.replace(", ", ",\n  ")):
        assert judged(old, new).outcome is Outcome.COMPATIBLE


def test_a_sink_of_the_old_style_is_refused_as_well() -> None:
    assert judged(script(KAFKA), script(KAFKA, OLD_KAFKA)).outcome is Outcome.INCOMPATIBLE


def test_what_the_old_consumer_stored_is_read_by_no_source() -> None:
    report = judged(script(OLD_KAFKA), script(KAFKA))
    assert report.outcome is Outcome.INCOMPATIBLE
    (finding,) = report.deciding
    assert "starts from the position in its options" in finding.message


def test_other_sources_of_the_old_style_are_named() -> None:
    report = judged(script("'connector.type' = 'own'"), script(KAFKA))
    assert report.outcome is Outcome.UNKNOWN
    assert "the state of the old connector.type own" in report.deciding[0].message


@pytest.mark.parametrize(
    ("text", "engine", "version"),
    [
        (script(OLD_KAFKA), "flink", "1.20"),
        (script(OLD_KAFKA), "vvr", None),
        (script("'connector.type' = 'filesystem', 'format.type' = 'csv'"), "flink", "2.3"),
        (script("'connector.type' = 'own'"), "flink", "2.3"),
        (script(OLD_KAFKA, catalog="CREATE CATALOG c WITH ('type' = 'own');\nUSE CATALOG c;\n"), "flink", "2.3"),
        (script(KAFKA) + f"\nCREATE TABLE unused (a STRING) WITH ({OLD_KAFKA});", "flink", "2.3"),
    ],
    ids=["an older line", "vvr", "files", "own factory", "own catalog", "unused"],
)
def test_what_may_start_is_not_refused(text: str, engine: str, version: str | None) -> None:
    findings = judged(text, text, engine, version).findings
    assert REFUSED not in {finding.rule for finding in findings}
