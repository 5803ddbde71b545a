"""A backfill up to a boundary: history must have passed it, and the sink must be one where windows can be replaced."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import FIRST, SUM, SUM_COLUMNS, Run, bids, lines


def test_a_folder_the_live_job_writes_to_is_no_place() -> None:
    boundary = datetime(2020, 4, 15, 8, 10)
    with pytest.raises(BackfillError) as caught:
        plan(BackfillRequest(JobSpec(bids(SUM, SUM_COLUMNS)), boundary=boundary))
    assert "--sink results=URI" in str(caught.value)
    assert "window_end > TIMESTAMP '2020-04-15 08:10:00'" in str(caught.value)
    found = plan(BackfillRequest(JobSpec(bids(SUM, SUM_COLUMNS)), boundary=boundary, sinks={"results": "/elsewhere"}))
    assert found.hand_over is not None
    assert found.bounds.to == boundary
    (guard,) = found.guards
    assert (guard.table, guard.until) == ("bid", datetime(2020, 4, 15, 8, 10, 1))


def test_a_boundary_is_the_end() -> None:
    with pytest.raises(BackfillError, match="omit --to, or omit --boundary"):
        BackfillRequest(JobSpec("x"), boundary=datetime(2020, 1, 1), to=datetime(2020, 1, 2))
    assert BackfillRequest(JobSpec("x"), boundary=datetime(2020, 1, 1)).to == datetime(2020, 1, 1)
    with pytest.raises(BackfillError, match="range is empty"):
        BackfillRequest(JobSpec("x"), boundary=datetime(2020, 1, 1), from_=datetime(2020, 1, 1))


@pytest.mark.nightly
@pytest.mark.slow
def test_windows_up_to_it_once_history_has_passed_it(run: Run, history: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    text = bids(SUM, SUM_COLUMNS, history, "/live")
    run(text, boundary=datetime(2020, 4, 15, 8, 10), sinks={"results": str(given)})
    assert lines(given) == [FIRST]
    # The last row is of 08:17:00, the watermark's delay one second: the boundary 08:20:00 has not been passed.
    early = datetime(2020, 4, 15, 8, 20)
    with pytest.raises(BackfillError) as caught:
        run(text, boundary=early, sinks={"results": str(given)})
    message = str(caught.value)
    assert "the history of bid does not reach 2020-04-15 08:20:01" in message
    assert "its last event time is 2020-04-15 08:17:00" in message
    assert "--allow-incomplete" in message
    assert lines(given) == [FIRST]
    run(text, boundary=early, sinks={"results": str(given)}, allow_incomplete=True)
    assert len(lines(given)) == 2
    # A row exactly at boundary and delay is enough.
    (history / "later.csv").write_text("2020-04-15 08:20:01,1.00,Z\n", encoding="utf-8")
    run(text, boundary=early, sinks={"results": str(given)})
    assert len(lines(given)) == 2
