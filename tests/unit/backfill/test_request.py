"""Requests and results as values and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, BackfillResult
from airflow_flinkcompat.backfill.request import parse_time
from airflow_flinkcompat.backfill.result import SinkRows, SourceRows
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.plan import FunctionDeclaration

FULL = BackfillRequest(
    JobSpec(
        "INSERT INTO a SELECT * FROM b",
        source="job.sql",
        settings={"table.local-time-zone": "UTC"},
        functions=(FunctionDeclaration("f", "scalar", "python"),),
        catalog="CREATE TABLE b (x INT)",
        language="python",
        variables={"SIZE": "10"},
        files={"common/tables.py": "DDL = '${conn.db.password}'"},
    ),
    from_=datetime(2024, 1, 1),
    to=datetime(2024, 1, 2, 12, 30),
    tables={"b": "/archive"},
    sinks={"a": "/out"},
    master="local[2]",
)


@pytest.mark.parametrize("request_", [FULL, BackfillRequest(JobSpec("SELECT 1"))])
def test_a_request_travels_as_json(request_: BackfillRequest) -> None:
    assert BackfillRequest.from_json(json.dumps(request_.to_dict())) == request_


def test_a_request_that_an_older_version_stored_is_read_to_the_last_field() -> None:
    """As version 0.1.0 wrote it; the chunks of a run are found again by these values."""
    stored = json.loads((Path(__file__).parents[2] / "fixtures" / "stored" / "backfill-1.json").read_text("utf-8"))
    assert BackfillRequest.from_dict(stored).to_dict() == stored


def test_placeholders_of_files_are_filled_in_too() -> None:
    assert "DDL = '${conn.db.password}'" in FULL.texts


def test_comments_of_a_script_ask_for_nothing() -> None:
    script = "-- ${conn.gone.password}\nINSERT INTO a SELECT '${env.A}' FROM b"
    assert [str(each) for each in BackfillRequest(JobSpec(script), tables={"b": "/${env.B}"}).placeholders] == [
        *("${env.A}", "${env.B}"),
    ]
    assert [str(each) for each in FULL.placeholders] == ["${conn.db.password}"]


def test_what_the_operator_sends_is_read() -> None:
    sent = {"script": "SELECT 1", "from": "2024-01-01T00:00:00+00:00", "to": None, "tables": {}, "settings": {}}
    assert BackfillRequest.from_dict(sent).from_ == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "JSON object"),
        ({}, "lacks the field script"),
        ({"script": 3}, "lacks the field script"),
        ({"script": "x", "form": "2024"}, "unknown field form"),
        ({"script": "x", "schema": "other/9"}, "other/9"),
        ({"script": "x", "from": "yesterday"}, "'yesterday' is not a time"),
        ({"script": "x", "from": 5}, "field from"),
        ({"script": "x", "tables": {"a": 1}}, "field tables"),
        ({"script": "x", "functions": ["f"]}, "field functions"),
        ({"script": "x", "from": "2024-01-02", "to": "2024-01-02"}, "the range is empty"),
    ],
)
def test_a_wrong_request_names_the_field(data: object, words: str) -> None:
    with pytest.raises(BackfillError, match=words):
        BackfillRequest.from_dict(data)


def test_text_that_is_no_json() -> None:
    with pytest.raises(BackfillError, match="not valid JSON"):
        BackfillRequest.from_json("{")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-31", datetime(2024, 1, 31)),
        ("2024-01-31 10:30:00", datetime(2024, 1, 31, 10, 30)),
        (" 2024-01-31T10:30:00.5 ", datetime(2024, 1, 31, 10, 30, 0, 500_000)),
        ("2024-01-31T10:30:00Z", datetime(2024, 1, 31, 10, 30, tzinfo=UTC)),
    ],
)
def test_times_as_users_write_them(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


def test_a_time_keeps_its_zone() -> None:
    east = timezone(timedelta(hours=8))
    request = BackfillRequest(JobSpec("x"), from_=datetime(2024, 1, 1, 8, tzinfo=east), to=datetime(2024, 1, 1))
    assert request.to_dict()["from"] == "2024-01-01T08:00:00+08:00"
    assert BackfillRequest.from_dict(request.to_dict()) == request
    with pytest.raises(BackfillError, match="the range is empty"):
        BackfillRequest(JobSpec("x"), from_=request.from_, to=datetime(2024, 1, 1, tzinfo=UTC))


def test_a_result_adds_up() -> None:
    result = BackfillResult(
        (SourceRows("a", "/a", 10), SourceRows("b", "/b", 5)),
        (SinkRows("c", "/c", 3, ("part-00000.csv",)),),
        rows_dropped=2,
        to=datetime(2024, 1, 1),
    )
    data = json.loads(json.dumps(result.to_dict()))
    assert (data["rows_read"], data["rows_dropped_null_time"], data["rows_written"]) == (15, 2, 3)
    assert data["from"] is None
    assert data["to"] == "2024-01-01T00:00:00"
    assert data["sinks"][0]["files"] == ["part-00000.csv"]
