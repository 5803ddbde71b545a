"""``up``: everything running in the background, to look at. ``down``: nothing of it any more."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.processes import choose_ports
from dev.demo.feed import Feed
from dev.demo.narrator import Narrator
from dev.demo.orders import START
from dev.demo.parts import Parts, Ports
from dev.demo.story import Story
from dev.demo.waiting import DemoError, wait_for
from dev.demo.world import World

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / ".flinkcompat" / "up"
_READY_SECONDS = 7200.0
_STOP_SECONDS = 90.0
# The ports people know; another one where one of them is taken.
_WANTED = {"airflow": 8080, "jobmanager": 8081, "gateway": 8083}
# A file every five seconds, each twenty seconds of event time further on.
_PAUSE_SECONDS = 5.0


def up(narrator: Narrator, *, story: bool) -> int:
    """Start a process of its own that holds everything, and return once it is ready; the exit status."""
    if state := _running():
        narrator.say("it is up already")
        _addresses(narrator, state)
        return 0
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    log = FOLDER / "up.log"
    command = [sys.executable, "-m", "dev.demo", "serve", *(["--story"] if story else [])]
    with log.open("wb") as stream:
        child = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    try:
        with log.open(encoding="utf-8") as shown:
            state = wait_for(
                "everything to be ready",
                _state,
                moved=lambda: log.stat().st_size,
                limit=_READY_SECONDS,
                alive=lambda: _still_starting(child, shown, narrator),
            )
            _news(shown, narrator)
    except BaseException:
        child.terminate()
        child.wait()
        raise
    _addresses(narrator, state)
    return 0


def down(narrator: Narrator) -> int:
    """Stop what ``up`` left running and remove its files; the exit status."""
    state = _running()
    if state is None:
        narrator.say("nothing is up")
    else:
        narrator.say(f"stopping Airflow and Flink (process {state['pid']})")
        os.kill(state["pid"], signal.SIGTERM)
        try:
            wait_for("everything to stop", lambda: not _locked(), limit=_STOP_SECONDS, say=narrator.say)
        except DemoError:
            os.kill(state["pid"], signal.SIGKILL)  # its children end with it
            wait_for("everything to end", lambda: not _locked(), limit=_STOP_SECONDS, say=narrator.say)
        narrator.say("everything is stopped")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return 0


def serve(narrator: Narrator, *, story: bool) -> int:
    """Hold everything until TERM: v1 deployed and orders arriving; with ``story`` all six versions one by one."""
    world = World(FOLDER)
    with _lock():
        world.make()
        with Parts(world, narrator.say, ports=_ports()) as parts, Feed(world.live, parts.watermark) as feed:
            teller = Story(world, parts, feed, narrator)
            if story:
                teller.tell()
            else:
                teller.first()
            feed.pause, feed.patience = _PAUSE_SECONDS, threading.TIMEOUT_MAX
            feed.go_on(START + timedelta(days=3650))
            _publish(parts)
            while True:
                parts.check()
                feed.check()
                time.sleep(1)


def _publish(parts: Parts) -> None:
    """What ``up`` and ``down`` need to know; the password stays in Airflow's own file."""
    state = {
        "pid": os.getpid(),
        "airflow": parts.airflow.url,
        "flink": parts.flink.jobmanager_url,
        "gateway": parts.flink.gateway_url,
        "user": parts.airflow.user,
    }
    new = _state_file().with_suffix(".new")
    new.write_text(json.dumps(state), encoding="utf-8")
    new.replace(_state_file())


def _addresses(narrator: Narrator, state: Mapping[str, Any]) -> None:
    passwords = json.loads((FOLDER / "airflow" / "passwords.json").read_text(encoding="utf-8"))
    folder = FOLDER.relative_to(CHECKOUT)
    narrator.plain()
    narrator.plain(f"Airflow      {state['airflow']}   user {state['user']}, password {passwords[state['user']]}")
    narrator.plain(f"Flink        {state['flink']}")
    narrator.plain(f"SQL Gateway  {state['gateway']}")
    narrator.plain(f"Results      {folder}/totals, ledger {folder}/ledger")
    narrator.plain()
    narrator.plain("The DAG watches one file. Propose the next version of the job, and see what the gate makes of it:")
    narrator.plain(f"  cp {folder}/versions/orders_v2.sql {folder}/orders.sql")
    narrator.plain("`make down` stops everything.")


def _news(stream: TextIO, narrator: Narrator) -> None:
    """Passes on what the process in the background has printed since."""
    for line in stream.read().splitlines():
        narrator.plain(line)


def _still_starting(child: subprocess.Popen[bytes], stream: TextIO, narrator: Narrator) -> None:
    """Shows its news; raises DemoError when it has ended."""
    ended = child.poll() is not None  # before its last words are read
    _news(stream, narrator)
    if ended:
        raise DemoError(f"it ended with exit code {child.returncode}")


def _ports() -> Ports:
    return Ports(**{name: _if_free(port) for name, port in _WANTED.items()})


def _if_free(port: int) -> int | None:
    try:
        return choose_ports({"it": port})["it"]
    except LocalFlinkError:
        return None


# -- who holds the folder


def _state_file() -> Path:
    return FOLDER / "up.json"


def _state() -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads(_state_file().read_text(encoding="utf-8")))
    return None


def _running() -> dict[str, Any] | None:
    """The state of what is up; None when nothing is. A process id alone may be somebody else's by now."""
    return _state() if _locked() else None


def _locked() -> bool:
    try:
        with (FOLDER / "lock").open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _lock() -> Iterator[None]:
    """Held as long as this process lives; children do not inherit it."""
    with (FOLDER / "lock").open("wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"another process holds {FOLDER}: `make down` first") from None
        (FOLDER / "lock").write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
