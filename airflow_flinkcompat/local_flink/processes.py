"""Child processes that never outlive their owner, free ports, and the Java that runs them."""

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
    "Flink needs Java 17 or 21: install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or point JAVA_HOME to one"
)
_FIRST_PORT = 20_000
_PORT_ATTEMPTS = 100
_LOG_LINES = 12
_LOG_BYTES = 32_768
_FRAME = re.compile(r"^\s+(at |\.\.\. )")
_ERROR = re.compile(r"\b(ERROR|FATAL|Caused by)\b|^(Error|Exception|[\w.]+(Exception|Error))\b")


class LocalFlinkError(DeployError):
    """The local Flink cannot be started, or a part of it died."""


def find_java() -> Path:
    """The ``java`` of JAVA_HOME, else of PATH. Raises LocalFlinkError without a Java 17 or 21."""
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
    """A port on loopback for each name, None for a free one; raises LocalFlinkError if one is in use."""
    # All sockets stay open until every port is chosen, or one port would be handed out twice.
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
    # Not the kernel's choice (port 0): that is from the range of outgoing connections, and while a JVM takes seconds
    # to start, any connection may take the port again — even one made to it, which then talks to itself.
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
    """One guarded child process: its guard, and the files that hold its process id and its output."""

    name: str
    guard: subprocess.Popen[bytes]
    pid_file: Path
    logs: tuple[Path, ...]

    @property
    def pid(self) -> int | None:
        """The process id of the child; None before its start and after its end."""
        with contextlib.suppress(OSError, ValueError):
            return int(self.pid_file.read_text(encoding="ascii"))
        return None

    @property
    def running(self) -> bool:
        return self.guard.poll() is None

    def log_tail(self) -> str:
        """Its last errors, or its last lines if none is an error, without stack frames, secrets masked."""
        return redact("\n".join(last_errors([line for path in self.logs for line in _tail(path)])[-_LOG_LINES:]))


def last_errors(lines: Sequence[str]) -> list[str]:
    """The errors among the lines of a log, without stack frames; all lines if none is an error."""
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
    """Start ``command`` under a guard, in a session of its own, with output and errors to ``output``."""
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
    """Send TERM to all and wait; then send KILL to the process groups that outlive the guard's grace."""
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
