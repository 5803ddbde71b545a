"""Tools that the programs of ``dev`` share: run one by name, and publish its result."""

from __future__ import annotations

import ast
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path


def run_named(package: str, names: tuple[str, ...]) -> None:
    """Run the program whose name is the first argument of the command line; list all of them without one.

    Args:
        package: The package of the programs: a module each, with ``run_`` in front of its name or without.
        names: The programs.
    """
    name = sys.argv[1].replace("-", "_") if len(sys.argv) > 1 else ""
    if name not in names:
        for each in names:
            print(f"  {each.replace('_', '-'):20} {_first_line(_module(package, each))}")
        raise SystemExit(0 if name in ("", "__help", "_h") else f"error: {package} has no program {sys.argv[1]}")
    sys.argv = [f"python -m {package} {sys.argv[1]}", *sys.argv[2:]]
    runpy.run_module(_module(package, name), run_name="__main__", alter_sys=True)


def publish(text: str, file: Path | None) -> None:
    """Print the result of a program, and write it to a file if one is named."""
    sys.stdout.write(text)
    if file is not None:
        file.write_text(text, encoding="utf-8")


def _module(package: str, name: str) -> str:
    prefixed = f"{package}.run_{name}"
    return prefixed if find_spec(prefixed) else f"{package}.{name}"


def _first_line(module: str) -> str:
    spec = find_spec(module)
    path = Path(spec.origin) if spec and spec.origin else Path()
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
