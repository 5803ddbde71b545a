"""What the packages export is documented: what each argument is, what comes back, what is raised."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

import pytest

import airflow_flinkcompat

PREFIX = "airflow_flinkcompat"


def packages() -> Iterator[str]:
    """Every package that says what it exports."""
    yield PREFIX
    for module in pkgutil.walk_packages(airflow_flinkcompat.__path__, f"{PREFIX}."):
        if module.ispkg and hasattr(importlib.import_module(module.name), "__all__"):
            yield module.name


def exported() -> dict[str, Any]:
    """The package's own functions and classes that a package exports, by their full name."""
    found: dict[str, Any] = {}
    for package in packages():
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, (FunctionType, type)) and value.__module__.startswith(PREFIX):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def protocols(values: Iterable[Any]) -> dict[str, Any]:
    """The protocols that stand beside these values in their modules, by their full name."""
    modules = {value.__module__ for value in values}
    return {
        f"{module}.{name}": value
        for module in sorted(modules)
        for name, value in vars(sys.modules[module]).items()
        if isinstance(value, type) and vars(value).get("_is_protocol") and value.__module__ == module
    }


def documented_above(value: type, key: str) -> bool:
    """Whether a base class, or a protocol whose public methods the class all has, documents a method of this name."""
    followed = (
        each for each in PROTOCOLS.values() if each is not value and all(map(partial(hasattr, value), public(each)))
    )
    return any(key in vars(base) for base in (*value.__mro__[1:], *followed))


def public(value: type) -> Iterator[str]:
    """The names of the public functions that a class defines itself."""
    fields = getattr(value, "__dataclass_fields__", {})
    for key, member in vars(value).items():
        function = isinstance(member, (FunctionType, classmethod, staticmethod))
        if function and not key.startswith("_") and key not in fields:
            yield key


def callables(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A function itself, or the public methods of a class that are documented nowhere above it."""
    if isinstance(value, FunctionType):
        yield name, value
        return
    for key in public(value):
        if not documented_above(value, key):
            yield f"{name}.{key}", inspect.unwrap(getattr(value, key))


def missing_arguments(signature: inspect.Signature, doc: str) -> list[str]:
    """The parameters that the section Args of a docstring does not name; ``**kwargs`` are a base class's."""
    arguments = doc.partition("Args:\n")[2].partition("\n\n")[0]
    names = [each for each in signature.parameters if each not in ("self", "kwargs")]
    return [f"Args: {each}" for each in names if f"    {each}:" not in arguments and f"*{each}:" not in arguments]


def undocumented_constructor(value: Any) -> list[str]:
    """The parameters of a class's own constructor that its docstring lacks; the package alone makes its exceptions."""
    constructor = inspect.unwrap(vars(value).get("__init__", object.__init__)) if isinstance(value, type) else None
    written = isinstance(constructor, FunctionType) and not getattr(value, "_is_protocol", False)
    if not written or "__dataclass_fields__" in vars(value) or issubclass(value, Exception):
        return []
    return missing_arguments(inspect.signature(constructor), inspect.getdoc(value) or "")


def undocumented(function: Callable[..., Any]) -> list[str]:
    """What the docstring of a function lacks."""
    doc = inspect.getdoc(function) or ""
    if not doc:
        return ["docstring"]
    signature = inspect.signature(function)
    lacking = missing_arguments(signature, doc)
    if signature.return_annotation not in (None, "None", "Self", "Never", "NoReturn") and not (
        "Returns:" in doc or "Yields:" in doc
    ):
        lacking.append("Returns")
    source = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if raises(source.body[0]) and "Raises:" not in doc:
        lacking.append("Raises")
    return lacking


def raises(node: ast.AST) -> bool:
    """Whether a function raises an error itself, the functions inside it left out."""
    children = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.FunctionDef)]
    return any(isinstance(each, ast.Raise) and each.exc is not None for each in children) or any(map(raises, children))


EXPORTING = frozenset(packages())
EXPORTED = exported()
PROTOCOLS = protocols(EXPORTED.values())
DOCUMENTED = EXPORTED | PROTOCOLS


def test_a_package_that_holds_something_says_what_it_exports() -> None:
    """Else nothing of it would be looked at here."""
    silent = []
    for module in pkgutil.walk_packages(airflow_flinkcompat.__path__, f"{PREFIX}."):
        if not module.ispkg or module.name in EXPORTING:
            continue
        own = vars(importlib.import_module(module.name))
        if any(isinstance(each, (FunctionType, type)) for name, each in own.items() if not name.startswith("_")):
            silent.append(module.name)
    assert silent == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_a_package_exports_is_documented(name: str) -> None:
    value = DOCUMENTED[name]
    lacking = {each: found for each, function in callables(name, value) if (found := undocumented(function))}
    generated = dataclasses.is_dataclass(value) and (value.__doc__ or "").startswith(f"{value.__name__}(")
    if not value.__doc__ or generated or has_only_the_docstring_of_enum(value):
        lacking[name] = ["docstring"]
    if missing := undocumented_constructor(value):
        lacking[f"{name}.__init__"] = missing
    assert not lacking


def has_only_the_docstring_of_enum(value: Any) -> bool:
    """Whether an enum has only the docstring that every enum has."""
    return isinstance(value, type) and issubclass(value, enum.Enum) and value.__doc__ in (None, enum.Enum.__doc__)
