"""A job as a value: its digest never changes, and it comes back from JSON as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_flinkcompat import Side
from airflow_flinkcompat.model import FunctionDeclaration, InputError, JobSpec, Span

SQL = JobSpec(
    "INSERT INTO k SELECT f(a) FROM s",
    {"table.exec.state.ttl": "1 d", "parallelism.default": "2"},
    (FunctionDeclaration("g", "table", span=Span("x", 1, 1, 1, 1)), FunctionDeclaration("f", "scalar", "python")),
    "CREATE TABLE t (ä INT)",
    engine="flink",
    engine_version="2.3.0",
    source="orders.sql",
)
PROGRAM = JobSpec("pass", engine="vvr", language="python", variables={"B": "1", "A": "2"}, files={"m.py": "x = 1"})


def test_the_digest_is_the_one_that_ledgers_hold() -> None:
    """As version 0.1.0 wrote them."""
    assert SQL.digest() == "61efbe668802aff166d507a9780bdef562ab297cd10b33767c8d1f70bf23975f"
    assert PROGRAM.digest() == "9d4e1bcec0b9f01b2bc14001950a276eef838c08ce1b3d67fb22cb196035c1ac"


@pytest.mark.parametrize(
    "change",
    [
        {"script": "INSERT INTO k SELECT a FROM s"}, {"settings": {}}, {"functions": ()}, {"catalog": ""},
        {"engine_version": None}, {"engine": "vvr"},
    ],
    ids=str,
)  # fmt: skip
def test_the_digest_counts_what_is_compared(change: dict[str, Any]) -> None:
    assert replace(SQL, **change).digest() != SQL.digest()


def test_the_digest_does_not_count_names_and_orders() -> None:
    reordered = replace(
        SQL, source="b.sql", functions=SQL.functions[::-1], settings=dict([*SQL.settings.items()][::-1])
    )
    assert reordered.digest() == SQL.digest()


def test_a_programs_variables_and_files_are_parts_of_its_script() -> None:
    bare, whole = replace(PROGRAM, variables={}, files={}).part_digests(), PROGRAM.part_digests()
    assert [part for part, digest in whole.items() if digest != bare[part]] == ["script"]
    assert replace(PROGRAM, files={}).digest() != replace(PROGRAM, variables={}).digest() != PROGRAM.digest()


@pytest.mark.parametrize("job", [SQL, PROGRAM], ids=["sql", "program"])
def test_it_comes_back_from_json(job: JobSpec) -> None:
    row = json.loads(json.dumps(job.to_dict()))
    assert JobSpec.from_dict({**row, "later": 1}) == job
    assert "span" not in str(row)


def test_what_an_older_version_left_out_has_its_default() -> None:
    assert JobSpec.from_dict({"script": "a", "functions": [{"name": "f"}]}) == JobSpec(
        "a", functions=(FunctionDeclaration("f"),)
    )


def test_a_side_is_a_job() -> None:
    side = Side.of(SQL)
    assert side == Side(**SQL.to_dict() | {"functions": SQL.functions})
    assert (side.sha256, side.part_digests()) == (SQL.digest(), SQL.part_digests())
    assert Side.of(side) is side
    assert Side("a", beside=side) == Side("a")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"engine": "spark"}, "engine 'spark' is unknown: choose one of vvr, flink"),
        ({"engine": "flink", "engine_version": "x"}, "write numbers separated by points, such as 2.3 or 1.20.3"),
        ({"language": "scala"}, "language 'scala' is unknown: choose one of sql, python, table"),
        ({"variables": {"A": "1"}}, "variables are only for programs"),
        ({"files": {"m.py": ""}, "language": "table"}, "files are only for Python programs"),
    ],
)
def test_a_job_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        JobSpec("a", **fields)
