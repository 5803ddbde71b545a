"""Support for environments with sqlglot's compiled build (``sqlglotc``).

The compiled build hides sqlglot's Python files behind extension modules, and a Python class cannot extend a compiled
class. The Python sources are still installed, so this process loads them instead. The process must load them before
other code imports sqlglot; otherwise, the import of this package fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_PACKAGE = "sqlglot"


class SourceFinder(MetaPathFinder):
    """Finder of sqlglot's modules that accepts only Python sources."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a source file; None for modules of other packages."""
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        finders = (FileFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES)) for entry in path or sys.path)
        return next((spec for finder in finders if (spec := finder.find_spec(fullname)) is not None), None)


def prefer_sources() -> None:
    """Load sqlglot from its Python sources in this process, if its compiled build is installed.

    Raises ImportError if compiled modules of sqlglot are already loaded.
    """
    if any(isinstance(finder, SourceFinder) for finder in sys.meta_path) or not _is_compiled_build_installed():
        return
    compiled = sorted(name for name, module in sys.modules.items() if _is_compiled(name, module))
    if compiled:
        raise ImportError(
            "airflow-flinkcompat cannot extend the compiled build of sqlglot that this process has already loaded: "
            "import airflow_flinkcompat.sql before sqlglot, or remove the build with `pip uninstall sqlglotc`."
        )
    sys.meta_path.insert(0, SourceFinder())


def _is_compiled_build_installed() -> bool:
    spec = find_spec(_PACKAGE)
    locations = spec.submodule_search_locations if spec else None
    return any(
        (Path(location) / f"parser{suffix}").exists() for location in locations or () for suffix in EXTENSION_SUFFIXES
    )


def _is_compiled(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) or ""
    return name.partition(".")[0] == _PACKAGE and file.endswith(tuple(EXTENSION_SUFFIXES))
