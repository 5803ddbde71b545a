"""Common tools of ``dev``: run a program by name, publish its result, and measure a command's cost."""

from __future__ import annotations

import argparse
import ast
import ctypes
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def run_named(package: str, names: tuple[str, ...]) -> None:
    """Run the program that the first argument names; without arguments, list all programs."""
    name = sys.argv[1].replace("-", "_") if len(sys.argv) > 1 else ""
    if name not in names:
        for each in names:
            print(f"  {each.replace('_', '-'):20} {_first_line(_module(package, each))}")
        raise SystemExit(0 if name in ("", "__help", "_h") else f"error: {package} has no program {sys.argv[1]}")
    sys.argv = [f"python -m {package} {sys.argv[1]}", *sys.argv[2:]]
    runpy.run_module(_module(package, name), run_name="__main__", alter_sys=True)


def _module(package: str, name: str) -> str:
    prefixed = f"{package}.run_{name}"
    return prefixed if find_spec(prefixed) else f"{package}.{name}"


def _first_line(module: str) -> str:
    spec = find_spec(module)
    path = Path(spec.origin) if spec and spec.origin else Path()
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def benchmark_parser(doc: str | None) -> argparse.ArgumentParser:
    """Parser for the options of a benchmark, with its docstring as help, and ``--write FILE``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the result into this file, too")
    return parser


def explanation(doc: str | None) -> str:
    """Docstring of a program without its first line, as Markdown."""
    return (doc or "").partition("\n\n")[2].strip().replace("``", "`")


def publish(lines: Iterable[str], file: Path | None) -> None:
    """Print each line of a result as it is measured, and write all lines so far to a file if set."""
    found: list[str] = []
    for line in lines:
        print(line, flush=True)
        found.append(line)
        if file is not None:  # a run that ends early leaves what it measured
            file.write_text("\n".join(found) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Cost:
    """Processor seconds (user and system, all child processes), elapsed seconds, exit status."""

    cpu: float
    wall: float
    status: int
    output: str = ""


def cost_of(command: Sequence[str], timeout: float) -> Cost:
    """Run a command until all processes that it started have ended, and return its cost.

    A separate process measures the cost, so that other children of this process are not affected. Raises
    TimeoutExpired.
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
    """Cost of a command, including a JVM that outlives its Python: this process adopts it (Linux)."""
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
