"""What a command costs: the processor time of the whole process tree it starts, by the operating system's account."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

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

    A JVM that outlives the Python that started it is counted too: this process adopts and awaits it (Linux). Raises
    TimeoutExpired.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl: cannot adopt processes")
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, time.monotonic() - started, done.returncode, done.stdout + done.stderr)
