"""What the body of a Python function stands on, as text: the function, and everything of the program it may read.

Nothing of it is understood; two texts that are equal mean the same function. So a name that is no plain constant brings
every statement that mentions it, and all that is given from outside.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink.effects import Spend, within
from airflow_flinkcompat.frontends.pyflink.objects import Class, Function, NameScope
from airflow_flinkcompat.frontends.table_api.values import Const, Ref, Udf, UnknownValue


@dataclass
class Body:
    """Collects the text; ``trees`` are the modules of the program by file, ``given`` is what ``--var`` said.

    ``load`` gives the text of a file beside the program, ``files`` are those it has read.
    """

    trees: Mapping[str, ast.Module]
    given: Mapping[str, str]
    spend: Spend
    load: Callable[[str], str | None]
    files: Mapping[str, str]
    texts: dict[tuple[str, int, int, str], None] = field(default_factory=dict)
    _seen: set[tuple[int, str]] = field(default_factory=set)

    def digest(self) -> str:
        return hashlib.sha256("\n".join(text for *_, text in sorted(self.texts)).encode()).hexdigest()[:32]

    def say(self, text: str) -> None:
        """A part that stands nowhere in particular."""
        self.texts["", 0, 0, text] = None

    def node(self, node: ast.AST, frame: NameScope) -> None:
        """A piece of source, and what its names stand for."""
        self._text(node, frame)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Lambda) and self._set_elsewhere(node):
            self._everything()
        for name in _free(node):
            self._name(name, frame)

    def _text(self, node: ast.AST, frame: NameScope) -> None:
        text = ast.unparse(node)
        self.spend(1 + len(text) // 100)
        self._beside(node, frame.package)
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self.texts[frame.module.file, *place, text] = None

    def _beside(self, node: ast.AST, package: str) -> None:
        """The files that a piece of source brings in when it runs: modules it imports, and files named in it."""
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

    def _known(self, name: str, value: object) -> None:
        """A constant, which may name a file."""
        self.say(f"{name} = {value!r}")
        if isinstance(value, str) and _FILE.fullmatch(value):
            self._file(value)

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
        if ("file", path) in self._done:
            return
        self._done.add(("file", path))
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
            self._beside(tree, package)

    def _set_elsewhere(self, node: ast.ClassDef | ast.FunctionDef | ast.Lambda) -> bool:
        """Whether an attribute that the source reads may be set outside of it: under any name, in any module.

        Of a class, what it binds itself may also be changed by whoever calls its methods, or takes its lists.
        """
        inside = set(map(id, ast.walk(node)))
        self.spend(1 + len(inside) // 10)
        # An attribute of a module is a name in it.
        read = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        read |= set(_free(node))
        own = _own(node) if isinstance(node, ast.ClassDef) else set()
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
                    case ast.Name(id="setattr" | "delattr" | "vars"):
                        return True
        return False

    def _name(self, name: str, frame: NameScope) -> None:
        scope: NameScope | None = frame
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if (key := (id(scope), name)) in self._seen:
            return
        self._seen.add(key)
        self.spend(1)
        if scope is None:
            self._stars(frame)
        elif scope.outer is not None:
            self._local(name, scope)
        else:
            self._of_module(name, scope)

    def _local(self, name: str, scope: NameScope) -> None:
        """A name of the function around: its value, or else everything."""
        match scope.names[name]:
            case Const(value):
                self._known(name, value)
            case Ref(path):
                self.say(f"{name} = {path}")
            case Udf(digest=digest):
                self.say(f"{name} = {digest}")
            case (Function() | Class()) as found:
                self.node(found.node, found.frame)
            case _:
                self._everything()

    def _of_module(self, name: str, scope: NameScope) -> None:
        tree = self.trees.get(scope.file)
        statements = [] if tree is None else tree.body
        binders = [statement for statement in statements if name in _bound(statement)]
        shared = any(
            isinstance(part, ast.Global) and name in part.names for each in statements for part in ast.walk(each)
        )
        value = scope.names[name]
        if any(_alters(name, each) for each in statements):
            self._mentions(name, scope, statements)
        elif binders and not shared and all(isinstance(each, ast.FunctionDef | ast.ClassDef) for each in binders):
            for each in binders:
                self.node(each, scope)
        elif not shared and all(isinstance(each, ast.Import | ast.ImportFrom) for each in binders):
            # An import of everything is not among the binders.
            self.say(f"{name} = {value.path if isinstance(value, Ref) else ''}")
            if not isinstance(value, Ref):
                self._modules(scope)
                self._stars(scope)
        elif len(binders) == 1 and not shared and isinstance(binders[0], ast.Assign) and isinstance(value, Const):
            self._known(name, value.value)
        else:
            self._mentions(name, scope, statements)

    def _mentions(self, name: str, scope: NameScope, statements: list[ast.stmt]) -> None:
        """Every statement of the module that mentions a name may have a part in what it stands for."""
        for each in statements:
            self.spend(1)
            if name in _all(each):
                self._text(each, scope)
                for other in _all(each) & scope.names.keys():
                    self._name(other, scope)
        self._given()
        self._read()
        others = (tree for file, tree in self.trees.items() if file != scope.module.file)
        if any(_names(name, part) for tree in others for part in ast.walk(tree)):
            self._everything()
        if not statements or (isinstance(scope.names[name], UnknownValue) and "*" in scope.names):
            self._everything()

    def _stars(self, frame: NameScope) -> None:
        """A builtin, or a name from an import of everything."""
        tree = self.trees.get(frame.module.file)
        for each in () if tree is None else tree.body:
            if isinstance(each, ast.ImportFrom) and each.names[0].name == "*":
                self._text(each, frame)
                self._modules(frame)

    def _modules(self, frame: NameScope) -> None:
        """All modules beside the program, whatever an import takes of them."""
        for file, tree in self.trees.items():
            if file and file != frame.module.file and ("", file) not in self._done:
                self._done.add(("", file))
                text = ast.unparse(tree)
                self.spend(1 + len(text) // 100)
                self.texts[file, 0, 0, text] = None
                self._beside(tree, file.rpartition("/")[0].replace("/", "."))

    def _everything(self) -> None:
        for file, tree in self.trees.items():
            if ("*", file) not in self._done:
                self._done.add(("*", file))
                text = ast.unparse(tree)
                self.spend(1 + len(text) // 100)
                self.texts[file, 0, 0, text] = None
                self._beside(tree, file.rpartition("/")[0].replace("/", "."))
        self._given()
        self._read()

    def _read(self) -> None:
        """The files the program has read: what a name stands for may come from them."""
        for file, text in self.files.items():
            if not file.endswith(".py"):
                self.texts[file, 0, 0, text] = None

    def _given(self) -> None:
        self.say(repr(sorted(self.given.items())))

    _done: set[tuple[str, str]] = field(default_factory=set)


_FILE = re.compile(r"[\w./-]{1,100}\.[A-Za-z]\w{0,9}")
"""What may be the name of a file."""
_INSIDES = ("__dict__", "__defaults__", "__kwdefaults__", "__code__", "__globals__", "__closure__", "__builtins__")
"""Attributes that hold what a function or a class is made of."""
_OF_FLINK = frozenset(
    """
    eval open close accumulate retract merge create_accumulator get_value emit_value get_accumulator_type
    get_result_type is_deterministic __init__
    """.split()  # noqa: SIM905 -- a list of names
)
"""Methods that Flink calls."""


def _own(node: ast.ClassDef) -> set[str]:
    """What the body of a class binds, and is not for Flink to call."""
    return {name for statement in node.body for name in _bound(statement)} - _OF_FLINK


def _names(name: str, part: ast.AST) -> bool:
    """Whether a piece of another module means a name of this one."""
    match part:
        case ast.Attribute(attr=found):
            return found == name
        case ast.ImportFrom(names=aliases):
            return any(alias.name in (name, "*") for alias in aliases)
    return False


def _alters(name: str, node: ast.stmt) -> bool:
    """Whether a statement gives an attribute to what a name stands for: ``Function.limit = 2``, or by ``setattr``."""
    for part in ast.walk(node):
        owner: ast.AST | None = None
        match part:
            case ast.Attribute(value=owner, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
                pass
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id == name:
            return True
    return False


def _free(node: ast.AST) -> Iterator[str]:
    """Names that a piece of source takes from outside; too many rather than too few."""
    if isinstance(node, ast.ClassDef):
        for part in ast.iter_child_nodes(node):
            yield from _free(part)
        return
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    if isinstance(node, ast.FunctionDef | ast.Lambda) and not any(
        isinstance(part, ast.Global | ast.Nonlocal) for part in ast.walk(node)
    ):
        spec = node.args
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
        outside: list[ast.AST] = [*spec.defaults, *(part for part in spec.kw_defaults if part is not None)]
        own = {arg.arg for arg in every if arg is not None}
        if isinstance(node, ast.FunctionDef):
            outside += node.decorator_list
            stored = (part for statement in node.body for part in _directly(statement))
            own |= {part.id for part in stored if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
            inner = (ast.ClassDef, ast.Global, ast.Nonlocal)
            own = set() if any(isinstance(part, inner) for part in ast.walk(node)) else own
        names -= own - {part.id for piece in outside for part in ast.walk(piece) if isinstance(part, ast.Name)}
    yield from sorted(names)


def _directly(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and its parts in the same scope: neither functions nor comprehensions in it have a part."""
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
    for part in within(node):
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


def _all(node: ast.stmt) -> set[str]:
    """Names that a statement mentions anywhere."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | _bound(node)
