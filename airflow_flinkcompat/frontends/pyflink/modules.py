"""Modules that lie beside a program: read as text where they are imported, and never imported."""

from __future__ import annotations

import ast
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink import paths
from airflow_flinkcompat.frontends.pyflink.binding import Binder
from airflow_flinkcompat.frontends.pyflink.objects import Module, NameScope
from airflow_flinkcompat.frontends.table_api.values import Const, NotRead
from airflow_flinkcompat.sql import ScriptError


def parsed(text: str, source: str) -> ast.Module:
    """The tree of a program. Raises :class:`~airflow_flinkcompat.sql.ScriptError` where the text is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise ScriptError(f"{source}:{error.lineno or 1}: is not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptError(
            f"{source}: cannot be read as Python: it is nested too deeply, or holds a null byte"
        ) from None


@dataclass(eq=False)
class Modules(Binder):
    """Reads modules; each once, as Python does."""

    modules: dict[str, Module | None] = field(default_factory=dict)

    @abstractmethod
    def block(self, body: Iterable[ast.stmt], frame: NameScope) -> None:
        """Read statements."""

    def module(self, name: str) -> Module | None:
        if name.partition(".")[0] == "pyflink" or not all(part.isidentifier() for part in name.split(".")):
            return None
        if name not in self.modules:
            self.step()
            above = name.rpartition(".")[0]
            if above:
                self.module(above)
            self.modules[name] = None
            if self._read(name) and above and self.modules.get(above) is None:
                self.modules[above] = Module(above, NameScope({}, package=above))
        return self.modules[name]

    def _read(self, name: str) -> bool:
        stem = name.replace(".", "/")
        for path, package in ((f"{stem}/__init__.py", name), (f"{stem}.py", name.rpartition(".")[0])):
            text = self.files.text(path)
            if text is None:
                continue
            text = text.removeprefix("\ufeff")
            try:
                tree = parsed(text, path)
            except ScriptError as error:
                raise NotRead(f"a module beside the program is not read: {error}") from None
            for part in ast.walk(tree):
                self.step()
                part.file = path  # type: ignore[attr-defined]
            frame = NameScope(
                {"__name__": Const(name), "__file__": Const(f"{paths.PROGRAM}/{path}")}, file=path, package=package
            )
            self.session.texts[path] = text
            self.session.trees[path] = tree
            self.modules[name] = Module(name, frame)
            self.block(tree.body, frame)
            return True
        return False
