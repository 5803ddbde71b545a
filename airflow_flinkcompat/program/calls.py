"""Calls of a program: inlined where it is its own function, read where it is PyFlink's, else not read."""

from __future__ import annotations

import ast
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.program import constants, tables
from airflow_flinkcompat.program.evaluation import Evaluator
from airflow_flinkcompat.program.values import (
    Arguments,
    Described,
    Frame,
    Function,
    Items,
    Known,
    NotRead,
    Ref,
    TooMuch,
    Unknown,
    Value,
)

DEPTH_LIMIT = 30
"""Calls of the program's own functions inside of each other."""
_CONVERSIONS = ("str", "int", "float", "bool")
_RUNS_CODE = ("exec", "eval", "compile", "__import__", "globals", "locals", "vars", "setattr", "delattr", "getattr")
_RUNS_CODE_MODULES = ("importlib", "runpy", "code", "codeop", "imp", "inspect", "gc", "pickle", "marshal", "ctypes")


@dataclass(eq=False)
class Caller(Evaluator):
    """Evaluates calls too; ``depth`` counts the program's own functions that are open."""

    depth: int = 0

    @abstractmethod
    def body(self, function: Function, frame: Frame) -> Value:
        """What a function of the program answers."""

    def call(self, node: ast.Call, frame: Frame) -> Value:
        owner: Value | None = None
        name = ""
        if isinstance(node.func, ast.Attribute):
            owner, name = self.eval(node.func.value, frame), node.func.attr
            function = Unknown("") if isinstance(owner, Described) else self.attribute(owner, node.func, frame)
        else:
            function = self.eval(node.func, frame)
        args: list[Value] = []
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                args.append(self.eval(arg, frame))
                continue
            match self.eval(arg.value, frame):
                case Items(list(values), ""):
                    args += values
                case _:
                    return self.whole(node, frame)
        if any(keyword.arg is None for keyword in node.keywords):
            return self.whole(node, frame)
        names = {str(keyword.arg): self.eval(keyword.value, frame) for keyword in node.keywords}
        if isinstance(owner, Described):
            return tables.call(owner, name, args, names, self.session, node)
        match function:
            case Function():
                return self._inlined(function, args, names)
            case Ref() if function.module == "pyflink":
                return tables.call_name(function, args, names, self.session, node)
        found = self._plain(function, owner, name, args, names)
        if found is not None:
            return found
        return self._outside(function, owner, name, [*args, *names.values()])

    def _plain(
        self, function: Value, owner: Value | None, name: str, args: list[Value], names: Mapping[str, Value]
    ) -> Value | None:
        """A call on constants; None where it is none."""
        known = [arg.value for arg in args if isinstance(arg, Known)]
        by_name = {key: value.value for key, value in names.items() if isinstance(value, Known)}
        complete = len(known) == len(args) and len(by_name) == len(names)
        match function, owner:
            case _, Known(str(text)):
                self.step(len(text) // 1000)
                if name == "format" and complete:
                    return constants.formatted(text, known, by_name)
                if name == "join" and len(args) == 1 and isinstance(args[0], Items) and not args[0].broken:
                    parts = [part.value for part in args[0].value if isinstance(part, Known)]
                    if len(parts) == len(args[0].value) and all(isinstance(part, str) for part in parts):
                        return constants.bounded(text.join(map(str, parts)))
                return constants.text_method(text, name, known) if complete and not names else None
            case _, Items(dict(values), "") if name == "get" and complete and known and known[0] in values:
                found: Value = values[known[0]]
                return found
            case _, Items(dict(values), "") if name in ("items", "keys", "values") and not args:
                pairs = [(Known(key), value) for key, value in values.items()]
                if name == "items":
                    return Items([Items(list(pair)) for pair in pairs])
                return Items([pair[name == "values"] for pair in pairs])
            case Ref("os.environ.get" | "os.getenv"), _ if args:
                return self.environment(args[0])
            case Ref(path), _ if path.startswith("builtins.") and function.name in _CONVERSIONS:
                return constants.converted(function.name, known[0]) if complete and len(known) == 1 else None
            case Ref("argparse.ArgumentParser"), _:
                return Arguments()
            case _, Arguments(parsed=False):
                return self._parser(owner, name, args, names)
        return None

    def _parser(self, parser: Arguments, name: str, args: list[Value], names: Mapping[str, Value]) -> Value | None:
        if name == "parse_args" and not args:
            return Arguments(parser.types, parsed=True)
        if name == "parse_known_args":
            return Items([Arguments(parser.types, parsed=True), Unknown("the rest of the command line")])
        if name == "add_argument":
            flags = [arg.value for arg in args if isinstance(arg, Known) and isinstance(arg.value, str)]
            long = [flag for flag in flags if flag.startswith("--")] or flags
            match names.get("dest"):
                case Known(str(dest)):
                    pass
                case _:
                    dest = long[0].lstrip("-").replace("-", "_") if long else ""
            kind = names.get("type", Ref("builtins.str"))
            plain = isinstance(kind, Ref) and kind.path in ("builtins.str", "builtins.int", "builtins.float")
            odd = {"action", "nargs", "const"} & names.keys()
            parser.types[dest] = kind.name if isinstance(kind, Ref) and plain and not odd else None
            return Unknown("an argument of the command line")
        return None

    def _inlined(self, function: Function, args: list[Value], names: Mapping[str, Value]) -> Value:
        """A call of a function of the program, read with its arguments."""
        spec = function.node.args
        if self.depth >= DEPTH_LIMIT:
            raise TooMuch(f"functions call each other more than {DEPTH_LIMIT} deep")
        if spec.vararg or spec.kwarg or spec.posonlyargs:
            raise NotRead(f"the parameters of {function.node.name} are not read")
        positional = [arg.arg for arg in spec.args]
        frame = Frame(outer=function.frame)
        every = [*positional, *(arg.arg for arg in spec.kwonlyargs)]
        if len(args) > len(positional) or any(name not in every for name in names):
            raise NotRead(f"{function.node.name} is called with arguments it does not have")
        frame.names |= function.defaults
        frame.names |= dict(zip(positional, args, strict=False)) | dict(names)
        if any(name not in frame.names for name in every):
            raise NotRead(f"{function.node.name} is called without an argument it needs")
        self.depth += 1
        try:
            return self.body(function, frame)
        finally:
            self.depth -= 1

    def _outside(self, function: Value, owner: Value | None, name: str, args: list[Value]) -> Value:
        """A call of something that is not read: no matter as long as no table can be in it."""
        path = function.path if isinstance(function, Ref) else ""
        if path == "builtins.print":
            return Known(None)
        called = path or name or "a value"
        if any(map(self.touches, args)) or (owner is not None and self.touches(owner)) or self.touches(function):
            raise NotRead(f"a call of {called.removeprefix('builtins.')} that touches a table is not read")
        if isinstance(function, Ref):
            module, builtin = function.module, path.removeprefix("builtins.")
            if builtin in _RUNS_CODE or module in _RUNS_CODE_MODULES or module not in sys.stdlib_module_names:
                raise NotRead(f"{builtin} may do anything with tables: it is not read")
        for shared in _items([*args, *([owner] if owner is not None else [])]):
            self.step()
            shared.broken = f"a call of {called} may have changed it"
        return self.first_unknown(f"what {called.removeprefix('builtins.')} gives is not known", *args)


def _items(values: list[Value]) -> Iterator[Items]:
    """All lists and dictionaries among the values and inside of them, each once."""
    seen: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, Items) and id(value) not in seen:
            seen.add(id(value))
            yield value
            pending += value.value.values() if isinstance(value.value, dict) else value.value
