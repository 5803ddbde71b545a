"""What each format shows of one change to thirty jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat.rules import ALL
from airflow_flinkcompat.fleet.formats import FORMATS
from airflow_flinkcompat.fleet.values import FleetDiff, InputFault, Status
from airflow_flinkcompat.model import Outcome, Span
from tests.support.cli.command import SCHEMA_OF_FLEET, VALIDATOR_OF_FLEET
from tests.unit.fleet.github_sarif import GITHUB_SARIF

HOSTILE = "a\x07b <script>&|`%0A::error::\n::warning::x]]> 'topic' = 'x',y:z"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def hostile(fleet: FleetDiff) -> FleetDiff:
    """One deployment whose name and fault hold what means something to a format."""
    broken = next(each for each in fleet.deployments if each.name == "broken")
    odd = replace(broken, name=HOSTILE, script="jobs/a b,c:%é.sql", faults=(InputFault(HOSTILE, 3, 7),))
    return replace(fleet, deployments=(odd,))


@pytest.mark.parametrize("style", ["text", "markdown", "github", "gitlab", "junit"])
def test_what_a_reader_sees(fleet: FleetDiff, snapshot: SnapshotAssertion, style: str) -> None:
    shown = FORMATS[style](fleet)
    assert shown == snapshot
    assert shown.endswith("\n")
    assert "hunter2" not in shown


@pytest.mark.parametrize("style", list(FORMATS))
def test_no_format_shows_a_secret(fleet: FleetDiff, style: str) -> None:
    secret = replace(fleet, notes=("the password = 'hunter2-plain' of it",))
    assert "hunter2" not in FORMATS[style](secret)


def test_json_follows_its_schema(fleet: FleetDiff) -> None:
    Draft202012Validator.check_schema(SCHEMA_OF_FLEET)
    data = json.loads(FORMATS["json"](fleet))
    VALIDATOR_OF_FLEET.validate(data)
    assert (data["exit_code"], len(data["deployments"])) == (2, 31)
    by_name = {each["name"]: each for each in data["deployments"]}
    assert {name: each["result"] for name, each in by_name.items() if each["status"] != "unchanged"} == {
        "orders": "incompatible",
        "payments": "compatible",
        "refunds": "partial",
        "sessions": "unknown",
        "broken": "not readable",
        "secretive": "not deployable",
        "two_jobs": "compatible",
        "fresh": "added",
        "retired": "deleted",
    }
    assert (by_name["orders"]["report"]["engine"], by_name["refunds"]["report"]["engine"]) == ("flink", "vvr")
    assert by_name["orders"]["branches"] == ["approve"]
    assert by_name["broken"]["faults"][0]["line"] == 8
    assert by_name["secretive"]["annotations"][0]["rule"] == "input-not-readable"


def sarif_of(fleet: FleetDiff) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(FORMATS["sarif"](fleet))
    Draft202012Validator(GITHUB_SARIF).validate(log)
    return log["runs"][0]


def test_sarif_is_what_github_takes(fleet: FleetDiff) -> None:
    run = sarif_of(fleet)
    rules = run["tool"]["driver"]["rules"]
    placed = {}
    for result in run["results"]:
        location = result["locations"][0]["physicalLocation"]
        place = (location["artifactLocation"]["uri"], location["region"]["startLine"])
        placed[result["message"]["text"].partition(":")[0]] = (result["ruleId"], result["level"], *place)
    assert placed["orders"] == ("window-changed", "error", "jobs/orders.sql", 7)
    assert placed["refunds"] == ("aggregate-added", "warning", "jobs/refunds.sql", 6)
    assert placed["retired"] == ("deployment-removed", "error", "flinkcompat.toml", 1)
    assert placed["secretive"][0:3] == ("input-not-readable", "error", "jobs/secretive.sql")
    assert "clicks" not in placed
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    window = next(each for each in rules if each["id"] == "window-changed")
    assert window["help"]["markdown"].startswith("# Window type, size, offset or time attribute changed")
    assert "Flink stores state for each window" in window["help"]["text"]


def test_formats_name_the_ground_and_a_disagreement(fleet: FleetDiff) -> None:
    (orders,) = [each for each in fleet.deployments if each.name == "orders"]
    planned = replace(orders.reports[0], ground="planned by Flink 2.3.0", read_outcome=Outcome.COMPATIBLE)
    fleet = replace(fleet, deployments=(replace(orders, reports=(planned,)),))
    (result,) = sarif_of(fleet)["results"]
    assert result["properties"] == {"ground": "planned by Flink 2.3.0", "disagrees": "compatible"}
    said = "Planned by Flink 2.3.0; by the rules alone, the change would be compatible"
    for style in ("text", "markdown", "junit"):
        assert said in " ".join(FORMATS[style](fleet).split()), style
    data = json.loads(FORMATS["json"](fleet))
    VALIDATOR_OF_FLEET.validate(data)
    assert data["deployments"][0]["ground"] == "planned by Flink 2.3.0"
    assert data["deployments"][0]["report"]["disagrees"] == "compatible"


def test_the_columns_of_sarif_and_github_end_behind_the_clause(fleet: FleetDiff) -> None:
    (orders,) = [each for each in sarif_of(fleet)["results"] if each["message"]["text"].startswith("orders:")]
    region = orders["locations"][0]["physicalLocation"]["region"]
    assert region["endLine"] == 7
    line = "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '2' MINUTE))"
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1].startswith("TABLE(TUMBLE")
    (command,) = [each for each in FORMATS["github"](fleet).splitlines() if "title=orders" in each]
    assert f"col={region['startColumn']},endColumn={region['endColumn']}," in command


def test_a_finding_keeps_its_fingerprint_when_lines_move(fleet: FleetDiff) -> None:
    """It is known by deployment, rule and clause: neither a line above it nor its layout makes another one of it."""

    def fingerprints(value: FleetDiff) -> list[str]:
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in sarif_of(value)["results"]]

    def moved(value: FleetDiff) -> Iterator[Any]:
        for review in value.deployments:
            reports = tuple(
                replace(
                    report,
                    findings=tuple(
                        replace(
                            each,
                            after=each.after.replace(" ", "  ").upper(),
                            after_span=each.after_span and Span(each.after_span.source, 20, 2, 21, 3),
                        )
                        for each in report.findings
                    ),
                )
                for report in review.reports
            )
            yield replace(review, reports=reports)

    before = fingerprints(fleet)
    assert len(set(before)) == len(before)
    assert fingerprints(replace(fleet, deployments=tuple(moved(fleet)))) == before


def test_every_rule_has_its_page_in_sarif(fleet: FleetDiff) -> None:
    orders = next(each for each in fleet.deployments if each.name == "orders")
    (report,) = orders.reports
    findings = tuple(replace(report.findings[0], rule=rule.code, title=rule.title) for rule in ALL)
    every = replace(fleet, deployments=(replace(orders, reports=(replace(report, findings=findings),)),))
    rules = sarif_of(every)["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == sorted(rule.code for rule in ALL)
    assert all(each["help"]["markdown"].startswith("# ") for each in rules)


def test_nothing_to_look_at_is_no_result(fleet: FleetDiff) -> None:
    unchanged = tuple(each for each in fleet.deployments if each.status is Status.UNCHANGED)
    quiet = replace(fleet, deployments=unchanged, notes=())
    assert sarif_of(quiet)["results"] == []
    assert json.loads(FORMATS["gitlab"](quiet)) == []
    assert FORMATS["github"](quiet) == "flinkcompat: 22 deployments: 22 unchanged\n"
    assert 'failures="0" errors="0"' in FORMATS["junit"](quiet)


def test_junit_counts_and_escapes(fleet: FleetDiff, hostile: FleetDiff) -> None:
    suite = ElementTree.fromstring(FORMATS["junit"](fleet)).find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "31",
        "failures": "3",
        "errors": "2",
    }
    assert {case.get("name") for case in suite if case.find("failure") is not None} == {"orders", "sessions", "retired"}
    (case,) = ElementTree.fromstring(FORMATS["junit"](hostile)).iter("testcase")
    assert case.get("name") == HOSTILE.replace("\x07", "\ufffd")


def test_a_hostile_text_gives_github_no_command_of_its_own(hostile: FleetDiff) -> None:
    lines = FORMATS["github"](replace(hostile, notes=())).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=jobs/a b%2Cc%3A%25é.sql,line=3,endLine=3,col=7,title=")
    assert lines[0].count("\n") == 0
    assert "%250A%3A%3Aerror" in lines[0]


def test_notes_are_notices_of_github_behind_the_findings(fleet: FleetDiff) -> None:
    lines = FORMATS["github"](replace(fleet, notes=("new scripts: a,b\n::error::no", "100 %"))).splitlines()
    assert lines[-3:-1] == [
        "::notice title=flinkcompat diff::new scripts: a,b ::error::no",
        "::notice title=flinkcompat diff::100 %25",
    ]
    assert all(" file=" in line for line in lines[:-3])


def test_a_hostile_text_is_text_in_markdown(hostile: FleetDiff) -> None:
    shown = FORMATS["markdown"](hostile)
    assert "<script>" not in shown.replace("\\<script>", "").replace("`", "\n`").split("<details>")[0].split("\n`")[0]
    assert "<summary>a\x07b &lt;script>&amp;" in shown


def test_a_comment_is_known_again_and_never_too_long(fleet: FleetDiff) -> None:
    shown = FORMATS["markdown"](fleet)
    assert shown.startswith("<!-- flinkcompat diff flinkcompat.toml -->\n")
    orders = next(each for each in fleet.deployments if each.name == "orders")
    many = replace(fleet, deployments=tuple(replace(orders, name=f"orders_{number}") for number in range(60)))
    comment = FORMATS["markdown"](many)
    assert len(comment) < 65_536
    assert "Too long for a comment, see the log: " in comment
    assert "`orders_59`" in comment.rpartition("Too long")[2]


def test_a_table_is_never_too_long_and_begins_with_what_fails(fleet: FleetDiff) -> None:
    orders = next(each for each in fleet.deployments if each.name == "orders")
    passing = next(each for each in fleet.deployments if each.name == "payments")
    names = [f"a_deployment_with_a_long_name_{number:04}" for number in range(900)]
    many = tuple(replace(passing if number % 2 else orders, name=name) for number, name in enumerate(names))
    notes = tuple(f"a note on {name}" for name in names)
    comment = FORMATS["markdown"](replace(fleet, deployments=many, notes=notes))
    assert len(comment) < 65_536
    rows = [line for line in comment.splitlines() if line.startswith("| `a_deployment")]
    assert 100 < len(rows) < 900
    assert all("**incompatible**" in row for row in rows[:100])
    left = [int(line.split()[-2]) for line in comment.splitlines() if line.endswith(" more.") and "log: " in line]
    assert left[0] == 900 - len(rows)
    assert "900 deployments" in comment


def test_projects_of_one_repository_are_told_apart(fleet: FleetDiff) -> None:
    runs = [json.loads(FORMATS["sarif"](replace(fleet, project=name)))["runs"][0] for name in ("a/x.toml", "b/x.toml")]
    assert [each["automationDetails"]["id"] for each in runs] == [f"flinkcompat/diff/{name}/x.toml/" for name in "ab"]
    found = [{row["partialFingerprints"]["flinkcompat/v1"] for row in each["results"]} for each in runs]
    assert found[0]
    assert found[0].isdisjoint(found[1])


def test_many_that_did_not_change_take_one_line(fleet: FleetDiff) -> None:
    clicks = next(each for each in fleet.deployments if each.name == "clicks")
    many = replace(fleet, deployments=tuple(replace(clicks, name=f"job_{number}") for number in range(1000)))
    for style in ("text", "markdown"):
        shown = FORMATS[style](many)
        assert "and 960 more" in shown
        assert len(shown.splitlines()) < 20
