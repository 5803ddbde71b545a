"""What a command costs: the processor time of the whole process tree it starts, by the operating system's account."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time (user and system, all processes of the tree), seconds by the clock, exit status."""

    cpu: float
    wall: float
    status: int
    output: str = ""


def cost_of(command: Sequence[str], timeout: float) -> Cost:
    """Runs a command to the end of every process it started, also of those it did not wait for.

    A process of its own does the counting, so that children of this one are left alone. Raises TimeoutExpired.
    """
    counter = [sys.executable, "-m", __name__, *command]
    with subprocess.Popen(counter, stdout=subprocess.PIPE, text=True, start_new_session=True) as counting:
        try:
            answer, _ = counting.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(counting.pid, signal.SIGKILL)
            raise
    return Cost(**json.loads(answer))


def _counted(command: Sequence[str]) -> Cost:
    """A JVM that outlives the Python that started it is counted too: this process adopts and awaits it (Linux)."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl: cannot adopt processes")
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - started, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    print(json.dumps(asdict(_counted(sys.argv[1:]))))
