"""What a program binds to names: by assignment, by definition and by import, of modules beside it as well."""

from __future__ import annotations

import ast
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from airflow_flinkcompat.frontends.pyflink import containers, paths, python_functions
from airflow_flinkcompat.frontends.pyflink.calls import Caller
from airflow_flinkcompat.frontends.pyflink.effects import knows_no_tables
from airflow_flinkcompat.frontends.pyflink.names import STARS
from airflow_flinkcompat.frontends.pyflink.objects import (
    EVERYTHING,
    Arguments,
    Class,
    Function,
    Instance,
    Module,
    NameScope,
)
from airflow_flinkcompat.frontends.pyflink.operations import CHANGES
from airflow_flinkcompat.frontends.table_api import environment
from airflow_flinkcompat.frontends.table_api.values import Const, Container, NotRead, Ref, UnknownValue, Value
from airflow_flinkcompat.sql import ScriptError

_PLAIN_BASES = ("builtins.object", "abc.ABC", "typing.Protocol", "typing.Generic")
_WRAPPERS = {
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "builtins.property": "property",
    "functools.cached_property": "cached property",
    "abc.abstractmethod": "",
    "typing.override": "",
    "typing.no_type_check": "",
}
"""What a decorator makes of a function, where that is one of these."""
_ENUMS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum")
_CACHES = ("functools.cache", "functools.lru_cache")


@dataclass(eq=False)
class Binder(Caller):
    """Binds names, and reads modules that lie beside the program as text; they are never imported."""

    modules: dict[str, Module | None] = field(default_factory=dict)

    @abstractmethod
    def statement(self, node: ast.stmt, frame: NameScope) -> None:
        """Read a statement. Raises :class:`NotRead` where it touches tables and is not understood."""

    @abstractmethod
    def block(self, body: Iterable[ast.stmt], frame: NameScope) -> None:
        """Read statements."""

    def bind(self, target: ast.expr, value: Value, frame: NameScope) -> None:
        match target:
            case ast.Name(id=name):
                frame.bind(name, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(parts, value, frame)
            case ast.Subscript(value=inner, slice=key):
                self._set_item(self.eval(inner, frame), self.eval(key, frame), value)
            case ast.Attribute(value=inner, attr=name):
                self.set_attribute(self.eval(inner, frame), name, value)
            case _:
                raise NotRead("a target of an assignment is not read")

    def _unpack(self, parts: list[ast.expr], value: Value, frame: NameScope) -> None:
        values = self.iterate(value) if isinstance(value, Container | Const) else None
        if values is not None and len(values) == len(parts) and not any(isinstance(p, ast.Starred) for p in parts):
            for part, inner in zip(parts, values, strict=True):
                self.bind(part, inner, frame)
            return
        if self.touches(value):
            raise NotRead("a table is unpacked in a way that is not read")
        for part in parts:
            target = part.value if isinstance(part, ast.Starred) else part
            self.bind(target, UnknownValue("what was unpacked is not known"), frame)

    def _set_item(self, owner: Value, key: Value, value: Value) -> None:
        match owner, key:
            case Ref("os.environ"), Const(str(name)):
                self.environ[name] = value
                return
            case Ref("os.environ"), _:
                raise NotRead("which variable of the environment is set is not known")
            case Container(), _:
                if containers.set_item(owner, key, value):
                    return
                owner.broken = owner.broken or "an element of it was set"
        self.surroundings.spoil(owner)
        if owner == Ref("sys.argv"):
            self.surroundings.lose("what is put into sys.argv")
        if self.touches(value) or self.touches(owner):
            raise NotRead("a table put into a container is not read")

    # -------------------------------------------------------------------------------------------- functions
    def define(self, node: ast.FunctionDef, frame: NameScope, closure: NameScope | None = None) -> None:
        """A function; ``closure`` is where its names are looked up, where that is another frame."""
        function = Function(node, closure or frame.around, self.defaults(node.args, frame))
        value: Value = function
        for decorator in reversed(node.decorator_list):
            value = self._decorated(value, decorator, node, frame)
        frame.bind(node.name, value)

    def _decorated(self, value: Value, decorator: ast.expr, node: ast.FunctionDef, frame: NameScope) -> Value:
        call = decorator if isinstance(decorator, ast.Call) else None
        wrapper = self.eval(decorator if call is None else call.func, frame)
        if isinstance(wrapper, Ref):
            if wrapper.path in _WRAPPERS and isinstance(value, Function):
                return replace(value, how=_WRAPPERS[wrapper.path] or value.how)
            if wrapper.path in _CACHES and isinstance(value, Function) and not _parametrized(node.args):
                return replace(value, how="cached")
            if wrapper.path == "functools.wraps":
                return value
            if wrapper.module == "click" and isinstance(value, Function):
                return self._of_click(value, wrapper.name, call, frame)
            if (kind := python_functions.maker(wrapper)) and isinstance(value, Function):
                return python_functions.decorated(kind, node, value.frame, self.function_text())
        if call is not None:
            wrapper = self.eval(call, frame)
        found = self.apply(wrapper, (value,), {}) if isinstance(wrapper, Function | Instance) else None
        if found is not None:
            return found
        reason = f"{node.name} has a decorator: what it does is not read"
        if self.touches(wrapper) and not (isinstance(wrapper, Ref) and wrapper.module == "pyflink"):
            raise NotRead(reason)
        part = decorator if call is None else call.func
        if isinstance(part, ast.Attribute) and (
            part.attr in CHANGES or isinstance(self.eval(part.value, frame), Instance | Class)
        ):
            raise NotRead(reason)
        return UnknownValue(reason, tables=True)

    def _of_click(self, function: Function, name: str, call: ast.Call | None, frame: NameScope) -> Value:
        """A command of click: its parameters come from the command line."""
        if name not in ("command", "option", "argument") or call is None:
            return UnknownValue(f"{function.name} has a decorator of click that is not read", tables=True)
        if name == "command":
            return function
        flags = [part.value for part in (self.eval(arg, frame) for arg in call.args) if isinstance(part, Const)]
        names = self._named(call.keywords, frame) or {}
        arguments = Arguments()
        self.parser(arguments, "add_argument", [Const(flag) for flag in flags], names)
        plain = not names.keys() & {"multiple", "is_flag", "callback", "envvar"}
        for parameter, kind in list(arguments.types.items()):
            default = names.get("default")
            if "type" not in names and isinstance(default, Const) and default.value is not None:
                kind = type(default.value).__name__
            arguments.types[parameter] = kind if plain else None
            if not plain:
                arguments.names.clear()
            function.defaults[parameter] = self._argument(parameter, arguments)
        return function

    # -------------------------------------------------------------------------------------------- classes
    def class_(self, node: ast.ClassDef, frame: NameScope) -> None:
        """A class: its body is read where it stands, its methods where they are called."""
        inner = NameScope(outer=frame.around, of_class=True)
        kind = Class(node, frame.around, inner.names)
        self._bases(kind, frame)
        if kind.base is not None and kind.base.find("__init_subclass__") is not None:
            raise NotRead(f"__init_subclass__ of a class that {node.name} extends is not read")
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                self.step()
                self.define(part, inner)
            elif not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
                self.statement(part, inner)
        for value in inner.names.values():
            if isinstance(value, Function) and value.node in node.body:
                value.home = kind
        if kind.listed:
            _members(kind)
        for decorator in node.decorator_list:
            self._class_decorator(kind, decorator, frame)
        if kind.fields is not None:
            kind.filled = {name: kind.names[name] for name in kind.fields if name in kind.names}
            before = None if kind.base is None else kind.base.parameters
            kind.fields = tuple(dict.fromkeys((*(before or ()), *kind.fields)))
        frame.bind(node.name, kind)

    def _bases(self, kind: Class, frame: NameScope) -> None:
        node = kind.node
        if node.keywords and not all(
            word.arg == "metaclass" and (ast.unparse(word.value) in ("ABCMeta", "abc.ABCMeta"))
            for word in node.keywords
        ):
            kind.opaque = f"class {node.name} has a metaclass or the like: it is not read"
            kind.strange = True
        for base in node.bases:
            value = self.eval(base.value if isinstance(base, ast.Subscript) else base, frame)
            match value:
                case Ref(path) if path in _PLAIN_BASES:
                    continue
                case Ref("typing.NamedTuple"):
                    kind.fields = _fields(node)
                case Ref() if environment.of_streams(value):
                    kind.function = python_functions.STREAM
                case Ref() if value.module == "pyflink" and value.name in python_functions.BASES:
                    kind.function = python_functions.BASES[value.name]
                case Class() if kind.base is None:
                    kind.base = value
                    kind.function = value.function
                case Ref() if value.path in _ENUMS and len(node.bases) == 1:
                    kind.fields = ()
                    kind.listed = True
                case _:
                    kind.opaque = f"class {node.name} extends what is not read"
                    kind.listed |= isinstance(value, Ref) and value.path in _ENUMS
                    kind.strange |= not (isinstance(value, Ref) and knows_no_tables(value))

    def _class_decorator(self, kind: Class, decorator: ast.expr, frame: NameScope) -> None:
        call = decorator if isinstance(decorator, ast.Call) else None
        wrapper = self.eval(decorator if call is None else call.func, frame)
        if isinstance(wrapper, Ref) and wrapper.path == "dataclasses.dataclass":
            kind.fields = _fields(kind.node)
            odd = call is not None and any(word.arg in ("init", "metaclass") for word in call.keywords)
            if odd or _odd_fields(kind.node):
                kind.opaque = f"class {kind.node.name} is no plain dataclass: it is not read"
            for name, value in list(kind.names.items()):
                if isinstance(value, Container) and value.kind != "factory" and name in kind.fields:
                    kind.opaque = f"a field of class {kind.node.name} has a default that Python refuses"
            return
        made = wrapper if call is None else self.eval(call, frame)
        if isinstance(made, Function) and self.inlined(made, (kind,), {}) is kind:
            return
        kind.opaque = f"class {kind.node.name} has a decorator: what it does is not read"
        if isinstance(made, Function | Class | Instance):
            raise NotRead(kind.opaque)
        kind.strange |= not (isinstance(wrapper, Ref) and knows_no_tables(wrapper))

    # -------------------------------------------------------------------------------------------- imports
    def import_(self, node: ast.Import | ast.ImportFrom, frame: NameScope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                whole = self.module(alias.name)
                if whole is not None:
                    frame.bind(alias.asname or first, whole if alias.asname else self.module(first) or whole)
                    continue
                frame.bind(alias.asname or first, Ref(alias.name if alias.asname else first))
            return
        name = _absolute(node, frame)
        found = None if name is None else self.module(name)
        if found is not None:
            self._from(found, node, frame)
            return
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if (module, alias.name) == ("typing", "TYPE_CHECKING"):
                frame.bind(alias.asname or alias.name, Const(False))
            elif alias.name != "*":
                inner = self.module(f"{name}.{alias.name}") if name else None
                frame.bind(alias.asname or alias.name, inner or Ref(f"{module}.{alias.name}"))
            elif module in STARS:
                for each in STARS[module]:
                    frame.bind(each, Ref(f"{module}.{each}"))
            else:
                hidden = UnknownValue(f"it may come from `from {module} import *`", tables=True)
                for each, value in list(frame.module.names.items()):
                    if isinstance(value, Const | Container) and not each.startswith("__"):
                        frame.module.names[each] = hidden
                frame.module.names[EVERYTHING] = hidden

    def _from(self, module: Module, node: ast.ImportFrom, frame: NameScope) -> None:
        names = module.frame.names
        for alias in node.names:
            if alias.name == "*":
                every = names.get("__all__")
                if every is not None:
                    listed = self.iterate(every) or []
                    for each in (str(name.value) for name in listed if isinstance(name, Const)):
                        frame.bind(
                            each, names.get(each) or UnknownValue(f"{each} is not in {module.name}", tables=True)
                        )
                else:
                    for each in [name for name in names if not name.startswith("_")]:
                        frame.bind(each, names[each])
                continue
            frame.bind(alias.asname or alias.name, self.of_module(module, alias.name))

    def submodule(self, module: str, name: str) -> Value | None:
        return self.module(f"{module}.{name}")

    def module(self, name: str) -> Module | None:
        """The module of a dotted name that lies beside the program, read once; None where there is none."""
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


def _absolute(node: ast.ImportFrom, frame: NameScope) -> str | None:
    """The dotted name an import starts at; None for one that leads out of the program's folder."""
    if not node.level:
        return node.module
    package = frame.module.package.split(".") if frame.module.package else []
    if node.level - 1 > len(package):
        return None
    start = package[: len(package) - node.level + 1]
    return ".".join([*start, *([node.module] if node.module else [])]) or None


def _fields(node: ast.ClassDef) -> tuple[str, ...]:
    """The fields of a dataclass, as its annotations name them."""
    return tuple(
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and "ClassVar" not in ast.unparse(part.annotation)
    )


def _members(kind: Class) -> None:
    """What the body of an Enum binds are its members: one for each value, the others are names of the same."""
    made: list[tuple[Value, Instance]] = []
    for name, value in kind.names.items():
        if not isinstance(value, Const | Container) or name.startswith("_"):
            continue
        if kind.opaque:
            kind.names[name] = UnknownValue(f"a member of an Enum that is of another type too is not read: {name}")
            continue
        same = next((each for given, each in made if isinstance(given, Const) and given == value), None)
        kind.names[name] = same or Instance(kind, {"value": value, "name": Const(name)})
        made += [(value, each)] if same is None and isinstance(each := kind.names[name], Instance) else []


def _odd_fields(node: ast.ClassDef) -> bool:
    """Whether a field of a dataclass is no parameter of its ``__init__`` in order."""
    words = [
        word.arg
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.value, ast.Call)
        for word in part.value.keywords
    ]
    written = [ast.unparse(part.annotation) for part in node.body if isinstance(part, ast.AnnAssign)]
    return bool({"init", "kw_only"} & set(words)) or any("KW_ONLY" in each or "InitVar" in each for each in written)


def _parametrized(spec: ast.arguments) -> bool:
    return bool(spec.posonlyargs or spec.args or spec.vararg or spec.kwonlyargs or spec.kwarg)


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
