"""Statements of a PyFlink program: assignments, definitions, local imports and control flow.

Reading stops at the first statement that is not supported. A condition or loop that only prints is skipped.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_flinkcompat.frontends.pyflink import inputs, python_functions
from airflow_flinkcompat.frontends.pyflink.calls import CallExpressions
from airflow_flinkcompat.frontends.pyflink.inputs import PROGRAM
from airflow_flinkcompat.frontends.pyflink.scopes import (
    STARS,
    Class,
    File,
    Function,
    Module,
    NameScope,
    ProgramEnded,
    knows_no_tables,
)
from airflow_flinkcompat.frontends.table_api.environment import of_streams
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Container,
    Described,
    NotRead,
    Ref,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.sql import ScriptError

_USER_EXITS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")
"""Exceptions that only a user raises, to end the program."""
_SAYS = ("print", "str", "repr", "len", "type", "format")
"""Builtins that change nothing."""


class Returned(Exception):
    """Signal that a function returns a value."""

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(eq=False)
class Statements(CallExpressions):
    """Reader of statements. Modules next to the program are read as text, and never imported."""

    modules: dict[str, Module | None] = field(default_factory=dict)
    passed: list[tuple[ast.stmt, tuple[int, ...]]] = field(default_factory=list)
    """``try`` statements that ignore an exception, each with the session's counts after its body."""
    at: ast.AST = field(default_factory=lambda: ast.Module([], []))
    """The top-level statement that is being read."""

    def block(self, body: Iterable[ast.stmt], frame: NameScope) -> None:
        """Read statements. The place of an error is the innermost statement."""
        for statement in body:
            if frame.outer is None and not frame.file:
                self.at = statement
            self.step()
            try:
                read = self._STATEMENTS.get(type(statement))
                if read is None:
                    raise NotRead(f"{_NAMES.get(type(statement).__name__, type(statement).__name__)} is not supported")
                read(self, statement, frame)
            except RefusedByFlink as error:
                error.node = error.node or statement
                raise
            except NotRead as error:
                error.node = error.node or statement
                raise

    def body(self, function: Function, frame: NameScope) -> Value:
        """Read the statements of a function, and return its result."""
        statements = function.node.body if isinstance(function.node, ast.FunctionDef) else []
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for each in statements for part in _own_parts(each)):
            raise NotRead(f"{function.name} is a generator, which is not supported")
        try:
            self.block(statements, frame)
        except Returned as returned:
            return returned.value
        return Const(None)

    # -------------------------------------------------------------------------------------------- names
    def bind(self, target: ast.expr, value: Value, frame: NameScope) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = self.iterate(value)
                if values is None or len(values) != len(parts) or any(isinstance(p, ast.Starred) for p in parts):
                    raise NotRead("the values to unpack are unknown")
                for part, inner in zip(parts, values, strict=True):
                    self.bind(part, inner, frame)
            case ast.Subscript(value=inner, slice=key):
                match self.eval(inner, frame), self.eval(key, frame):
                    case Ref("os.environ"), Const(str(name)):
                        self.environ[name] = value
                    case Ref("os.environ"), _:
                        raise NotRead("the name of an environment variable is unknown")
                    case _:
                        raise NotRead("setting an element is not supported")
            case _:
                raise NotRead("setting an attribute is not supported")

    def _expression(self, node: ast.Expr, frame: NameScope) -> None:
        if self._is_end(node, frame):
            self._end(node.value, frame)
        self.eval(node.value, frame)

    def _assign(self, node: ast.Assign, frame: NameScope) -> None:
        value = self.eval(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annotated(self, node: ast.AnnAssign, frame: NameScope) -> None:
        if node.value is not None:
            self.bind(node.target, self.eval(node.value, frame), frame)

    def _define(self, node: ast.FunctionDef, frame: NameScope) -> None:
        value: Value = Function(node, frame, self.defaults(node.args, frame))
        for decorator in reversed(node.decorator_list):
            wrapper = self.eval(decorator.func if isinstance(decorator, ast.Call) else decorator, frame)
            kind = python_functions.maker(wrapper) if isinstance(wrapper, Ref) else ""
            if kind and isinstance(value, Function):
                value = python_functions.decorated(kind, node, frame, self.function_text())
                continue
            raise NotRead(f"{node.name} has a decorator, which is not supported")
        frame.names[node.name] = value

    def _define_async(self, node: ast.AsyncFunctionDef, frame: NameScope) -> None:
        frame.names[node.name] = UnknownValue("an async function is not supported", tables=True)

    def _class(self, node: ast.ClassDef, frame: NameScope) -> None:
        """A class: a function if it extends a function class of the Table API or of DataStreams, else opaque."""
        found = Class(node, frame, plain=not any(isinstance(part, ast.FunctionDef) for part in node.body))
        for base in node.bases:
            value = self.eval(base, frame) if isinstance(base, ast.Name | ast.Attribute) else None
            found.plain &= isinstance(value, Ref) and (knows_no_tables(value) or value.module == "builtins")
            match value:
                case Ref() as ref if of_streams(ref):
                    found.function = python_functions.STREAM
                case Ref(module="pyflink", name=name) if name in python_functions.BASES:
                    found.function = python_functions.BASES[name]
                case Class(function=function) if function:
                    found.function = function
        functions = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        decorators = [*node.decorator_list, *(each for part in functions for each in part.decorator_list)]
        inside: list[ast.AST] = [*node.bases, *(part for part in node.body if part not in functions)]
        inside += [each for part in functions for each in (*part.args.defaults, *part.args.kw_defaults) if each]
        calls = any(isinstance(part, ast.Call) for each in inside for part in ast.walk(each))
        odd = calls or node.keywords or not all(_is_builtin(each, frame) for each in decorators)
        if odd or any(part.name == "__init_subclass__" for part in functions):
            raise NotRead(f"the body of the class {node.name} is not supported")
        frame.names[node.name] = found

    # -------------------------------------------------------------------------------------------- imports
    def _import(self, node: ast.Import, frame: NameScope) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            whole = self.module(alias.name)
            if whole is not None:
                frame.names[alias.asname or first] = whole if alias.asname else self.module(first) or whole
            else:
                frame.names[alias.asname or first] = Ref(alias.name if alias.asname else first)

    def _import_from(self, node: ast.ImportFrom, frame: NameScope) -> None:
        name = _absolute(node, frame)
        found = None if name is None else self.module(name)
        written = "." * node.level + (node.module or "")
        for alias in node.names:
            bound = alias.asname or alias.name
            if alias.name == "*":
                self._import_all(found, written, frame)
            elif found is not None:
                frame.names[bound] = self.of_module(found, alias.name)
            else:
                inner = self.module(f"{name}.{alias.name}") if name else None
                frame.names[bound] = inner or Ref(f"{written}.{alias.name}")

    def _import_all(self, module: Module | None, written: str, frame: NameScope) -> None:
        """Bind the names of ``from … import *``."""
        if module is None and written in STARS:
            frame.names |= {each: Ref(f"{written}.{each}") for each in STARS[written]}
        elif module is not None and "__all__" not in module.frame.names:
            frame.names |= {name: value for name, value in module.frame.names.items() if not name.startswith("_")}
        else:
            raise NotRead(f"the names that `from {written} import *` binds are unknown")

    def of_module(self, module: Module, name: str) -> Value:
        found = module.frame.names.get(name) or self.module(f"{module.name}.{name}")
        return found or UnknownValue(f"{name} is not in {module.name}", tables=True)

    def module(self, name: str) -> Module | None:
        """The module with a dotted name next to the program, read once; None without such a module."""
        if name.partition(".")[0] == "pyflink" or not all(part.isidentifier() for part in name.split(".")):
            return None
        if name not in self.modules:
            self.step()
            above = name.rpartition(".")[0]
            if above:
                self.module(above)
            self.modules[name] = None
            if self._read_module(name) and above and self.modules.get(above) is None:
                self.modules[above] = Module(above, NameScope({}, package=above))
        return self.modules[name]

    def _read_module(self, name: str) -> bool:
        stem = name.replace(".", "/")
        for path, package in ((f"{stem}/__init__.py", name), (f"{stem}.py", name.rpartition(".")[0])):
            text = self.files.text(path)
            if text is None:
                continue
            text = text.removeprefix("\ufeff")
            try:
                tree = parse(text, path)
            except ScriptError as error:
                raise NotRead(f"a module next to the program is not supported: {error}") from None
            for part in ast.walk(tree):
                self.step()
                part.file = path  # type: ignore[attr-defined]
            names: dict[str, Value] = {"__name__": Const(name), "__file__": Const(f"{PROGRAM}/{path}")}
            frame = NameScope(names, file=path, package=package)
            self.session.texts[path] = text
            self.session.trees[path] = tree
            self.modules[name] = Module(name, frame)
            self.block(tree.body, frame)
            return True
        return False

    # -------------------------------------------------------------------------------------------- control flow
    def _return(self, node: ast.Return, frame: NameScope) -> None:
        raise Returned(Const(None) if node.value is None else self.eval(node.value, frame))

    def _raise(self, node: ast.Raise, frame: NameScope) -> None:
        self._end(node.exc, frame)

    def _end(self, node: ast.expr | None, frame: NameScope) -> None:
        """Evaluate the arguments of ``sys.exit(main())`` or ``raise SystemExit(main())``, and end the program."""
        if isinstance(node, ast.Call):
            self.unpacked(node.args, frame)
        raise ProgramEnded

    def _is_end(self, node: ast.stmt, frame: NameScope) -> bool:
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        return isinstance(node, ast.Raise) or (called is not None and self._exits(called, frame))

    def _exits(self, node: ast.expr, frame: NameScope) -> bool:
        """True if a function ends the program."""
        match node:
            case ast.Name(id=name):
                found = frame.find(name)
                return (found is None and name in ("exit", "quit")) or found in (Ref("sys.exit"), Ref("os._exit"))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return (frame.find(name), attribute) in ((Ref("sys"), "exit"), (Ref("os"), "_exit"))
        return False

    def _if(self, node: ast.If, frame: NameScope) -> None:
        test = self.eval(node.test, frame)
        if isinstance(test, UnknownValue):
            *before, last = node.body
            # A program that ends before its first statement starts no job.
            ends = self._is_end(last, frame) and not node.orelse and not any(self.session.counts[:3])
            if self._only_prints(before if ends else (*node.body, *node.orelse), frame):
                return
        truth = self.truth(test)
        if truth is None:
            why = test.reason if isinstance(test, UnknownValue) else "its condition is unknown"
            raise NotRead(f"it is unknown if this runs: {why}")
        self.block(node.body if truth else node.orelse, frame)

    def _for(self, node: ast.For, frame: NameScope) -> None:
        over = self.eval(node.iter, frame)
        if over == Const(None):
            raise ProgramEnded
        values = self.iterate(over)
        if values is None:
            if self._only_prints(node.body, frame) or self._search(node, over, frame):
                return
            why = f": {over.reason}" if isinstance(over, UnknownValue) and over.reason else ""
            raise NotRead(f"it is unknown how often this loop runs{why}")
        for value in values:
            self.step()
            self.bind(node.target, value, frame)
            self.block(node.body, frame)
        if isinstance(over, Container) and over.broken:
            raise NotRead("a list changes while a loop reads it")
        self.block(node.orelse, frame)

    def _search(self, node: ast.For, over: Value, frame: NameScope) -> bool:
        """Read a loop that searches an input. The element that meets the condition is also an input."""
        if not isinstance(over, UnknownValue) or not over.name or node.orelse:
            return False
        match node.body:
            case [ast.If(test=test, body=[*_, ast.Return()] as body, orelse=[])]:
                pass
            case _:
                return False
        self.bind(node.target, inputs.named(f"{over.name}[*]", (over,)), frame)
        asked = self.eval(test, frame)
        if not isinstance(asked, UnknownValue) or not asked.name.replace("not ", "").startswith(f"({over.name}[*]"):
            return False
        which = inputs.found_by(asked.name, over.name)
        there = self.decide(f"{over.name}{which} is there")
        if there:
            self.bind(node.target, inputs.named(f"{over.name}{which}", (over,)), frame)
            self.block(body, frame)
        return there is not None

    def _only_prints(self, body: Sequence[ast.stmt], frame: NameScope) -> bool:
        """True if statements only print or log."""
        return all(isinstance(statement, ast.Expr | ast.Pass) for statement in body) and not any(
            isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await)
            or (isinstance(part, ast.Call) and not self._prints(part, frame))
            for statement in body
            for part in ast.walk(statement)
        )

    def _prints(self, node: ast.Call, frame: NameScope) -> bool:
        match node.func:
            case ast.Name(id=name) if name in _SAYS:
                return frame.find(name) is None
            case ast.Attribute(value=ast.Name(id=name)):
                return frame.find(name) in (Ref("logging"), Ref("logging.Logger"), Ref("traceback"))
            case ast.Attribute(value=ast.Constant(value=str()), attr="format"):
                return True
        return False

    def _try(self, node: ast.Try, frame: NameScope) -> None:
        """Read the body of a ``try`` as if nothing failed, because a failed program starts no job.

        Handlers may print, and may end the program. If a handler lets the program continue, the ``try`` is reported if
        the program later executes more statements.
        """
        passes = False
        for handler in node.handlers:
            *before, last = handler.body
            ends = self._is_end(last, frame)
            leaves = isinstance(last, ast.Return) and last.value is None
            if not self._only_prints(before if ends or leaves else handler.body, frame):
                raise NotRead("an exception is handled in an unsupported way")
            passes |= not ends and not _by_hand(handler.type)
        body = [*node.body, *node.orelse]
        stored = {part.id for part in _parts(body) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        known = {name: value for name in stored if (value := frame.find(name)) not in (None, Const(None))}
        carried, environ = self.session.carried, dict(self.environ)
        try:
            self.block(body, frame)
        except (Returned, ProgramEnded):
            raise NotRead("a return, or the end of the program, inside of a try is not supported") from None
        constants = any(not isinstance(frame.find(name), Described) for name in stored)
        changed = carried != self.session.carried or environ != self.environ
        if passes and (known or constants or changed):
            self.passed.append((node, self.session.counts[:3]))
        self.block(node.finalbody, frame)

    def _with(self, node: ast.With, frame: NameScope) -> None:
        for item in node.items:
            call = item.context_expr
            root: ast.AST = call
            while isinstance(root, ast.Call | ast.Attribute):
                root = root.func if isinstance(root, ast.Call) else root.value
            found = frame.find(root.id) if isinstance(root, ast.Name) else None
            if isinstance(found, Ref) and found.module == "contextlib":
                raise NotRead("a with statement of contextlib is not supported")
            value = self.eval(call, frame)
            if not isinstance(value, File) and not (isinstance(value, UnknownValue) and not value.tables):
                raise NotRead("a with statement for anything but a file or a result is not supported")
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, frame)
        self.block(node.body, frame)

    _STATEMENTS: ClassVar[Mapping[type[ast.stmt], Callable[[Any, Any, NameScope], None]]] = {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.FunctionDef: _define,
        ast.AsyncFunctionDef: _define_async,
        ast.ClassDef: _class,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.If: _if,
        ast.For: _for,
        ast.Try: _try,
        ast.With: _with,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Pass: lambda *_: None,
    }
    """The reader of each kind of statement."""


def _is_builtin(node: ast.expr, frame: NameScope) -> bool:
    """True for a decorator such as ``staticmethod``."""
    return isinstance(node, ast.Name) and frame.find(node.id) is None


def _by_hand(kind: ast.expr | None) -> bool:
    """True if a handler catches only exceptions that a user causes to end the program."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(isinstance(each, ast.Name) and each.id in _USER_EXITS for each in kinds)


def _parts(body: Iterable[ast.stmt]) -> Iterable[ast.AST]:
    return (part for statement in body for part in ast.walk(statement))


def _own_parts(node: ast.AST) -> Iterable[ast.AST]:
    """A statement and its parts, without inner functions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        yield node
        for part in ast.iter_child_nodes(node):
            yield from _own_parts(part)


def _absolute(node: ast.ImportFrom, frame: NameScope) -> str | None:
    """The dotted name of the imported module; None outside of the program's folder."""
    if not node.level:
        return node.module
    package = frame.module.package.split(".") if frame.module.package else []
    if node.level - 1 > len(package):
        return None
    start = package[: len(package) - node.level + 1]
    return ".".join([*start, *([node.module] if node.module else [])]) or None


def parse(text: str, source: str) -> ast.Module:
    """Parse a program. Raises :class:`~airflow_flinkcompat.sql.ScriptError` if the text is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise ScriptError(f"{source}:{error.lineno or 1}: is not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptError(
            f"{source}: cannot be read as Python: it is nested too deeply, or contains a null byte"
        ) from None


_NAMES = {
    "AugAssign": "an assignment in place",
    "While": "a while loop",
    "Break": "a break",
    "Continue": "a continue",
    "AsyncFor": "an async loop",
    "AsyncWith": "an async with",
    "Match": "a match statement",
    "TryStar": "an except* group",
    "Global": "a global statement",
    "Nonlocal": "a nonlocal statement",
    "Delete": "a del statement",
    "Assert": "an assert statement",
}
