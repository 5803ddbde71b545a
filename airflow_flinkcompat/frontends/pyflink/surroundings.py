"""What a program did to its surroundings before it asks them: an input has its name only while that gives the same.

What an input answers may depend on what the program did before: it read a file of variables into its environment,
fetched the file that it opens, changed a list that it was given. Calls of that kind become part of the names of all
inputs that are read later; where a call is not known in full, none of them has a name any more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink import inputs
from airflow_flinkcompat.frontends.pyflink.objects import Function, NameScope
from airflow_flinkcompat.frontends.table_api.inputs import digest
from airflow_flinkcompat.frontends.table_api.values import Const, Container, Ref, UnknownValue, Value

_QUIET = frozenset(
    {
        "logging", "loguru", "structlog", "colorlog", "time", "datetime", "math", "random", "uuid", "re", "warnings",
        "itertools", "functools", "collections", "decimal", "fractions", "enum", "typing", "typing_extensions", "sys",
        "textwrap", "hashlib", "base64", "traceback", "copy", "operator", "numpy", "scipy", "pytz", "dateutil",
        "dataclasses", "json", "argparse", "contextlib", "threading", "string", "jmespath",
    }
)  # fmt: skip
"""Modules whose functions change no file and no variable of the environment."""
_LOUD_BUILTINS = frozenset({"open", "exec", "eval", "compile", "__import__", "setattr", "delattr", "input"})
_CHANGED = "an input may have been changed by the program before it is used"


@dataclass
class Surroundings:
    """What was done so far.

    ``lost`` says why no further input is known by a name, ``spoiled`` why no list or dictionary is.
    """

    done: list[str] = field(default_factory=list)
    lost: str = ""
    spoiled: str = ""
    texts: set[str] = field(default_factory=set)
    """Names of inputs that are texts or numbers: nothing changes these."""
    moved: bool = False
    """Whether the program left the folder it was started in."""
    written: set[str] = field(default_factory=set)
    """Files that it wrote, by path; an empty one is any."""
    read_out: dict[int, UnknownValue] = field(default_factory=dict)
    """Opened files that were read to their end."""

    def input(self, name: str, reason: str, text: bool = False) -> UnknownValue:
        """A value that only the environment gives, as it is now; without a name where what was done is not known."""
        if self.lost or not name:
            return UnknownValue(reason)
        found = inputs.named(f"{name} after {digest(chr(10).join(self.done))}" if self.done else name, reason=reason)
        if text:
            self.texts.add(found.name)
        return found

    def made(self, value: UnknownValue | None) -> UnknownValue | None:
        """What is made of inputs, as it is now."""
        return value if value is None or not (self.done or self.lost) else self.input(value.name, value.reason)

    def known(self, value: Value | None) -> Value | None:
        """The value, without its name where it may have been changed in place."""
        if isinstance(value, UnknownValue) and value.name and self.spoiled and value.name not in self.texts:
            return UnknownValue(self.spoiled, value.tables)
        return value

    def spoil(self, value: Value | None) -> None:
        """An input may be changed in place: so may whatever else is the same list or dictionary."""
        if isinstance(value, UnknownValue) and value.name and value.name not in self.texts:
            self.spoiled = _CHANGED

    def lose(self, what: str) -> None:
        """Something was done that is not known in full."""
        self.lost = self.lost or f"{what} may have changed what the environment gives"
        self.spoiled = self.spoiled or _CHANGED

    def took(self, value: Value | None) -> bool:
        """Whether an opened file was read to its end before; it is now."""
        if not isinstance(value, UnknownValue) or not value.name.startswith("file "):
            return False
        before = id(value) in self.read_out
        self.read_out[id(value)] = value
        return before

    def called(
        self, path: str, owner: Value | None, name: str, args: Sequence[Value], words: Mapping[str, Value]
    ) -> bool:
        """A call that is not read was made; True where it changes nothing outside of its arguments."""
        if path.startswith("builtins."):
            quiet = path.removeprefix("builtins.") not in _LOUD_BUILTINS
        else:
            quiet = path.partition(".")[0] in _QUIET or isinstance(owner, Const | Container)
            quiet |= isinstance(owner, UnknownValue) and owner.quiet
        if path.partition(".")[0] not in ("logging", "builtins"):
            for each in (owner, *args, *words.values()):
                self.spoil(each)
        if not quiet:
            self._did(path, owner, name, args, words)
        return quiet

    def _did(
        self, path: str, owner: Value | None, name: str, args: Sequence[Value], words: Mapping[str, Value]
    ) -> None:
        what = path or (f"({inputs.canonical(owner)}).{name}" if owner is not None and inputs.canonical(owner) else "")
        parts = [inputs.canonical(each) for each in (*args, *words.values())]
        if what and all(parts):
            self.done.append(f"{what}({', '.join(parts)}; {', '.join(words)})")
        else:
            self.lose(f"a call of {path or name or 'a value'}")

    def passed_over(self, node: ast.AST, frame: NameScope, changes: Callable[[ast.AST], bool]) -> None:
        """A piece of source may have run, in any way."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and not _is_quiet(part, frame, set()):
                self.lose(f"what line {part.lineno} may do")
            if isinstance(part, ast.Name) and frame.find(part.id) in (Ref("sys"), Ref("sys.argv")) and changes(node):
                self.lose("what becomes of sys.argv")
        if changes(node):
            for part in ast.walk(node):
                if isinstance(part, ast.Name):
                    self.spoil(frame.find(part.id))


def _is_quiet(node: ast.Call, frame: NameScope, seen: set[int]) -> bool:
    """Whether a call in source that is not read changes no file and no variable of the environment."""
    match node.func:
        case ast.Name(id=name):
            found = frame.find(name)
            if found is None:
                return name not in _LOUD_BUILTINS
            if isinstance(found, Function):
                if id(found.node) in seen:
                    return True
                seen.add(id(found.node))
                calls = (part for part in ast.walk(found.node) if isinstance(part, ast.Call))
                return all(_is_quiet(part, found.frame, seen) for part in calls)
            return isinstance(found, Ref) and found.module in _QUIET
        case ast.Attribute(value=owner, attr=attribute):
            if inputs.is_method(attribute) or isinstance(owner, ast.Constant):
                return True
            while isinstance(owner, ast.Attribute | ast.Call | ast.Subscript):
                owner = owner.func if isinstance(owner, ast.Call) else owner.value
            found = frame.find(owner.id) if isinstance(owner, ast.Name) else None
            return isinstance(found, Ref) and found.module in _QUIET and not found.path.startswith("sys.argv")
    return False
