"""The process that is asked: what becomes of a question that ends it, or that it never answers."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model.options import NETWORK_VARIABLE
from airflow_flinkcompat.planner import daemon as module
from airflow_flinkcompat.planner.daemon import Daemon, Isolation, PlannerFailure
from airflow_flinkcompat.planner.installation import LINES, Installation, install
from airflow_flinkcompat.planner.questions import plan
from tests.support.nightly import mostly_nightly

STAND_IN = """#!{python} -S
import json, os, random, socket, subprocess, sys, tempfile, time
folder = next((each.partition("=")[2] for each in sys.argv if each.startswith("-Djava.io.tmpdir")), "")
for line in sys.stdin:
    question = json.loads(line)
    what = question.get("what")
    if what == "exit" or question["id"] == question.get("exits at"):
        print("Exception: it called System.exit", file=sys.stderr, flush=True)
        os._exit(1)
    if what == "memory":
        print("Terminating due to java.lang.OutOfMemoryError: Java heap space", flush=True)
        os._exit(3)
    if what == "connect":
        try:
            socket.create_connection(("127.0.0.1", question["port"]), timeout=5)
            os._exit(2)
        except OSError:
            pass
    if what == "hang":
        time.sleep(60)
    if what == "fork":
        open(folder + "/left", "w").close()
        subprocess.Popen(["sleep", question["seconds"]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if what == "noise":
        print("x" * 100_000, flush=True)
    if what == "work":
        time.sleep(random.random() / 50)
    answer = {{"id": question["id"] + (what == "another"), "echo": question.get("echo"), "folder": folder}}
    print(json.dumps(answer), flush=True)
"""
"""Speaks as the planner does."""


@pytest.fixture(params=["namespaces", "none"])
def asked(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon as this system confines it, and as one without namespaces does."""
    if request.param == "none":
        monkeypatch.setattr(module, "strictest", lambda network: Isolation((), False))
    java = tmp_path / "java"
    java.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    java.chmod(0o755)
    made = Daemon(Installation(LINES["2.3"], tmp_path, java, (tmp_path / "a.jar",)), seconds=20)
    yield made
    made.close()


def root(asked: Daemon) -> int:
    assert asked._running is not None
    return asked._running.process.pid


def tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in tree(int(child)))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pids: list[int], seconds: float = 20) -> bool:
    """Whether all of these processes end within the time."""
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))


def test_one_process_answers_until_it_is_closed(asked: Daemon) -> None:
    pids = set()
    for _ in range(3):
        asked.ask({})
        pids.add(root(asked))
    assert len(pids) == 1
    all_of_it = tree(*pids)
    asked.close()
    assert ends(all_of_it)


def test_a_question_that_ends_the_process_once_is_asked_again(asked: Daemon) -> None:
    asked.ask({})
    first = root(asked)
    assert asked.ask({"exits at": 2, "echo": "here"})["echo"] == "here"
    assert root(asked) != first


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("exit", r"crashed on this script: its process ended with exit code 1; .*it called System\.exit"),
        ("memory", "crashed on this script: the script needs more memory than the planner has"),
    ],
)
def test_a_script_that_ends_the_process_twice_is_an_error_of_that_script_alone(
    asked: Daemon, what: str, words: str
) -> None:
    with pytest.raises(PlannerFailure, match=words):
        asked.ask({"what": what})
    assert asked.ask({"echo": 1})["echo"] == 1


def test_a_script_that_is_never_planned_ends_with_the_time_limit(asked: Daemon) -> None:
    asked.ask({})
    pids = tree(root(asked))
    asked.seconds = 0.3
    with pytest.raises(PlannerFailure, match="took more than 0 seconds"):
        asked.ask({"what": "hang"})
    assert ends(pids)
    assert asked.ask({"echo": 1})["echo"] == 1


def test_a_script_reaches_no_network_where_the_system_has_one_of_its_own(
    asked: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        question = {"what": "connect", "port": server.getsockname()[1]}
        if module.strictest(False).own_network:
            asked.ask(question)
        asked.close()
        monkeypatch.setenv(NETWORK_VARIABLE, "allow")
        with pytest.raises(PlannerFailure, match="exit code 2"):  # it could connect
            asked.ask(question)


def test_what_a_script_started_and_wrote_ends_with_the_process(asked: Daemon) -> None:
    seconds = f"{random.randint(10**8, 10**9)}"
    folder = Path(asked.ask({"what": "fork", "seconds": seconds})["folder"])
    pids = tree(root(asked))
    asked.close()
    assert ends(pids)
    assert subprocess.run(["pgrep", "-f", f"sleep {seconds}"], capture_output=True).stdout == b""
    assert not (folder / "left").exists()


def test_noise_on_its_output_is_no_answer(asked: Daemon) -> None:
    assert asked.ask({"what": "noise", "echo": 1})["echo"] == 1


def test_an_answer_to_another_question_is_never_taken(asked: Daemon) -> None:
    with pytest.raises(PlannerFailure, match="answered a different question"):
        asked.ask({"what": "another"})
    assert asked.ask({"echo": 1})["echo"] == 1


def test_a_script_beyond_all_size_is_not_sent(asked: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_REQUEST", 100)
    with pytest.raises(PlannerFailure, match="too large for the planner"):
        asked.ask({"what": "x" * 200})


def test_an_interrupted_question_is_not_answered_later(asked: Daemon) -> None:
    asked.ask({})
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            asked.ask({"what": "hang"})
    finally:
        timer.join()
        signal.signal(signal.SIGINT, former)
    assert asked.ask({"echo": 1})["echo"] == 1


def test_a_forked_process_has_a_daemon_of_its_own(asked: Daemon) -> None:
    asked.ask({})
    mine = root(asked)
    child = os.fork()
    if child == 0:  # any failure must end here
        with contextlib.suppress(BaseException):
            answered = asked.ask({"echo": 1})["echo"] == 1 and root(asked) != mine
            asked.close()
            os._exit(0 if answered else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    asked.ask({})
    assert root(asked) == mine


@pytest.mark.parametrize("forks", [False, True])
def test_no_process_outlives_a_killed_client(asked: Daemon, forks: bool) -> None:
    """A child that was forked after the first question still lives, and holds no pipe of the daemon."""
    asked.ask({})
    asked.close()
    read, write = os.pipe()
    client = os.fork()
    if client == 0:
        with contextlib.suppress(BaseException):
            folder = asked.ask({})["folder"]
            if forks and os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            os.write(write, f"{root(asked)} {folder}".encode())
            time.sleep(60)
        os._exit(2)
    pid, folder = os.read(read, 10_000).decode().split()
    pids = [each for each in tree(client) if each != client]
    daemons = tree(int(pid))
    assert len(daemons) > 1
    try:
        os.kill(client, signal.SIGKILL)
        os.waitpid(client, 0)
        assert ends(daemons)
        assert folder == "/dev/shm" or not Path(folder).exists()
    finally:
        for each in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def ask_while_killed(asked: Daemon, ask: Callable[[int], int], requests: int, kills: int) -> None:
    """Ask from four threads, and again until the process was killed often enough at random points.

    Each question has one answer, its own.
    """
    begin = time.monotonic()
    assert ask(0) == 0
    pause = 2 * (time.monotonic() - begin)
    over = threading.Event()
    killed: list[list[int]] = []

    def kill() -> None:
        chosen = random.Random(14)  # whose first number is small
        while not over.wait(chosen.random() * pause):
            running = asked._running
            pids = tree(running.process.pid) if running is not None else []
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chosen.choice(pids), chosen.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
                killed.append(pids)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            while len(killed) < kills:
                assert list(threads.map(ask, range(requests))) == list(range(requests))
    finally:
        over.set()
        killer.join()
        asked.close()
    assert ends([pid for pids in killed for pid in pids])


def test_each_question_is_answered_once_however_often_the_process_is_killed(asked: Daemon) -> None:
    ask_while_killed(asked, lambda each: asked.ask({"what": "work", "echo": each})["echo"], 100, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("requests", mostly_nightly([15, 500], 0))
def test_flink_answers_each_question_once_however_often_it_is_killed(
    requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Daemon(install("2.3"))
    monkeypatch.setattr("airflow_flinkcompat.planner.questions.daemon", lambda installation: made)

    def ask(number: int) -> int:
        text = (
            "CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'datagen');\n"
            f"CREATE TABLE t{number} (k STRING, v BIGINT) WITH ('connector' = 'print');\n"
            f"INSERT INTO t{number} SELECT k, SUM(v) FROM s GROUP BY k;\n"
        )
        (job,) = plan(Side(text, engine="flink", engine_version="2.3", source="a.sql"), made.installation).jobs
        (sink,) = (named for each in job.operators if (named := re.match(r"Sink: t(\d+)", each.name)))
        return int(sink[1])

    ask_while_killed(made, ask, requests, kills=1)


def test_the_strictest_way_of_this_system_is_found() -> None:
    assert module.strictest(False).own_files == module.strictest(True).own_files
    assert not module.strictest(True).own_network
