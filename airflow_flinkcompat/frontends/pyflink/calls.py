"""Calls in a program. The program's own functions are inlined, and calls of PyFlink are read."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.frontends.pyflink import constants, inputs, python_functions
from airflow_flinkcompat.frontends.pyflink.expressions import Expressions
from airflow_flinkcompat.frontends.pyflink.scopes import (
    RUNS_CODE,
    Arguments,
    Class,
    File,
    Function,
    NameScope,
    knows_no_tables,
    lose,
    touches,
)
from airflow_flinkcompat.frontends.table_api import api_calls, arguments
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Constant,
    Container,
    Described,
    NotRead,
    Path,
    Ref,
    TooMuch,
    Udf,
    UnknownValue,
    Value,
    bounded,
)

DEPTH_LIMIT = 30
"""Maximum depth of nested calls of the program's own functions."""
_RUNS_CODE_MODULES = ("importlib", "runpy", "code", "codeop", "imp", "inspect", "gc", "pickle", "marshal", "ctypes")
_OPENS = ("builtins.open", "io.open", "codecs.open")
_DESCRIBES = {"prog", "usage", "description", "epilog", "formatter_class", "add_help", "allow_abbrev"}
"""Options of ``ArgumentParser`` that do not affect arguments."""
_LOOKS = ("copy", "count", "get", "index", "items", "keys", "values")
"""Methods that do not change a list or dictionary."""
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")

Args = Sequence[Value]
Names = Mapping[str, Value]


@dataclass(eq=False)
class CallExpressions(Expressions):
    """Evaluator of calls; ``depth`` counts the open calls of the program's own functions."""

    depth: int = 0

    @abstractmethod
    def body(self, function: Function, frame: NameScope) -> Value:
        """Read the body of a function of the program, and return its result."""

    def call(self, node: ast.Call, frame: NameScope) -> Value:
        owner: Value | None = None
        name = ""
        if isinstance(node.func, ast.Attribute):
            owner, name = self.eval(node.func.value, frame), node.func.attr
            function = UnknownValue("") if isinstance(owner, Described) else self.attribute(owner, node.func)
        else:
            function = self.eval(node.func, frame)
        if isinstance(owner, Const) and name == "join" and isinstance(node.args[0], ast.GeneratorExp):
            args: list[Value] = [self.comprehension(node.args[0], frame)]
        else:
            args = self.unpacked(node.args, frame)
        names = self._keyword_values(node.keywords, frame)
        if isinstance(owner, Described):
            return api_calls.call(owner, name, args, names, self.session, node)
        match function:
            case Ref() if function.module == "pyflink":
                kind = python_functions.maker(function)
                if kind:
                    return python_functions.wrapped(kind, node, args, names, frame, self.function_text())
                return api_calls.call_name(function, args, names, self.session, node)
            case Class(function=kind) if kind:
                return python_functions.of_class(function, node, args, names, frame, self.function_text())
            case Class(plain=True) if not any(map(touches, (*args, *names.values()))):
                return UnknownValue(f"an object of the class {function.node.name} is not supported")
            case Class():
                raise NotRead(f"an object of the class {function.node.name} is not supported")
            case Udf() if not names:
                return arguments.inline(function, args, self.session, node)
            case Function():
                return self.inlined(function, args, names)
        found = self._of_known(function, owner, name, args, names)
        return self._outside(function, owner, name, args, names) if found is None else found

    def _keyword_values(self, keywords: Sequence[ast.keyword], frame: NameScope) -> dict[str, Value]:
        names: dict[str, Value] = {}
        for keyword in keywords:
            value = self.eval(keyword.value, frame)
            if keyword.arg is not None:
                names[keyword.arg] = value
                continue
            match value:
                case Container(dict(inner), "") if all(isinstance(key, str) for key in inner):
                    names |= {key: self.surroundings.known(each) for key, each in inner.items()}
                case _:
                    raise NotRead("the values after a ** are unknown")
        return names

    # -------------------------------------------------------------------------------------------- known values
    def _of_known(self, function: Value, owner: Value | None, name: str, args: Args, names: Names) -> Value | None:
        """Result of a call on constants, containers, paths, files or inputs; None for any other call."""
        path = function.path if isinstance(function, Ref) else ""
        if path:
            found = self._library(path, list(args), names)
            if found is None:
                found = self.surroundings.current(inputs.called(path, args, names))
            if found is not None:
                return found
        found = self._of_value(owner, name, args, names)
        if found is None and owner is not None and not path:
            found = self.surroundings.current(inputs.method(owner, name, args, names))
        return found

    def _of_value(self, owner: Value | None, name: str, args: Args, names: Names) -> Value | None:
        match owner:
            case Const(str(text)):
                return self._of_text(text, name, args, names)
            case Container(dict(inner), "") if not names:
                return constants.of_dictionary(inner, name, args)
            case Path() if name == "read_text":
                return self._opened(owner, (), names, name)
            case Path() if not names:
                return constants.on_path(owner, name, args)
            case File():
                return self._of_file(owner, name, args)
            case Arguments(parsed=False):
                return self._parser(owner, name, args, names)
            case Ref("logging.Logger"):
                return Const(None)
        return None

    def _of_text(self, text: str, name: str, args: Args, names: Names) -> Value | None:
        self.step(len(text) // 1000)
        if name == "join" and len(args) == 1 and not names:
            parts = self.iterate(args[0])
            texts = [part.value for part in parts or () if isinstance(part, Const) and isinstance(part.value, str)]
            return constants.joined(texts, text) if parts is not None and len(texts) == len(parts) else None
        if name == "format":
            shown = [self.shown(arg) for arg in args]
            words = {key: self.shown(value) for key, value in names.items()}
            if None in shown or None in words.values():
                return None
            given: list[Constant] = [each.value for each in shown if each is not None]
            return constants.formatted(text, given, {key: word.value for key, word in words.items() if word})
        known = [arg.value for arg in args if isinstance(arg, Const)]
        return constants.text_method(text, name, known) if not names and len(known) == len(args) else None

    def _library(self, path: str, args: list[Value], names: Names) -> Value | None:
        """Result of a standard-library call on known values, the environment or a file."""
        for read in (self._of_process, self._of_files):
            found = read(path, args, names)
            if found is not None:
                return found
        match path, args:
            case "argparse.ArgumentParser", _:
                return Arguments(plain=names.keys() <= _DESCRIBES)
        found = constants.call(path, args) if not names or path == "logging.getLogger" else None
        if isinstance(found, Container):
            self.step(len(found.value) // 5)
        return found

    def _of_process(self, path: str, args: list[Value], names: Names) -> Value | None:
        """Result of a call that reads or changes the environment; None for any other call."""
        match path, args:
            case ends, _ if ends in _ENDS:
                raise NotRead("it is unknown if the program ends here")
            case "os.chdir", [Const(where)] if where in (inputs.PROGRAM, inputs.STARTED):
                # A program is usually started in this folder.
                return Const(None)
            case changes, _ if changes.startswith(("sys.argv.", "os.chdir")):
                raise NotRead(f"a call of {changes} is not supported")
            case "os.environ.get" | "os.getenv", [variable, *default]:
                return self.environment(variable, default[0] if default else names.get("default"))
            case "os.environ.setdefault", [Const(str(variable)), value]:
                self.environ[variable] = self.environment(args[0], value)
                return self.environ[variable]
            case changes, _ if changes.startswith("os.environ.") or changes in ("os.putenv", "os.unsetenv"):
                raise NotRead("the environment is changed in an unsupported way")
        return None

    def _of_files(self, path: str, args: list[Value], names: Names) -> Value | None:
        """Result of a call that opens, loads or tests a file; None for any other call."""
        match path, args:
            case opens, [where, *mode] if opens in _OPENS and (name := self.text(where)) is not None:
                return self._opened(Path(name), mode, names, "open")
            case opens, _ if opens in _OPENS:
                raise NotRead("a file is opened whose name is unknown")
            case ("json.load" | "json.loads" | "tomllib.load" | "tomllib.loads") as loads, [read] if not names:
                text = self._of_file(read, "read", ()) if isinstance(read, File) else read
                if isinstance(text, Const) and isinstance(text.value, str):
                    return constants.loaded(f"{loads.partition('.')[0]}.loads", text.value)
                return None if text is None else self.surroundings.current(inputs.called(loads, (text,), {}))
            case (("os.path.isfile" | "os.path.exists"), [where]) if (name := constants.text_of(where)) is not None:
                if self._local_text(name) is not None:
                    return Const(True)
                why = f"it is unknown if {name} exists"
                return self.surroundings.input(f"{path}({inputs.canonical(where)})", why)
        return None

    # -------------------------------------------------------------------------------------------- files, arguments
    def _local_text(self, path: str) -> str | None:
        """The text of a file next to the program; None after calls that may have changed files."""
        return None if self.surroundings.done or self.surroundings.lost else self.files.beside(path)

    def _opened(self, path: Path, args: Args, names: Names, name: str) -> Value:
        """An opened file, or its text."""
        given = {**names, **({"mode": args[0]} if args else {})}
        mode = given.pop("mode", Const("r"))
        how = {key: inputs.canonical(value) for key, value in sorted(given.items())}
        reads = isinstance(mode, Const) and mode.value in ("r", "rt") and len(args) < 2
        if not reads or not given.keys() <= {"encoding", "newline"} or not all(how.values()):
            raise NotRead("a file is opened in an unsupported way")
        text = self._local_text(path.text)
        if text is not None:
            return File(text) if name == "open" else Const(text)
        where = inputs.canonical(Const(path.text)).strip('"')
        why = f"{where} is not next to the program: give it with --file '{where}=…'"
        where += "".join(f" {key}={value}" for key, value in how.items())
        found = self.surroundings.input(f"text of {where}", why)
        return File(None, found.name, why) if name == "open" else found

    def _of_file(self, file: File, name: str, args: Args) -> Value | None:
        if name == "close" and not args:
            return Const(None)
        if file.read or name != "read" or args:
            raise NotRead("a file is read in an unsupported way")
        file.read = True
        return bounded(file.text) if file.text is not None else UnknownValue(file.reason, name=file.name)

    def _parser(self, parser: Arguments, name: str, args: Args, names: Names) -> Value | None:
        """Result of a method of ``argparse.ArgumentParser``."""
        if name in ("parse_args", "parse_known_args"):
            of_line = not names and all(inputs.canonical(arg).startswith("(sys.argv)[1::]") for arg in args)
            found = replace(parser, parsed=True, names=parser.names if of_line and parser.plain else {})
            rest = UnknownValue("the rest of the command line is unknown")
            return found if name == "parse_args" else Container([found, rest], kind="tuple")
        if name != "add_argument":
            raise NotRead(f"{name} of argparse is not supported")
        flags = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
        long = [flag for flag in flags if flag.startswith("--")] or flags
        match names.get("dest"):
            case Const(str(dest)):
                pass
            case _:
                dest = long[0].lstrip("-").replace("-", "_") if long else ""
                if not flags or not flags[0].startswith("-"):
                    dest = flags[0] if flags else ""
        kind = names.get("type", Ref("builtins.str"))
        plain = isinstance(kind, Ref) and kind.path in ("builtins.str", "builtins.int", "builtins.float")
        odd = {"action", "nargs", "const"} & names.keys()
        parser.types[dest] = kind.name if isinstance(kind, Ref) and plain and not odd else None
        words = {key: inputs.canonical(names[key]) for key in ("default", "action", "nargs", "const") if key in names}
        if isinstance(kind, Ref) and all(words.values()):
            made = {**words, **({"type": kind.path.removeprefix("builtins.")} if "type" in names else {})}
            parser.names[dest] = "--" + " ".join([dest, *(f"{key}={made[key]}" for key in sorted(made))])
        return UnknownValue("an argument of the command line")

    # -------------------------------------------------------------------------------------------- own and other code
    def inlined(self, function: Function, args: Args, names: Names) -> Value:
        """Result of a call of the program's own function, whose body is read with the arguments."""
        if self.depth >= DEPTH_LIMIT:
            raise TooMuch(f"functions call each other more than {DEPTH_LIMIT} deep")
        frame = NameScope(_parameters(function, args, names), outer=function.frame)
        self.depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.eval(function.node.body, frame)
            return self.body(function, frame)
        finally:
            self.depth -= 1

    def _outside(self, function: Value, owner: Value | None, name: str, args: Args, names: Names) -> Value:
        """Unknown result of a call that is not read. Raises :class:`NotRead` if the call may reach a table."""
        path = function.path if isinstance(function, Ref) else ""
        if path == "builtins.print":
            return Const(None)
        called = path.removeprefix("builtins.") or name or "a value"
        every = [*args, *names.values()]
        of = [] if owner is None else [owner]
        if isinstance(owner, Container) and name not in _LOOKS:
            raise NotRead(f"{name} of a list or dictionary is not supported")
        if isinstance(function, Ref) and (
            called in RUNS_CODE
            or function.module in _RUNS_CODE_MODULES
            or not (knows_no_tables(function) or function.module == "builtins")
        ):
            raise NotRead(f"a call of {called} is not supported: its effect on tables is unknown")
        if any(map(touches, (*every, *of, function))):
            why = next(
                (f": {part.reason}" for part in (function, *of) if isinstance(part, UnknownValue) and part.reason), ""
            )
            raise NotRead(f"a call of {called} that touches a table is not supported{why}")
        quiet = self.surroundings.called(path, owner, name, args, names)
        found = replace(self.unknown(f"the result of {called} is unknown", *of, *every), tables=False, quiet=quiet)
        if not path.startswith(("builtins.", "logging.")):
            for value in (*every, *of):
                lose(value, f"a call of {called} may have changed it")
        return found


def _parameters(function: Function, args: Args, names: Names) -> dict[str, Value]:
    """Bind the arguments of a call to parameters. Raises :class:`NotRead` if they do not match."""
    spec = function.node.args
    positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    by_name = {*(arg.arg for arg in (*spec.args, *spec.kwonlyargs))}
    found: dict[str, Value] = dict(function.defaults)
    found |= dict(zip(positional, args, strict=False))
    taken = set(positional[: len(args)])
    rest = {name: value for name, value in names.items() if name not in by_name}
    if (len(args) > len(positional) and spec.vararg is None) or (rest and spec.kwarg is None) or taken & names.keys():
        raise NotRead(f"{function.name} is called with arguments that it does not declare")
    found |= {name: value for name, value in names.items() if name in by_name}
    if spec.vararg is not None:
        found[spec.vararg.arg] = Container(list(args[len(positional) :]), kind="tuple")
    if spec.kwarg is not None:
        found[spec.kwarg.arg] = Container(rest, kind="dict")
    if any(name not in found for name in (*positional, *by_name)):
        raise NotRead(f"{function.name} is called without a required argument")
    return found
