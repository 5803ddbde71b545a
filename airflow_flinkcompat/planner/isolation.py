"""Isolation of the planner process: no network, no permanent files, and no surviving child processes."""

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


def set_network(asked: PlannerNetwork | None) -> None:
    """Let connectors open connections if ``asked`` is ``allow`` and the environment variable is not set."""
    if asked == "allow":
        os.environ.setdefault(NETWORK_VARIABLE, asked)


def network_allowed() -> bool:
    """True if the user allows connectors and catalogs to open connections."""
    return os.environ.get(NETWORK_VARIABLE) == "allow"


def _works(way: Isolation) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(way.around("true", (), folder), capture_output=True, timeout=10).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
