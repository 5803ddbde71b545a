"""The planner's process for one line of Flink: lines of JSON on its standard input and output.

It starts with the first question, ends with this process or when nothing was asked for some minutes, and is started
again where it died. A question that ends it twice is an error of that question alone.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from typing import IO, Any

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.planner.installation import Installation

SECONDS_A_SCRIPT = 60.0
SECONDS_OF_START = 120.0
IDLE_SECONDS = 600
NETWORK_VARIABLE = "FLINKCOMPAT_PLANNER_NETWORK"
"""The variable that is ``allow`` if connectors and catalogs may connect while a script is planned."""
_LARGEST_REQUEST = 8_000_000
_ATTEMPTS = 2
_MAIN = "flinkcompat.planner.Main"
_JAVA_OPTIONS = (
    # The first compiler only: the start takes half of the processor time.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx768m",
    "-Xss4m",
    "-Dlog4j2.configurationFile=flinkcompat-planner-log4j2.properties",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.time", "java.util")),
)
_ENDED = ""


class PlannerFailure(LocalFlinkError):
    """The planner gave no answer to a question: it died, or took too long."""


class Daemon:
    """The process of one line, which answers one question at a time.

    Args:
        installation: Its parts.
        seconds: How long one script may take once the process has started.
    """

    def __init__(self, installation: Installation, seconds: float = SECONDS_A_SCRIPT) -> None:
        self.installation = installation
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._errors: IO[bytes] | None = None
        self._asked = 0
        self._lock = threading.Lock()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Ask what Flink plans for a script.

        Args:
            question: The request without its id, as ``planner/`` takes it.

        Returns:
            The answer.

        Raises:
            PlannerFailure: There is none within the time, the process died of it twice, or it is too large.
        """
        with self._lock:
            for attempt in range(1, _ATTEMPTS + 1):
                self._asked += 1
                line = json.dumps({**question, "id": self._asked}).encode()
                if len(line) > _LARGEST_REQUEST:
                    raise PlannerFailure(f"the script is too large for the planner: over {_LARGEST_REQUEST} bytes")
                started = self._start()
                self._send(line)
                answer = self._receive(self.seconds + (SECONDS_OF_START if started else 0))
                if answer is not None:
                    return answer
                said = self._said()
                self._stop()
                if attempt == _ATTEMPTS:
                    raise PlannerFailure(f"Flink's planner died of this script{said}")
            raise AssertionError

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _start(self) -> bool:
        """Start the process unless it runs; return whether it was started."""
        if self._process is not None and self._process.poll() is None:
            return False
        self._stop()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        options = [*_JAVA_OPTIONS, f"-Dflinkcompat.idle={IDLE_SECONDS}"]
        isolated: tuple[str, ...] = ()
        if os.environ.get(NETWORK_VARIABLE) != "allow":
            isolated = network_of_its_own()
            options.append(f"-Djdk.net.hosts.file={os.devnull}")  # no name is resolved
        classpath = ":".join(map(str, self.installation.classpath))
        self._process = subprocess.Popen(
            [*isolated, str(self.installation.java), *options, "-cp", classpath, _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for this process, which then closes the pipe
        )
        answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, answers), daemon=True).start()
        self._answers = answers
        return True

    def _send(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it died: no answer will come
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """The answer; None where the process ended. Raises PlannerFailure: it takes too long."""
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            self._stop()
            raise PlannerFailure(f"Flink's planner took more than {seconds:.0f} seconds for this script") from None
        if line == _ENDED:
            return None
        answer: dict[str, Any] = json.loads(line)
        if answer["id"] != self._asked:
            self._stop()
            raise PlannerFailure("Flink's planner answered another question than the one it was asked")
        return answer

    def _said(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = [line for line in self._errors.read()[-4_000:].decode("utf-8", "replace").splitlines() if line.strip()]
        return redact(f": {lines[-1][:300]}") if lines else ""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None


@cache
def network_of_its_own() -> tuple[str, ...]:
    """Name the command that runs another one without a network.

    Returns:
        The command; empty where this system has none.
    """
    command = ("unshare", "--map-root-user", "--net")
    try:
        works = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    return command if works else ()


def _read(stream: IO[bytes] | None, answers: queue.Queue[str]) -> None:
    """Hand every answer over, and an empty one at the end."""
    assert stream is not None
    with contextlib.suppress(OSError, ValueError):  # closed while it was read
        for line in stream:
            answers.put(line.decode("utf-8"))
    answers.put(_ENDED)


_DAEMONS: dict[tuple[Any, ...], Daemon] = {}


def daemon(installation: Installation) -> Daemon:
    """The process of this Python process for a line; it is not started yet."""
    return _DAEMONS.setdefault(installation.classpath, Daemon(installation))


@atexit.register
def close_all() -> None:
    """End the processes that this Python process started."""
    for each in _DAEMONS.values():
        each.close()
    _DAEMONS.clear()
