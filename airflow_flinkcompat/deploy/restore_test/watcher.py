"""A child process that ends the jobs of a rehearsal when its owner dies, however it dies.

It receives announcements of operations over its standard input: one JSON object a line, the first of which states how
to open the target. ``{"done": true}`` ends it; end-of-file without that means that the owner is gone. It then cancels
every announced job and disposes of every announced savepoint. That includes those that appear only now, because their
submission was under way when the owner died.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy.restore_test.place import Started
from airflow_flinkcompat.deploy.target import Operation
from airflow_flinkcompat.deploy.targets import TargetLocation


class Watcher:
    """The owner's end: starts the child, announces operations to it, and dismisses it."""

    def __init__(self, location: TargetLocation, started: Started | None = None) -> None:
        self.started = started or Started()
        path = filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # what ends the owner's process group leaves it alone
            text=True,
        )
        self._say(asdict(location))
        for message in self.started.messages():
            self._say(message)

    @property
    def pid(self) -> int:
        return self._child.pid

    def announce(self, operation: Operation) -> None:
        """Announce an operation before a job is started, stopped or saved, and again once it has an id."""
        self.started.take(operation)
        # A watcher that was killed is no reason to stop: the owner cleans up itself, as long as it lives.
        with contextlib.suppress(OSError):
            self._say(operation.to_dict())

    def dismiss(self) -> None:
        """Dismiss the child, which has nothing left to end."""
        with contextlib.suppress(OSError):
            self._say({"done": True})
        self._close()

    def leave(self) -> None:
        """Detach: operations may be left, and the child keeps trying by itself."""
        self._close(wait=False)

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message) + "\n")
        self._child.stdin.flush()

    def _close(self, *, wait: bool = True) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        if wait:
            self._child.wait(30)
        else:
            self._child.returncode = 0  # it outlives this object on purpose


def main() -> int:
    """Listen until the owner is done or gone. 0: nothing was left to do, or all of it was done."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the owner, whose end is what this process waits for
    first = sys.stdin.readline()
    if not first:
        return 0
    messages: list[dict[str, Any]] = []
    for line in sys.stdin:
        if not line.endswith("\n"):
            break  # the owner died before it had said it all, so before it started that
        message = json.loads(line)
        if message.get("done"):
            return 0
        messages.append(message)
    # Only now: most watchers are sent home.
    from airflow_flinkcompat.deploy.restore_test.cleaning import clean_up
    from airflow_flinkcompat.deploy.restore_test.place import Cluster

    with TargetLocation(**json.loads(first)).open() as target:
        return 1 if clean_up(Cluster(target).restore_test_target, Started.told(messages)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
