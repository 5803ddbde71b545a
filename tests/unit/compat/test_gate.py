"""Waivers of reports, which change no verdict, and the branch that a gate takes on a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Report, Side, check, check_engines, render_markdown, render_text
from airflow_flinkcompat.compat.gate import (
    ChangeIdentity,
    WaivedReports,
    apply_waivers,
    branch_of,
    finding_digest,
    is_unchanged,
    is_waivable,
    may_restore_wrongly,
    planner_decides,
    waiver_lines,
)
from airflow_flinkcompat.compat.migration_report import MigratedOperator, MigrationReport
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.model import Consequence, Outcome, Policy, Waiver, WaiverState
from airflow_flinkcompat.project.job_options import FAIL_ON
from tests.support.cli.command import COMPATIBLE, INCOMPATIBLE, OF_OUTCOME, PARTIAL, TABLES, UNKNOWN, V1

TODAY = date(2026, 11, 26)


def side(text: str, engine: str = "flink", version: str | None = None) -> Side:
    return Side(text, engine=engine, engine_version=version)


def given_for(finding: Finding, report: Report, change: ChangeIdentity, **other: object) -> Waiver:
    waiver = Waiver(
        finding.rule, finding.subject, report.engine, finding.outcome.value, finding.message, "counted by hand", "ann",
        date(2026, 12, 31), change.deployed, finding_digest(finding, report.engine, change),
        even_silently_wrong=may_restore_wrongly(finding),
    )  # fmt: skip
    return replace(waiver, **other)  # type: ignore[arg-type]


def of_change(old: str, new: str, engine: str = "flink") -> tuple[Report, ChangeIdentity]:
    sides = side(old, engine), side(new, engine)
    return check(*sides), ChangeIdentity.of(*sides)


def all_waived(report: Report, change: ChangeIdentity, **other: object) -> WaivedReports:
    waivers = [given_for(each, report, change, **other) for each in report.findings if is_waivable(each)]
    return apply_waivers([report], waivers, change, TODAY)


# ---------------------------------------------------------------------------------------------------- any report at all
finding_values = st.builds(
    Finding,
    rule=st.sampled_from(["a", "b", "c"]),
    title=st.just("t"),
    outcome=st.sampled_from(Outcome),
    message=st.sampled_from(["m", "n"]),
    before=st.sampled_from(["", "x"]),
    consequence=st.none() | st.sampled_from(Consequence),
    sink=st.none() | st.just("totals"),
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """A report of which the outcome is the worst of what decides; more may be decided over than precedence would."""
    found = draw(st.lists(finding_values, min_size=1, max_size=5))
    marked = [
        replace(each, overruled_by=draw(st.sampled_from(sorted({other.rule for other in found} - {each.rule}) or [""])))
        if place and draw(st.booleans())
        else each
        for place, each in enumerate(found)
    ]
    outcome = Outcome.worst(each.outcome for each in marked if not each.overruled_by)
    return Report(outcome, "flink", "2.3", tuple(marked), "o", "n")


CHANGE = ChangeIdentity("d", "p")


@given(report=reports(), data=st.data())
def test_a_waiver_changes_no_verdict_and_lets_nothing_else_pass(report: Report, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(report.findings), max_size=4))
    others: st.SearchStrategy[dict[str, object]] = st.sampled_from(
        [{}, {"until": date(2020, 1, 1)}, {"deployed_sha256": "e"}, {"even_silently_wrong": False}]
    )
    waivers = [given_for(each, report, CHANGE, **data.draw(others)) for each in chosen]
    (after,) = apply_waivers([report], waivers, CHANGE, TODAY).reports
    # The verdict, and that of every finding.
    assert after.outcome is report.outcome
    assert [replace(each, waiver=None, overruled_by="") for each in after.findings] == [
        replace(each, overruled_by="") for each in report.findings
    ]
    # Only what was waived passes, and only by a waiver that holds.
    allowed = {each.finding_sha256 for each in waivers if each.until >= TODAY and each.deployed_sha256 == "d"}
    for each in after.findings:
        if each.is_waived:
            assert finding_digest(each, "flink", CHANGE) in allowed
            assert not may_restore_wrongly(each) or (each.waiver is not None and each.waiver.waiver.even_silently_wrong)
            assert each.outcome is not Outcome.COMPATIBLE
    # Nothing passes where any finding is left that fails the gate, also one that a waived finding decided over.
    gone = {each.rule for each in after.waived}
    left = [
        each
        for each in after.findings
        if not each.is_waived and not (each.overruled_by and each.overruled_by not in gone)
    ]
    for gate in filter(None, FAIL_ON.values()):
        fails = after.gate_outcome.rank >= gate.rank
        if report.outcome.rank >= gate.rank and any(each.outcome.rank >= gate.rank for each in left):
            assert fails
        if report.outcome.rank < gate.rank:
            assert not fails, "a waiver makes no gate stricter"
    # Nor is anything resumed for it of which state may not fit.
    before, now = (branch_of(each, Policy(), migrates=False) for each in (report, after))
    if report.outcome.rank > Outcome.PARTIAL.rank:
        assert now == before
        assert branch_of(after, Policy(unknown="reject", incompatible="reject"), migrates=False) in (
            "reject",
            "approve",
        )


# ------------------------------------------------------------------------------------------------------- real changes
@pytest.mark.parametrize("text", [PARTIAL, UNKNOWN, INCOMPATIBLE])
def test_all_findings_waived_pass_and_stay_in_the_report(text: str) -> None:
    report, change = of_change(V1, text)
    judged = all_waived(report, change)
    (after,) = judged.reports
    assert (after.outcome, after.gate_outcome, judged.notes) == (report.outcome, Outcome.COMPATIBLE, ())
    for shown in (render_text(after), render_markdown(after)):
        assert "Waived by ann until 2026-12-31: " in "\n".join(shown.splitlines()[:4])
    assert Report.from_dict(after.to_dict()).gate_outcome is Outcome.COMPATIBLE


def test_a_finding_that_a_waived_one_decided_over_counts_again() -> None:
    """What is only unknown is decided over by what is incompatible: it is not waived with that."""
    sides = side(V1, version="1.18"), side(INCOMPATIBLE, version="2.3")
    report, change = check(*sides), ChangeIdentity.of(*sides)
    assert {each.rule: each.overruled_by for each in report.findings} == {
        "window-changed": "", "engine-version-changed": "window-changed",
    }  # fmt: skip
    (after,) = apply_waivers([report], [given_for(report.findings[0], report, change)], change, TODAY).reports
    assert [each.rule for each in after.deciding if not each.is_waived] == ["engine-version-changed"]
    assert (after.outcome, after.gate_outcome) == (Outcome.INCOMPATIBLE, Outcome.UNKNOWN)
    assert all_waived(report, change).reports[0].gate_outcome is Outcome.COMPATIBLE


def test_another_change_of_the_same_rule_and_subject_is_not_waived() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    waivers = [given_for(each, report, change) for each in report.findings]
    other, elsewhere = of_change(V1, V1.replace("'1' MINUTE", "'3' MINUTE"))
    judged = apply_waivers([other], waivers, elsewhere, TODAY, ("orders", "orders"))
    assert judged.reports == (other,)
    assert judged.notes == (
        "the waiver of window-changed (totals > 1) by ann does not apply: it is for a different "
        "change, or for a different verdict on this change; remove it with: flinkcompat accept orders window-changed "
        "--subject 'totals > 1' "
        "--remove",
    )


def test_more_changes_beside_it_count() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    waivers = [given_for(each, report, change) for each in report.findings]
    more = INCOMPATIBLE.replace("'topic' = 'orders'", "'topic' = 'others'")
    other, both = of_change(V1, more)
    (after,) = apply_waivers([other], waivers, both, TODAY).reports
    assert [each.rule for each in after.waived] == ["window-changed"]
    assert after.gate_outcome is not Outcome.COMPATIBLE


def test_once_deployed_or_taken_back_it_has_ended() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    waivers = [given_for(each, report, change) for each in report.findings]
    for old, words in (
        (INCOMPATIBLE, "it is for a different deployed version"),
        (V1, "the change no longer has the waived finding"),
    ):
        done, after = of_change(old, old)
        (note,) = apply_waivers([done], waivers, after, TODAY).notes
        assert note.startswith("the waiver of window-changed (totals > 1) by ann has ended: ")
        assert words in note


def test_one_that_expired_counts_no_more_and_is_told() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    (after,) = all_waived(report, change, until=date(2026, 11, 25)).reports
    assert (after.gate_outcome, after.findings[0].is_waived) == (Outcome.INCOMPATIBLE, False)
    assert waiver_lines([after]) == (
        "The waiver of window-changed (totals > 1) by ann expired on 2026-11-25 and no longer applies "
        "(renew or remove the waiver with flinkcompat accept): counted by hand",
    )
    assert all_waived(report, change, until=TODAY).reports[0].gate_outcome is Outcome.COMPATIBLE, "its last day"


def test_a_silently_wrong_restore_needs_its_flag_and_is_told_in_the_first_lines() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    assert report.findings[0].consequence is Consequence.SILENTLY_WRONG
    (without,) = all_waived(report, change, even_silently_wrong=False).reports
    assert without.findings[0].waiver is not None
    assert (without.gate_outcome, without.findings[0].waiver.state) == (report.outcome, WaiverState.FLAG_MISSING)
    (with_it,) = all_waived(report, change).reports
    for each in (without, with_it):
        head = " ".join(line.strip() for line in render_text(each).splitlines()[:4])
        assert "IF IT WERE RESUMED, FLINK WOULD KEEP RUNNING WITH WRONG ROWS AND NO ERROR." in head


def test_the_vendor_tells_no_ending_so_that_incompatible_needs_the_flag() -> None:
    report = check(V1, INCOMPATIBLE, "vvr")
    assert report.findings[0].consequence is None
    assert may_restore_wrongly(report.findings[0])
    assert not may_restore_wrongly(check(V1, UNKNOWN, "vvr").findings[0])


def test_a_finding_without_clauses_is_waived_for_one_script() -> None:
    found = Finding("statement-not-read", "t", Outcome.UNKNOWN, "an expression is nested too deeply")
    one, other = ChangeIdentity("d", "p"), ChangeIdentity("d", "q")
    assert finding_digest(found, "flink", one) != finding_digest(found, "flink", other)
    told = replace(found, after="x")
    assert finding_digest(told, "flink", one) == finding_digest(told, "flink", other)
    assert finding_digest(told, "flink", one) != finding_digest(told, "vvr", one)


def test_lines_that_moved_and_an_upgraded_engine_leave_it_as_it_is() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    waivers = [given_for(each, report, change) for each in report.findings]
    moved, again = of_change(V1, f"-- first line\n\n{INCOMPATIBLE}")
    assert apply_waivers([moved], waivers, again, TODAY).reports[0].gate_outcome is Outcome.COMPATIBLE
    assert ChangeIdentity.of(side(V1, version="1.20"), None) == ChangeIdentity.of(Side(V1 + "\n"), None)


def test_each_engine_is_waived_by_itself() -> None:
    sides = side(V1), side(INCOMPATIBLE)
    every, change = check_engines(*sides).each, ChangeIdentity.of(*sides)
    waivers = [given_for(each, every[0], change) for each in every[0].findings]
    outcomes = [each.gate_outcome for each in apply_waivers(every, waivers, change, TODAY).reports]
    assert outcomes == [Outcome.COMPATIBLE, Outcome.INCOMPATIBLE]


def test_of_another_deployment_of_that_script_it_says_nothing() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    waivers = [given_for(each, report, change, deployment="orders") for each in report.findings]
    assert apply_waivers([report], waivers, change, TODAY, ("clicks", "clicks")) == WaivedReports((report,))
    assert apply_waivers([report], waivers, change, TODAY, ("orders", "orders")).reports[0].waived


def test_a_program_that_was_judged_in_several_ways_takes_none() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    judged = all_waived(replace(report, environments=2), change)
    assert judged.reports[0].gate_outcome is Outcome.INCOMPATIBLE
    assert "no waiver applies: the program was judged for several possible environments" in judged.notes[0]


def test_a_secret_in_a_reason_is_masked() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    (after,) = all_waived(report, change, reason="with 'password' = 'hunter2-plain'").reports
    assert "hunter2" not in str(after.to_dict()) + render_text(after) + render_markdown(after)


# ------------------------------------------------------------------------------------------------------------ the gate
@pytest.mark.parametrize(
    ("outcome", "policy", "branch"),
    [
        ("partial", Policy(), "resume"),
        ("partial", Policy(partial="reject"), "resume"),
        ("unknown", Policy(), "approve"),
        ("unknown", Policy(unknown="resume"), "resume"),
        ("unknown", Policy(unknown="reject"), "approve"),
        ("incompatible", Policy(), "approve"),
        ("incompatible", Policy(incompatible="restart"), "restart"),
        ("incompatible", Policy(incompatible="reject"), "approve"),
        ("incompatible", Policy(compatible="reject", incompatible="reject"), "reject"),
    ],
)
def test_the_branch_of_what_is_waived(outcome: str, policy: Policy, branch: str) -> None:
    report, change = of_change(V1, OF_OUTCOME[outcome], "vvr")
    assert report.outcome is Outcome(outcome)
    assert branch_of(all_waived(report, change).reports[0], policy, migrates=False) == branch


def test_what_is_compatible_has_nothing_to_waive() -> None:
    report, _ = of_change(V1, COMPATIBLE)
    assert not any(map(is_waivable, report.findings))


def test_control_characters_of_a_waiver_reach_no_terminal() -> None:
    report, change = of_change(V1, INCOMPATIBLE)
    judged = all_waived(report, change, reason="counted\x1b[2J by\nhand\x9b", by="ann\x07")
    (told,) = judged.reports
    for text in (render_text(told), render_markdown(told), *waiver_lines(judged.reports)):
        assert "Waived by ann\ufffd until 2026-12-31" in text
        assert not {"\x1b", "\x9b", "\x07"} & set(text)


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
