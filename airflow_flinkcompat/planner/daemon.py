"""The planner process for one release line of Flink, which answers JSON lines on standard input.

The process starts with the first question. The process ends with the Python process or after some idle minutes, and
restarts after a crash. If a question crashes the process twice, only this question fails. If the process is killed from
outside, the question is repeated. The process is isolated: it has no network, no permanent files, and no surviving
child processes.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import IO, Any

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.processes import last_errors
from airflow_flinkcompat.model.options import network_allowed
from airflow_flinkcompat.planner.installation import JAVA_OPTIONS, MAIN, Installation, make_in_background

SECONDS_A_SCRIPT = 60.0
SECONDS_OF_START = 120.0
IDLE_SECONDS = 600
_LARGEST_REQUEST = 8_000_000
_LARGEST_ANSWER = 64_000_000
_DEATHS = 2
"""Number of crashes after which a question fails."""
_KILLS = 20
"""Maximum number of attempts at a question whose process is killed from outside."""
_SECONDS_OF_END = 5
_SIGNALS = (signal.SIGKILL, signal.SIGTERM)
_KILLED = frozenset(code for each in _SIGNALS for code in (-each, 128 + each))
_OUT_OF_MEMORY = 3  # of -XX:+ExitOnOutOfMemoryError
_OF_UNSHARE = "unshare: sigprocmask"  # beginning of unshare's error message after SIGKILL killed its child process
_ENDED = b""


class PlannerFailure(LocalFlinkError):
    """The planner did not answer a question: its process ended, or took too long."""


class Daemon:
    """Planner process of one line of Flink, which answers one question at a time.

    ``seconds`` limits the time for one script, apart from the start of the process.
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
                except BaseException:  # also on Ctrl-C: else the next question would receive this answer
                    self._stop()
                    raise
                self._stop()
                if len(deaths) == _DEATHS:
                    raise PlannerFailure(f"Flink's planner crashed on this script: {deaths[-1]}")
            raise PlannerFailure(
                f"Flink's planner was killed {_KILLS} times while it planned this script: "
                "a limit of this machine may be the cause: if the memory limit is below 1 GB, raise it"
            )

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Leave the planner to the parent process after a fork."""
        self._lock = threading.Lock()
        running, self._running = self._running, None
        if running is not None:
            running.forget()

    def _answer(self, line: bytes) -> dict[str, Any] | None:
        """Ask a question. Returns None if the process ended; raises PlannerFailure after a timeout."""
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
    """One planner process with its pipes and its temporary files."""

    def __init__(self, installation: Installation) -> None:
        way = strictest(network_allowed())
        options = [*JAVA_OPTIONS, f"-Dflinkcompat.idle={IDLE_SECONDS}"]
        if not network_allowed():
            options.append(f"-Djdk.net.hosts.file={os.devnull}")  # blocks the resolution of host names
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
            start_new_session=True,  # Ctrl-C reaches only the Python process, which then closes the pipe
        )
        self._said = 0
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._noise: deque[bytes] = deque(maxlen=10)
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """Send a line and wait for the answer: empty if the process ended, None after a timeout."""
        assert self.process.stdin is not None
        self._said = os.fstat(self._errors.fileno()).st_size  # skips error output of earlier questions
        with contextlib.suppress(OSError):  # the process ended
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def death(self) -> str | None:
        """The reason why the process ended; None if it was killed from outside."""
        try:
            code = self.process.wait(_SECONDS_OF_END)
        except subprocess.TimeoutExpired:
            return "it closed its standard output"
        self._errors.seek(max(self._said, self._errors.seek(0, os.SEEK_END) - 4_000))
        said = (self._errors.read() + b"\n" + b"".join(self._noise)).decode("utf-8", "replace")
        if code == _OUT_OF_MEMORY or "OutOfMemoryError" in said:
            return "the script needs more memory than the planner has"
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
        self._reader.join(_SECONDS_OF_END)  # until Java closes its output
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._errors.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self) -> None:
        """Close inherited pipes, so that the process ends when its owner closes the original pipe."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(AttributeError, OSError):
                stream.raw.close()  # type: ignore[union-attr] # avoids a lock that a thread of the parent may hold
        self.process.returncode = 0  # suppresses the warning about an unawaited child

    def _read(self, stream: IO[bytes]) -> None:
        """Put every answer into the queue, and an empty answer at the end."""
        with contextlib.suppress(OSError, ValueError):  # closed by another thread
            while line := stream.readline(_LARGEST_ANSWER):
                if line.startswith(b'{"id":') and line.endswith(b"\n"):
                    self._answers.put(line)
                else:  # a jar wrote to the descriptor, or the process died in the middle of an answer
                    self._noise.append(line[-300:])
        self._answers.put(_ENDED)


_ALL: weakref.WeakSet[Daemon] = weakref.WeakSet()
_DAEMONS: dict[tuple[Any, ...], Daemon] = {}


def daemon(installation: Installation) -> Daemon:
    """The shared planner process for a line of Flink; the first question starts the process."""
    return _DAEMONS.setdefault(installation.classpath, Daemon(installation))


@atexit.register
def close_all() -> None:
    """End all planner processes of this Python process, and make missing class archives."""
    for each in _DAEMONS.values():
        each.close()
        if each.asked:
            make_in_background(each.installation)
    _DAEMONS.clear()


def _forget_all() -> None:
    for each in tuple(_ALL):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)


_UNSHARE = ("unshare", "--map-root-user")
_NAMESPACES = ("--pid", "--fork", "--kill-child", "--mount-proc")
_NO_NETWORK = "--net"
_OWN_FOLDER = "/dev/shm"
_LIMITS = """\
ulimit -c 0; ulimit -f 262144
folder=$1; java=$2; shift 2
set -- "$java" -Djava.io.tmpdir="$folder" -XX:ErrorFile="$folder/crash.log" "$@"
"""
_OWN_FILES = f"""\
{_LIMITS}
for each in $(cut -d ' ' -f 5 /proc/self/mountinfo); do mount -o remount,bind,ro "$each" 2>/dev/null; done
mount -t tmpfs -o size=256m,mode=700 tmpfs "$folder" && exec "$@"
"""
"""Shell script with read-only file systems and an in-memory folder for temporary files."""
_SHARED_FILES = f"""\
{_LIMITS}
"$@"
code=$?
rm -rf "$folder"
exit $code
"""
"""Shell script that removes the temporary folder after Java ends, even without the Python process."""


@dataclass(frozen=True)
class Isolation:
    """Isolation of a process by Linux namespaces.

    Attributes:
        command: Prefix of the command line that creates the namespaces; empty without isolation.
        own_files: True if the process has separate process ids and temporary files, and cannot change other files.
    """

    command: tuple[str, ...]
    own_files: bool

    @property
    def own_network(self) -> bool:
        """True if the process cannot reach any network address."""
        return _NO_NETWORK in self.command

    def around(self, java: str, arguments: Sequence[str], folder: str) -> list[str]:
        """Command line that runs Java in this isolation."""
        script, folder = (_OWN_FILES, _OWN_FOLDER) if self.own_files else (_SHARED_FILES, folder)
        return [*self.command, "sh", "-c", script, "sh", folder, java, *arguments]


@cache
def strictest(network: bool) -> Isolation:
    """Find the strictest isolation that the operating system allows."""
    net = () if network else (_NO_NETWORK,)
    ways = [Isolation((*_UNSHARE, *net, *_NAMESPACES), True), Isolation((*_UNSHARE, *net), False)]
    return next((each for each in ways if each.command != _UNSHARE and _works(each)), Isolation((), False))


def _works(way: Isolation) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(way.around("true", (), folder), capture_output=True, timeout=10).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
