"""Real PyFlink in a separate environment and process, which plans, submits and runs programs.

``make pyflink`` makes the environment (``.venv-pyflink``, about 850 MB); ``FLINKCOMPAT_PYFLINK`` names another one.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_flinkcompat.deploy.errors import DeployError, condense
from airflow_flinkcompat.local_flink.processes import find_java
from dev.services.jvm import FLINK_OPTIONS

HOME_VARIABLE = "FLINKCOMPAT_PYFLINK"
DEFAULT_HOME = Path(__file__).parents[2] / ".venv-pyflink"
VERSION = "2.3.0"
_RUNNER = Path(__file__).with_name("pyflink_runner.py")
_SECONDS = 600.0
JAVA_OPTIONS = " ".join(FLINK_OPTIONS)


class PyFlinkError(DeployError):
    """PyFlink is not installed, or its process died."""


class ProgramRefused(PyFlinkError):
    """A program failed; the message is from Flink or Python."""


def environment() -> Path:
    """The Python of the environment. Raises PyFlinkError where there is none, with the remedy."""
    home = Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
    python = home / "bin" / "python"
    if not python.exists():
        raise PyFlinkError(
            f"{home} is no environment with PyFlink {VERSION}: run `make pyflink`, or point {HOME_VARIABLE} to one"
        )
    return python


class PyFlink:
    """One process with one JVM during the ``with`` block, which runs programs one after the other."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        java = find_java().parents[1]
        configuration = self._work_dir / "conf"
        configuration.mkdir(parents=True, exist_ok=True)
        (configuration / "config.yaml").write_text(f"env.java.opts.all: {JAVA_OPTIONS}\n", encoding="utf-8")
        own = {"FLINK_CONF_DIR": str(configuration), "FLINK_LOG_DIR": str(self._work_dir), "JAVA_HOME": str(java)}
        with (self._work_dir / "pyflink.out").open("ab") as output:
            self._process = subprocess.Popen(
                [environment(), "-P", _RUNNER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                encoding="utf-8",
                env={**{key: value for key, value in os.environ.items() if key != "FLINK_HOME"}, **own},
                cwd=self._work_dir,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def plan(
        self, program: str, name: str, settings: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> list[str]:
        """The compiled plan of every job of a program, in order; none is started. Raises ProgramRefused."""
        return self._ask("plan", program, name, settings, arguments)

    def submit(
        self, program: str, name: str, settings: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> list[str]:
        """Ids of the jobs the program starts on the cluster that ``settings`` name. Raises ProgramRefused."""
        return self._ask("submit", program, name, settings, arguments)

    def run(
        self, program: str, name: str, settings: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> list[str]:
        """Run the program's jobs here, each to the end of what it reads; their ids. Raises ProgramRefused."""
        return self._ask("run", program, name, settings, arguments)

    def _ask(
        self, do: str, program: str, name: str, settings: Mapping[str, str] | None, arguments: Sequence[str]
    ) -> list[str]:
        request = {"do": do, "program": program, "name": name}
        line = json.dumps({**request, "settings": dict(settings or {}), "arguments": list(arguments)})
        with self._lock:
            answer = json.loads(self._answer(line))
        if "error" in answer:
            raise ProgramRefused(f"{name}: {condense(answer['error'])}")
        return list(answer["answer"])

    def _answer(self, line: str) -> str:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise PyFlinkError("PyFlink is not running: use it in a with block")
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(line + "\n")
            process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(_SECONDS):
                self._stop()
                raise PyFlinkError(f"PyFlink did not answer within {_SECONDS:.0f} s and was ended")
        answer = process.stdout.readline()
        if not answer:
            said = (self._work_dir / "pyflink.out").read_text("utf-8", "replace").splitlines()
            raise PyFlinkError("PyFlink ended; its last output:\n" + "\n".join(said[-12:]))
        return answer

    def _stop(self) -> None:
        """End the process: close its standard input, and kill it and its JVM if that is not enough."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.communicate(timeout=15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
