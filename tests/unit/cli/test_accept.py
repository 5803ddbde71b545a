"""``flinkcompat accept`` as it is run: what is written, what passes then, and when it is over."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from airflow_flinkcompat.fleet.formats import FORMATS
from tests.support.cli.command import (
    COMPATIBLE,
    ENVIRONMENT,
    INCOMPATIBLE,
    PARTIAL,
    QUERY,
    TABLES,
    V1,
    VALIDATOR,
    VALIDATOR_OF_FLEET,
    Result,
    Run,
    report_of,
)
from tests.support.fleet.repository import git
from tests.unit.cli.project import ORDERS, change, commit
from tests.unit.cli.test_fleet import deploy
from tests.unit.fleet.github_sarif import GITHUB_SARIF

FILE = Path("jobs/orders.sql.waivers.toml")
WHY, DAY = ("--reason", "counted by hand"), ("--until", "2999-12-31")
SAID = (*WHY, *DAY, "--by", "ann")
WINDOW = ("window-changed", *SAID, "--even-silently-wrong")
MENTIONING = ("--reason", "asked @team/flink and bob@example.org", *DAY, "--by", "@ann", "--even-silently-wrong")
AGAINST = ("--against", "git:HEAD")


@pytest.fixture
def project(project: Path) -> Path:
    """Of ``orders`` the window is another one since."""
    change("orders", INCOMPATIBLE)
    return project


def accept(run: Run, *arguments: str) -> Result:
    result = run("accept", *arguments)
    assert result.code == 0, result.err
    return result


def every_format(run: Run) -> tuple[int, dict[str, str]]:
    """The exit code of a diff, and what it says in each format."""
    files = {style: Path(f"shown.{style}") for style in FORMATS}
    outputs = [word for style, path in files.items() for word in ("--output", f"{style}={path}")]
    code = run("diff", *AGAINST, *outputs).code
    return code, {style: path.read_text("utf-8") for style, path in files.items()}


def test_a_gate_that_fails_says_how_a_change_passes_that_is_meant(project: Path, run: Run) -> None:
    (note,) = json.loads(run("diff", *AGAINST, "--format", "json").out)["notes"]
    words, _, command = note.rpartition(": ")
    assert words == "to pass an intended change, waive its failing findings"
    program, verb, *said = shlex.split(command.replace("YYYY-MM-DD", DAY[1]))
    assert (program, verb) == ("flinkcompat", "accept")
    assert [*said[2:4]] == [*AGAINST]
    assert run(verb, *said).code == 2, "that it would be silently wrong is to be said on purpose"
    accept(run, *said, "--even-silently-wrong", "--by", "ann")
    result = run("diff", *AGAINST, "--format", "json")
    assert (result.code, json.loads(result.out)["notes"]) == (0, [])


def test_what_is_waived_passes_and_stands_in_the_report(project: Path, run: Run) -> None:
    assert run("diff", *AGAINST).code == 1
    said = accept(run, "orders", *WINDOW, *AGAINST)
    assert said.out.splitlines()[0] == (
        "jobs/orders.sql.waivers.toml: waived until 2999-12-31: window-changed (totals > 1), incompatible on flink"
    )
    assert FILE.is_file()
    result = run("diff", *AGAINST)
    assert result.code == 0
    assert "orders      incompatible (waived)  the window definition changed  asks a person" in result.out
    assert "INCOMPATIBLE: the savepoint must not be used\nWaived by ann until 2999-12-31: window-changed" in result.out
    assert "[incompatible, waived] window-changed: " in result.out
    assert "In Airflow the gate asks a person (branch approve)." in result.out
    assert result.out.endswith("\n2 deployments: 1 incompatible (waived), 1 unchanged\n")
    assert run("plan", "orders", *AGAINST).code == 0


def test_every_format_tells_it(project: Path, run: Run) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    code, shown = every_format(run)
    assert code == 0
    for style, text in shown.items():
        assert "ann" in text, style
        assert "2999-12-31" in text, style
        assert "counted by hand" in text, style
    data = json.loads(shown["json"])
    VALIDATOR_OF_FLEET.validate(data)
    (orders, _) = data["deployments"]
    assert (orders["outcome"], orders["gate_outcome"], orders["exit_code"]) == ("incompatible", "compatible", 0)
    assert orders["report"]["findings"][0]["waiver"]["state"] == "holds"
    (annotation,) = orders["annotations"]
    assert (annotation["severity"], annotation["waiver"]["by"]) == ("note", "ann")
    log = json.loads(shown["sarif"])
    Draft202012Validator(GITHUB_SARIF).validate(log)
    (finding,) = log["runs"][0]["results"]
    assert finding["level"] == "note"
    assert finding["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "counted by hand",
            "properties": {"by": "ann", "until": "2999-12-31", "evenSilentlyWrong": True},
        }
    ]
    assert shown["github"].startswith("::notice file=jobs/orders.sql,")
    assert json.loads(shown["gitlab"])[0]["severity"] == "info"
    suite = ElementTree.fromstring(shown["junit"].partition("\n")[2])
    assert (suite.get("failures"), suite.get("tests")) == ("0", "2")
    assert "Waived by ann" in (suite.findtext(".//testcase[@name='orders']/system-out") or "")


def test_nobody_is_notified_by_a_comment(project: Path, run: Run) -> None:
    """GitHub and GitLab see a name to notify behind each @ that begins a word, but not in code."""
    accept(run, "orders", WINDOW[0], *MENTIONING, *AGAINST)
    text = run("diff", "--format", "markdown", *AGAINST).out
    outside_of_code = re.sub(r"`[^`]*`", "", text)
    assert "@\N{WORD JOINER}team/flink" in outside_of_code
    assert "@\N{WORD JOINER}ann" in outside_of_code
    assert re.findall(r"(?<!\w)@\w+", outside_of_code) == []
    assert "bob@example.org" in outside_of_code, "an address is no mention"
    assert "@team/flink" in run("diff", *AGAINST).out


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_a_check_goes_by_it_too_also_of_a_revision(project: Path, run: Run, style: str) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    result = run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql", "--format", style)
    assert result.code == 0
    assert "counted by hand" in result.out
    if style == "json":
        assert report_of(result)["outcome"] == "incompatible"
    commit("waived")
    assert run("check", "HEAD~:jobs/orders.sql", "HEAD:jobs/orders.sql", "--format", style).code == 0
    FILE.unlink()
    assert run("check", "HEAD~:jobs/orders.sql", "HEAD:jobs/orders.sql", "--format", style).code == 0
    assert run("check", "HEAD~:jobs/orders.sql", "jobs/orders.sql", "--format", style).code == 1


def test_it_is_removed_without_a_question_whatever_standard_input_is(project: Path, run: Run) -> None:
    """A pipe that nobody writes into and nobody closes, as CI's, would be waited for."""
    accept(run, "orders", *WINDOW, *AGAINST)
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", "accept", "orders", "window-changed", "--remove"]
    reading, writing = os.pipe()
    try:
        ended = subprocess.run(command, stdin=reading, capture_output=True, env=ENVIRONMENT, timeout=60, check=False)
    finally:
        os.close(reading)
        os.close(writing)
    assert (ended.returncode, FILE.exists()) == (0, False)
    assert ended.stdout.decode().startswith(f"{FILE}: removed: window-changed")


def test_a_pipe_in_place_of_the_waivers_is_not_waited_for(project: Path, run: Run) -> None:
    os.mkfifo(FILE)
    result = run("accept", "orders", "window-changed", "--remove")
    assert (result.code, f"{FILE}: cannot be read: it is not a regular file" in result.err) == (2, True)


def test_two_scripts_of_no_project(run: Run) -> None:
    Path("old.sql").write_text(V1, encoding="utf-8")
    Path("new.sql").write_text(INCOMPATIBLE, encoding="utf-8")
    assert run("check", "old.sql", "new.sql").code == 1
    said = accept(run, "old.sql", "new.sql", *WINDOW).out
    assert said.count("new.sql.waivers.toml: waived") == 2, "of each engine"
    result = run("check", "old.sql", "new.sql")
    assert result.code == 0
    assert "Waived by ann" in result.out.partition("old.sql -> new.sql")[0]
    assert run("check", "old.sql", "new.sql", "--engine", "flink").code == 0
    assert run("accept", "old.sql", "new.sql", "window-changed", "--remove").code == 0
    assert not Path("new.sql.waivers.toml").exists()
    assert run("check", "old.sql", "new.sql").code == 1


def test_another_change_or_a_further_one_is_not_waived(project: Path, run: Run) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    change("orders", V1.replace("'1' MINUTE", "'5' MINUTE"))
    result = run("diff", *AGAINST)
    assert result.code == 1
    assert (
        "note: orders: the waiver of window-changed (totals > 1) by ann does not apply: it is for a "
        "different change" in result.out
    )
    change("orders", INCOMPATIBLE.replace("'topic' = 'orders'", "'topic' = 'others'"))
    result = run("diff", *AGAINST)
    assert result.code == 1
    assert "[incompatible, waived] window-changed" in result.out
    change("orders", INCOMPATIBLE)
    change("clicks", INCOMPATIBLE)
    assert run("diff", *AGAINST).code == 1, "of another deployment nothing is waived"


def test_it_ends_when_the_change_is_deployed(project: Path, run: Run, tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    for name in ("orders", "clicks"):
        deploy(root, name)
    against = ("--against", f"ledger:{root}")
    accept(run, "orders", *WINDOW, *AGAINST)
    assert run("diff", *against).code == 0, "a ledger and a revision that hold the same script are the same"
    deploy(root, "orders", INCOMPATIBLE)
    result = run("diff", *against)
    assert result.code == 0
    assert (
        "note: orders: the waiver of window-changed (totals > 1) by ann has ended: it is for a different deployed "
        "version; remove it with: flinkcompat accept orders window-changed --subject "
        "'totals > 1' --remove\n"
    ) in result.out
    change("orders", V1)
    assert run("diff", *against).code == 1, "the way back is another change"
    removed = run("accept", "orders", "window-changed", "--subject", "totals > 1", "--remove")
    assert removed.out == (
        "jobs/orders.sql.waivers.toml: removed: window-changed (totals > 1), by ann until 2999-12-31\n"
    )
    assert not FILE.exists()


def test_one_that_expired_is_told_and_counts_no_more(project: Path, run: Run) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    FILE.write_text(FILE.read_text("utf-8").replace("2999-12-31", "2026-01-31"), encoding="utf-8")
    code, shown = every_format(run)
    assert code == 1
    assert [style for style, text in shown.items() if "2026-01-31" not in text] == []
    assert " ".join(shown["text"].split()).count("by ann expired on 2026-01-31 and no longer applies") == 1
    (finding,) = json.loads(shown["sarif"])["runs"][0]["results"]
    assert (finding["level"], finding["suppressions"][0]["status"]) == ("error", "rejected")
    accept(run, "orders", *WINDOW, *AGAINST)
    assert FILE.read_text("utf-8").count("[[waiver]]") == 1, "it is renewed"
    assert run("diff", *AGAINST).code == 0


def test_without_its_flag_a_silently_wrong_restore_is_not_waived_by_hand(project: Path, run: Run) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    FILE.write_text(FILE.read_text("utf-8").replace("even_silently_wrong = true\n", ""), encoding="utf-8")
    result = run("diff", *AGAINST)
    assert result.code == 1
    assert "does not apply: it lacks even_silently_wrong = true. IF IT" in " ".join(result.out.split())


UNDECLARED = TABLES.partition(";\n")[2] + QUERY
"""Its source is declared nowhere, which lint tells and a comparison too."""
OF_SOURCE = ("undeclared-table", *SAID)


def linted(run: Run, *arguments: str) -> dict[str, Any]:
    """What lint says, in JSON, of ``new.sql``; each format tells as much of its waivers."""
    result = run("lint", "new.sql", "--engine", "flink", "--format", "json", *arguments)
    (script,) = json.loads(result.out)["deployments"]
    assert script["exit_code"] == result.code
    return {**script, "notes": json.loads(result.out)["notes"]}


class TestLint:
    @pytest.fixture(autouse=True)
    def scripts(self, run: Run) -> None:
        Path("old.sql").write_text(UNDECLARED.replace("SUM(amount)", "MAX(amount)"), encoding="utf-8")
        Path("new.sql").write_text(UNDECLARED, encoding="utf-8")

    def test_what_a_script_shows_by_itself_is_waived_by_itself(self, run: Run) -> None:
        assert linted(run)["exit_code"] == 1
        assert run("check", "/dev/null", "new.sql").code == 1
        said = accept(run, "/dev/null", "new.sql", *OF_SOURCE)
        assert said.out.splitlines()[-1].endswith("The waiver ends once the script changes.")
        found = linted(run)
        assert (found["result"], found["gate_outcome"], found["exit_code"]) == ("unknown", "compatible", 0)
        (annotation,) = found["annotations"]
        assert (annotation["severity"], annotation["waiver"]["by"]) == ("note", "ann")
        shown = run("lint", "new.sql")
        assert shown.code == 0, "of each engine"
        assert "new.sql:2:1: note: undeclared-table: " in shown.out
        assert "(waived by ann until 2999-12-31: counted by hand)" in shown.out
        assert run("check", "/dev/null", "new.sql").code == 0
        changed = run("check", "old.sql", "new.sql", "--engine", "flink")
        assert changed.code == 1, "a change is not waived with it"
        assert "has ended" not in changed.out

    def test_a_waiver_of_the_change_holds_for_the_script_as_well(self, run: Run) -> None:
        accept(run, "old.sql", "new.sql", *OF_SOURCE, "--engine", "flink")
        assert linted(run)["exit_code"] == 0
        Path("new.sql").write_text(UNDECLARED + "-- more\n", encoding="utf-8")
        found = linted(run)
        assert (found["exit_code"], found["notes"]) == (1, []), "whether it is over for the change, lint cannot tell"

    def test_it_ends_with_the_script_and_with_its_day(self, run: Run) -> None:
        accept(run, "/dev/null", "new.sql", *OF_SOURCE, "--engine", "flink")
        place = Path("new.sql.waivers.toml")
        place.write_text(place.read_text("utf-8").replace("2999-12-31", "2026-01-31"), encoding="utf-8")
        found = linted(run)
        assert (found["exit_code"], found["annotations"][0]["waiver"]["state"]) == (1, "expired")
        Path("new.sql").write_text(UNDECLARED + "-- more\n", encoding="utf-8")
        (note,) = linted(run)["notes"]
        assert "by ann does not apply: it is for a different script" in note
        Path("new.sql").write_text(V1, encoding="utf-8")
        (note,) = linted(run)["notes"]
        assert "has ended: the script no longer has the waived finding; remove it with" in note
        remedy = note.partition("flinkcompat accept ")[2]
        assert run("accept", *shlex.split(remedy)).code == 0
        assert not place.exists()

    def test_waivers_that_cannot_be_read_are_bad_input(self, run: Run) -> None:
        Path("new.sql.waivers.toml").write_text("[[waiver]]\n", encoding="utf-8")
        found = linted(run)
        assert (found["exit_code"], found["status"]) == (2, "not readable")
        assert "new.sql.waivers.toml:1:3: waiver 1: rule: is missing" in found["faults"][0]["message"]


def test_what_a_new_deployment_shows_is_waived(project: Path, run: Run) -> None:
    change("fresh", UNDECLARED)
    with Path("flinkcompat.toml").open("a", encoding="utf-8") as file:
        file.write('\n[deployments.fresh]\nscript = "jobs/fresh.sql"\n')
    assert run("plan", "fresh", *AGAINST).code == 1
    accept(run, "fresh", *OF_SOURCE, *AGAINST)
    result = run("plan", "fresh", *AGAINST)
    assert result.code == 0
    assert "fresh       added (waived)" in result.out
    assert run("lint", "jobs/fresh.sql").code == 0


def test_a_partial_change_resumes_then(project: Path, run: Run) -> None:
    Path("flinkcompat.toml").write_text('engine = "vvr"\nfail_on = "partial"\n' + ORDERS, encoding="utf-8")
    commit("the vendor's engine")
    change("orders", V1)
    commit("as it is deployed")
    change("orders", PARTIAL)
    assert "asks a person" in run("diff", *AGAINST).out
    report = json.loads(run("diff", *AGAINST, "--format", "json").out)["deployments"][0]["report"]
    rules = {each["rule"] for each in report["findings"] if each["outcome"] == "partial"}
    for rule in rules:
        accept(run, "orders", rule, *SAID, *AGAINST)
    result = run("diff", *AGAINST)
    assert result.code == 0
    assert "In Airflow the gate resumes it from a savepoint (branch resume)." in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("orders", "windows-changed", *SAID), "rule 'windows-changed' is unknown; did you mean window-changed?"),
        (("orders", "zzz", *SAID), "rule 'zzz' is not known; flinkcompat rules lists them"),
        (("orders", "deployment-removed", *SAID), "deployment-removed cannot be waived: stop the job, then write "
            "under"),
        (("orders", "sink-changed", *SAID), "no finding sink-changed in the change; there are window-changed (totals"),
        (("orders", "window-changed", "--subject", "x", *SAID), "no finding window-changed about 'x' in the change"),
        (("clicks", "window-changed", *SAID), "clicks: there is no finding window-changed in the change; no finding"),
        (("order", "window-changed", *SAID), "deployment 'order' is unknown; did you mean orders?"),
        (
            ("orders", "window-changed", *SAID),
            "window-changed (totals > 1): the restored job may run with wrong rows and no error; to waive the "
            "finding nevertheless, add --even-silently-wrong",
        ),
        (("orders", "window-changed", *DAY), "--reason is missing: explain to reviewers why"),
        (("orders", "window-changed", "--reason", " ", *DAY), "--reason is missing"),
        (("orders", "window-changed", *WHY), "--until is missing: name the last day"),
        (("orders", "window-changed", *WHY, "--until", "soon"), "--until 'soon' is not a date: write a date such as "
            "2026-12-31"),
        (("orders", "window-changed", *WHY, "--until", "2026-01-01"), "--until 2026-01-01 is in the past: name today"),
        (("orders", "window-changed", "--remove"), f"{FILE}: contains no waiver of window-changed: there is nothing"),
        (("orders", "window-changed", "--reason", "password=hunter2-plain", *DAY), "--reason seems to contain"),
        (("window-changed", *SAID), "name one deployment or two scripts, then the rule"),
        (("orders", "window-changed", *SAID, "--set", "a=b"), "--set and --catalog need two scripts"),
        (("a.sql", "b.sql", "window-changed", *SAID), "b.sql: there is no such file, but the waiver"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_mistake(project: Path, run: Run, arguments: tuple[str, ...], words: str) -> None:
    of_scripts = "a.sql" in arguments or "--remove" in arguments
    result = run("accept", *arguments, *(() if of_scripts else AGAINST))
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert "hunter2" not in result.err
    assert not FILE.exists()


def test_of_several_subjects_one_is_named(project: Path, run: Run) -> None:
    two = (
        V1
        + "CREATE TABLE more (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
        + QUERY.replace("totals", "more")
    )
    change("orders", two)
    commit("two sinks")
    change("orders", two.replace("'1' MINUTE", "'2' MINUTE"))
    result = run("accept", "orders", *WINDOW, *AGAINST)
    assert result.code == 2
    assert "window-changed was found for 2 subjects: choose one with --subject: 'totals > 1', 'more > 1'" in result.err
    accept(run, "orders", *WINDOW, "--subject", "more > 1", *AGAINST)
    assert run("diff", *AGAINST).code == 1
    accept(run, "orders", *WINDOW, "--subject", "totals > 1", *AGAINST)
    assert run("diff", *AGAINST).code == 0


def test_a_file_that_cannot_be_used_is_bad_input(project: Path, run: Run) -> None:
    accept(run, "orders", *WINDOW, *AGAINST)
    FILE.write_text(FILE.read_text("utf-8").replace("until = 2999-12-31", 'until = "ever"'), encoding="utf-8")
    for command in (("diff", *AGAINST), ("check", "HEAD:jobs/orders.sql", "jobs/orders.sql")):
        result = run(*command)
        assert result.code == 2
        said = result.out + result.err
        assert re.search(r"waivers\.toml:[0-9]+:1: (error: input-not-readable: )?waiver 1: until: a day", said)


def test_of_a_script_whose_name_holds_a_line_break(run: Run) -> None:
    new = "new\nline.sql"
    Path("old.sql").write_text(V1, encoding="utf-8")
    Path(new).write_text(INCOMPATIBLE, encoding="utf-8")
    said = (*SAID, "--even-silently-wrong", "--by", "ann", "--engine", "flink")
    assert run("accept", "old.sql", new, "window-changed", *said).code == 0
    assert run("check", "old.sql", new, "--engine", "flink").code == 0


def test_who_waives_is_asked_of_git(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    git(project, "config", "user.name", "Ann Example")
    git(project, "config", "user.email", "ann@example.org")
    accept(run, "orders", *WINDOW[:-3], "--even-silently-wrong", *AGAINST)
    assert 'by = "Ann Example <ann@example.org>"' in FILE.read_text("utf-8")


def test_what_is_compatible_beside_it_stays_out(project: Path, run: Run) -> None:
    change("orders", COMPATIBLE)
    report = json.loads(run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql", "--format", "json").out)
    VALIDATOR.validate(report)
    result = run("accept", "orders", report["findings"][0]["rule"], *SAID, *AGAINST)
    assert result.code == 2
    assert "no finding of the change needs a waiver" in result.err


def test_a_ledger_out_of_reach_ends_as_it_does_for_a_diff(project: Path, run: Run) -> None:
    change("orders", PARTIAL)
    given = ("--reason", "meant", "--until", "2999-01-01", "--by", "ann", "--against", "ledger:nowhere")
    result = run("accept", "orders", "aggregate-added", *given)
    assert (result.code, run("diff", "--against", "ledger:nowhere").code) == (3, 3)
    assert "no deployment in nowhere: check that this folder" in result.err
