"""What each format shows of an audit: bounded, masked, and nothing that a name could turn into markup."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.fleet.audit.document import row_document, writer
from airflow_flinkcompat.fleet.audit.judging import audit_pair, failed_row
from airflow_flinkcompat.fleet.audit.values import (
    MOST_KEPT,
    AuditPair,
    AuditResult,
    AuditRow,
    AuditSubject,
    AuditSummary,
    Cause,
    EngineOutcome,
)
from airflow_flinkcompat.model import JobSpec, Outcome
from tests.support.cli.command import BROKEN, INCOMPATIBLE, OF_OUTCOME, SECRETIVE, TABLES, V1

VALIDATOR = Draft202012Validator(
    json.loads(files("airflow_flinkcompat.fleet.audit").joinpath("audit.schema.json").read_text("utf-8"))
)
FORMATS = ("text", "markdown", "json", "html")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></table><iframe src=//e.example>",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "a\u202egnp.exe",
    "a\x00b\x1b[31mc",
    "`x` | y\n# z",
    "]]><!-- -->",
)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "small", "fieldset", "legend", "label",
    "input", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "span", "code",
    "ul", "li", "br",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "type", "id", "checked", "tabindex", "scope", "open",
}  # fmt: skip


def rows() -> list[AuditRow]:
    texts = {**OF_OUTCOME, "broken": BROKEN, "secretive": SECRETIVE, "again": INCOMPATIBLE}
    engines = {name: "vvr" if name == "unknown" else "flink" for name in texts}
    pairs = [
        AuditPair(name, *(JobSpec(sql, engine=engines[name], source=f"{name}.sql") for sql in (V1, text)))
        for name, text in texts.items()
    ]
    ddl = JobSpec(TABLES, engine="flink", source="ddl.sql")
    return [
        *map(audit_pair, pairs),
        audit_pair(AuditPair("ddl", ddl, ddl)),
        failed_row("gone", "cannot-be-read", "gone"),
        conditional(),
    ]


def conditional() -> AuditRow:
    cause = Cause("undeclared-sink", "compatible unless s has a PRIMARY KEY")
    engine = EngineOutcome("flink", "1.20", "2.3", Outcome.UNKNOWN, "planned by Flink 2.3.0")
    operators = (RestoredOperator("GroupAggregate", "right"),)
    return AuditRow("conditional", AuditResult.CONDITIONAL, (cause,), (engine,), operators=operators)


def shown(style: str, given: list[AuditRow], subject: AuditSubject | None = None) -> str:
    file = io.StringIO()
    summary = AuditSummary(subject or AuditSubject("the scripts of jobs", "open-source Flink 1.20 to 2.3", "unknown"))
    written = writer(style, file)
    for row in given:
        summary.add(row)
        written.add(row)
    written.end(summary)
    return file.getvalue()


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_what_a_reader_sees(snapshot: SnapshotAssertion, style: str) -> None:
    assert shown(style, rows()) == snapshot


def test_the_page_a_reader_sees(snapshot: SnapshotAssertion) -> None:
    page = re.sub(r"<style>.*?</style>", "<style></style>", shown("html", rows()), flags=re.DOTALL)
    assert re.sub(r"airflow-flinkcompat [0-9a-z.+]+<", "airflow-flinkcompat VERSION<", page) == snapshot


@pytest.mark.parametrize("style", FORMATS)
def test_no_format_shows_a_secret(style: str) -> None:
    secret = "password = 'hunter2-plain'"
    assert "hunter2" not in shown(style, [*rows(), failed_row(secret, "cannot-be-read", secret)])


def test_the_document_follows_its_schema() -> None:
    document = json.loads(shown("json", rows()))
    VALIDATOR.validate(document)
    assert [row["name"] for row in document["rows"]] == [row.name for row in rows()]
    assert document["jobs"] + document["results"]["no job"] == sum(document["results"].values()) == len(rows())
    for group in document["groups"]:
        of = [row for row in document["rows"] if row["result"] == group["result"]]
        assert group["jobs"] == sum(any(c["reason"] == group["reason"] for c in row["causes"]) for row in of)
    VALIDATOR.validate(json.loads(shown("json", [])))


def test_what_asks_for_attention_is_first() -> None:
    document = json.loads(shown("json", rows()))
    order = [result.value for result in AuditResult]
    places = [order.index(group["result"]) for group in document["groups"]]
    assert places == sorted(places)
    assert order[0] == "incompatible"


class Parsed(HTMLParser):
    """The tags, their attributes and all text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str) -> None:
    """Wherever a script, a table, a rule or a path may bring words of somebody else."""
    row = AuditRow(name, AuditResult.UNKNOWN, (Cause(name, name, name, name),), tables=(name,))
    page = shown("html", [row, row], AuditSubject(name, name, "unknown", (f"{name}2",)))
    parsed = Parsed(page)
    assert parsed.tags <= ALLOWED
    assert parsed.attributes <= ATTRIBUTES
    plain = name.replace("\n", " ")
    visible = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in plain)
    assert visible in parsed.text.replace("\\u000a", " ")
    assert not {"\u202e", "\x00", "\x1b"} & {*page}


def test_the_page_loads_and_runs_nothing() -> None:
    page = shown("html", rows())
    assert not re.search(r"(?i)<script|<link|<img|<iframe|\bon\w+=|@import|url\(|https?://", page)
    assert "default-src 'none'; style-src 'unsafe-inline'" in page


def test_the_page_chooses_results_by_itself() -> None:
    page = shown("html", rows())
    assert "main:has(#show-unknown:checked) .of-incompatible" in page
    for result in ("incompatible", "unreadable", "unknown", "compatible", "no-job"):
        assert f'id="show-{result}"' in page
        assert f'class="of-{result}"' in page


def test_a_page_does_not_grow_with_the_number_of_jobs() -> None:
    many = [AuditRow(f"job {n}", AuditResult.UNKNOWN, (Cause("rule", f"said {n}"),)) for n in range(MOST_KEPT + 700)]
    page = shown("html", many)
    assert page.count('<th scope="row">') == MOST_KEPT
    assert "and 700 more: the JSON of this audit contains every job" in page
    assert len(json.loads(shown("json", many))["rows"]) == MOST_KEPT + 700
    assert "900 jobs: 900 unknown" in shown("text", many)


@pytest.mark.parametrize(
    ("results", "fail_on", "code"),
    [
        ((AuditResult.COMPATIBLE,), "partial", 0),
        ((AuditResult.COMPATIBLE, AuditResult.PARTIAL), "unknown", 0),
        ((AuditResult.COMPATIBLE, AuditResult.PARTIAL), "partial", 1),
        ((AuditResult.INCOMPATIBLE,), "never", 0),
        ((AuditResult.INCOMPATIBLE, AuditResult.UNREADABLE), "never", 2),
        ((AuditResult.NO_JOB,), "never", 2),
        ((AuditResult.NO_JOB, AuditResult.COMPATIBLE), "unknown", 0),
        ((), "never", 2),
    ],
)
def test_exit_codes(results: tuple[AuditResult, ...], fail_on: str, code: int) -> None:
    texts = {"compatible": V1, "partial": OF_OUTCOME["partial"], "incompatible": INCOMPATIBLE, "unreadable": BROKEN}
    summary = AuditSummary(AuditSubject("", "", fail_on))
    for result in results:
        text = texts.get(result.value, TABLES)
        old = TABLES if result is AuditResult.NO_JOB else V1
        row = audit_pair(AuditPair("job", JobSpec(old), JobSpec(text)))
        assert row.result is result
        summary.add(row)
    assert summary.exit_code == code


@pytest.mark.parametrize(("fail_on", "code"), [("unknown", 1), ("incompatible", 0)])
def test_a_job_that_is_compatible_on_a_condition_passes_no_gate_that_unknown_fails(fail_on: str, code: int) -> None:
    assert conditional().exit_code(fail_on) == code


def test_the_grounds_are_counted_and_a_missing_planner_is_named_once() -> None:
    summary = AuditSummary(AuditSubject("", "", "never"))
    planned = EngineOutcome("flink", "2.2", "2.3", Outcome.COMPATIBLE, "planned by Flink 2.3.0", Outcome.UNKNOWN)
    for name in ("a", "b"):
        summary.add(AuditRow(name, AuditResult.COMPATIBLE, (), (planned,), notice="run planner install 2.2"))
    assert summary.remarks == ("planned by Flink 2.3.0: 2", "run planner install 2.2")
    document = row_document(AuditRow("a", AuditResult.COMPATIBLE, (), (planned,)))
    assert document["engines"][0]["disagrees"] == "unknown"


def test_tables_that_no_job_has() -> None:
    job = JobSpec(V1)
    row = audit_pair(AuditPair("job", job, job))
    missed = AuditSummary(AuditSubject("", "", "never", ("nobodys",)))
    missed.add(row)
    assert missed.exit_code == 2
    assert "nobodys: no job declares or uses it; check its name" in missed.remarks
