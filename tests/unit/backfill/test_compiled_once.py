"""From the request to the last chunk, a script is parsed, planned and compiled once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.backfill import BackfillRequest, explain, plan, planning, run, run_backfill
from airflow_flinkcompat.backfill.compile import compiler
from airflow_flinkcompat.backfill.planning import why_refused
from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat import Side, side
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import SUM, SUM_COLUMNS, bids

RANGE = ("--from", "2020-04-15 08:00", "--boundary", "2020-04-15 10:00", "--chunk", "10min")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each stage is gone through; no Spark is started for what follows them."""
    counted: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        stage: Callable[..., Any] = getattr(module, name)

        def counts(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return stage(*args, **kwargs)

        monkeypatch.setattr(module, name, counts)

    counting(side, "build_program")
    counting(planning, "compile_program")
    counting(compiler, "_write")
    return counted


def request(history: Path, sink: Path) -> BackfillRequest:
    bounds = {"from": "2020-04-15T08:00:00", "boundary": "2020-04-15T10:00:00", "chunk": "10min"}
    script = bids(SUM, SUM_COLUMNS, history)
    return BackfillRequest.from_dict({"script": script, **bounds, "sinks": {"results": str(sink)}})


def test_a_chunked_backfill_with_a_boundary(history: Path, results: Path, calls: Counter[str]) -> None:
    asked = request(history, results)
    planned = plan(asked)
    assert len(planned.chunks) == 12
    assert planned.hand_over is not None
    assert planned.guards
    assert "12 of 10min" in explain(planned, asked)
    assert calls == {"build_program": 1, "compile_program": 1, "_write": 1}


def test_a_plan_is_run_as_it_is(
    history: Path, results: Path, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(run, "_run", lambda session, planned, *_: ran.append(planned))
    monkeypatch.setattr(run, "spark_session", lambda *_: nullcontext(MagicMock()))
    monkeypatch.setattr(run, "is_local", lambda master: True)
    planned = plan(request(history, results))
    run_backfill(planned)
    assert ran == [planned]
    assert calls == {"build_program": 1, "compile_program": 1, "_write": 1}


def test_the_command_line_plans_once(
    history: Path, results: Path, tmp_path: Path, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "job.sql"
    script.write_text(bids(SUM, SUM_COLUMNS, history), encoding="utf-8")
    ran: list[object] = []
    monkeypatch.setattr(run, "_run", lambda session, planned, *_: ran.append(planned))
    monkeypatch.setattr(run, "spark_session", lambda *_: nullcontext(MagicMock()))
    arguments = ["backfill", str(script), *RANGE, "--sink", f"results={results}"]
    CliRunner().invoke(cli, arguments)
    assert len(ran) == 1
    assert calls == {"build_program": 1, "compile_program": 1, "_write": 1}


def test_a_script_that_was_checked_is_not_read_again(calls: Counter[str]) -> None:
    checked = Side(bids(SUM, SUM_COLUMNS))
    assert checked.program.pipelines
    assert why_refused(checked) == ""
    assert calls["build_program"] == 1


def test_only_what_readers_widen_is_compiled_again(calls: Counter[str]) -> None:
    """The second INSERT needs a column of the shared rows that the first was compiled without."""
    rows = "SELECT bidtime, price FROM bid WHERE price > 1"
    text = bids(rows, "a TIMESTAMP(3), b DECIMAL(10, 2)")
    plan(BackfillRequest(JobSpec(text)))
    assert calls["_write"] == 1
    other = (
        text[text.index("CREATE TABLE results") :]
        .replace("results", "more")
        .replace(rows, "SELECT bidtime, item FROM bid")
    )
    same = other.replace("b DECIMAL(10, 2)", "b STRING")
    plan(BackfillRequest(JobSpec(text + same)))
    assert calls["_write"] == 1 + 2 + 2
