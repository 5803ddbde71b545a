"""Guard process that ends a child process as soon as the child's owner dies.

Usage: ``python guard.py OWNER_PID PID_FILE COMMAND…``. The guard uses only the standard library, and Python runs it
by its file path. So it starts within milliseconds and in any environment.

Three events end the child: the guard receives TERM, the guard's standard input ends because its owner died, or the
guard's parent process changes. The guard sends TERM to the child, and KILL after ten seconds. If the guard itself is
killed, the Linux kernel ends the child (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

GRACE_SECONDS = 10.0
_POLL_SECONDS = 0.25
_PR_SET_PDEATHSIG = 1


def _dies_with_parent() -> Callable[[], None] | None:
    """Function that the child runs before exec, so that it dies with its parent.

    The function is built before the fork.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main(owner: int, pid_file: Path, command: list[str]) -> int:
    """Run the child until it ends and return its exit code, which is negative after a signal."""
    asked: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_dies_with_parent())
    pid_file.write_text(f"{child.pid}\n", encoding="ascii")
    try:
        while child.poll() is None:
            # The owner never writes to the guard's input. If the input is readable, it has ended.
            readable, _, _ = select.select([sys.stdin], [], [], _POLL_SECONDS)
            if readable or asked or os.getppid() != owner:
                _stop(child)
    finally:
        with contextlib.suppress(OSError):
            pid_file.unlink()
    if os.getppid() != owner and os.getpgrp() == os.getpid():
        # Nobody waits for the exit code. End the whole process group: the child's remaining children and this guard.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    return child.returncode


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
