"""Limits of a planner's process: no network, no lasting files, and no surviving child processes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from airflow_flinkcompat.model import PlannerNetwork
from airflow_flinkcompat.model.options import NETWORK_VARIABLE

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
"""Setup with read-only file systems, and with temporary files in memory that end with the process."""
_SHARED_FILES = f"""\
{_LIMITS}
"$@"
code=$?
rm -rf "$folder"
exit $code
"""
"""The shell removes the folder even if its client was killed."""


@dataclass(frozen=True)
class Isolation:
    """A way to confine a process.

    Attributes:
        command: The command that starts another one in its own namespaces; empty for none.
        own_files: True if the process has its own process ids and temporary files, and cannot change other files.
    """

    command: tuple[str, ...]
    own_files: bool

    @property
    def own_network(self) -> bool:
        """True if the process reaches no address at all."""
        return _NO_NETWORK in self.command

    def around(self, java: str, arguments: Sequence[str], folder: str) -> list[str]:
        """The command that runs Java with these limits."""
        script, folder = (_OWN_FILES, _OWN_FOLDER) if self.own_files else (_SHARED_FILES, folder)
        return [*self.command, "sh", "-c", script, "sh", folder, java, *arguments]


@cache
def strictest(network: bool) -> Isolation:
    """Find the strictest isolation that this system allows."""
    net = () if network else (_NO_NETWORK,)
    ways = [Isolation((*_UNSHARE, *net, *_NAMESPACES), True), Isolation((*_UNSHARE, *net), False)]
    return next((each for each in ways if each.command != _UNSHARE and _works(each)), Isolation((), False))


def set_network(asked: PlannerNetwork | None) -> None:
    """Let connectors connect if ``asked`` is ``allow`` and the environment does not forbid it."""
    if asked == "allow":
        os.environ.setdefault(NETWORK_VARIABLE, asked)


def network_allowed() -> bool:
    """True if the user lets connectors and catalogs connect."""
    return os.environ.get(NETWORK_VARIABLE) == "allow"


def _works(way: Isolation) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(way.around("true", (), folder), capture_output=True, timeout=10).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
