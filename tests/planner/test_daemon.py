"""The process that is asked: what becomes of a question that ends it, or that it never answers."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.planner import daemon as module
from airflow_flinkcompat.planner.daemon import NETWORK_VARIABLE, Daemon, PlannerFailure, network_of_its_own
from airflow_flinkcompat.planner.installation import LINES, Installation

STAND_IN = """#!{python}
import json, os, socket, sys, time
for line in sys.stdin:
    question = json.loads(line)
    what = question["what"]
    if what == "exit" or (what == "exit once" and not os.path.exists({mark!r})):
        open({mark!r}, "w").close()
        print("Exception: it called System.exit", file=sys.stderr, flush=True)
        os._exit(1)
    if what == "connect":
        try:
            socket.create_connection(("127.0.0.1", question["port"]), timeout=5)
            os._exit(2)
        except OSError:
            pass
    if what == "hang":
        time.sleep(60)
    print(json.dumps({{"id": question["id"] + (what == "another"), "pid": os.getpid()}}), flush=True)
"""
"""Speaks as the planner does."""


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Daemon]:
    java = tmp_path / "java"
    java.write_text(STAND_IN.format(python=sys.executable, mark=str(tmp_path / "mark")), encoding="utf-8")
    java.chmod(0o755)
    made = Daemon(Installation(LINES["2.3"], tmp_path, java, (tmp_path / "a.jar",)), seconds=20)
    yield made
    made.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_answers_until_it_is_closed(asked: Daemon) -> None:
    pids = {asked.ask({"what": "plan"})["pid"] for _ in range(3)}
    assert len(pids) == 1
    asked.close()
    assert not any(map(alive, pids))


def test_a_process_that_died_is_started_again(asked: Daemon) -> None:
    first = asked.ask({"what": "plan"})["pid"]
    os.kill(first, 9)
    second = asked.ask({"what": "plan"})["pid"]
    assert second != first
    assert asked.ask({"what": "exit once"})["pid"] != second


def test_a_script_that_ends_the_process_twice_is_an_error_of_that_script_alone(asked: Daemon) -> None:
    with pytest.raises(PlannerFailure, match=r"died of this script: Exception: it called System\.exit"):
        asked.ask({"what": "exit"})
    assert asked.ask({"what": "plan"})["pid"]


def test_a_script_that_is_never_planned_ends_with_the_time_limit(
    asked: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = asked.ask({"what": "plan"})["pid"]
    asked.seconds = 0.3
    with pytest.raises(PlannerFailure, match="took more than 0 seconds"):
        asked.ask({"what": "hang"})
    assert not alive(pid)
    assert asked.ask({"what": "plan"})["pid"] != pid


def test_a_script_reaches_no_network_where_the_system_has_one_of_its_own(
    asked: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        question = {"what": "connect", "port": server.getsockname()[1]}
        if network_of_its_own():
            assert asked.ask(question)["pid"]
        asked.close()
        monkeypatch.setenv(NETWORK_VARIABLE, "allow")
        with pytest.raises(PlannerFailure, match="died of this script"):  # it could connect
            asked.ask(question)


def test_an_answer_to_another_question_is_never_taken(asked: Daemon) -> None:
    with pytest.raises(PlannerFailure, match="answered another question"):
        asked.ask({"what": "another"})


def test_a_script_beyond_all_size_is_not_sent(asked: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_REQUEST", 100)
    with pytest.raises(PlannerFailure, match="too large for the planner"):
        asked.ask({"what": "x" * 200})
