"""An unchanged script on two versions of Flink: both planners decide, per operator and connector."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.compat.reports.advice import steps
from airflow_flinkcompat.connectors.flink_options import DATA, setting
from airflow_flinkcompat.exec_graph.model import Restore, RestoreEffect
from airflow_flinkcompat.exec_graph.prediction import ConditionKind, Prediction
from tests.unit.compat.test_check_planned import ALIKE, QUERY, TABLE, ended, plans, told


def upgraded(script: str, said: Prediction = ALIKE) -> Report:
    old, new = (Side(script, engine="flink", engine_version=each) for each in ("1.20", "2.3"))
    return check_planned(old, new, said, plans())


def test_planners_of_both_versions_overrule_what_the_rules_cannot_read() -> None:
    unread = "INSERT INTO totals SELECT customer, mine(amount) FROM orders WHERE amount IN (SELECT b FROM other);"
    report = upgraded(unread)
    assert (report.outcome, report.read_outcome) == (Outcome.COMPATIBLE, Outcome.UNKNOWN)
    (finding,) = report.deciding
    assert finding.rule == "engine-version-changed"
    assert "assumed for tables without a declared connector" in finding.message


def test_a_doubt_leaves_an_upgrade_to_the_rules() -> None:
    doubt = "class com.acme.Rates was not found: pass its jar with --jar FILE"
    report = upgraded(TABLE + QUERY, replace(ALIKE, doubt=doubt))
    assert report.outcome is Outcome.UNKNOWN
    assert told(report) == f"Flink 1.20 to 2.3: {doubt}"
    assert not [each.text for each in steps(report) if "two separate deployments" in each.text]


def test_plans_without_a_dry_restore_do_not_ask_for_installed_planners() -> None:
    old, new = (Side(TABLE + QUERY, engine="flink", engine_version=each) for each in ("1.20", "2.3"))
    report = check(old, new, plans=plans())
    assert report.outcome is Outcome.UNKNOWN
    assert "restores each state in a dry run" in told(report)


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (RestoreEffect.DROPPED, Outcome.INCOMPATIBLE),
        (RestoreEffect.REFUSED_AT_RESTORE, Outcome.INCOMPATIBLE),
        (RestoreEffect.EMPTY, Outcome.UNKNOWN),
        (RestoreEffect.UNKNOWN, Outcome.UNKNOWN),
    ],
)
def test_the_worst_operator_decides_an_upgrade(effect: RestoreEffect, outcome: Outcome) -> None:
    lost = ended(effect, "GroupAggregate: its state acc")
    report = upgraded(TABLE + QUERY, replace(ALIKE, restore=lost, operators=lost.states))
    assert report.outcome is outcome
    assert "its state acc" in told(report)
    assert [each.operator for each in report.restored] == [
        "GroupAggregate", "orders (read, kafka)",
    ]  # fmt: skip
    assert report.restored[1].effect == "right"


def test_a_connector_without_a_release_for_the_new_version_is_refused() -> None:
    report = upgraded(TABLE.replace("'connector' = 'kafka'", "'connector' = 'faker'") + QUERY)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert report.is_refused
    assert "no release of the connector faker runs on Flink 2.3" in told(report)


def test_a_connector_without_a_release_is_refused_next_to_any_other_effect() -> None:
    script = TABLE.replace("'connector' = 'kafka'", "'connector' = 'faker'") + QUERY
    lost = ended(RestoreEffect.REFUSED_AT_SUBMIT, "no operator with the id of GroupAggregate")
    for said in (
        replace(ALIKE, restore=lost, operators=lost.states),
        replace(ALIKE, restore=Restore((replace(lost.states[0], operator="script"),))),
    ):
        report = upgraded(script, said)
        assert report.is_refused
        assert (report.outcome, report.migration) == (Outcome.INCOMPATIBLE, None)
        assert "no release of the connector faker runs on Flink 2.3" in told(report)
    for said in (ALIKE, replace(ALIKE, restore=lost, operators=lost.states)):
        old = Side(script, engine="flink", engine_version="1.20")
        new = Side(script.replace("SUM(amount)", "SUM(amount) + 1"), engine="flink", engine_version="2.3")
        report = check_planned(old, new, said, plans(equal=said is ALIKE))
        assert report.is_refused
        assert report.migration is None


def test_a_batch_job_stores_nothing_and_has_no_plan() -> None:
    script = "SET 'execution.runtime-mode' = 'batch';\n" + TABLE + QUERY
    for text, outcome in ((script, Outcome.COMPATIBLE), (TABLE + QUERY.replace("SUM", "mine"), Outcome.UNKNOWN)):
        old, new = (Side(text, engine="flink", engine_version=each) for each in ("1.20", "2.3"))
        assert check_planned(old, new, ALIKE, None).outcome is outcome


def test_no_setting_that_plans_or_keeps_state_changes_its_default() -> None:
    """The planners do not show how a job runs, so a default that changes there would be a doubt."""
    prefixes = ("table.", "state.", "execution.", "pipeline.")
    keys = [key for key in json.loads(DATA.read_text(encoding="utf-8"))["settings"] if key.startswith(prefixes)]
    lines = ("1.19", "1.20", "2.0", "2.1", "2.2", "2.3")
    for key in keys:
        defaults = {found.default for line in lines if (found := setting(key, line)) is not None} - {""}
        assert len(defaults) <= 1, key


SINK = (ConditionKind.SINK, "compatible unless totals has a PRIMARY KEY")


def test_an_upgrade_that_is_compatible_on_a_condition_passes_no_gate() -> None:
    report = upgraded(TABLE + QUERY, replace(ALIKE, conditions=(SINK,)))
    assert (report.outcome, report.is_conditional) == (Outcome.UNKNOWN, True)
    assert [(each.rule, each.message) for each in report.deciding] == [("undeclared-sink", SINK[1])]
    assert report.ground == "planned by Flink 2.3.0"
    assert [each.effect for each in report.restored] == ["right"]
    assert not upgraded(TABLE + QUERY).is_conditional


def test_a_doubt_next_to_a_condition_is_no_condition() -> None:
    doubted = replace(ALIKE, conditions=(SINK,), unproven=("statements differ",))
    report = upgraded(TABLE + QUERY, doubted)
    assert (report.outcome, report.is_conditional) == (Outcome.UNKNOWN, False)
    assert [each.rule for each in report.deciding] == ["difference-not-covered"]


def test_a_connector_without_a_measured_upgrade_is_a_condition() -> None:
    script = TABLE.replace("'connector' = 'kafka'", "'connector' = 'of-our-own'") + QUERY
    report = upgraded(script, replace(ALIKE, conditions=(SINK,)))
    assert report.is_conditional
    assert {each.rule for each in report.deciding} == {"untried-connector", "undeclared-sink"}
    assert (
        "compatible if the connector of-our-own of table orders has a release for Flink 2.3 that reads the state of "
        "its release for Flink 1.20"
    ) in told(report)
    assert report.restored[0].effect == "unknown"
    assert report.ground == "planned by Flink 2.3.0"


def test_a_condition_changes_nothing_about_a_refusal() -> None:
    lost = ended(RestoreEffect.REFUSED_AT_RESTORE, "GroupAggregate: its state acc")
    report = upgraded(TABLE + QUERY, replace(ALIKE, restore=lost, operators=lost.states, conditions=(SINK,)))
    assert (report.outcome, report.is_conditional) == (Outcome.INCOMPATIBLE, False)
