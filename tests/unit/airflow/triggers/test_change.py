"""The trigger hashes files, and never blocks the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.triggers import change
from airflow_flinkcompat.airflow.triggers.change import (
    FileChangeTrigger,
    FlinkScriptTrigger,
    fingerprint,
    fingerprint_of,
)
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    CheckedEntry,
    JobStart,
    JobVersion,
    RejectedEntry,
)
from airflow_flinkcompat.model import JobSpec

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


A, B = "SELECT 1;\n", "SELECT 2;\r\n"
# Long enough for a watcher that would have an event to have it, with looks this far apart.
LOOKS = 0.02


class Watch:
    """A folder with a script and a ledger, and the events of a watcher."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "orders.sql"
        self.ledger = Ledger(folder / "ledger", "orders")
        self.events: list[dict[str, Any]] = []
        self.looks = 0
        self.seen_looks = asyncio.Condition()

    def trigger(self, **arguments: Any) -> FlinkScriptTrigger:
        given = {"deployment": "orders", "script": "orders.sql", "ledger": str(self.script.parent / "ledger")}
        made = FlinkScriptTrigger({**given, **arguments}, {}, [["", str(self.script.parent)]], LOOKS, 600)
        classpath, kwargs = made.serialize()
        assert classpath == "airflow_flinkcompat.airflow.triggers.change.FlinkScriptTrigger"
        again = FlinkScriptTrigger(**kwargs)
        assert again.serialize() == (classpath, kwargs)
        return again

    @asynccontextmanager
    async def watching(self, **arguments: Any) -> AsyncIterator[None]:
        trigger = self.trigger(**arguments)
        stamp = trigger._stamp

        def counted() -> str | None:
            self.looks += 1
            return stamp()

        trigger._stamp = counted  # type: ignore[method-assign]

        async def collect() -> None:
            async for event in trigger.run():
                self.events.append(dict(event.payload))

        task = asyncio.create_task(collect())
        try:
            yield
            assert not task.done() or task.exception() is None
        finally:
            task.cancel()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(LOOKS)

    async def quiet(self) -> None:
        """Six more looks, which is twice what an event takes."""
        wanted = self.looks + 6
        await self.until(lambda: self.looks >= wanted)

    def adopt(self, text: str) -> None:
        job = JobSpec(text, engine="flink", engine_version="2.3.0")
        self.ledger.append(AdoptedEntry(job=job, start=JobStart()))

    def version(self, text: str) -> JobVersion:
        return JobVersion.of(JobSpec(text.strip(), engine="flink", engine_version="2.3.0"))


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    def no_connection(conn_id: str) -> Any:
        raise AirflowException(f"no connection {conn_id}")

    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(no_connection))
    return Watch(tmp_path)


def test_each_new_version_has_one_event_and_the_deployed_one_has_none(watch: Watch) -> None:
    watch.script.write_text(A)
    watch.adopt(A)

    async def scenario() -> None:
        async with watch.watching():
            await watch.quiet()
            assert watch.events == []
            watch.script.write_text(B, newline="")
            await watch.until(lambda: len(watch.events) == 1)
            watch.script.write_text(B, newline="")  # touched
            await watch.quiet()
            watch.script.write_text(A)  # taken back
            await watch.quiet()
            assert len(watch.events) == 1
            watch.script.write_text("SELECT 3;")
            await watch.until(lambda: len(watch.events) == 2)

    asyncio.run(scenario())
    first, second = watch.events
    assert (first["deployment"], first["commit"]) == ("orders", None)
    assert "orders.sql differs from entry 1" in first["reason"]
    assert first["content"] != second["content"]


def test_an_edit_while_no_triggerer_ran_is_not_missed_and_a_run_that_has_it_is_not_asked_twice(watch: Watch) -> None:
    watch.adopt(A)
    watch.script.write_text(B)

    async def once() -> None:
        async with watch.watching():
            await watch.until(lambda: len(watch.events) == 1)

    asyncio.run(once())
    watch.ledger.append(CheckedEntry(version=watch.version(B)))  # its run waits for a person
    watch.events.clear()

    async def again() -> None:
        async with watch.watching():
            await watch.quiet()

    asyncio.run(again())
    assert watch.events == []
    watch.ledger.append(CheckedEntry(version=watch.version("SELECT 3;")))  # another one came between
    asyncio.run(once())


def test_a_version_that_was_rejected_is_left_alone(watch: Watch) -> None:
    watch.adopt(A)
    watch.script.write_text(B)
    watch.ledger.append(RejectedEntry(version=watch.version(B)))

    async def scenario() -> None:
        async with watch.watching():
            await watch.quiet()

    asyncio.run(scenario())
    assert watch.events == []


def test_what_somebody_has_to_mend_is_said_once_and_waited_out(watch: Watch) -> None:
    watch.adopt(A)

    async def scenario() -> None:
        async with watch.watching():
            await watch.until(lambda: watch.looks >= 3)
            watch.script.write_text(B)
            await watch.until(lambda: len(watch.events) == 1)

    with capture_logs() as logs:
        asyncio.run(scenario())
    said = [row["event"] % row.get("positional_args", ()) for row in logs if row["log_level"] == "warning"]
    (said,) = [words for words in said if "cannot be watched" in words]
    assert "The script of orders cannot be watched: script file 'orders.sql' does not exist" in said


def test_a_template_is_told_by_the_content_of_its_files(watch: Watch) -> None:
    watch.adopt(A)
    watch.script.write_text("SELECT {{ params.n }};")

    async def scenario() -> None:
        async with watch.watching():
            await watch.until(lambda: len(watch.events) == 1)
            await watch.quiet()
            watch.script.write_text("SELECT {{ params.n }} + 1;")
            await watch.until(lambda: len(watch.events) == 2)

    asyncio.run(scenario())
    assert "only a run can render the template" in watch.events[0]["reason"]


def test_settings_belong_to_the_version(watch: Watch) -> None:
    watch.adopt(A)
    watch.script.write_text(A)

    async def scenario() -> None:
        async with watch.watching(settings={"table.exec.state.ttl": "1 d"}):
            await watch.until(lambda: len(watch.events) == 1)

    asyncio.run(scenario())


def test_the_files_beside_a_program_are_watched_as_well(watch: Watch) -> None:
    program = watch.script.with_suffix(".py")
    program.write_text("from beside import N\n")
    beside = program.with_name("beside.py")
    beside.write_text("N = 1\n")

    async def scenario() -> None:
        async with watch.watching(script="orders.py"):
            await watch.until(lambda: len(watch.events) == 1)
            beside.write_text("N = 2\n")
            await watch.until(lambda: len(watch.events) == 2)

    asyncio.run(scenario())
