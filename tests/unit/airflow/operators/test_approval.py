"""The human decision: what is asked, what is recorded, where it leads."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators import hitl
from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator, FlinkSqlApprovalOperator
from airflow_flinkcompat.airflow.operators.approval import NOBODY, REJECT, RESTART, RESTART_WITH_BACKFILL, RESUME
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, JobVersion
from airflow_flinkcompat.model import Outcome
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import AwaitingAnswer
from tests.support.airflow.plugin.ledgers import shadow_report, shadowed
from tests.unit.airflow.operators.conftest import Site

BRANCHES = {"resume": "a", "restart": "b"}
ASKING = {"check": {"policy": {"incompatible": "approve"}}}


def event(option: str, user: Any = None, **form: Any) -> dict[str, Any]:
    """What Airflow hands over once somebody answered."""
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return {"chosen_options": [option], "params_input": form, "responded_at": at, "responded_by_user": user}


@pytest.fixture
def asked(deployed: Site) -> tuple[Site, Run, dict[str, Any]]:
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    return deployed, run, tasks


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is written for the page."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **arguments: seen.append(arguments))
    return seen


def test_it_shows_the_report_and_waits(asked: Any, questions: list[dict[str, Any]]) -> None:
    site, run, tasks = asked
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    (question,) = questions
    assert question["options"] == [RESUME, RESTART, REJECT]
    assert question["defaults"] is None
    assert "orders" in question["subject"]
    assert question["body"] == site.ledger.read_report(run.pushed["check", "report"])[1]


@pytest.mark.parametrize(
    ("option", "skipped", "kind"),
    [(RESUME, ["restart"], "approved"), (RESTART, ["resume"], "approved"), (REJECT, ["restart", "resume"], "rejected")],
)
def test_the_answer_is_recorded_and_followed(asked: Any, option: str, skipped: list[str], kind: str) -> None:
    site, run, tasks = asked
    assert sorted(run.complete(tasks["approve"], event(option, {"id": "7", "name": "ada"}))) == sorted(skipped)
    entry = site.ledger.entries()[-1]
    sha256 = run.pushed["check", "summary"]["new_sha256"]
    assert (entry.kind, entry.version.sha256, entry.at) == (kind, sha256, "2026-01-02T03:04:05+00:00")
    assert f"ada chose '{option}'" in entry.message
    assert entry.review.approved_by == ("ada" if kind == "approved" else None)
    decision = run.pushed["approve", "decision"]
    assert (decision["by"], decision["new_sha256"], decision["ledger_entry"]) == ("ada", sha256, entry.number)


def test_a_rejection_can_lead_somewhere(asked: Any) -> None:
    _site, run, tasks = asked
    tasks["approve"].branches["reject"] = ["restart"]
    assert run.complete(tasks["approve"], event(REJECT)) == ["resume"]


def test_the_time_out_rejects_in_nobodys_name(asked: Any) -> None:
    site, run, tasks = asked
    run.complete(tasks["approve"], event(REJECT))
    assert NOBODY in site.ledger.entries()[-1].message


def test_a_time_out_without_default_fails(asked: Any) -> None:
    site, run, tasks = asked
    before = site.kinds()
    with pytest.raises(HITLTimeoutError):
        run.complete(tasks["approve"], {"error": "no answer", "error_type": "timeout"})
    assert site.kinds() == before


def test_a_long_report_is_cut_and_pointed_to(asked: Any, questions: list[dict[str, Any]]) -> None:
    site, run, tasks = asked
    markdown = "# Report\n```sql\n" + "SELECT 1;\n" * 5000 + "```\n"
    pointer = site.ledger.store_report({"schema": "x"}, markdown)
    summary = run.pushed["check", "summary"]
    run.pushed["check", "summary"] = {**summary, "report": pointer}
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    body = questions[0]["body"]
    assert len(body) < 21_000
    assert pointer in body
    assert body.count("```") == 2


def test_ones_own_words_come_first(asked: Any, questions: list[dict[str, Any]]) -> None:
    _site, run, tasks = asked
    tasks["approve"].body = "Ask *ada* about {{ run_id }}."
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    assert questions[0]["body"].startswith("Ask *ada* about run-1.\n\n#")


def test_a_shadow_run_of_the_version_comes_before_the_report(
    asked: Any, questions: list[dict[str, Any]], snapshot: SnapshotAssertion
) -> None:
    site, run, tasks = asked
    checked = next(each for each in reversed(site.ledger.entries()) if isinstance(each, CheckedEntry))
    report = site.ledger.read_report(checked.review.report_path or "")[1]
    for version in (checked.version, JobVersion("flink", "2.3.0", "0" * 64)):
        site.ledger.append(shadowed(version, checked.review, shadow_report("'password' = 'hunter2hunter2'")))
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    above, found, below = questions[0]["body"].partition(report)
    assert (bool(found), below) == (True, "")
    assert above == snapshot


def test_a_shadow_run_of_an_earlier_check_is_not_shown(asked: Any, questions: list[dict[str, Any]]) -> None:
    site, run, tasks = asked
    checked = next(each for each in reversed(site.ledger.entries()) if isinstance(each, CheckedEntry))
    site.ledger.append(shadowed(checked.version, checked.review, shadow_report()))
    run.pushed["check", "summary"] = {
        **run.pushed["check", "summary"],
        "checked_entry": site.ledger.entries()[-1].number,
    }
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    assert questions[0]["body"] == site.ledger.read_report(run.pushed["check", "report"])[1]


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (
            {"author": "Ada <ada@example.org>", "commit": "c0ffee"},
            "This change: made by `Ada <ada@example.org>`, commit `c0ffee`.",
        ),
        ({"commit": "c0ffee"}, "This change: commit `c0ffee`."),
    ],
)
def test_whose_change_it_is_comes_before_the_report(
    asked: Any, questions: list[dict[str, Any]], origin: dict[str, str], line: str
) -> None:
    _site, run, tasks = asked
    run.pushed["check", "summary"] = {**run.pushed["check", "summary"], "origin": origin}
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    assert questions[0]["body"].startswith(f"{line}\n\n#")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retries": 0}, "retries must be at least 1"),
        ({"defaults": RESUME}, "a missing answer never means resume"),
        ({"defaults": [RESTART]}, "a missing answer never means resume"),
        ({"options": ["yes"]}, "options cannot be chosen"),
        ({"branches": {"resume": "a"}}, "'restart' missing"),
        ({"branches": {**BRANCHES, "approve": "x"}}, "unknown 'approve'"),
    ],
)
def test_wrong_arguments_are_named_when_the_dag_is_parsed(arguments: Any, message: str) -> None:
    with DAG("d"), pytest.raises(ValueError, match=message):
        FlinkSqlApprovalOperator(task_id="approve", deployment="orders", **{"branches": BRANCHES, **arguments})


@pytest.mark.parametrize(("retries", "kept"), [(0, 1), (1, 1), (4, 4)])
def test_retries_of_default_args_are_raised_to_one_and_not_refused(retries: int, kept: int) -> None:
    raised = pytest.warns(UserWarning, match="retries = 0 of default_args is raised to 1 for task 'approve'")
    with DAG("d", default_args={"retries": retries}), raised if retries < 1 else nullcontext():
        task = FlinkSqlApprovalOperator(task_id="approve", deployment="orders", branches=BRANCHES)
    assert task.retries == kept


def test_what_is_given_to_the_task_itself_is_not_raised() -> None:
    with DAG("d", default_args={"retries": 0}), pytest.raises(ValueError, match="retries must be at least 1"):
        FlinkSqlApprovalOperator(task_id="approve", deployment="orders", branches=BRANCHES, retries=0)


def test_a_backfill_is_offered_only_where_there_is_one(asked: Any, questions: list[dict[str, Any]]) -> None:
    _site, run, tasks = asked
    backfill = FlinkBackfillOperator(
        task_id="backfill", deployment="orders", script="orders.sql", dag=tasks["approve"].dag
    )
    tasks["restart"] >> backfill
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    assert questions[0]["options"] == [RESUME, RESTART_WITH_BACKFILL, REJECT]
    assert run.complete(tasks["approve"], event(RESTART_WITH_BACKFILL)) == ["resume"]


def test_a_backfill_of_ones_own_kind_is_said_to_be_there(asked: Any, questions: list[dict[str, Any]]) -> None:
    _site, run, tasks = asked
    tasks["approve"].backfill = True
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    assert questions[0]["options"] == [RESUME, RESTART_WITH_BACKFILL, REJECT]


def test_its_defaults_ask_again_soon() -> None:
    with DAG("d"):
        task = FlinkSqlApprovalOperator(
            task_id="approve", deployment="orders", branches=BRANCHES, defaults=REJECT, response_timeout=timedelta(1)
        )
    assert (task.retries, task.retry_delay, task.defaults) == (2, timedelta(seconds=10), [REJECT])
    json.dumps(task.branches)


def test_the_page_is_for_who_decides(asked: Any, questions: list[dict[str, Any]]) -> None:
    site, run, tasks = asked
    head = site.ledger.head()
    assert head is not None
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    body = questions[0]["body"]
    assert f"entry {head.number} of the ledger of `orders`, job `{head.job_id}`" in body
    assert "<job id>" not in body
    assert "let a person decide" not in body
    assert "No backfill follows a restart" in body


def test_a_backfill_that_the_product_refuses_is_not_advised(deployed: Site, questions: list[dict[str, Any]]) -> None:
    refused = script().replace("SUM(price)", "SUM(price) / NO_SUCH_FUNCTION(COUNT(*))")
    run, tasks, _ = deployed.checked(refused, check={"policy": dict.fromkeys(Outcome, "approve")})
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    body = questions[0]["body"]
    assert "A backfill of orders.sql cannot recompute history" in body
    assert "flinkcompat backfill" not in body


def test_a_mapped_approval_is_refused_when_the_dag_is_parsed() -> None:
    branches = {"resume": "go_on", "restart": "start"}
    with DAG("d"), pytest.raises(TypeError, match=r"cannot be mapped: .*one gate for each deployment.*redeploy_dags"):
        FlinkSqlApprovalOperator.partial(task_id="approve", branches=branches).expand(deployment=["a", "b"])


@pytest.fixture
def partial(deployed_on_vvr: Site) -> tuple[Site, Run, dict[str, Any]]:
    """A change that engine ``vvr`` resumes with one new metric."""
    more = (
        script().replace("total DOUBLE)", "total DOUBLE, most DOUBLE)").replace("SUM(price)", "SUM(price), MAX(price)")
    )
    run, tasks, skipped = deployed_on_vvr.checked(more, check={"engine": "vvr"})
    assert "approve" not in skipped
    return deployed_on_vvr, run, tasks


def test_who_decides_a_partial_change_sees_first_what_starts_from_zero(
    partial: Any, questions: list[dict[str, Any]]
) -> None:
    _site, run, tasks = partial
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    (question,) = questions
    assert question["body"].startswith(
        "If you choose *Resume from savepoint*, these metrics start from zero:\n\n* `MAX(price)`\n\n## PARTIAL"
    )


@pytest.mark.parametrize(("option", "zero"), [(RESUME, ["MAX(price)"]), (RESTART, [])])
def test_the_decision_holds_what_starts_from_zero(partial: Any, option: str, zero: list[str]) -> None:
    site, run, tasks = partial
    run.complete(tasks["approve"], event(option, {"id": "7", "name": "ada"}))
    assert run.pushed["approve", "decision"]["from_zero"] == zero
    said = site.ledger.entries()[-1].message
    assert said == f"ada chose '{option}'" + ("; from zero start MAX(price)" if zero else "")


def test_the_form_asks_for_a_reason(asked: Any, questions: list[dict[str, Any]]) -> None:
    _site, run, tasks = asked
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    (field,) = questions[0]["params"].values()
    assert list(questions[0]["params"]) == ["reason"]
    assert field["value"] is None, "the time-out answers with it"
    assert (field["schema"]["type"], field["schema"]["format"]) == (["null", "string"], "multiline")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" the new metric may begin at zero\n", "the new metric may begin at zero"),
        ("see 'password' = 'hunter2hunter2'", "see 'password' = '***'"),
        ("x" * 3000, "x" * 1999 + "…"),
        ("  ", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("option", [RESTART, REJECT])
def test_the_reason_goes_with_the_decision(asked: Any, option: str, given: Any, kept: Any, logs: list[Any]) -> None:
    site, run, tasks = asked
    run.complete(tasks["approve"], event(option, {"id": "7", "name": "ada"}, reason=given))
    assert site.ledger.entries()[-1].review.reason == kept
    assert run.pushed["approve", "decision"]["reason"] == kept
    said = [record["event"] % record.get("positional_args", ()) for record in logs]
    assert any(words.startswith("ada decided: ") and words.endswith(f", because: {kept}") for words in said) == bool(
        kept
    )


def test_what_was_approved_runs_with_the_reason_of_who_did(asked: Any) -> None:
    site, run, tasks = asked
    run.complete(tasks["approve"], event(RESTART, {"id": "7", "name": "ada"}, reason="agreed with sales"))
    run.execute(tasks["restart"])
    head = site.ledger.head()
    assert head is not None
    assert (head.review.approved_by, head.review.reason) == ("ada", "agreed with sales")


def test_fields_of_ones_own_stand_beside_the_reason_and_those_of_the_dag_do_not() -> None:
    with DAG("d", params={"minutes": 5, "reason": "why this run"}):
        plain = FlinkSqlApprovalOperator(task_id="a", deployment="orders", branches=BRANCHES)
        own = FlinkSqlApprovalOperator(
            task_id="b", deployment="orders", branches=BRANCHES, params={"ticket": Param("", type="string")}
        )
    # Before Airflow 3.2 a form shows the DAG's, too, and begins with their values.
    of_dag = set() if hasattr(ParamsDict, "filter_params_by_source") else {"minutes"}
    assert plain.serialized_params.keys() - of_dag == {"reason"}
    assert plain.serialized_params["reason"]["value"] == ("why this run" if of_dag else None)
    assert own.serialized_params.keys() - of_dag == {"reason", "ticket"}
