"""Tools for a fast start: names that load on first use, cached properties and cheap dataclasses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """``functools.cached_property`` as of Python 3.12. In 3.11 it acquires a lock, which is slow."""

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self.make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.make(instance)
            return value


__all__ = ["MovedModules", "cached_property", "lazy_names", "quick_init"]


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that imports its modules on first use.

    ``homes`` maps each module, as an absolute or relative path, to the names that it defines.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name], package), name)
        setattr(modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *home_of})

    return load, names


class MovedModules(MetaPathFinder, Loader):
    """Import of modules by their former paths, after they moved into the subpackage ``home``.

    ``names`` contains the first part of each former path, without the package.
    """

    def __init__(self, package: str, home: str, names: frozenset[str]) -> None:
        self._package, self._home, self._names = package, home, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module at a former path; None for any other module."""
        root, _, rest = fullname.partition(".")
        return ModuleSpec(fullname, self) if root == self._package and rest.partition(".")[0] in self._names else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at its present path. A former package becomes a proxy for the present one."""
        present = import_module(f"{self._package}.{self._home}{spec.name.removeprefix(self._package)}")
        if not hasattr(present, "__path__"):
            spec.loader_state = present.__spec__
            return present
        package = ModuleType(spec.name, present.__doc__)
        package.__path__ = []  # so that submodules are imported through this finder, not a second time from the folder
        package.__dict__["__getattr__"] = partial(getattr, present)
        return package

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the present module, which has already run."""
        if module.__spec__ and module.__spec__.loader_state:
            module.__spec__ = module.__spec__.loader_state


Value = TypeVar("Value")


def quick_init(kind: type[Value]) -> type[Value]:
    """Give a frozen dataclass an ``__init__`` that fills its ``__dict__`` and is twice as fast.

    The ``__init__`` of ``dataclasses`` calls ``object.__setattr__`` for each field, which took a tenth of a check's
    time. The class must have no slots. Each field must be an argument and may only have a constant default; otherwise
    a TypeError is raised.
    """
    every = fields(kind)  # type: ignore[arg-type]
    if any(not each.init or each.default_factory is not MISSING for each in every):
        raise TypeError(f"{kind.__name__}: a field is not an argument of __init__, or its default is not a constant")
    lines = [f"def __init__(self, {', '.join(_parameters(every))}):", " _values = self.__dict__"]
    lines += [f" _values[{each.name!r}] = {each.name}" for each in every]
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    made: dict[str, Any] = {f"_{each.name}": each.default for each in every}
    exec("\n".join(lines), made)
    made["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = made["__init__"]  # type: ignore[method-assign]
    return kind


def _parameters(every: tuple[Field[Any], ...]) -> Iterator[str]:
    """Parameters for the fields; keyword-only parameters are last."""
    for only_by_name in (False, True):
        found = [each for each in every if each.kw_only is only_by_name]
        if only_by_name and found:
            yield "*"
        yield from (each.name if each.default is MISSING else f"{each.name}=_{each.name}" for each in found)
