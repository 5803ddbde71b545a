"""What depends on ``table.local-time-zone`` is translated with it, or refused without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.backfill.compile.compiler import compile_program
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark_sql.localtime import localised
from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.sql import parse_script
from tests.support.backfill.scripts import script, table

BERLIN = {"table.local-time-zone": "Europe/Berlin"}


def _program(folder: Path, call: str, zone: str | None = None) -> Program:
    settings = [] if zone is None else [f"SET 'table.local-time-zone' = '{zone}'"]
    source = table("t", "z TIMESTAMP_LTZ(3), b BIGINT, s STRING", folder)
    sink = table("o", "v STRING", folder / "out")
    insert = f"INSERT INTO o\nSELECT CAST({call} AS STRING) FROM t"
    return build_program(parse_script(script(*settings, source, sink, insert), "job.sql"))


@pytest.mark.parametrize(
    ("call", "zone", "reason"),
    [
        ("DATE_FORMAT(z, 'yyyy')", None, "table.local-time-zone, which is not set"),
        ("FROM_UNIXTIME(b)", None, "table.local-time-zone, which is not set"),
        ("z", "default", "table.local-time-zone, which is not set"),
        (
            "HOUR(z)",
            "Mars/Olympus",
            "table.local-time-zone is Mars/Olympus, which Flink refuses",
        ),
        ("UNIX_TIMESTAMP(s)", "Europe/Berlin", "no exact translation to Spark in Europe/Berlin, whose clocks change"),
        ("UNIX_TIMESTAMP(s, 'yyyy')", "UTC", "UNIX_TIMESTAMP has no exact translation"),
        ("FROM_UNIXTIME(s)", "UTC", "this expression of STRING has no exact translation"),
        ("DATE_FORMAT(z, 'EEE')", "UTC", "DATE_FORMAT of TIMESTAMP(3), CHAR(3) NOT NULL and the constant EEE"),
        ("FLOOR(z TO DAY)", "UTC", "FLOOR of TIMESTAMP_LTZ(3)"),
    ],
)
def test_what_is_not_computed_in_a_zone(tmp_path: Path, call: str, zone: str | None, reason: str) -> None:
    with pytest.raises(BackfillError) as refused:
        compile_program(_program(tmp_path, call, zone), TableLocations(), Range())
    assert "job.sql:" in str(refused.value)
    assert reason in str(refused.value)


def test_what_sees_no_local_time_stays_as_it_is(tmp_path: Path) -> None:
    sink = _program(tmp_path, "b + TIMESTAMPDIFF(SECOND, z, z)").pipelines[0].sink
    assert localised(sink, BERLIN, {}) is sink


def test_nodes_read_by_several_sinks_stay_one(tmp_path: Path) -> None:
    sink = _program(tmp_path, "DATE_FORMAT(z, 'yyyy')").pipelines[0].sink
    done: dict[tuple[int, str], object] = {}
    first = localised(sink, BERLIN, done)
    assert first is localised(sink, BERLIN, done)
    assert first is not sink
    assert first != localised(sink, {"table.local-time-zone": "UTC"}, done)
