"""What is made on first use: the names of a package, and values that are worked out of another one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """``functools.cached_property`` as Python 3.12 has it: that of 3.11 takes a lock, which costs three calls."""

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


__all__ = ["cached_property", "lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports its modules only when one of their names is used.

    Args:
        package: The package's ``__name__``.
        homes: Modules, as paths from the package or in full, and the names that each is the home of.

    Returns:
        Both functions, for a package to take as its own.
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
