"""The trigger hashes files, and never blocks the event loop."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from airflow_flinkcompat.triggers import change
from airflow_flinkcompat.triggers.change import FileChangeTrigger, fingerprint, fingerprint_of


def trigger(path: Path, baseline: str, *, recheck: float = 30) -> FileChangeTrigger:
    return FileChangeTrigger([str(path)], baseline, poll_interval=0.02, recheck_seconds=recheck, since=5.0)


async def first(waiting: FileChangeTrigger) -> dict[str, object]:
    async for event in waiting.run():
        return dict(event.payload)
    raise AssertionError("the trigger ended without an event")


def test_it_fires_when_the_content_changes(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 1")

    async def scenario() -> dict[str, object]:
        waiting = asyncio.create_task(first(trigger(script, str(fingerprint_of([str(script)])))))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        script.write_text("SELECT 1")  # touched, not changed
        await asyncio.sleep(0.1)
        assert not waiting.done()
        script.unlink()  # on the way to being replaced
        await asyncio.sleep(0.1)
        assert not waiting.done()
        script.write_text("SELECT 2")
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(scenario()) == {"changed": True, "since": 5.0}


def test_an_edit_before_it_started_is_not_missed(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 2")
    judged = fingerprint({str(script): b"SELECT 1"})
    assert asyncio.run(asyncio.wait_for(first(trigger(script, judged)), 10))["changed"] is True


def test_it_comes_back_for_the_ledger(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 1")
    waiting = trigger(script, str(fingerprint_of([str(script)])), recheck=0.1)
    assert asyncio.run(asyncio.wait_for(first(waiting), 10)) == {"changed": False, "since": 5.0}


def test_a_half_written_file_is_waited_for(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 1")
    baseline = str(fingerprint_of([str(script)]))

    async def scenario() -> float:
        waiting = FileChangeTrigger([str(script)], baseline, poll_interval=0.3, recheck_seconds=30, since=0)
        task = asyncio.create_task(first(waiting))
        written = 0.0
        for length in range(8):
            script.write_text("SELECT 1" + " , 1" * (length + 1))
            written = time.monotonic()
            await asyncio.sleep(0.1)
            assert not task.done()
        await asyncio.wait_for(task, 10)
        return time.monotonic() - written

    assert asyncio.run(scenario()) < 5


def test_slow_files_do_not_block_the_event_loop(tmp_path: Path, monkeypatch: object) -> None:
    def slow(_paths: object) -> str:
        time.sleep(0.5)
        return "same"

    monkeypatch.setattr(change, "fingerprint_of", slow)  # type: ignore[attr-defined]

    async def scenario() -> float:
        task = asyncio.create_task(first(trigger(tmp_path, "same")))
        longest = 0.0
        for _ in range(20):
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
        task.cancel()
        return longest

    assert asyncio.run(scenario()) < 0.3


def test_it_survives_serialisation(tmp_path: Path) -> None:
    original = trigger(tmp_path / "job.sql", "abc")
    path, arguments = original.serialize()
    assert path == "airflow_flinkcompat.triggers.change.FileChangeTrigger"
    assert FileChangeTrigger(**arguments).serialize() == (path, arguments)
