"""What a rehearsal has started is ended: by itself, and by its watcher when it is gone."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from airflow_flinkcompat.deploy.rehearsal import place
from airflow_flinkcompat.deploy.rehearsal.place import Started, Watcher, clean_up
from airflow_flinkcompat.deploy.target import JobRef, Operation, Verb
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from dev.services.csv_job import wait_for
from tests.unit.deploy.flink.test_clients import Server, error, jobmanager, ok
from tests.unit.deploy.rehearsal.test_restoring import Watched
from tests.unit.deploy.test_migration import Live

JOB = "a" * 32
# The pretended server tells no ids of 32 digits apart.
ONE, LIVE = "rehearsal-job", "live-job"
UNKNOWN = error(404, "org.apache.flink.runtime.messages.FlinkJobNotFoundException: no such job")


def target(server: Server) -> SqlGatewayTarget:
    return SqlGatewayTarget("http://gateway.test:8083", jobmanager(server))


def started(*operations: Operation) -> Started:
    return Started({each.request_id: each for each in operations})


def pages(job: str, *states: httpx.Response | Exception) -> dict[str, list[httpx.Response | Exception]]:
    """The pages of a job, whose state is answered in turn."""
    page = {"name": "x", "vertices": []}
    rest = {
        f"GET /jobs/{job}": [ok(**page)],
        f"GET /jobs/{job}/exceptions": [ok()],
        f"GET /jobs/{job}/checkpoints": [ok()],
    }
    return {f"GET /jobs/{job}/status": list(states), "GET /jobmanager/config": [httpx.Response(200, json=[])], **rest}


def test_cleaning_up_ends_jobs_and_savepoints() -> None:
    """A job that only comes up later, a savepoint that is still being written, one whose path is known."""
    trigger, other = "asked", "never-asked"
    server = Server(
        {
            **pages(
                ONE,
                UNKNOWN,
                httpx.ConnectError("gone for a moment"),
                ok(status="RUNNING"),
                ok(status="RUNNING"),
                ok(status="CANCELED"),
            ),
            "GET /jobs/overview": [ok(jobs=[{"jid": ONE, "name": "x", "state": "CANCELED"}])],
            f"PATCH /jobs/{ONE}": [ok()],
            f"GET /jobs/{LIVE}/savepoints/{trigger}": [
                ok(status={"id": "IN_PROGRESS"}),
                ok(status={"id": "COMPLETED"}, operation={"location": "file:/s/1"}),
            ],
            f"GET /jobs/{LIVE}/savepoints/{other}": [error(404, "no such")],
            "POST /savepoint-disposal": [ok(**{"request-id": "r"})],
            "GET /savepoint-disposal/r": [ok(status={"id": "COMPLETED"}, operation={})],
        }
    )
    all_of_it = started(
        Operation(Verb.SAVEPOINT, trigger, LIVE),
        Operation(Verb.SAVEPOINT, other, LIVE),
        Operation(Verb.STOP, "stopped", ONE, "file:/s/2"),
        Operation(Verb.START, ONE),
    )
    assert clean_up(target(server), all_of_it, timeout=30, coming=30) == []
    assert server.count(f"PATCH /jobs/{ONE}") == 1
    disposed = {body["savepoint-path"] for key, body in server.asked if key == "POST /savepoint-disposal"}
    assert disposed == {"file:/s/1", "file:/s/2"}


def test_a_savepoint_that_is_gone_is_cleaned_up() -> None:
    gone = ok(status={"id": "COMPLETED"}, operation={"failure-cause": {"stack-trace": "FileNotFoundException: /s/1"}})
    server = Server(
        {"POST /savepoint-disposal": [ok(**{"request-id": "r"})], "GET /savepoint-disposal/r": [gone]},
    )
    assert clean_up(target(server), started(Operation(Verb.STOP, "t", ONE, "file:/s/1")), timeout=0.5) == []
    assert server.count("POST /savepoint-disposal") == 1


def test_what_cannot_be_cleaned_up_is_told() -> None:
    server = Server(
        {
            "POST /savepoint-disposal": [ok(**{"request-id": "r"})],
            "GET /savepoint-disposal/r": [
                ok(
                    status={"id": "COMPLETED"},
                    operation={"failure-cause": {"stack-trace": "java.io.IOException: full"}},
                )
            ],
        }
    )
    one = Operation(Verb.STOP, "t", ONE, "file:/s/1")
    (left,) = clean_up(target(server), started(one), timeout=0.5)
    assert "IOException: full" in left


def test_folders_are_deleted_after_all_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (tmp_path / "file").write_text("no folder")
    never = {f"GET /jobs/{LIVE}/savepoints/asked": [ok(status={"id": "IN_PROGRESS"})]}
    announced = started(Operation(Verb.SAVEPOINT, "asked", LIVE))
    announced.folders += [folder.as_uri(), "unknown://x"]
    (left,) = clean_up(target(Server(never)), announced, timeout=0.1)
    assert (left, folder.exists()) == ("the savepoint asked of job live-job is still being written", True)
    announced.operations.clear()
    (left,) = clean_up(target(Server({})), announced, timeout=0.1)
    assert (left.split(" (")[0], folder.exists()) == ("the folder unknown://x", False)
    assert announced.folders == ["unknown://x"]


def test_an_interrupted_deletion_is_completed_by_the_watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    address = "http://127.0.0.1:1"
    watcher = Watcher(TargetLocation(addresses={"gateway": address, "jobmanager": address}))
    watcher.announce_folder(folder.as_uri())

    def interrupted(_folder: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, "remove_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watcher.end(target(Server({})), 1.0)
    wait_for(lambda: not folder.exists(), "the folder is deleted")


class Sharing(Live):
    """A target that shares a cluster. The live job has another id there."""

    def shared_cluster(self) -> Any:
        raise AssertionError("the savepoint was announced by the id of the target itself")

    shared_job = shared_cluster


def test_a_savepoint_of_the_target_itself_is_deleted_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = Sharing(tmp_path, Watched()), Operation(Verb.SAVEPOINT, "1" * 32, JobRef("orders"))
    said = io.StringIO()
    monkeypatch.setattr(place.subprocess, "Popen", lambda *_, **__: SimpleNamespace(stdin=said))
    Watcher(TargetLocation(), own=True).announce(asked)
    monkeypatch.setattr(place.sys, "stdin", io.StringIO(said.getvalue()))
    monkeypatch.setattr(place.signal, "signal", lambda *_: None)
    monkeypatch.setattr(place, "open_target", lambda _: nullcontext(found))
    assert place.main() == 0
    assert found.disposed == [str(tmp_path)]


class _Cluster(BaseHTTPRequestHandler):
    """A JobManager with one job, until it is cancelled."""

    def do_GET(self) -> None:
        state = "CANCELED" if _CALLS else "RUNNING"
        page = {"jobs": [{"jid": JOB, "name": "x", "state": state}]}
        self._answer({"/jobs/overview": page, f"/jobs/{JOB}/status": {"status": state}}.get(self.path, {"name": "x"}))

    def do_PATCH(self) -> None:
        _CALLS.append((self.path, self.headers.get("Authorization", "")))
        self._answer({})

    def _answer(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


_CALLS: list[tuple[str, str]] = []


@pytest.fixture
def cluster() -> Iterator[str]:
    _CALLS.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Cluster)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_watcher_acts_when_its_owner_is_gone(cluster: str, tmp_path: Path) -> None:
    """And only then; its credentials come by its standard input, not by its command line."""
    content = Path("/proc")
    location = TargetLocation(
        addresses={"gateway": cluster, "jobmanager": cluster}, settings={"password": "planted-token"}
    )
    start, folder = Operation(Verb.START, JOB), tmp_path / "rows"
    (folder / "0").mkdir(parents=True)
    sent_home = Watcher(location)
    sent_home.announce_folder(folder.as_uri())
    sent_home.announce(start)
    assert b"planted-token" not in (content / str(sent_home.pid) / "cmdline").read_bytes()
    sent_home.dismiss()
    assert not _CALLS
    assert folder.exists()
    left = Watcher(location)
    left.announce_folder(folder.as_uri())
    left.announce(start)
    left.leave()  # as the kernel does for a process that was killed
    wait_for(lambda: _CALLS, "the job is cancelled")
    (call,) = _CALLS
    assert call == (f"/jobs/{JOB}?mode=cancel", "Bearer planted-token")
    wait_for(lambda: not folder.exists(), "the folder is deleted")
