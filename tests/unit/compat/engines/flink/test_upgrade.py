"""An upgrade of Flink under a script: what was restored from one line on another decides, part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from airflow_flinkcompat.compat import Basis, Consequence, Outcome, Report, Side, check, evidence
from airflow_flinkcompat.compat.engines.flink import upgrade
from airflow_flinkcompat.compat.engines.flink.upgraded_state import is_known, stored
from airflow_flinkcompat.compat.verdict import SAFE
from dev.measure import evidence as made
from dev.measure import results
from dev.measure.measured import RIGHT, Restore, connectors, load
from tests.support.nightly import mostly_nightly, mostly_slow

SOURCE = """
CREATE TABLE trips (rider STRING, fare BIGINT, city STRING, tip DOUBLE, day_of DATE, at TIMESTAMP(3),
  now_at AS PROCTIME(), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'path' = 'file:///trips', 'format' = 'csv', 'source.monitor-interval' = '1 s');
"""
PRINT = "CREATE TABLE result ({}) WITH ('connector' = '{}');\n"
TOTAL = SOURCE + PRINT.format("rider STRING, n BIGINT", "print") + "INSERT INTO result\n"
COUNTED = TOTAL + "SELECT rider, SUM(fare) FROM trips GROUP BY rider;"
FIRST = (
    SOURCE
    + PRINT.format("rider STRING, fare BIGINT", "print")
    + "INSERT INTO result\nSELECT rider, fare FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY rider ORDER BY at) AS n "
    "FROM trips) WHERE n = 1;"
)
OURS = [pair for path in results.upgrades() for pair in load(str(path)) if pair.is_unchanged]
UPGRADES = [*(pair for pair in connectors() if pair.old_version), *OURS]


def upgraded(
    script: str, old: str = "1.20", new: str = "2.3", changed: str = "", settings: Mapping[str, str] | None = None
) -> Report:
    given = dict(settings or {})
    return check(
        Side(script, given, engine="flink", engine_version=old),
        Side(changed or script, given, engine="flink", engine_version=new),
    )


def messages(report: Report) -> str:
    return "\n".join(finding.message for finding in report.findings)


# ------------------------------------------------------------------------------------------------------- the table
@pytest.mark.slow
def test_the_shipped_table_is_what_the_results_say() -> None:
    assert made.UPGRADES.read_text(encoding="utf-8") == made.upgrades_text(), (
        "run `python -m dev.measure pairs --evidence`"
    )


def test_what_went_wrong_differs_from_all_that_went_right() -> None:
    """Else the words say too little: no restore could be told from one that ended otherwise."""
    for lines, run in evidence.upgrades().items():
        right = {row for each in run.values() if each.outcome == RIGHT for row in each.stored}
        for name, each in run.items():
            assert each.outcome not in upgrade.ENDINGS or each.stored - right, (lines, name)


# ------------------------------------------------------------------------------------------------ what was measured
@pytest.mark.parametrize("pair", mostly_slow(UPGRADES, 4), ids=str)
def test_what_was_measured_is_said(pair: Restore) -> None:
    report = check(*pair.sides())
    if pair.outcome == RIGHT:
        opaque = any(not is_known(row) for row in stored(*pair.sides()))
        assert report.outcome is (Outcome.UNKNOWN if opaque else Outcome.COMPATIBLE)
    else:
        assert report.outcome is Outcome.INCOMPATIBLE
        assert upgrade.ENDINGS[pair.outcome] in {finding.consequence for finding in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    mostly_nightly([("1.20", "2.2"), ("2.3", "2.4"), ("1.19", "2.3"), ("2.0", "2.3"), ("2.3", "1.20")]),
)
def test_what_was_not_run_between_two_lines_is_not_known_there(old: str, new: str) -> None:
    """Whatever was run between others: each script as it was restored right somewhere."""
    run = evidence.upgrades().get(f"{old} to {new}", {})
    covered = {row for each in run.values() if each.outcome == RIGHT for row in each.stored}
    connectors_apart = ("source: ", "sink: ")  # their own jar decides, between whichever lines
    scripts = [
        pair
        for pair in OURS
        if pair.outcome == RIGHT
        and any(not row.startswith(connectors_apart) for row in stored(*pair.sides()) - covered)
    ]
    for pair in scripts:
        report = upgraded(pair.old, old, new, settings=pair.settings_old)
        assert report.outcome not in SAFE, (pair, report.outcome)


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Restore:
    """A restore that is not in the table."""
    pair: Restore = request.param
    rest = {
        lines: {name: each for name, each in run.items() if name != pair.id}
        for lines, run in evidence.upgrades().items()
    }
    monkeypatch.setattr(upgrade, "upgrades", lambda: rest)
    return pair


@pytest.mark.parametrize("left_out", mostly_slow(UPGRADES, 4), ids=str, indirect=True)
def test_without_its_own_restore_nothing_wrong_is_compatible_and_nothing_right_incompatible(left_out: Restore) -> None:
    said = check(*left_out.sides()).outcome
    assert said not in SAFE if left_out.outcome != RIGHT else said is not Outcome.INCOMPATIBLE


# ------------------------------------------------------------------------------------------------------ by the part
def test_parts_of_several_restores_go_together_by_inference() -> None:
    script = TOTAL + "SELECT city, COUNT(DISTINCT fare) FROM trips GROUP BY city HAVING COUNT(*) > 3;"
    report = upgraded(script, settings={"state.backend.type": "rocksdb", "table.exec.state.ttl": "7 d"})
    assert report.outcome is Outcome.COMPATIBLE
    (finding,) = report.findings
    assert finding.basis is Basis.INFERRED
    assert len(finding.evidence) > 1
    assert all(evidence.restores()[name]["1.20 to 2.3"] == RIGHT for name in finding.evidence)


@pytest.mark.parametrize(
    ("script", "settings", "named"),
    [
        (COUNTED.replace("SUM", "APPROX_COUNT_DISTINCT"), {}, "accumulator: APPROX_COUNT_DISTINCT"),
        (COUNTED.replace("'connector' = 'filesystem'", "'connector' = 'pulsar'"), {}, "source: pulsar"),
        (COUNTED.replace("SUM(fare)", "mine(fare)"), {}, "aggregate function mine"),
        (COUNTED.replace("SELECT rider,", "SELECT scrub(rider),"), {}, "function scrub"),
        (
            COUNTED.replace("GROUP BY rider", "GROUP BY GROUPING SETS ((rider), ())"),
            {},
            "group-aggregate: grouping sets",
        ),
        (COUNTED, {"table.exec.async-state.enabled": "true"}, "setting table.exec.async-state.enabled = true"),
        (COUNTED.split(";", 1)[1], {}, "table trips, which is not declared"),
        (TOTAL + "SELECT rider, fare FROM trips WHERE rider IN (SELECT city FROM trips);", {}, "not taken apart"),
    ],
)
def test_what_was_not_run_is_named(script: str, settings: Mapping[str, str], named: str) -> None:
    report = upgraded(script, settings=settings)
    assert report.outcome is Outcome.UNKNOWN
    assert named in messages(report)


@pytest.mark.parametrize(("old", "new"), [("1.18", "2.3"), ("2.3", "1.20"), ("2.3", "2.4"), ("1.20", "2.7")])
def test_lines_between_which_nothing_was_run_are_unknown(old: str, new: str) -> None:
    report = upgraded(COUNTED, old, new)
    assert report.outcome is Outcome.UNKNOWN
    assert f"Flink {old} to {new}: no restore between these lines was measured" in messages(report)


UNITED = "(SELECT rider, fare, at FROM trips UNION ALL SELECT city, fare, at FROM trips)"


@pytest.mark.parametrize("script", [FIRST, FIRST.replace("FROM trips)", f"FROM {UNITED})")])
@pytest.mark.parametrize("old", ["1.20", "2.0"])
def test_keep_first_by_event_time_forgets_what_it_saw(old: str, script: str) -> None:
    """Through UNION ALL a time stays event time, so Flink deduplicates there too."""
    report = upgraded(script, old)
    (finding,) = report.findings
    assert (finding.outcome, finding.consequence) == (Outcome.INCOMPATIBLE, Consequence.SILENTLY_WRONG)
    assert re.search(
        "keeps the first row: the new line does not find the stored keys.* start without state", finding.message
    )


@pytest.mark.parametrize(
    ("script", "named"),
    [
        (FIRST.replace("ORDER BY at", "ORDER BY CAST(at AS TIMESTAMP(3))"), "rank: appended rows, of one row"),
        (FIRST.replace("ORDER BY at", "ORDER BY at, fare"), "rank: appended rows, of one row"),
    ],
)
def test_one_row_that_is_kept_may_be_a_deduplication_whatever_it_is_ordered_by(script: str, named: str) -> None:
    """No restore of a Top-N speaks of it."""
    report = upgraded(script)
    assert report.outcome is Outcome.UNKNOWN
    assert named in messages(report)


def test_what_a_function_keeps_in_one_frame_says_nothing_of_another() -> None:
    frame = "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
    over = f"STDDEV_POP(tip) OVER (PARTITION BY rider ORDER BY at {frame})"
    report = upgraded(TOTAL.replace("n BIGINT", "n DOUBLE") + f"SELECT rider, {over} FROM trips;")
    assert report.outcome is Outcome.UNKNOWN
    assert "accumulator: STDDEV or VAR in over-aggregate RANGE bounded" in messages(report)


def test_changes_of_a_key_straight_into_a_sink_are_named() -> None:
    keyed = SOURCE.replace("fare BIGINT", "fare BIGINT, PRIMARY KEY (rider) NOT ENFORCED").partition("WITH")[0]
    source = (
        keyed + "WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'key.format' = 'json', 'value.format' = 'json');"
    )
    script = (
        f"{source}{PRINT.format('rider STRING, n BIGINT', 'print')}INSERT INTO result SELECT rider, fare FROM trips;"
    )
    assert "changelog-normalize straight into a sink" in messages(upgraded(script))


def test_two_inserts_into_one_table_are_one_union_that_was_not_run() -> None:
    insert = "INSERT INTO result SELECT rider, fare FROM trips"
    script = (
        f"{SOURCE}{PRINT.format('rider STRING, n BIGINT', 'print')}EXECUTE STATEMENT SET BEGIN {insert}; {insert}; END;"
    )
    assert "several INSERTs of one job into one table" in messages(upgraded(script))


def test_keep_last_and_processing_time_do_not() -> None:
    for script in (FIRST.replace("ORDER BY at", "ORDER BY at DESC"), FIRST.replace("ORDER BY at", "ORDER BY now_at")):
        assert upgraded(script).outcome is Outcome.COMPATIBLE


def test_an_accumulator_that_was_refused_is_refused_in_every_aggregation_that_stores_it() -> None:
    group = TOTAL.replace("n BIGINT", "n DOUBLE") + "SELECT rider, STDDEV_POP(tip) FROM trips GROUP BY rider;"
    window = group.replace("FROM trips GROUP BY rider", "FROM trips GROUP BY rider, SESSION(at, INTERVAL '1' MINUTE)")
    for script in (group, window):
        report = upgraded(script)
        assert report.outcome is Outcome.INCOMPATIBLE
        assert Consequence.REFUSED_AT_RESTORE in {finding.consequence for finding in report.findings}
    over = "STDDEV_POP(tip) OVER (PARTITION BY rider ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    assert upgraded(TOTAL.replace("n BIGINT", "n DOUBLE") + f"SELECT rider, {over} FROM trips;").outcome in SAFE


KEYED = """
CREATE TABLE kept (rider STRING, city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO kept{} SELECT rider, MAX(city), SUM(fare) FROM trips GROUP BY rider{};
"""


def test_a_key_that_is_not_the_querys_own_is_asked_for_by_the_new_line() -> None:
    script = SOURCE + KEYED.format("", "")
    report = upgraded(script)
    assert (report.outcome, report.findings[0].consequence) == (Outcome.INCOMPATIBLE, Consequence.REFUSED_AT_SUBMIT)
    assert "set table.exec.sink.require-on-conflict = false" in messages(report)
    off = Side(script, {"table.exec.sink.require-on-conflict": "false"}, engine="flink", engine_version="2.3")
    assert check(Side(script, engine="flink", engine_version="1.20"), off).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("query", "expected"),
    [("UPPER(rider), city, n", Outcome.INCOMPATIBLE), ("rider || city, city, n", Outcome.UNKNOWN)],
)
def test_a_computed_key_is_not_called_another_key(query: str, expected: Outcome) -> None:
    grouped = "(SELECT rider, city, SUM(fare) AS n FROM trips GROUP BY rider, city)"
    table = KEYED.partition("INSERT")[0].replace("PRIMARY KEY (city)", "PRIMARY KEY (rider)")
    report = upgraded(f"{SOURCE}{table}INSERT INTO kept SELECT {query} FROM {grouped};")
    assert report.outcome is expected
    assert ["upsert key" in finding.message for finding in report.findings] == [True, False]


# ----------------------------------------------------------------------------------------- a change on top of it
def changes() -> Iterator[tuple[str, str, Outcome]]:
    filtered = COUNTED.replace("FROM trips", "FROM trips WHERE fare > 3")
    yield COUNTED, COUNTED.replace("INSERT INTO result", "INSERT INTO `result` /* as before */"), Outcome.COMPATIBLE
    yield filtered, filtered.replace("> 3", "> 4"), Outcome.INCOMPATIBLE
    yield (
        COUNTED,
        COUNTED.replace("SUM(fare)", "SUM(fare), COUNT(*)").replace("n B", "n BIGINT, m B"),
        Outcome.INCOMPATIBLE,
    )


@pytest.mark.parametrize(("old", "new", "outcome"), [*changes()])
def test_a_change_with_the_upgrade_is_judged_on_both_lines(old: str, new: str, outcome: Outcome) -> None:
    assert upgraded(old, changed=new).outcome is outcome


def test_a_change_that_is_right_on_one_of_the_lines_alone_is_not_safe() -> None:
    """A time to live on a group aggregation: added on 2.3 it is right, on 1.20 refused."""
    old, new = (
        Side(COUNTED, given, engine="flink", engine_version=line)
        for given, line in (({}, "1.20"), ({"table.exec.state.ttl": "1 h"}, "2.3"))
    )
    assert (
        check(old.on("flink"), Side(new.script, new.settings, engine="flink", engine_version="2.3")).outcome not in SAFE
    )
    assert check(Side(COUNTED, engine="flink", engine_version="2.3"), new).outcome is Outcome.COMPATIBLE


def test_another_script_is_upgraded_as_it_is_first() -> None:
    report = upgraded(COUNTED, "1.18", changed=COUNTED.replace("SUM", "MAX"))
    assert "upgrade the unchanged script first" in messages(report)
