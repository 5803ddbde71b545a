"""The planner's process for one line of Flink: lines of JSON on its standard input and output.

It starts with the first question, and ends with this process or after some idle minutes. It restarts after a crash.
A question that crashes it twice is an error of that question alone. A question whose process was killed from outside
is asked again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from typing import IO, Any

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.processes import last_errors
from airflow_flinkcompat.planner import isolation
from airflow_flinkcompat.planner.installation import JAVA_OPTIONS, MAIN, Installation, make_in_background

SECONDS_A_SCRIPT = 60.0
SECONDS_OF_START = 120.0
IDLE_SECONDS = 600
_LARGEST_REQUEST = 8_000_000
_LARGEST_ANSWER = 64_000_000
_DEATHS = 2
"""Maximum number of processes that a question may crash."""
_KILLS = 20
"""Maximum number of processes of a question that may be killed from outside."""
_SECONDS_OF_END = 5
_SIGNALS = (signal.SIGKILL, signal.SIGTERM)
_KILLED = frozenset(code for each in _SIGNALS for code in (-each, 128 + each))
_OUT_OF_MEMORY = 3  # of -XX:+ExitOnOutOfMemoryError
_OF_UNSHARE = "unshare: sigprocmask"  # what it says where its child was killed by SIGKILL
_ENDED = b""


class PlannerFailure(LocalFlinkError):
    """The planner did not answer a question: it died, or took too long."""


class Daemon:
    """The planner process of one line of Flink, which answers one question at a time.

    ``seconds`` limits the time for one script after the start.
    """

    def __init__(self, installation: Installation, seconds: float = SECONDS_A_SCRIPT) -> None:
        self.installation = installation
        self.seconds = seconds
        self.asked = 0
        self._lock = threading.Lock()
        self._running: _Running | None = None
        _ALL.add(self)

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for Flink's plan of a script."""
        with self._lock:
            deaths: list[str] = []
            for _ in range(_KILLS):
                self.asked += 1
                line = json.dumps({**question, "id": self.asked}).encode()
                if len(line) > _LARGEST_REQUEST:
                    raise PlannerFailure(f"the script is too large for the planner: over {_LARGEST_REQUEST} bytes")
                try:
                    answer = self._answer(line)
                    if answer is not None:
                        return answer
                    if (death := self._death()) is not None:
                        deaths.append(death)
                except BaseException:  # Ctrl-C too: the next answer would be that to this question
                    self._stop()
                    raise
                self._stop()
                if len(deaths) == _DEATHS:
                    raise PlannerFailure(f"Flink's planner crashed on this script: {deaths[-1]}")
            raise PlannerFailure(
                f"Flink's planner was killed {_KILLS} times while it planned this script: "
                "something on this machine ends it, for instance a memory limit below 1 GB: raise it"
            )

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Leave the planner to the process from which this one was forked."""
        self._lock = threading.Lock()
        running, self._running = self._running, None
        if running is not None:
            running.forget()

    def _answer(self, line: bytes) -> dict[str, Any] | None:
        """The answer; None if the process ended. Raises PlannerFailure if it takes too long."""
        seconds = self.seconds
        if self._running is None or self._running.process.poll() is not None:
            self._stop()
            self._running = _Running(self.installation)
            seconds += SECONDS_OF_START
        said = self._running.ask(line, seconds)
        if said is None:
            raise PlannerFailure(f"Flink's planner took more than {self.seconds:.0f} seconds for this script")
        if said == _ENDED:
            return None
        answer: dict[str, Any] = json.loads(said)
        if answer["id"] != self.asked:
            raise PlannerFailure("Flink's planner answered a different question")
        return answer

    def _death(self) -> str | None:
        assert self._running is not None
        return self._running.death()

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()


class _Running:
    """One process with its pipes and its temporary files."""

    def __init__(self, installation: Installation) -> None:
        way = isolation.strictest(isolation.network_allowed())
        options = [*JAVA_OPTIONS, f"-Dflinkcompat.idle={IDLE_SECONDS}"]
        if not isolation.network_allowed():
            options.append(f"-Djdk.net.hosts.file={os.devnull}")  # no name is resolved
        if (archive := installation.class_archive).is_file():
            options.append(f"-XX:SharedArchiveFile={archive}")
        arguments = [*options, "-cp", ":".join(map(str, installation.classpath)), MAIN]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._folder = "" if way.own_files else tempfile.mkdtemp(prefix="flinkcompat-planner-")
        self.process = subprocess.Popen(
            way.around(str(installation.java), arguments, self._folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for this process, which then closes the pipe
        )
        self._said = 0
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._noise: deque[bytes] = deque(maxlen=10)
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """The answer; empty if the process ended, None if it takes longer."""
        assert self.process.stdin is not None
        self._said = os.fstat(self._errors.fileno()).st_size  # what it said of others before
        with contextlib.suppress(OSError):  # it died: no answer will come
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def death(self) -> str | None:
        """The cause of the process's end; None if it was killed from outside."""
        try:
            code = self.process.wait(_SECONDS_OF_END)
        except subprocess.TimeoutExpired:
            return "it closed its standard output"
        self._errors.seek(max(self._said, self._errors.seek(0, os.SEEK_END) - 4_000))
        said = (self._errors.read() + b"\n" + b"".join(self._noise)).decode("utf-8", "replace")
        if code == _OUT_OF_MEMORY or "OutOfMemoryError" in said:
            return "it needs more memory than the planner has"
        if code in _KILLED or (code == 1 and _OF_UNSHARE in said):
            return None
        lines = last_errors(said.splitlines())
        ended = f"its process ended with signal {-code}" if code < 0 else f"its process ended with exit code {code}"
        return redact(f"{ended}; its last words: {lines[-1][:300]}") if lines else ended

    def stop(self) -> None:
        """End the process and its children, and remove its files."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(_SECONDS_OF_END)  # until Java has ended too
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._errors.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self) -> None:
        """Close inherited files, so that the process ends when its owner closes the pipe."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(AttributeError, OSError):
                stream.raw.close()  # type: ignore[union-attr] # without the lock of a thread that is not here
        self.process.returncode = 0  # nobody waits for it here

    def _read(self, stream: IO[bytes]) -> None:
        """Pass every answer on, and an empty one at the end."""
        with contextlib.suppress(OSError, ValueError):  # closed while it was read
            while line := stream.readline(_LARGEST_ANSWER):
                if line.startswith(b'{"id":') and line.endswith(b"\n"):
                    self._answers.put(line)
                else:  # a jar wrote to the descriptor, or the process died in the middle of an answer
                    self._noise.append(line[-300:])
        self._answers.put(_ENDED)


_ALL: weakref.WeakSet[Daemon] = weakref.WeakSet()
_DAEMONS: dict[tuple[Any, ...], Daemon] = {}


def daemon(installation: Installation) -> Daemon:
    """The planner process for a line, shared in this Python process; the first question starts it."""
    return _DAEMONS.setdefault(installation.classpath, Daemon(installation))


@atexit.register
def close_all() -> None:
    """End the planner processes of this Python process, and make the class archives that they lacked."""
    for each in _DAEMONS.values():
        each.close()
        if each.asked:
            make_in_background(each.installation)
    _DAEMONS.clear()


def _forget_all() -> None:
    for each in tuple(_ALL):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)
