"""The branch a gate takes on a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat import check
from airflow_flinkcompat.compat import Outcome, Report, render_markdown, render_text
from airflow_flinkcompat.compat.branch import branch_of, is_unchanged, planner_decides
from airflow_flinkcompat.compat.migration_report import MigratedOperator, MigrationReport
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.model import Consequence, Policy
from tests.support.cli.command import OF_OUTCOME, TABLES, V1


@pytest.mark.parametrize(
    ("outcome", "branch", "with_backfill"),
    [
        ("compatible", "resume", "resume"),
        ("partial", "approve", "approve"),
        ("unknown", "approve", "approve"),
        ("incompatible", "approve", "restart"),
    ],
)
def test_each_outcome_takes_what_the_policy_says(outcome: str, branch: str, with_backfill: str) -> None:
    report = check(V1, OF_OUTCOME[outcome])
    assert branch_of(report, Policy(), migrates=False) == branch
    assert branch_of(report, Policy.of(None, backfill=True), migrates=False) == with_backfill


def test_what_flink_refuses_asks_a_person_whatever_the_policy_says() -> None:
    old = TABLES + "INSERT INTO totals SELECT customer, amount FROM orders;"
    report = check(old, old.replace("amount FROM", "amount, item FROM"), "flink")
    assert report.is_refused
    assert branch_of(report, Policy(incompatible="restart"), migrates=False) == "approve"
    assert branch_of(report, Policy(incompatible="reject"), migrates=False) == "reject"


def test_state_that_may_be_kept_is_given_up_only_where_the_policy_says_so_of_it() -> None:
    report = check(V1, OF_OUTCOME["incompatible"], "flink")
    assert report.migration_is_unknown
    by_default, explicit = Policy.of(None, backfill=True), Policy.of({"incompatible": "restart"})
    for migrates in (False, True):
        assert branch_of(report, by_default, migrates=migrates) == "approve"
        assert planner_decides(report, by_default, migrates=migrates)
        assert branch_of(report, explicit, migrates=migrates) == "restart"
        assert not planner_decides(report, explicit, migrates=migrates)
    assert not planner_decides(report, Policy(), migrates=False), "a person is asked in any case"
    assert planner_decides(report, Policy(), migrates=True), "the state may be migrated unasked"


@pytest.mark.parametrize("action", [RestoreEffect.RIGHT, RestoreEffect.REWRITTEN])
def test_a_savepoint_that_stays_as_it_is_makes_no_wrong_rows_right(action: RestoreEffect) -> None:
    found = check(V1, OF_OUTCOME["incompatible"], "flink")
    (wrong,) = found.deciding
    wrong = replace(wrong, rule="source-table-changed", consequence=Consequence.SILENTLY_WRONG)
    kept = MigrationReport(MigrationExtent.WHOLE, (MigratedOperator("group-aggregate", action, ""),))
    report = replace(found, findings=(wrong,), migration=kept)
    carries = action is RestoreEffect.RIGHT
    assert report.migration_is_wrong == carries
    assert report.unseen == ((wrong,) if carries else ())
    assert branch_of(report, Policy(), migrates=True) == ("approve" if carries else "migrate")
    assert ("flinkcompat migrate" in render_text(report, verbose=False)) is not carries


KEYED = """\
CREATE TABLE pay (shop BIGINT, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE rev (shop BIGINT, n BIGINT, PRIMARY KEY (shop) NOT ENFORCED)
  WITH ('connector' = '{connector}', '{place}' = '{where}', '{place}s' = 'x');
INSERT INTO rev {query};
"""
COUNTS = "SELECT shop, COUNT(*) FROM pay GROUP BY shop"
COPIES = "SELECT shop, amount FROM pay"


@pytest.mark.parametrize("engine", ["flink", "vvr"])
@pytest.mark.parametrize(
    ("connector", "place", "query", "empty"),
    [
        ("upsert-kafka", "topic", COUNTS, ("rev",)),
        ("jdbc", "table-name", COUNTS, ("rev",)),
        ("jdbc", "url", COUNTS, ("rev",)),
        ("elasticsearch-7", "index", COUNTS, ("rev",)),
        ("upsert-kafka", "properties.bootstrap.servers", COUNTS, ("rev",)),
        ("jdbc", "sink.max-retries", COUNTS, ()),
        ("jdbc", "table-name", COPIES, ()),
        ("print", "print-identifier", COUNTS, ()),
    ],
)
def test_a_keyed_sink_at_a_new_place_begins_empty(
    engine: str, connector: str, place: str, query: str, empty: tuple[str, ...]
) -> None:
    old, new = (KEYED.format(connector=connector, place=place, where=where, query=query) for where in ("a", "b"))
    report = check(old, new, engine)
    assert report.sinks_begin_empty == empty
    assert Report.from_dict(report.to_dict()).sinks_begin_empty == empty
    assert ("receives only keys that change from now on" in render_text(report)) is bool(empty)
    assert ("receives only keys that change from now on" in render_markdown(report)) is bool(empty)


def test_one_broker_of_several_is_the_same_place() -> None:
    place = {"connector": "upsert-kafka", "place": "properties.bootstrap.servers", "query": COUNTS}
    assert not check(
        KEYED.format(**place, where="a:1,b:1"), KEYED.format(**place, where="b:1"), "flink"
    ).sinks_begin_empty


def test_the_policy_says_where_a_change_with_an_empty_sink_goes() -> None:
    old, new = (KEYED.format(connector="jdbc", place="table-name", where=where, query=COUNTS) for where in ("a", "b"))
    report = check(old, new, "flink")
    assert report.outcome is Outcome.COMPATIBLE
    for answer in ("resume", "approve", "restart"):
        assert branch_of(report, Policy.of({"sink_begins_empty": answer}), migrates=False) == answer
    assert branch_of(report, Policy(), migrates=False) == "approve"
    assert branch_of(report, Policy(compatible="restart"), migrates=False) == "restart"
    more = check(
        old, new.replace("n BIGINT,", "n BIGINT, m BIGINT,").replace("COUNT(*)", "COUNT(*), MAX(amount)"), "flink"
    )
    assert more.outcome is Outcome.INCOMPATIBLE
    assert branch_of(more, Policy(migratable="migrate", partly_migratable="migrate"), migrates=True) == "approve"


def test_unchanged_is_what_says_nothing_else() -> None:
    report = check(V1, f"-- a comment\n{V1}")
    assert is_unchanged(report)
    assert not is_unchanged(check(V1, OF_OUTCOME["compatible"]))
    assert not is_unchanged(replace(report, findings=()))
