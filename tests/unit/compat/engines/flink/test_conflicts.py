"""A missing ON CONFLICT: found as Flink's own planner answers it, whatever is deployed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.compat.deployable import obstacles
from airflow_flinkcompat.compat.reports.advice import steps
from airflow_flinkcompat.compat.single_script import lint, undescribed_tables
from airflow_flinkcompat.local_flink.jars import fetch
from tests.support.planning import local_planner

FILE = Path(__file__).parents[4] / "fixtures" / "validation" / "conflicts.toml"
RULE = "statement-refused"
OUTCOMES = {"taken": [], "refused": [Outcome.INCOMPATIBLE], "unknown": [Outcome.UNKNOWN]}


@dataclass(frozen=True)
class Case:
    """A script, the answer of Flink's planner (2.3.0) and what is found without it."""

    title: str
    planner: str
    found: str
    sql: str


def cases() -> Iterator[Case]:
    """Whole scripts, then INSERTs, each after the tables that it names."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    yield from (Case(**each) for each in read["case"])
    for answer in read["answer"]:
        for insert in answer["inserts"]:
            named = {name for name in read["tables"] if re.search(rf"\b{name}\b", insert)}
            named |= {"timed"} if "viewed" in named else set()
            script = "".join(ddl for name, ddl in read["tables"].items() if name in named)
            yield Case(insert, answer["planner"], answer["found"], f"{script}{insert};\n")


CASES = list(cases())


def side(script: str, version: str = "2.3") -> Side:
    return Side(script, engine="flink", engine_version=version)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_an_insert_is_refused_where_flink_refuses_it(case: Case) -> None:
    assert case.found in ("unknown", case.planner)
    assert [each.outcome for each in lint(side(case.sql)) if each.rule == RULE] == OUTCOMES[case.found]


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.title)
def test_older_lines_do_not_know_the_clause(case: Case) -> None:
    older = side(case.sql, "2.2")
    assert [each.message for each in lint(older) if each.rule == RULE] == []
    assert any("ON CONFLICT, which is new in Flink 2.3" in str(each) for each in obstacles(older)) == (
        "ON CONFLICT" in case.sql
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_flinks_planner_still_answers_so(tmp_path: Path) -> None:
    """Each INSERT asked of the planner of Flink 2.3 anew."""
    jars = [fetch(name) for name in ("flink-sql-connector-kafka", "flink-connector-jdbc-core")]
    jars.append(fetch("flink-connector-jdbc-postgres"))
    with local_planner(tmp_path, jars) as planner:
        planned = planner.plan((case.sql, {}) for case in CASES)
    answers = {True: "taken", False: "refused"}
    told = {case.title: answers[isinstance(each, tuple)] for case, each in zip(CASES, planned, strict=True)}
    assert told == {case.title: case.planner for case in CASES}


REFUSED = next(case.sql for case in CASES if case.found == "refused")
UNKNOWN = next(case.sql for case in CASES if case.found == "unknown")


def refused(old: str, new: str, old_version: str = "2.3") -> Report:
    report = check(side(old, old_version), side(new))
    assert report.is_refused
    return report


def test_a_deployed_script_without_the_clause_is_no_excuse() -> None:
    for old in (side(REFUSED, "1.20"), side(REFUSED.replace("'t'", "'u'"))):
        report = refused(old.script, REFUSED, old.version)
        assert "ON CONFLICT DO DEDUPLICATE" in steps(report)[0].commands[0]
    same = check(side(UNKNOWN.replace("'t'", "'u'")), side(UNKNOWN))
    assert RULE not in {finding.rule for finding in same.findings}


@pytest.mark.parametrize(
    "script",
    [
        REFUSED.rstrip().removesuffix(";") + " ON CONFLICT DO DEDUPLICATE;",
        "SET 'table.exec.sink.require-on-conflict' = 'false';\n" + REFUSED,
        "SET 'table.exec.sink.upsert-materialize' = 'NONE';\n" + REFUSED,
        "SET 'execution.runtime-mode' = 'batch';\n" + REFUSED,
    ],
    ids=["clause", "setting", "no materializer", "batch"],
)
def test_what_the_message_names_mends_the_script(script: str) -> None:
    assert not [each for each in lint(side(script)) if each.rule == RULE]


TABLES = """\
CREATE TABLE visits (page STRING, site STRING, n BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'properties.bootstrap.servers' = 'h:9092', 'format' = 'json');
CREATE TABLE kept (page STRING, n BIGINT, PRIMARY KEY (page) NOT ENFORCED) WITH ('connector' = 'print');
CREATE TABLE ended (site STRING, ends TIMESTAMP(3), n BIGINT, PRIMARY KEY (site, ends) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'ended', 'properties.bootstrap.servers' = 'h:9092',
  'key.format' = 'json', 'value.format' = 'json');
"""
OWN = "INSERT INTO kept SELECT page, COUNT(*) FROM visits GROUP BY page"
OTHER = "INSERT INTO kept SELECT site, COUNT(*) FROM visits GROUP BY site, page"
BEST = (
    "INSERT INTO kept SELECT page, n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY page ORDER BY n DESC) AS r FROM visits) WHERE r <= 2"
)
HOPPED = (
    "INSERT INTO ended SELECT site, window_end, SUM(n) FROM TABLE(HOP(TABLE visits, DESCRIPTOR(at), "
    "INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)) GROUP BY site, window_start, window_end"
)
SAME, REFUSED_LATER, WRONG = (
    (Outcome.COMPATIBLE, None),
    (Outcome.INCOMPATIBLE, "submit"),
    (Outcome.INCOMPATIBLE, "wrong"),
)
DEDUPLICATE, NOTHING, ERROR = (f" ON CONFLICT DO {word}" for word in ("DEDUPLICATE", "NOTHING", "ERROR"))


@pytest.mark.parametrize(
    ("query", "before", "after", "ends"),
    [
        (OWN, "", NOTHING, SAME),
        (OWN, ERROR, DEDUPLICATE, SAME),
        (OWN, DEDUPLICATE, "", SAME),
        (OTHER, NOTHING, ERROR, SAME),
        (OTHER, DEDUPLICATE, ERROR, WRONG),
        (OTHER, ERROR, DEDUPLICATE, REFUSED_LATER),
        (BEST, NOTHING, ERROR, SAME),
        (BEST, DEDUPLICATE, NOTHING, WRONG),
        (HOPPED, ERROR, NOTHING, SAME),
        (HOPPED, DEDUPLICATE, ERROR, REFUSED_LATER),
        (HOPPED, NOTHING, DEDUPLICATE, REFUSED_LATER),
    ],
)
def test_another_clause_is_judged_by_the_materializer(
    query: str, before: str, after: str, ends: tuple[Outcome, str | None]
) -> None:
    report = check(side(f"{TABLES}{query}{before};"), side(f"{TABLES}{query}{after};"))
    (finding,) = (each for each in report.findings if each.rule == "hint-changed")
    assert (report.outcome, finding.outcome) == (ends[0], ends[0])
    assert ends[1] is None or ends[1] in str(finding.consequence and finding.consequence.value)
    assert "materializer" in finding.message


def test_an_upgrade_takes_the_clause_where_it_plans_the_same() -> None:
    def upgraded(query: str, clause: str) -> Outcome:
        return check(side(f"{TABLES}{query};", "1.20"), side(f"{TABLES}{query}{clause};")).outcome

    assert upgraded(OWN, ERROR) in (Outcome.COMPATIBLE, Outcome.UNKNOWN)
    assert upgraded(OTHER, NOTHING) is Outcome.INCOMPATIBLE
    assert upgraded(HOPPED, ERROR) is Outcome.INCOMPATIBLE
    assert upgraded(HOPPED, DEDUPLICATE) is not Outcome.INCOMPATIBLE


def test_the_setting_that_asks_for_no_clause_is_judged_by_the_materializer() -> None:
    off = "SET 'table.exec.sink.require-on-conflict' = 'false';\n"
    assert check(side(f"{off}{TABLES}{OWN};"), side(f"{TABLES}{OWN};")).outcome is Outcome.COMPATIBLE
    assert refused(f"{off}{TABLES}{OTHER};", f"{TABLES}{OTHER};")
    assert check(side(f"{off}{TABLES}{OTHER};"), side(f"{TABLES}{OTHER}{DEDUPLICATE};")).outcome is Outcome.COMPATIBLE
    # Without the clause Flink 2.3.0 plans a materializer also of rows that are only added.
    assert (
        check(side(f"{off}{TABLES}{HOPPED};"), side(f"{TABLES}{HOPPED}{DEDUPLICATE};")).outcome is Outcome.INCOMPATIBLE
    )


SUMS = """\
CREATE TABLE visits (page STRING, n BIGINT) WITH ('connector' = '{}', 'topic' = 'v', 'format' = 'json');
CREATE TABLE sums (page STRING, n BIGINT{}) WITH ('connector' = '{}');
INSERT INTO sums SELECT page, SUM(n) FROM visits GROUP BY page;
"""
KEY = ", PRIMARY KEY (n) NOT ENFORCED"


@pytest.mark.parametrize(
    ("source", "key", "sink", "doubted"),
    [
        ("kafka", "", "doris", ()),
        ("kafka", "", "iceberg", ()),
        ("kafka", "", "starrocks", ()),
        ("kafka", "", "house-db", ("sums",)),
        ("kafka", KEY, "house-db", ("sums",)),
        ("kafka", KEY, "doris", ("sums",)),
    ],
)
def test_an_unknown_connector_is_no_alarm(source: str, key: str, sink: str, doubted: tuple[str, ...]) -> None:
    script = side(SUMS.format(source, key, sink))
    assert not [each for each in lint(script) if each.rule == RULE]
    assert undescribed_tables(script) == doubted


def test_a_comparison_stays_in_doubt_of_an_unknown_connector() -> None:
    appended = SUMS.format("kafka", "", "house-db").replace("SUM(n) FROM visits GROUP BY page", "n FROM visits")
    report = check(side(appended), side(SUMS.format("kafka", "", "house-db")))
    assert "sink sums may not accept updates" in " ".join(each.message for each in report.findings)
