"""Calls of a program: inlined where it is its own function, read where it is PyFlink's, else not read."""

from __future__ import annotations

import ast
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.frontends.pyflink import (
    constants,
    containers,
    data,
    inputs,
    paths,
    python_functions,
    standard,
)
from airflow_flinkcompat.frontends.pyflink.attributes import Objects
from airflow_flinkcompat.frontends.pyflink.effects import CODE, KNOWS_NO_TABLES, Reach
from airflow_flinkcompat.frontends.pyflink.objects import (
    Arguments,
    Class,
    File,
    Function,
    Instance,
    NameScope,
    Super,
    Template,
)
from airflow_flinkcompat.frontends.pyflink.operations import CHANGES, changes
from airflow_flinkcompat.frontends.table_api import api_calls, user_functions
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
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
"""Calls of the program's own functions inside of each other."""
_RUNS_CODE_MODULES = ("importlib", "runpy", "code", "codeop", "imp", "inspect", "gc", "pickle", "marshal", "ctypes")
_READS = ("read_text", "open")
_OPENS = ("builtins.open", "io.open", "codecs.open")
_CHANGES_ENVIRONMENT = (
    "os.environ.update", "os.environ.pop", "os.environ.clear", "os.environ.popitem", "os.environ.setdefault",
    "os.environ.__setitem__", "os.putenv", "os.unsetenv",
)  # fmt: skip
_SAYS_ONLY = {"prog", "usage", "description", "epilog", "formatter_class", "add_help", "allow_abbrev"}
"""What a parser of the command line is given that decides over no argument."""
_BUILDS = ("list", "tuple", "dict", "iter", "reversed", "enumerate", "sorted", "any", "all", "set", "frozenset")

Args = Sequence[Value]
Names = Mapping[str, Value]


@dataclass(eq=False)
class Caller(Objects):
    """Evaluates calls too; ``depth`` counts the program's own functions that are open."""

    depth: int = 0

    @abstractmethod
    def body(self, function: Function, frame: NameScope) -> Value:
        """What a function of the program answers."""

    def call(self, node: ast.Call, frame: NameScope) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self._super(frame)
        owner: Value | None = None
        name = ""
        if isinstance(node.func, ast.Attribute):
            owner, name = self.eval(node.func.value, frame), node.func.attr
            function = UnknownValue("") if isinstance(owner, Described) else self.attribute(owner, node.func, frame)
        else:
            function = self.eval(node.func, frame)
        args = self.unpacked(node.args, frame)
        names = self._named(node.keywords, frame)
        if args is None or names is None:
            return self.whole(node, frame)
        args = [self.known_input(arg) or arg for arg in args]
        names = {key: self.known_input(value) or value for key, value in names.items()}
        if isinstance(owner, Described):
            return api_calls.call(owner, name, args, names, self.session, node)
        match function:
            case Ref() if function.module == "pyflink":
                kind = python_functions.maker(function)
                if kind:
                    return self.udf(kind, node, args, names, frame)
                return api_calls.call_name(function, args, names, self.session, node)
            case Class(function=kind) if kind:
                return python_functions.of_class(function, node, args, names, frame, self.function_text())
            case Udf() if not names:
                return user_functions.inline(function, args, self.session, node)
        found = self.apply(function, args, names)
        if found is None:
            found = self._plain(function, owner, name, args, names)
        if found is not None:
            return found
        return self._outside(function, owner, name, args, names)

    def _named(self, keywords: Sequence[ast.keyword], frame: NameScope) -> dict[str, Value] | None:
        names: dict[str, Value] = {}
        for keyword in keywords:
            value = self.eval(keyword.value, frame)
            if keyword.arg is not None:
                names[keyword.arg] = value
                continue
            match value:
                case Container(dict(inner), "") if all(isinstance(key, str) for key in inner):
                    names |= inner
                case _:
                    return None
        return names

    def apply(self, function: Value, args: Args, names: Names) -> Value | None:
        """A call of what the program itself defines; None where it is none."""
        match function:
            case Function():
                return self.inlined(function, args, names)
            case Class(function=""):
                return self.instance(function, args, names)
            case Instance() if isinstance(inner := self.member(function, "__call__"), Function):
                return self.inlined(inner, args, names)
        return None

    def make(self, maker: Value) -> Value:
        found = self.apply(maker, (), {})
        if found is None and isinstance(maker, Ref) and maker.path in ("builtins.list", "builtins.dict"):
            return Container([] if maker.name == "list" else {}, kind=maker.name)
        return UnknownValue("what makes a default is not read", self.touches(maker)) if found is None else found

    def udf(self, kind: str, node: ast.AST, args: Args, names: Names, frame: NameScope) -> Value:
        return python_functions.made(kind, node, args, names, frame, self.function_text())

    def _super(self, frame: NameScope) -> Value:
        scope: NameScope | None = frame
        while scope is not None and scope.function is None:
            scope = scope.outer
        function = None if scope is None else scope.function
        if function is None or function.home is None or function.receiver is None:
            raise NotRead("super() is not read here")
        return Super(function.home, function.receiver)

    # -------------------------------------------------------------------------------------------- of constants
    def _plain(self, function: Value, owner: Value | None, name: str, args: Args, names: Names) -> Value | None:
        """A call on constants, containers, paths, files and inputs; None where it is none."""
        path = function.path if isinstance(function, Ref) else ""
        if path:
            found = self._library(path, args, names)
            if found is None and not any(self.surroundings.took(arg) for arg in args):
                found = self.known_input(self.surroundings.made(inputs.called(path, args, names)))
            if isinstance(found, Container):
                self.step(len(found.value) // 5)
            if found is not None:
                return found
        found = self._of_value(owner, name, args, names)
        again = name == "read" and self.surroundings.took(owner)
        if found is None and owner is not None and not path and not again:
            found = self.known_input(self.surroundings.made(inputs.method(owner, name, args, names)))
        return found

    def _of_value(self, owner: Value | None, name: str, args: Args, names: Names) -> Value | None:
        match owner:
            case Const(str(text)):
                return self.of_text(text, name, args, names)
            case Container(broken=""):
                self.step(len(owner.value) // 10)
                return containers.method(owner, name, args, names)
            case Path() if name in _READS:
                return self._opened(owner, args, names, name)
            case Path():
                return standard.on_path(owner, name, args) if not names else None
            case File():
                return self._of_file(owner, name, args)
            case Template(pattern) if name in ("substitute", "safe_substitute"):
                given = self.constants_of(names if not args else self.mapping(args, names))
                return None if given is None else constants.substituted(pattern, given, name.startswith("safe"))
            case Arguments(parsed=False):
                return self.parser(owner, name, args, names)
            case Ref("logging.Logger"):
                return Const(None)
        return None

    def _library(self, path: str, args: Args, names: Names) -> Value | None:
        """A call of the standard library that needs no more than what is known."""
        builtin = path.removeprefix("builtins.") if path.startswith("builtins.") else ""
        if path.startswith("collections.OrderedDict"):
            builtin = "dict"
        if builtin in _BUILDS and len(args) < 2:
            return self._built(builtin, args, names)
        for read in (self._of_process, self._of_files, self._of_objects, self._of_many):
            found = read(path, list(args), names)
            if found is not None:
                return found
        return standard.call(path, args, names)

    def _built(self, builtin: str, args: Args, names: Names) -> Value | None:
        """A container made of at most one other value, or a question about all of its values."""
        if not args:
            return containers.built(builtin, None, names)
        match args[0]:
            case Container(broken=why) if why:
                return None
            case Container(dict(inner)) if builtin == "dict":
                return Container({**inner, **names}, kind="dict")
            case Container(inner, kind="set") if builtin == "sorted":
                return containers.built(builtin, list(inner), names)
        values = self.iterate(args[0])
        return None if values is None else containers.built(builtin, values, names)

    def _of_process(self, path: str, args: list[Value], names: Names) -> Value | None:
        """What asks for the process and what it was started with: environment, arguments, its end."""
        match path, args:
            case "sys.exit" | "os._exit" | "builtins.exit" | "builtins.quit", _:
                raise NotRead("whether the program ends here is not known")
            case "os.environ.get" | "os.getenv", [variable, *default]:
                return self.environment(variable, default[0] if default else names.get("default"))
            case "os.environ.setdefault", [Const(str(variable)), value]:
                self.environ[variable] = self.environment(args[0], value)
                return self.environ[variable]
            case changed, _ if changed in _CHANGES_ENVIRONMENT:
                raise NotRead("the environment is changed in a way that is not read")
            case argv, _ if argv.startswith("sys.argv.") and argv.rpartition(".")[2] in CHANGES:
                self.surroundings.lose("what is put into sys.argv")
            case "argparse.ArgumentParser", _:
                return Arguments(plain=names.keys() <= _SAYS_ONLY)
        return None

    def _of_files(self, path: str, args: list[Value], names: Names) -> Value | None:
        """What asks for files and folders."""
        match path, args:
            case "os.chdir", [where] if standard.text_of(where) not in (paths.PROGRAM, paths.STARTED):
                self.surroundings.moved = True
            case "os.chdir", [_] if not self.surroundings.moved:
                # There a program is started as a rule.
                return Const(None)
            case opens, [where, *mode] if opens in _OPENS and (name := self.text(where)) is not None:
                return self._opened(Path(name), mode, names, "open")
            case ("json.load" | "json.loads" | "tomllib.load" | "tomllib.loads") as loads, [read] if not names:
                text = self._of_file(read, "read", ()) if isinstance(read, File) else read
                if isinstance(text, Const) and isinstance(text.value, str):
                    return data.loaded(loads.partition(".")[0], text.value)
                if text is None or self.surroundings.took(text):
                    return None
                return self.known_input(self.surroundings.made(inputs.called(loads, (text,), {})))
            case (("os.path.isfile" | "os.path.exists"), [where]) if (name := standard.text_of(where)) is not None:
                if self.files.beside(name) is not None and not self.surroundings.moved:
                    return Const(True)
                why = f"whether {name} is there is not known"
                return self.surroundings.input(f"{path}({inputs.canonical(where)})", why)
        return None

    def _of_objects(self, path: str, args: list[Value], names: Names) -> Value | None:
        """What makes, asks or copies an object or a container."""
        match path, args:
            case "dataclasses.field", []:
                factory = names.get("default_factory")
                return names.get("default") if factory is None else Container([factory], kind="factory")
            case "dataclasses.asdict", [Instance(type=kind, names=inner, broken="")] if not names:
                fields = kind.parameters
                if fields is not None and all(isinstance(inner.get(each), Const) for each in fields):
                    return Container({each: inner[each] for each in fields}, kind="dict")
            case "builtins.getattr", [Instance() | Class() as owner, Const(str(name))]:
                return self.member(owner, name)
            case "builtins.isinstance", [Const(value), Ref(kind)] if kind in _TYPES:
                return Const(isinstance(value, _TYPES[kind]))
            case "copy.copy" | "copy.deepcopy", [Container(inner, "", kind)] if kind in ("list", "dict"):
                every = list(inner.values()) if isinstance(inner, dict) else inner
                if path == "copy.copy" or all(isinstance(value, Const) for value in every):
                    return Container(dict(inner) if isinstance(inner, dict) else list(inner), kind=kind)
        return None

    def _of_many(self, path: str, args: list[Value], names: Names) -> Value | None:
        """What takes a function, or goes through many values."""
        match path, args:
            case "functools.partial", [Function() as function, *rest] if rest or names:
                return replace(function, bound=(*function.bound, *rest), named={**function.named, **names})
            case "functools.reduce", [function, many, *start] if len(start) < 2 and not names:
                return self._reduced(function, many, start)
            case "builtins.map", [function, many] if not isinstance(function, Ref) or not self.touches(function):
                return self._mapped(function, many)
            case "builtins.zip", [_, *_] if not names:
                columns = [self.iterate(arg) for arg in args]
                if all(column is not None for column in columns):
                    rows = zip(*(column or [] for column in columns), strict=False)
                    return Container([Container(list(row), kind="tuple") for row in rows], kind="iterator")
            case "builtins.sum" | "builtins.min" | "builtins.max", [Container(kind="iterator") as many, *rest]:
                values = self.iterate(many)
                return None if values is None else standard.call(path, [Container(values), *rest], names)
        return None

    def _reduced(self, function: Value, many: Value, start: Sequence[Value]) -> Value | None:
        values = self.iterate(many)
        if values is None or not isinstance(function, Function) or not (values or start):
            return None
        found, *rest = (*start, *values)
        for value in rest:
            self.step()
            found = self.inlined(function, (found, value), {})
        return found

    def _mapped(self, function: Value, many: Value) -> Value | None:
        if self.touches(function):
            raise NotRead("map of something that touches a table is not read: when it runs is not followed")
        values = self.iterate(many)
        if values is None or (isinstance(function, Function) and self.acts(function.node, function.frame)):
            return None
        if isinstance(function, Function) and changes(function.node):
            return None
        found = [
            self.apply(function, (value,), {}) or self._plain(function, None, "", (value,), {}) for value in values
        ]
        known = [value for value in found if value is not None]
        return Container(list(known), kind="iterator") if len(known) == len(found) else None

    # -------------------------------------------------------------------------------------------- files, arguments
    def _opened(self, path: Path, args: Args, names: Names, name: str) -> Value:
        """A file beside the program, opened or read."""
        given = {**names, **({"mode": args[0]} if args and name == "open" else {})}
        mode = given.pop("mode", Const("r"))
        how = {key: inputs.canonical(value) for key, value in sorted(given.items())}
        reads = isinstance(mode, Const) and mode.value in ("r", "rt") and len(args) < 2
        if not reads or not given.keys() <= {"encoding", "newline"} or not all(how.values()):
            self.surroundings.written.add("" if paths.symbolic(path.text) else paths.normal(path.text))
            return UnknownValue("what it opens, and for what, is not known")
        around = self.surroundings
        if around.written & {"", paths.normal(path.text)} or (around.written and paths.symbolic(path.text)):
            return UnknownValue(f"{path.text} was written by the program")
        text = None if around.moved else self.files.beside(path.text)
        if text is None:
            where = inputs.canonical(Const(path.text)).strip('"')
            why = f"{where} does not lie beside the program: give it with --file '{where}=…'"
            where += "".join(f" {key}={value}" for key, value in how.items())
            return around.input(f"{'file' if name == 'open' else 'text of'} {where}", why)
        return File(text) if name == "open" else Const(text)

    def _of_file(self, file: File, name: str, args: Args) -> Value | None:
        if file.read:
            return None
        match name, list(args):
            case "read", []:
                file.read = True
                return bounded(file.text)
            case "readlines", []:
                return Container(self.iterate(file) or [])
            case "close" | "__enter__", []:
                return file if name == "__enter__" else Const(None)
        file.read = True
        return None

    # -------------------------------------------------------------------------------------------- own and others' code
    def inlined(self, function: Function, args: Args, names: Names) -> Value:
        """A call of a function of the program, read with its arguments."""
        if self.depth >= DEPTH_LIMIT:
            raise TooMuch(f"functions call each other more than {DEPTH_LIMIT} deep")
        receiver = () if function.receiver is None else (function.receiver,)
        frame = NameScope(outer=function.frame, function=function)
        frame.names |= _parameters(function, (*receiver, *function.bound, *args), {**function.named, **names})
        self.depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.eval(function.node.body, frame)
            return self.body(function, frame)
        finally:
            self.depth -= 1

    def _outside(self, function: Value, owner: Value | None, name: str, args: Args, names: Names) -> Value:
        """A call of something that is not read: no matter as long as no table can be in it."""
        path = function.path if isinstance(function, Ref) else ""
        if path == "builtins.print":
            return Const(None)
        called = path or name or "a value"
        every = [*args, *names.values()]
        if any(map(self.touches, every)) or (owner is not None and self.touches(owner)) or self.touches(function):
            why = next(
                (f": {part.reason}" for part in (function, owner) if isinstance(part, UnknownValue) and part.reason), ""
            )
            raise NotRead(f"a call of {called.removeprefix('builtins.')} that touches a table is not read{why}")
        if isinstance(function, Ref):
            module, builtin = function.module, path.removeprefix("builtins.")
            known = module in sys.stdlib_module_names or module in KNOWS_NO_TABLES
            if (module == "builtins" and builtin in CODE) or module in _RUNS_CODE_MODULES or not known:
                raise NotRead(f"{builtin} may do anything with tables: it is not read")
        quiet = self.surroundings.called(path, owner, name, args, names)
        reach = Reach(self.step)
        reach.values([*every, *([owner] if owner is not None else [])])
        reach.lose(f"a call of {called} may have changed it", everything=True)
        of = [] if owner is None else [owner]
        found = self.first_unknown(f"what {called.removeprefix('builtins.')} gives is not known", *of, *every)
        return replace(found, quiet=quiet)


_TYPES: Mapping[str, type] = {"builtins.str": str, "builtins.int": int, "builtins.float": float, "builtins.bool": bool}


def _parameters(function: Function, args: Args, names: Names) -> dict[str, Value]:
    """The names of a call of the function. Raises :class:`NotRead` for arguments that it does not have."""
    spec = function.node.args
    positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    by_name = {*(arg.arg for arg in (*spec.args, *spec.kwonlyargs))}
    found: dict[str, Value] = dict(function.defaults)
    found |= dict(zip(positional, args, strict=False))
    taken = set(positional[: len(args)])
    rest = {name: value for name, value in names.items() if name not in by_name}
    if (len(args) > len(positional) and spec.vararg is None) or (rest and spec.kwarg is None) or taken & names.keys():
        raise NotRead(f"{function.name} is called with arguments it does not have")
    found |= {name: value for name, value in names.items() if name in by_name}
    if spec.vararg is not None:
        found[spec.vararg.arg] = Container(list(args[len(positional) :]), kind="tuple")
    if spec.kwarg is not None:
        found[spec.kwarg.arg] = Container(rest, kind="dict")
    if any(name not in found for name in (*positional, *by_name)):
        raise NotRead(f"{function.name} is called without an argument it needs")
    return found
