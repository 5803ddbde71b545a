"""Reads a PyFlink program as the script it stands for: statement by statement, and nothing of it is ever run.

A statement that touches a table environment or a table and is not understood is noted as :class:`Unread`; what else it
may change is not known from there on. Work is bounded in steps, in depth and in the length of texts.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_flinkcompat.program.binding import Binder
from airflow_flinkcompat.program.session import Session
from airflow_flinkcompat.program.validation import Refused
from airflow_flinkcompat.program.values import (
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
from airflow_flinkcompat.sql import Script, ScriptError

SIZE_LIMIT = 1_000_000
"""Characters of a program."""
_ENDS = (ast.Return, ast.Break, ast.Continue)


class _Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class _Ended(Exception):
    """The program ends here."""


def parse_program(text: str, source: str = "<program>", given: Mapping[str, str] | None = None) -> Script:
    """The script a PyFlink program stands for; ``given`` are values by name that only its environment knows.

    Raises :class:`~airflow_flinkcompat.sql.ScriptError` where the text is no Python, or too long.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > SIZE_LIMIT:
        raise ScriptError(f"{source}: is longer than {SIZE_LIMIT} characters; that is more than is read of a program")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except SyntaxError as error:
        raise ScriptError(f"{source}:{error.lineno or 1}: is not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptError(
            f"{source}: cannot be read as Python: it is nested too deeply, or holds a null byte"
        ) from None
    session = Session(source, text)
    reader = _Reader(session, given or {})
    names: dict[str, Value] = {"__name__": Known("__main__"), "__file__": Unknown("where the program lies")}
    try:
        reader.block(module.body, Frame(names))
    except _Ended:
        pass
    except TooMuch as error:
        session.report(reader.at, f"the program is not read any further: {error}")
    except RecursionError:
        session.report(reader.at, "the program is not read any further: it is nested too deeply")
    for inserts in session.sets:
        if inserts.inserts:
            session.report(inserts.node, "this statement set is never executed, as far as the program was read")
    return session.script()


class _Reader(Binder):
    """Reads statements; ``at`` is the one that is being read."""

    at: ast.AST = ast.Module([], [])

    def body(self, function: Function, frame: Frame) -> Value:
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function.node)):
            raise NotRead(f"{function.node.name} is a generator: it is not read")
        try:
            self.block(function.node.body, frame)
        except _Returned as returned:
            return returned.value
        return Known(None)

    def block(self, body: Iterable[ast.stmt], frame: Frame) -> None:
        for statement in body:
            self.step()
            self.at = statement
            try:
                self.statement(statement, frame)
            except Refused as error:
                where = error.node or statement
                self.session.report(where, str(error), refused=True)
                why = f"Flink refuses it at {self.session.place(where)}"
                self._forget(statement, frame, Unknown(why, tables=True))
            except NotRead as error:
                self.session.report(statement, str(error))
                self._forget(statement, frame, Unknown("it was not read where it was made", tables=True))

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        match node:
            case ast.Expr():
                self._ended(node.value, frame)
                self.eval(node.value, frame)
            case ast.Assign():
                value = self.eval(node.value, frame)
                for target in node.targets:
                    self.bind(target, value, frame)
            case ast.AnnAssign():
                if node.value is not None:
                    self.bind(node.target, self.eval(node.value, frame), frame)
            case ast.AugAssign(target=ast.Name(id=name)):
                # Of a list, += changes the list itself.
                if isinstance(self.eval(ast.Name(name, ast.Load()), frame), Items):
                    self._havoc(node, frame, "a list that is added to is not read")
                    return
                whole = ast.copy_location(ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value), node)
                frame.bind(name, self.eval(whole, frame))
            case ast.FunctionDef():
                self.define(node, frame)
            case ast.ClassDef():
                self.class_(node, frame)
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    frame.bind(name, Ref(alias.name if alias.asname else name))
            case ast.ImportFrom():
                self.import_(node, frame)
            case ast.If():
                self._if(node, frame)
            case ast.For():
                self._for(node, frame)
            case ast.Try():
                self._try(node, frame)
            case ast.With():
                self._with(node, frame)
            case ast.While() if self.truth(self.eval(node.test, frame)) is False:
                self.block(node.orelse, frame)
            case ast.Return():
                raise _Returned(Known(None) if node.value is None else self.eval(node.value, frame))
            case ast.Raise():
                raise _Ended
            case ast.Global():
                frame.shared.update(node.names)
            case ast.Pass():
                pass
            case ast.Assert():
                if self.mentions(node, frame):
                    raise NotRead("an assertion on something that touches a table is not read")
            case _:
                self._havoc(node, frame, f"{_NAMES.get(type(node).__name__, type(node).__name__)} is not read")

    # -------------------------------------------------------------------------------------------- control flow
    def _if(self, node: ast.If, frame: Frame) -> None:
        test = self.eval(node.test, frame)
        truth = self.truth(test)
        if truth is not None:
            self.block(node.body if truth else node.orelse, frame)
            return
        why = test.reason if isinstance(test, Unknown) else "its condition is not known"
        self._havoc(node, frame, f"whether this runs is not known: {why}")

    def _for(self, node: ast.For, frame: Frame) -> None:
        values = self.eval(node.iter, frame)
        jumps = any(isinstance(part, ast.Break | ast.Continue) for part in ast.walk(node))
        if not isinstance(values, Items) or values.broken or jumps or node.orelse:
            self._havoc(node, frame, "how often this loop runs is not known")
            return
        every = [Known(key) for key in values.value] if isinstance(values.value, dict) else list(values.value)
        for value in every:
            self.step()
            self.bind(node.target, value, frame)
            self.block(node.body, frame)

    def _try(self, node: ast.Try, frame: Frame) -> None:
        """Read as if nothing failed: a program that fails starts no job."""
        returned: _Returned | None = None
        try:
            self.block([*node.body, *node.orelse], frame)
        except _Returned as error:
            returned = error
        except _Ended:
            raise NotRead("the program may end here, or go on where the exception is handled") from None
        for handler in node.handlers:
            leaves = bool(handler.body) and self._leaves(handler.body[-1], frame)
            self._forget(handler, frame, Unknown("whether an exception set it is not known"), bound=not leaves)
        self.block(node.finalbody, frame)
        for handler in node.handlers:
            if self.mentions(handler, frame):
                raise NotRead("tables are touched where an exception is handled: whether it runs is not known")
        if returned is not None:
            raise returned

    def _with(self, node: ast.With, frame: Frame) -> None:
        for item in node.items:
            value = self.eval(item.context_expr, frame)
            if self.touches(value):
                raise NotRead("a with statement on something that touches a table is not read")
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Unknown("what with opens is not known"), frame)
        self.block(node.body, frame)

    def _ended(self, node: ast.expr, frame: Frame) -> None:
        """Ends the program at ``sys.exit()``."""
        if isinstance(node, ast.Call) and self._exits(node.func, frame):
            raise _Ended

    def _exits(self, node: ast.expr, frame: Frame) -> bool:
        written = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        first = written.partition(".")[0]
        found = frame.find(first) if first else None
        if written in ("exit", "quit"):
            return found is None
        path = f"{found.path}{written.removeprefix(first)}" if isinstance(found, Ref) else ""
        return path in ("sys.exit", "os._exit")

    def _leaves(self, node: ast.stmt, frame: Frame) -> bool:
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        return isinstance(node, ast.Raise) or (called is not None and self._exits(called, frame))

    # -------------------------------------------------------------------------------------------- what is not read
    def _havoc(self, node: ast.stmt, frame: Frame, reason: str) -> None:
        """A statement that may run in any way: whatever it binds or changes is not known any more."""
        tabled = self.mentions(node, frame)
        self._forget(node, frame, Unknown(reason, tabled))
        if tabled or any(isinstance(part, _ENDS) for part in _own(node)):
            raise NotRead(reason)

    def _forget(self, node: ast.AST, frame: Frame, value: Unknown, bound: bool = True) -> None:
        """Every name the source binds stands for ``value``, and every list or dictionary it names is unknown."""
        for part in ast.walk(node):
            self.step()
            names: Sequence[str] = ()
            match part:
                case ast.Name(id=name, ctx=ast.Load()):
                    if isinstance(found := frame.find(name), Items):
                        found.broken = value.reason
                case ast.Name(id=name):
                    names = [name]
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names = [name]
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    names = [alias.asname or alias.name.partition(".")[0] for alias in aliases]
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names = [name]
            for each in names if bound else ():
                frame.bind(each, value)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and its parts, without the functions defined in it."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _own(part)


_NAMES = {
    "While": "a loop of unknown length",
    "AsyncFor": "an async loop",
    "AsyncWith": "an async with",
    "AsyncFunctionDef": "an async function",
    "Match": "a match statement",
    "Delete": "a del",
    "Nonlocal": "a nonlocal",
    "AugAssign": "an assignment in place",
    "TryStar": "an except* group",
}
