"""Guard that ends a child process when the owner dies, in whatever way.

``python guard.py OWNER_PID PID_FILE COMMAND…`` — standard library only, run by path, so that it starts in milliseconds
and in any environment. Three things end the child: TERM to the guard, end-of-file on the guard's standard input (held
open by the owner), and another parent process than the owner. The guard sends TERM, and KILL after ten seconds. If
the guard itself is killed, the kernel ends the child on Linux (PR_SET_PDEATHSIG).
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
    """Function that ties the child to its parent before exec; loaded before the fork."""
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
    """The child's exit code after its end; negative if a signal ended it."""
    asked: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_dies_with_parent())
    pid_file.write_text(f"{child.pid}\n", encoding="ascii")
    try:
        while child.poll() is None:
            # The owner never writes: readable means end-of-file.
            readable, _, _ = select.select([sys.stdin], [], [], _POLL_SECONDS)
            if readable or asked or os.getppid() != owner:
                _stop(child)
    finally:
        with contextlib.suppress(OSError):
            pid_file.unlink()
    if os.getppid() != owner and os.getpgrp() == os.getpid():
        # Nobody waits for this exit code any more: end what the child could not end of its own children, and this.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    return child.returncode


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
