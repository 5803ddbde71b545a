"""Python functions for Flink, which are compared by a digest of all source text that they may use."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink.scopes import Class, Function, NameScope
from airflow_flinkcompat.frontends.table_api.values import Const, NotRead, Ref, Stream, Udf, UnknownValue, Value

Args = Sequence[Value]
Names = Mapping[str, Value]
_MAKERS = {"udf": "scalar", "udaf": "aggregate", "udtf": "table", "udtaf": "table aggregate"}
BASES = {
    "ScalarFunction": "scalar",
    "AsyncScalarFunction": "scalar",
    "AggregateFunction": "aggregate",
    "TableFunction": "table",
    "TableAggregateFunction": "table aggregate",
}
"""Kind of a function, by the PyFlink class that its class extends."""
STREAM = "of a DataStream"
"""The kind for classes that only DataStreams use."""
_FILE = re.compile(r"[\w./-]{1,100}\.[A-Za-z]\w{0,9}")
"""Pattern of a text that may be the name of a file."""
_INSIDES = ("__dict__", "__defaults__", "__kwdefaults__", "__code__", "__globals__", "__closure__", "__builtins__")
"""Attributes with which a program can reach the parts of a function or class."""
_OF_FLINK = frozenset(
    """
    eval open close accumulate retract merge create_accumulator get_value emit_value get_accumulator_type
    get_result_type is_deterministic __init__
    """.split()  # noqa: SIM905 -- a list of names
)
"""Methods of a function that Flink calls."""


def maker(ref: Ref) -> str:
    """The kind of function that ``udf``, ``udaf``, ``udtf`` or ``udtaf`` creates; "" for any other name."""
    return _MAKERS.get(ref.name, "") if ref.module == "pyflink" else ""


def decorated(kind: str, node: ast.FunctionDef, frame: NameScope, body: FunctionText) -> Udf:
    """The function of a definition with the decorator ``@udf(…)``."""
    body.node(node, frame)
    return Udf(node.name, kind, body.digest())


def wrapped(kind: str, node: ast.AST, args: Args, names: Names, frame: NameScope, body: FunctionText) -> Value:
    """The function of a call ``udf(function, …)``. Raises :class:`NotRead` if the function is unknown."""
    body.node(node, frame)
    match args[0] if args else names.get("f"):
        case Function(node=inner, frame=around, name=name):
            body.node(inner, around)
            return Udf("lambda" if isinstance(inner, ast.Lambda) else name, kind, body.digest())
        case Udf(name=name, digest=digest):
            body.say(digest)
            return Udf(name, kind, body.digest())
        case Ref(path=path, name=name) if path.partition(".")[0] != "pyflink":
            body.say(path)
            return Udf(name, kind, body.digest())
    raise NotRead("the Python function in this call is unknown")


def of_class(kind: Class, node: ast.AST, args: Args, names: Names, frame: NameScope, body: FunctionText) -> Value:
    """The function of an object whose class extends ``ScalarFunction`` or another PyFlink function class."""
    if kind.function == STREAM:
        return Stream()
    body.node(kind.node, kind.frame)
    body.node(node, frame)
    for value in (*args, *names.values()):
        if isinstance(value, UnknownValue):
            raise NotRead(f"an argument of {kind.node.name} is unknown: {value.reason}")
        body.say(repr(value.value) if isinstance(value, Const) else "")
    return Udf(kind.node.name, kind.function, body.digest())


@dataclass
class FunctionText:
    """Collector of the source text of a function, and of all text that the function may use.

    ``trees`` are the modules of the program by file. ``given`` are the variables of the command line. ``load`` returns
    the text of a file next to the program. ``files`` are the texts that were read so far. If a name is not simply a
    constant, an import or a definition, the whole program is added.
    """

    trees: Mapping[str, ast.Module]
    given: Mapping[str, str]
    spend: Callable[[int], None]
    load: Callable[[str], str | None]
    files: Mapping[str, str]
    texts: dict[tuple[str, int, int, str], None] = field(default_factory=dict)
    _seen: set[tuple[int, str]] = field(default_factory=set)
    _loaded: set[str] = field(default_factory=set)
    _whole: bool = False

    def digest(self) -> str:
        """The digest of the collected text."""
        return hashlib.sha256("\n".join(text for *_, text in sorted(self.texts)).encode()).hexdigest()[:32]

    def say(self, text: str) -> None:
        """Add a text that has no place in the source."""
        self.texts["", 0, 0, text] = None

    def node(self, node: ast.AST, frame: NameScope) -> None:
        """Add a piece of source, and the values of its free names."""
        text = ast.unparse(node)
        self.spend(1 + len(text) // 100)
        self._files_of(node, frame.module.package)
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self.texts[frame.module.file, *place, text] = None
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Lambda) and self._set_elsewhere(node):
            self._everything()
        for name in _free(node):
            self._name(name, frame)

    def _files_of(self, node: ast.AST, package: str) -> None:
        """Add the files that a piece of source may load: imported modules, and files named in texts."""
        for part in ast.walk(node):
            self.spend(1)
            match part:
                case ast.Import(names=aliases):
                    self._imported(*(alias.name for alias in aliases))
                case ast.ImportFrom(module=name, names=aliases, level=level):
                    above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                    start = ".".join([*above, *([name] if name else [])])
                    self._imported(start, *(f"{start}.{alias.name}" for alias in aliases))
                case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                    texts = (each.value for each in part.args if isinstance(each, ast.Constant))
                    self._imported(*(text for text in texts if isinstance(text, str)))
                case ast.Constant(value=str(name)) if _FILE.fullmatch(name):
                    self._file(name)
                    self._file(f"{package.replace('.', '/')}/{name}" if package else name)

    def _imported(self, *names: str) -> None:
        for name in names:
            if name.partition(".")[0] in ("", "pyflink") or not all(part.isidentifier() for part in name.split(".")):
                continue
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                stem = "/".join(parts[:end])
                for path, package in ((f"{stem}/__init__.py", parts[:end]), (f"{stem}.py", parts[: end - 1])):
                    self._file(path, ".".join(package))

    def _file(self, path: str, package: str = "") -> None:
        if path in self._loaded:
            return
        self._loaded.add(path)
        text = self.load(path)
        if text is None:
            return
        self.spend(1 + len(text) // 100)
        self.texts[path, 0, 0, text] = None
        if path.endswith(".py"):
            try:
                tree = ast.parse(text.removeprefix("\ufeff"))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            self._files_of(tree, package)

    def _set_elsewhere(self, node: ast.ClassDef | ast.FunctionDef | ast.Lambda) -> bool:
        """True if other code may set an attribute that this code reads, or use an attribute of this class."""
        inside = set(map(id, ast.walk(node)))
        self.spend(1 + len(inside) // 10)
        # An attribute of a module is a name in the module.
        read = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        read |= set(_free(node))
        own = {name for part in node.body for name in _bound(part)} if isinstance(node, ast.ClassDef) else set()
        own -= _OF_FLINK
        for tree in self.trees.values():
            parts = list(ast.walk(tree))
            self.spend(1 + len(parts) // 50)
            for part in parts:
                if id(part) in inside:
                    continue
                match part:
                    case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name in read | own:
                        return True
                    case ast.Attribute(attr=name) if name in own or name in _INSIDES:
                        return True
                    case ast.Name(id="setattr" | "delattr" | "vars" | "globals"):
                        return True
                    case ast.Global(names=names) if set(names) & read:
                        return True
        return False

    def _name(self, name: str, frame: NameScope) -> None:
        scope: NameScope | None = frame
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if scope is None or (key := (id(scope), name)) in self._seen:
            return
        self._seen.add(key)
        self.spend(1)
        tree = self.trees.get(scope.file) if scope.outer is None else None
        binders = [each for each in (tree.body if tree else ()) if name in _bound(each)]
        match scope.names[name]:
            case Const(value) if scope.outer is not None or (len(binders) == 1 and isinstance(binders[0], ast.Assign)):
                self.say(f"{name} = {value!r}")
                if isinstance(value, str) and _FILE.fullmatch(value):
                    self._file(value)
            case Ref(path) if all(isinstance(each, ast.Import | ast.ImportFrom) for each in binders):
                self.say(f"{name} = {path}")
            case Udf(digest=digest):
                self.say(f"{name} = {digest}")
            case (Function() | Class()) as found if scope.outer is not None or (
                binders and all(isinstance(each, ast.FunctionDef | ast.ClassDef) for each in binders)
            ):
                self.node(found.node, found.frame)
                for each in binders:
                    self.node(each, scope)
            case _:
                self._everything()

    def _everything(self) -> None:
        """Add the whole program, its variables and the files that it has read."""
        if self._whole:
            return
        self._whole = True
        for file, tree in self.trees.items():
            text = ast.unparse(tree)
            self.spend(1 + len(text) // 100)
            self.texts[file, 0, 0, text] = None
            self._files_of(tree, file.rpartition("/")[0].replace("/", "."))
        self.say(repr(sorted(self.given.items())))
        for file, text in self.files.items():
            if not file.endswith(".py"):
                self.texts[file, 0, 0, text] = None


def _free(node: ast.AST) -> Iterator[str]:
    """Free names of a piece of source. The result may contain additional names, but no name is missing."""
    if isinstance(node, ast.ClassDef):
        for part in ast.iter_child_nodes(node):
            yield from _free(part)
        return
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    if isinstance(node, ast.FunctionDef | ast.Lambda) and not any(
        isinstance(part, ast.Global | ast.Nonlocal | ast.ClassDef) for part in ast.walk(node)
    ):
        spec = node.args
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
        outside: list[ast.AST] = [*spec.defaults, *(part for part in spec.kw_defaults if part is not None)]
        own = {arg.arg for arg in every if arg is not None}
        if isinstance(node, ast.FunctionDef):
            outside += node.decorator_list
            stored = (part for statement in node.body for part in _directly(statement))
            own |= {part.id for part in stored if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        names -= own - {part.id for piece in outside for part in ast.walk(piece) if isinstance(part, ast.Name)}
    yield from sorted(names)


def _directly(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and its parts in the same scope, without inner functions and comprehensions."""
    scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    if isinstance(node, scopes | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return
    yield node
    for part in ast.iter_child_nodes(node):
        yield from _directly(part)


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
    return found
