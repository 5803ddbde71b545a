"""A wait lasts as long as something moves, and its end is a time-out, never a wrong result."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from dev.demo.__main__ import work_folder
from dev.demo.narration import DemoError, wait_for


def test_a_wait_lasts_as_long_as_something_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, moves = count(step=10), count()
    monkeypatch.setattr("dev.demo.narration.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("dev.demo.narration.time.sleep", lambda _: None)
    assert wait_for("it", lambda: next(moves) > 20, moved=lambda: next(moves), quiet=15, limit=1000)


@pytest.mark.parametrize(
    ("moved", "why"),
    [(lambda: None, r"nothing has moved for 15 s"), (count().__next__, r"the limit is 200 s")],
    ids=["still", "moving"],
)
def test_a_time_out_says_so(moved: object, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(step=10)
    monkeypatch.setattr("dev.demo.narration.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("dev.demo.narration.time.sleep", lambda _: None)
    with pytest.raises(DemoError, match=rf"timed out after \d+ s of waiting for rows: {why}\. This machine .* 2 tasks"):
        wait_for("rows", lambda: None, moved=moved, quiet=15, limit=200, seen=lambda: "2 tasks")  # type: ignore[arg-type]


def test_the_folder_is_kept_and_named_only_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    with work_folder(None, said.append) as done:
        (done / "log").touch()
    assert not done.exists()
    with pytest.raises(DemoError), work_folder(None, said.append) as failed:
        raise DemoError("late")
    assert failed.is_dir()
    kept = f"All files are kept in {failed}, with the logs in airflow/logs and flink/log"
    assert said == [f"all services are stopped. {kept}"]
    with pytest.raises(KeyboardInterrupt), work_folder(None, said.append) as interrupted:
        raise KeyboardInterrupt
    assert not interrupted.exists()
