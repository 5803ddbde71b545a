"""Means of a fast start: lazy names, cached properties, quick values, and modules that moved."""

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
        """``functools.cached_property`` of Python 3.12; that of 3.11 takes a lock, which costs three calls."""

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
    """``__getattr__`` and ``__dir__`` of a package that imports a module when one of its names is used.

    ``homes``: modules, as paths from the package or in full, and the names that each is the home of.
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
    """Import of modules that moved into the subpackage ``home`` by their former paths as well.

    ``names``: the first part of each former path, below the package.
    """

    def __init__(self, package: str, home: str, names: frozenset[str]) -> None:
        self._package, self._home, self._names = package, home, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Claim the former paths."""
        root, _, rest = fullname.partition(".")
        return ModuleSpec(fullname, self) if root == self._package and rest.partition(".")[0] in self._names else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at its present path; for a former package, one that looks its names up there."""
        present = import_module(f"{self._package}.{self._home}{spec.name.removeprefix(self._package)}")
        if not hasattr(present, "__path__"):
            spec.loader_state = present.__spec__
            return present
        package = ModuleType(spec.name, present.__doc__)
        package.__path__ = []  # its modules come from here too, not a second time from the folder
        package.__dict__["__getattr__"] = partial(getattr, present)
        return package

    def exec_module(self, module: ModuleType) -> None:
        """Keep the present spec of a module, which has run already."""
        if module.__spec__ and module.__spec__.loader_state:
            module.__spec__ = module.__spec__.loader_state


Value = TypeVar("Value")


def quick_init(kind: type[Value]) -> type[Value]:
    """Give a frozen dataclass an ``__init__`` that fills its ``__dict__``: it takes half of the time.

    That of ``dataclasses`` calls ``object.__setattr__`` for each field, which was a tenth of a check. The class has no
    slots, and each field is an argument or has a constant default; otherwise it raises TypeError.
    """
    every = fields(kind)  # type: ignore[arg-type]
    if any(not each.init or each.default_factory is not MISSING for each in every):
        raise TypeError(f"{kind.__name__}: a field is not given or has no constant default")
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
    """Fields as parameters, keyword-only ones last."""
    for only_by_name in (False, True):
        found = [each for each in every if each.kw_only is only_by_name]
        if only_by_name and found:
            yield "*"
        yield from (each.name if each.default is MISSING else f"{each.name}=_{each.name}" for each in found)
