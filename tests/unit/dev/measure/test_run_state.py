"""Tables of stored savepoints contain the rows that a real Flink emitted for the same jobs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import JobSettings, compiled_state, job_state
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.state import open_savepoint
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results, run_state
from dev.measure.pairs import VERSIONS
from dev.measure.savepoint_fixtures import SINKS
from dev.measure.state_jobs import StateJob, bounded, fault, load_jobs, since, state_rows, stored_jobs

STORED = [(line, job, folder) for line in VERSIONS for job, folder in stored_jobs(line)]
FILES = {line: results.newest(line, run_state.NAME) for line in VERSIONS}
TTL = "table.exec.state.ttl"


@pytest.mark.parametrize(("line", "job", "folder"), STORED, ids=[f"{line}-{job.id}" for line, job, _ in STORED])
def test_rows_of_a_stored_savepoint_are_those_of_flink(line: str, job: StateJob, folder: Path) -> None:
    file = FILES[line]
    assert file is not None
    (expected,) = (entry["expected"] for entry in results.read(file)["jobs"] if entry["id"] == job.id)
    symbols = Symbols()
    plan = read_plan((folder / "plan.json").read_text("utf-8"))
    settings = JobSettings(expires=TTL in dict(job.side.settings))
    specs = job_state(compiled_state(plan, symbols, {}, SINKS, settings=settings), symbols).specs
    assert fault(state_rows(open_savepoint(str(folder), specs), job), expected) == ""


@pytest.mark.parametrize("line", VERSIONS)
def test_every_job_was_measured_and_is_equal(line: str) -> None:
    file = FILES[line]
    assert file is not None
    entries = results.read(file)["jobs"]
    assert {entry["id"]: entry["fault"] for entry in entries if entry["outcome"] != run_state.EQUAL} == {}
    assert {entry["id"] for entry in entries} == {job.id for job in load_jobs(line)}
    assert len(entries) >= 60


ROWS = pa.table({"a": ["x"], "n": [3], "e": pa.array(["1.50"]).cast(pa.decimal128(10, 2)), "raw": [b"\x01\xff"]})


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"Printed [x, 3, 1.5, [1, -1]]": 1}, ""),
        ({"Printed [x, 4, 1.5, [1, -1]]": 1}, "only in state: ('x', Decimal('3')"),
        ({"Printed [x, 3, 1.5, [1, -1]]": 2}, "only in state: nothing"),
        ({"Printed [x, 3, 1.5]": 1}, "Flink emits 3 columns, and the query has 4"),
        ({"Printed [x, 3, 1.5, [1, -1]]": -1}, "Flink retracts rows that it has not emitted"),
        ({}, "nothing is compared"),
    ],
)
def test_rows_differ_by_value_and_number(expected: dict[str, int], message: str) -> None:
    found = fault(ROWS, expected)
    assert message in found
    assert bool(found) == bool(message)


def test_rows_after_a_savepoint_are_net_of_those_before() -> None:
    rows = ["Printed +I[x, 1]", "Printed -U[x, 1]", "Printed +U[x, 2]", "Printed +I[y, 1]"]
    assert since(rows, ["Printed +I[y, 1]"]) == {"Printed [x, 2]": 1}


def test_a_bounded_job_reads_its_files_once() -> None:
    (job,) = load_jobs("2.3", "^tumble$")
    assert "monitor-interval" in job.side.script
    assert "monitor-interval" not in bounded(job.side).script


def test_a_batch_query_needs_its_header(tmp_path: Path) -> None:
    file = tmp_path / "state.sql"
    file.write_text("--- given\n--- case: top-1\n-- about: Top-1\n--- state\nFROM t\n--- batch\nSELECT 1;\n")
    with pytest.raises(FixtureError, match="needs '--- batch'"):
        load_jobs("2.3", file=file)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("line", VERSIONS)
def test_the_state_of_every_job_equals_its_rows(line: str, tmp_path: Path) -> None:
    assert run_state.main(["--flink", line, "--out", str(tmp_path / "state.json")]) == 0
