"""The trigger hashes files, and never blocks the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from airflow_flinkcompat.airflow.triggers import change
from airflow_flinkcompat.airflow.triggers.change import FileChangeTrigger, fingerprint, fingerprint_of

HANDED_THROUGH = {"since": 5.0, "reason": "nothing new", "problems": 2}


def trigger(path: Path, baseline: str, *, recheck: float = 30) -> FileChangeTrigger:
    return FileChangeTrigger([str(path)], baseline, poll_interval=0.02, recheck_seconds=recheck, **HANDED_THROUGH)


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

    assert asyncio.run(scenario()) == {"changed": True, **HANDED_THROUGH}


def test_an_edit_before_it_started_is_not_missed(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 2")
    judged = fingerprint({str(script): b"SELECT 1"})
    assert asyncio.run(asyncio.wait_for(first(trigger(script, judged)), 10))["changed"] is True


def test_it_comes_back_for_the_ledger(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 1")
    waiting = trigger(script, str(fingerprint_of([str(script)])), recheck=0.1)
    assert asyncio.run(asyncio.wait_for(first(waiting), 10)) == {"changed": False, **HANDED_THROUGH}


def test_it_fires_when_a_missing_file_appears(tmp_path: Path) -> None:
    tables, script, elsewhere = tmp_path / "tables.sql", tmp_path / "job.sql", tmp_path / "dags" / "job.sql"
    tables.write_text("SELECT 1")

    async def scenario() -> dict[str, object]:
        waiting = FileChangeTrigger(
            [str(tables)], str(fingerprint_of([str(tables)])), 0.02, 30, 5.0, absent=[str(elsewhere), str(script)]
        )
        task = asyncio.create_task(first(waiting))
        await asyncio.sleep(0.1)
        assert not task.done()
        script.write_text("SELECT 2")
        return await asyncio.wait_for(task, 10)

    assert asyncio.run(scenario())["changed"] is True


def test_a_half_written_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(["judged", "half", "more", None, "whole", "whole", "never asked"])
    monkeypatch.setattr(change, "fingerprint_of", lambda _paths: next(looks))
    assert asyncio.run(asyncio.wait_for(first(trigger(tmp_path, "judged")), 10))["changed"] is True
    assert next(looks) == "never asked"


def test_a_change_that_is_taken_back_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(["other"])
    monkeypatch.setattr(change, "fingerprint_of", lambda _paths: next(looks, "judged"))
    assert asyncio.run(asyncio.wait_for(first(trigger(tmp_path, "judged", recheck=0.3)), 10))["changed"] is False


def test_slow_files_do_not_block_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, released = threading.Event(), threading.Event()

    def slow(_paths: object) -> str:
        entered.set()
        return "other" if released.wait(20) else "judged"

    monkeypatch.setattr(change, "fingerprint_of", slow)

    async def scenario() -> dict[str, object]:
        waiting = asyncio.create_task(first(trigger(tmp_path, "judged")))
        while not entered.is_set():
            await asyncio.sleep(0.01)
        released.set()  # only a loop that is free gets here
        return await waiting

    assert asyncio.run(asyncio.wait_for(scenario(), 30))["changed"] is True


def test_it_survives_serialisation(tmp_path: Path) -> None:
    original = trigger(tmp_path / "job.sql", "abc")
    path, arguments = original.serialize()
    assert path == "airflow_flinkcompat.airflow.triggers.change.FileChangeTrigger"
    assert FileChangeTrigger(**arguments).serialize() == (path, arguments)
