"""What Python itself makes of a program's names: functions, classes, objects of them, modules, paths and files."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.table_api.values import LanguageObject, Value


class ProgramEnded(Exception):
    """The program ends here."""


EVERYTHING = "*"
"""Stands in a module for all the names that ``from … import *`` may have bound."""


@dataclass(eq=False)
class NameScope:
    """The names of a module or of one call of a function; ``outer`` is where the others are looked up."""

    names: dict[str, Value] = field(default_factory=dict)
    outer: NameScope | None = None
    elsewhere: dict[str, NameScope] = field(default_factory=dict)
    """Names that a ``global`` or ``nonlocal`` statement leaves to another frame."""
    function: Function | None = None
    """The function whose call this is."""
    file: str = ""
    """Of a module, where its text lies: empty for the program itself."""
    package: str = ""
    """Of a module, the package that ``from . import`` starts at."""
    doubt: str = ""
    """Of a call, why what it returns is not known, whatever that is."""
    of_class: bool = False
    """Whether these are the names of a class while its body is read: no function in it sees them."""

    @property
    def around(self) -> NameScope:
        """Where a function or a comprehension that stands here looks its names up."""
        return self if not self.of_class or self.outer is None else self.outer.around

    @property
    def module(self) -> NameScope:
        return self if self.outer is None else self.outer.module

    def find(self, name: str) -> Value | None:
        """The value of a name; None where nothing binds it, and nothing could have by an import of everything."""
        scope: NameScope | None = self
        while scope is not None:
            scope = scope.elsewhere.get(name, scope)
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return self.module.names.get(EVERYTHING)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name here, or where a ``global`` or ``nonlocal`` statement says."""
        self.elsewhere.get(name, self).names[name] = value


@dataclass(eq=False)
class Function(LanguageObject):
    """A function of the program; ``defaults`` are those of its parameters, as they were where it was defined.

    ``how`` is ``staticmethod``, ``classmethod``, ``property``, ``cached property`` or ``cached`` where a decorator says
    so; ``receiver`` is what a method was taken from, ``home`` the class it stands in. ``bound`` and ``named`` are
    arguments that ``functools.partial`` already gave.
    """

    node: ast.FunctionDef | ast.Lambda
    frame: NameScope
    defaults: dict[str, Value]
    how: str = ""
    receiver: Value | None = None
    home: Class | None = None
    bound: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    answers: list[Value] = field(default_factory=list)
    """What a cached function answered; all copies of one definition share it."""

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "a lambda"


@dataclass(eq=False)
class Class(LanguageObject):
    """A class of the program: what its body binds, its one base, and the fields of a dataclass in order.

    ``opaque`` says why objects of it are not read; ``function`` is the kind of the Python function that Flink makes of
    such an object (``scalar``, ``table``, ``aggregate``, ``table aggregate``), empty where it is none.
    """

    node: ast.ClassDef
    frame: NameScope
    names: dict[str, Value]
    base: Class | None = None
    fields: tuple[str, ...] | None = None
    opaque: str = ""
    strange: bool = False
    """Whether nobody knows what else an object of an opaque class does."""
    function: str = ""
    broken: str = ""
    listed: bool = False
    """Whether it is an Enum: what its body binds are its members."""
    filled: dict[str, Value] = field(default_factory=dict)
    """The defaults of its own fields, as they were where it was defined."""

    def find(self, name: str) -> Value | None:
        """The value of a name here or in a base; None where none binds it."""
        if name in self.names:
            return self.names[name]
        return None if self.base is None else self.base.find(name)

    def line(self) -> tuple[Class, ...]:
        """The class and its bases, nearest first."""
        return (self, *(() if self.base is None else self.base.line()))

    @property
    def doubt(self) -> str:
        """Why it, or a base of it, is not read; empty where all of them are."""
        return next((why for each in self.line() if (why := each.opaque or each.broken)), "")

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """The fields an object of it is made with, its own or its nearest base's; None where neither has any."""
        return next((each.fields for each in self.line() if each.fields is not None), None)


@dataclass(eq=False)
class Instance(LanguageObject):
    """An object of a class of the program; ``broken`` says why its attributes are no longer known."""

    type: Class
    names: dict[str, Value] = field(default_factory=dict)
    broken: str = ""


@dataclass(frozen=True)
class Super(LanguageObject):
    """``super()`` in a method of a class, called on ``receiver``."""

    type: Class
    receiver: Value


@dataclass(eq=False)
class Module(LanguageObject):
    """A module that lies beside the program."""

    name: str
    frame: NameScope


@dataclass(eq=False)
class File(LanguageObject):
    """A text file that was opened; ``read`` once it was."""

    text: str
    read: bool = False


@dataclass(frozen=True)
class Template(LanguageObject):
    """A ``string.Template``."""

    text: str


@dataclass(eq=False)
class Arguments(LanguageObject):
    """What ``argparse`` makes of the command line: by name, the type asked for (None: one that is not read)."""

    types: dict[str, str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """What an argument that nobody gave is called as an input."""
    plain: bool = True
    """Whether the command line and the declared defaults alone decide."""
    parsed: bool = False
