"""Child processes that never outlive their owner, free ports, and the search for a suitable Java."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from airflow_flinkcompat.deploy.errors import DeployError, redact
from airflow_flinkcompat.local_flink import guard

LOOPBACK = "127.0.0.1"
JAVA_VERSIONS = (17, 21)
_JAVA_REMEDY = (
    "Flink needs Java 17 or 21. Install Java (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless) or set "
    "JAVA_HOME to its folder"
)
_FIRST_PORT = 20_000
_PORT_ATTEMPTS = 100
_LOG_LINES = 12
_LOG_BYTES = 32_768
_FRAME = re.compile(r"^\s+(at |\.\.\. )")
_ERROR = re.compile(r"\b(ERROR|FATAL|Caused by)\b|^(Error|Exception|[\w.]+(Exception|Error))\b")


class LocalFlinkError(DeployError):
    """Raised if the local Flink cannot be started or one of its processes ended."""


def find_java() -> Path:
    """The ``java`` in JAVA_HOME or on PATH. Raises LocalFlinkError if Java is missing or not 17 or 21."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        raise LocalFlinkError(f"no Java found{f' in JAVA_HOME={home}' if home else ' on PATH'}. {_JAVA_REMEDY}")
    try:
        version = _java_version(found)
    except (OSError, subprocess.SubprocessError) as error:
        raise LocalFlinkError(f"{found} does not run: {error}. {_JAVA_REMEDY}") from error
    if version not in JAVA_VERSIONS:
        raise LocalFlinkError(f"{found} is Java {version or 'of an unknown version'}. {_JAVA_REMEDY}")
    return Path(found)


@cache
def _java_version(java: str) -> int | None:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def choose_ports(wanted: Mapping[str, int | None]) -> dict[str, int]:
    """A loopback port for each name.

    If the wanted port of a name is None, a free port is chosen. Raises LocalFlinkError if a port is in use.
    """
    # Keep all sockets open until every port is chosen. Otherwise one port could be chosen twice.
    with contextlib.ExitStack() as stack:
        chosen = {}
        for name, port in wanted.items():
            listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            chosen[name] = _bind(listener, port) if port else _bind_free(listener)
            if not chosen[name]:
                raise LocalFlinkError(
                    f"port {port} for {name} is in use on {LOOPBACK}: stop the process that listens there, "
                    "or choose another port"
                    if port
                    else f"no free port found on {LOOPBACK} for {name}"
                )
        return chosen


def _bind(listener: socket.socket, port: int) -> int:
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(1)
    except OSError:
        return 0
    return port


def _bind_free(listener: socket.socket) -> int:
    # Do not let the kernel choose (port 0): it uses the port range of outgoing connections. While a JVM starts
    # for seconds, any outgoing connection may occupy the port, even one to this port, which then connects to itself.
    candidates = random.sample(range(_FIRST_PORT, _first_outgoing_port()), _PORT_ATTEMPTS)
    return next((port for port in candidates if _bind(listener, port)), 0)


def _first_outgoing_port() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
        if first > _FIRST_PORT + _PORT_ATTEMPTS:
            return first
    return 32_768


@dataclass(frozen=True)
class Child:
    """A guarded child process, with its guard, the file of its process id and its log files."""

    name: str
    guard: subprocess.Popen[bytes]
    pid_file: Path
    logs: tuple[Path, ...]

    @property
    def pid(self) -> int | None:
        """The process id of the child, or None before its start and after its end."""
        with contextlib.suppress(OSError, ValueError):
            return int(self.pid_file.read_text(encoding="ascii"))
        return None

    @property
    def running(self) -> bool:
        return self.guard.poll() is None

    def log_tail(self) -> str:
        """The last errors in the logs, or the last lines if no line is an error. Secrets are masked."""
        return redact("\n".join(last_errors([line for path in self.logs for line in _tail(path)])[-_LOG_LINES:]))


def last_errors(lines: Sequence[str]) -> list[str]:
    """The errors among the log lines, without stack frames. If no line is an error, return all lines."""
    messages = [line for line in lines if line.strip() and not _FRAME.match(line)]
    return [line for line in messages if _ERROR.search(line)] or messages


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LOG_BYTES))
            return stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def spawn(
    name: str, command: Sequence[str], *, output: Path, pid_file: Path, environment: Mapping[str, str], log: Path
) -> Child:
    """Start ``command`` under a guard in a separate session. Output and errors are appended to ``output``."""
    with output.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__, str(os.getpid()), str(pid_file), *command],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    return Child(name, process, pid_file, (output, log))


def stop_all(children: Sequence[Child]) -> None:
    """Send TERM to all guards and wait. Then send KILL to process groups that outlive the grace period."""
    for child in children:
        if child.running:
            child.guard.terminate()
    for child in children:
        try:
            child.guard.wait(guard.GRACE_SECONDS + 5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.guard.pid, signal.SIGKILL)
            child.guard.wait()
        if child.guard.stdin:
            child.guard.stdin.close()
