"""How long no job ran, by the ledger; what is sent is seen in the operators' tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from airflow_flinkcompat.airflow.tasks import telemetry
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    JobStart,
    JobStop,
    LedgerEntry,
    RolledBackEntry,
    StartedEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.model import JobSpec

JOB = JobSpec("SELECT 1")
STOPPED = StoppedEntry(job=JOB, stop=JobStop(JobRef("a")))
STARTED = StartedEntry(job=JOB, start=JobStart())
DEPLOYED = DeployedEntry(job=JOB, start=JobStart())
BACK = RolledBackEntry(job=JOB, start=JobStart())
NOTHING = (None, None)


def at(*entries: tuple[LedgerEntry, int]) -> list[LedgerEntry]:
    return [replace(entry, at=f"2026-01-01T00:00:{second:02}+00:00") for entry, second in entries]


@pytest.mark.parametrize(
    ("entries", "took"),
    [
        ([], NOTHING),
        ([(STARTED, 1), (DEPLOYED, 9)], NOTHING),
        ([(DEPLOYED, 1), (STOPPED, 10), (STARTED, 12), (DEPLOYED, 20)], (2, 10)),
        ([(STOPPED, 1), (STARTED, 2), (DEPLOYED, 3), (STARTED, 5), (DEPLOYED, 9)], NOTHING),
        ([(DEPLOYED, 1), (STOPPED, 10), (STARTED, 12), (BACK, 20)], NOTHING),
        ([(STOPPED, 10), (DEPLOYED, 20)], (None, 10)),
    ],
)
def test_downtime_is_from_the_stop_of_the_former_job(entries: list[Any], took: tuple[int | None, int | None]) -> None:
    expected = tuple(None if seconds is None else timedelta(seconds=seconds) for seconds in took)
    assert telemetry.downtime(at(*entries)) == expected


def test_a_span_says_what_is_known_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with telemetry.span("deploy", {"deployment": "orders", "outcome": None}) as tell:
        tell(job_id="job-2", savepoint=None)
    with pytest.raises(ValueError, match="secret"), telemetry.span("check", {}):
        raise ValueError("a secret")
    with pytest.raises(KeyError), telemetry.span("deploy", {}, (KeyError,)):
        raise KeyError("later")
    done, failed, waiting = exporter.get_finished_spans()
    assert done.name == "flinkcompat.deploy"
    assert done.attributes == {"flinkcompat.deployment": "orders", "flinkcompat.job_id": "job-2"}
    assert (failed.name, failed.status.status_code) == ("flinkcompat.check", StatusCode.ERROR)
    assert (failed.status.description, failed.events) == ("ValueError", ()), "its text may hold a secret"
    assert (waiting.status.status_code, waiting.attributes) == (StatusCode.UNSET, {"flinkcompat.waits": True})
