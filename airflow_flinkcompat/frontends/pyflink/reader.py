"""Reads a PyFlink program as the script it stands for: statement by statement, and nothing of it is ever run.

A statement that touches a table environment or a table and is not understood is noted as :class:`Unread`; what else it
may change is not known from there on. Work is bounded in steps, in depth and in the length of texts.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from airflow_flinkcompat.frontends.programs import ProgramScript
from airflow_flinkcompat.frontends.pyflink import containers, inputs, paths
from airflow_flinkcompat.frontends.pyflink.binding import parsed
from airflow_flinkcompat.frontends.pyflink.control_flow import GOES_ON, Jumped, Leaving, Returned
from airflow_flinkcompat.frontends.pyflink.effects import (
    Reach,
    changed,
    loaded,
    within,
)
from airflow_flinkcompat.frontends.pyflink.objects import Function, NameScope, ProgramEnded
from airflow_flinkcompat.frontends.pyflink.operations import CHANGES, changes
from airflow_flinkcompat.frontends.pyflink.paths import Files, Loader, loader
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    INPUT_ENDS,
    Const,
    Container,
    NotRead,
    Ref,
    TooMuch,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import Script, ScriptError

SIZE_LIMIT = 1_000_000
"""Characters of a program."""
ROUNDS_LIMIT = 100
"""Rounds of a loop that only its condition ends."""
_ENDS = (ast.Return, ast.Break, ast.Continue)


def read(job: JobSpec, catalog: Script | None = None, decided: Mapping[str, bool] | None = None) -> ProgramScript:
    """The script a PyFlink program stands for.

    Args:
        job: The program, its variables and the texts that lie beside it.
        catalog: Not used: a program declares its tables itself, or names them.
        decided: How conditions on what only its environment knows turn out, by name.

    Returns:
        Its statements, and the parts that were not understood.

    Raises:
        ScriptError: The text is no Python, or too long.
    """
    return parse_program(job.script, job.source, job.variables, job.files, decided)


def parse_program(
    text: str,
    source: str = "<program>",
    given: Mapping[str, str] | None = None,
    files: Mapping[str, str] | Loader | None = None,
    decided: Mapping[str, bool] | None = None,
) -> ProgramScript:
    """The script a PyFlink program stands for; ``given`` are values by name that only its environment knows.

    ``files`` are the texts that lie beside the program by their path from its folder, its modules and what it reads:
    a mapping, or a function that answers None for what is not there. Raises
    :class:`~airflow_flinkcompat.sql.ScriptError` where the text is no Python, or too long.
    """
    return read_program(text, source, given, files, decided)[0]


def read_program(
    text: str,
    source: str = "<program>",
    given: Mapping[str, str] | None = None,
    files: Mapping[str, str] | Loader | None = None,
    decided: Mapping[str, bool] | None = None,
) -> tuple[ProgramScript, Mapping[str, str]]:
    """As :func:`parse_program`, and the texts beside the program that were read, by path."""
    text = text.removeprefix("\ufeff")
    if len(text) > SIZE_LIMIT:
        raise ScriptError(f"{source}: is longer than {SIZE_LIMIT} characters; that is more than is read of a program")
    if INPUT_BEGINS in text or INPUT_ENDS in text:
        raise ScriptError(f"{source}: holds characters of Unicode's private use, by which inputs are marked here")
    reader = _read(text, source, given or {}, loader(files), decided or {})
    if reader.digested is not None and reader.digested < len(reader.session.trees):
        # A module that is imported after a Python function was made may change it all the same.
        reader = _read(text, source, given or {}, loader(files), decided or {}, reader.session.trees)
    opaque = _digest(reader) if reader.session.opaque else ""
    script = replace(reader.session.script(), undecided=tuple(reader.undecided), opaque=opaque)
    return script, reader.files.used


def _read(
    text: str,
    source: str,
    given: Mapping[str, str],
    load: Loader,
    decided: Mapping[str, bool],
    ahead: Mapping[str, ast.Module] | None = None,
) -> _ProgramReader:
    """One reading of a program; ``ahead`` are all its modules, where an earlier reading has met them."""
    module = parsed(text, source)
    session = ScriptBuilder(source, text)
    session.trees[""] = module
    reader = _ProgramReader(session, given, Files(load), decided=decided, ahead=ahead or {})
    name = source.replace("\\", "/").rpartition("/")[2] if source.endswith(".py") else "program.py"
    names: dict[str, Value] = {"__name__": Const("__main__"), "__file__": Const(f"{paths.PROGRAM}/{name}")}
    try:
        reader.block(module.body, NameScope(names))
    except ProgramEnded:
        pass
    except TooMuch as error:
        session.report(reader.at, f"the program is not read any further: {error}")
    except RecursionError:
        session.report(reader.at, "the program is not read any further: it is nested too deeply")
    for node, said in reader.passed:
        if session.said[:3] != said:
            session.report(node, GOES_ON)
    for inserts in session.sets:
        if inserts.inserts:
            session.report(inserts.node, "this statement set is never executed, as far as the program was read")
    return reader


def _digest(reader: _ProgramReader) -> str:
    """A digest of everything that was read for a program, however it is laid out."""
    trees = [(file, ast.dump(tree)) for file, tree in sorted(reader.session.trees.items())]
    others = sorted(reader.files.used.items() - reader.session.texts.items())
    return hashlib.sha256(repr((trees, others, sorted(reader.given.items()))).encode()).hexdigest()[:16]


@dataclass(eq=False)
class _ProgramReader(Leaving):
    """Reads statements; ``at`` is the one that is being read."""

    at: ast.AST = field(default_factory=lambda: ast.Module([], []))

    def body(self, function: Function, frame: NameScope) -> Value:
        node = function.node
        statements = node.body if isinstance(node, ast.FunctionDef) else []
        if _generates(statements):
            if self.touches(function) or any(map(self.touches, frame.names.values())):
                raise NotRead(f"{function.name} is a generator: it is not read")
            return UnknownValue(f"{function.name} is a generator: it is not read")
        if function.how == "cached" and function.answers:
            return function.answers[0]
        value: Value = Const(None)
        try:
            self.block(statements, frame)
        except Returned as returned:
            value = returned.value
        if frame.doubt:
            value = UnknownValue(frame.doubt, self.touches(value))
        if function.how == "cached":
            function.answers[:] = [value]
        return value

    def block(self, body: Iterable[ast.stmt], frame: NameScope) -> None:
        for statement in body:
            self.step()
            self.moment += 1
            self.at = statement
            try:
                self.statement(statement, frame)
            except RefusedByFlink as error:
                where = error.node or statement
                self.session.report(where, str(error), refused=True)
                why = f"Flink refuses it at {self.session.place(where)}"
                self.forget(statement, frame, UnknownValue(why, tables=True))
            except NotRead as error:
                self.session.report(statement, str(error))
                self.forget(statement, frame, UnknownValue("it was not read where it was made", tables=True))

    def statement(self, node: ast.stmt, frame: NameScope) -> None:
        read = self._STATEMENTS.get(type(node))
        if read is None:
            self._havoc(node, frame, f"{_NAMES.get(type(node).__name__, type(node).__name__)} is not read")
        else:
            read(self, node, frame)

    def _expression(self, node: ast.Expr, frame: NameScope) -> None:
        self.ended(node.value, frame)
        self.eval(node.value, frame)

    def _assign(self, node: ast.Assign, frame: NameScope) -> None:
        value = self.eval(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annotated(self, node: ast.AnnAssign, frame: NameScope) -> None:
        if node.value is not None:
            self.bind(node.target, self.eval(node.value, frame), frame)

    def _delete(self, node: ast.Delete, frame: NameScope) -> None:
        if all(isinstance(target, ast.Name) for target in node.targets):
            self.forget(node, frame, UnknownValue("it was deleted"))
        else:
            self._havoc(node, frame, "a del is not read")

    def _assert(self, node: ast.Assert, frame: NameScope) -> None:
        if self.mentions(node, frame):
            raise NotRead("an assertion on something that touches a table is not read")
        if self.truth(self.eval(node.test, frame)) is False:
            raise NotRead("an assertion that fails: whether Python looks at it is not known")

    # -------------------------------------------------------------------------------------------- control flow
    def _jump(self, node: ast.Break | ast.Continue, frame: NameScope) -> None:
        raise Jumped(isinstance(node, ast.Break))

    def _return(self, node: ast.Return, frame: NameScope) -> None:
        raise Returned(Const(None) if node.value is None else self.eval(node.value, frame))

    def _raise(self, node: ast.Raise, frame: NameScope) -> None:
        self.before_the_end(node.exc, frame)
        raise ProgramEnded

    def _if(self, node: ast.If, frame: NameScope) -> None:
        test = self.eval(node.test, frame)
        if isinstance(test, UnknownValue) and self._idle(node, frame):
            return
        truth = self.truth(test)
        if truth is not None:
            self.block(node.body if truth else node.orelse, frame)
            return
        why = test.reason if isinstance(test, UnknownValue) else "its condition is not known"
        self._havoc(node, frame, f"whether this runs is not known: {why}")

    def _for(self, node: ast.For, frame: NameScope) -> None:
        goes_through = self.eval(node.iter, frame)
        values = self.iterate(goes_through)
        if values is None and self._search(node, goes_through, frame):
            return
        if goes_through == Const(None):
            raise ProgramEnded
        if values is None:
            why = goes_through.reason if isinstance(goes_through, UnknownValue) else ""
            self._havoc(node, frame, "how often this loop runs is not known" + (f": {why}" if why else ""))
            return
        if isinstance(goes_through, Container) and goes_through.kind == "iterator" and _feeds(node):
            raise NotRead("what this loop goes through changes while it does")
        for number, value in enumerate(values):
            self.step()
            self.bind(node.target, value, frame)
            if self._round(node.body, frame):
                return
            if isinstance(goes_through, Container) and changed(goes_through, values, number + 1):
                raise NotRead("what this loop goes through changes while it does")
        self.block(node.orelse, frame)

    def _idle(self, node: ast.If, frame: NameScope) -> bool:
        """Whether neither road of a condition binds, changes or leaves anything: it says something at most."""
        parts = [part for statement in (*node.body, *node.orelse) for part in ast.walk(statement)]
        return all(isinstance(statement, ast.Expr | ast.Pass) for statement in (*node.body, *node.orelse)) and not any(
            isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await)
            or (isinstance(part, ast.Call) and not self._says_only(part, frame))
            for part in parts
        )

    def _says_only(self, node: ast.Call, frame: NameScope) -> bool:
        match node.func:
            case ast.Name(id="print"):
                return frame.find("print") is None
            case ast.Attribute(value=ast.Name(id=name), attr="info" | "debug" | "warning" | "error" | "exception"):
                return frame.find(name) in (Ref("logging"), Ref("logging.Logger"))
            case ast.Attribute(value=ast.Constant(value=str()), attr="format"):
                return True
        return False

    def _search(self, node: ast.For, goes_through: Value, frame: NameScope) -> bool:
        """A loop over an input for the element of which a condition holds: that element is an input too."""
        match node.body, node.orelse:
            case [ast.If(test=test, body=body, orelse=[])], []:
                pass
            case _:
                return False
        if (
            not isinstance(goes_through, UnknownValue)
            or not goes_through.name
            or self.surroundings.took(goes_through)
            or goes_through.name.startswith("file ")
            or not isinstance(body[-1], ast.Return | ast.Break)
        ):
            return False
        name = goes_through.name
        self.bind(node.target, inputs.named(f"{name}[*]", (goes_through,)), frame)
        asked = self.eval(test, frame)
        if not isinstance(asked, UnknownValue) or not asked.name.replace("not ", "").startswith(f"({name}[*]"):
            return False
        which = inputs.found_by(asked.name, name)
        there = self.decide(f"{name}{which} is there")
        if not there:
            return there is False
        self.bind(node.target, inputs.named(f"{name}{which}", (goes_through,)), frame)
        self._round(body, frame)
        return True

    def _while(self, node: ast.While, frame: NameScope) -> None:
        for _ in range(ROUNDS_LIMIT):
            test = self.eval(node.test, frame)
            truth = self.truth(test)
            if truth is None:
                break
            if not truth:
                self.block(node.orelse, frame)
                return
            if self._round(node.body, frame):
                return
        self._havoc(node, frame, "a loop of unknown length is not read")

    def _round(self, body: Iterable[ast.stmt], frame: NameScope) -> bool:
        """One round of a loop; True where it ends the loop."""
        try:
            self.block(body, frame)
        except Jumped as jump:
            return jump.ends
        return False

    def _augment(self, node: ast.AugAssign, frame: NameScope) -> None:
        target = node.target
        before = self.eval(loaded(target), frame)
        value = self.eval(node.value, frame)
        # Of a list, += changes the list itself.
        method = {("list", ast.Add): "extend", ("dict", ast.BitOr): "update"}
        name = method.get((before.kind, type(node.op))) if isinstance(before, Container) and not before.broken else None
        if name and isinstance(before, Container) and containers.method(before, name, (value,), {}) is not None:
            return
        if isinstance(before, Container) and before.kind in ("list", "dict", "set"):
            self._havoc(node, frame, "a container that is added to is not read")
            before.broken = "it was added to"
            return
        self.bind(target, self.operate(type(node.op).__name__, before, value), frame)

    def _global(self, node: ast.Global, frame: NameScope) -> None:
        frame.elsewhere |= dict.fromkeys(node.names, frame.module)

    def _nonlocal(self, node: ast.Nonlocal, frame: NameScope) -> None:
        for name in node.names:
            scope = frame.outer
            while scope is not None and name not in scope.names:
                scope = scope.outer
            if scope is None:
                raise NotRead("a nonlocal name that is not there")
            frame.elsewhere[name] = scope

    # -------------------------------------------------------------------------------------------- what is not read
    def _havoc(self, node: ast.stmt, frame: NameScope, reason: str) -> None:
        """A statement that may run in any way: whatever it binds or changes is not known any more."""
        tabled = self.mentions(node, frame)
        self.forget(node, frame, UnknownValue(reason, tabled))
        if tabled or any(isinstance(part, _ENDS) for part in within(node)):
            raise NotRead(reason)

    def forget(self, node: ast.AST, frame: NameScope, value: UnknownValue, bound: bool = True) -> None:
        """Every name the source binds stands for ``value``, and every list and object it could change is unknown."""
        self.surroundings.passed_over(node, frame, lambda each: changes(each) or self.acts(each, frame))
        reach = Reach(self.step)
        reach.source(node, frame)
        reach.lose(value.reason)
        for variable in reach.variables:
            lost = [variable] if variable else list(self.environ)
            self.environ |= dict.fromkeys(lost, UnknownValue(value.reason))
        for part in ast.walk(node):
            self.step()
            names: Sequence[str] = ()
            match part:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    names = [name]
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names = [name]
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    names = [alias.asname or alias.name.partition(".")[0] for alias in aliases]
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names = [name]
            for each in names if bound else ():
                before = frame.find(each)
                tabled = value.tables or (before is not None and self.touches(before))
                frame.bind(each, UnknownValue(value.reason, tabled))

    _STATEMENTS: ClassVar[Mapping[type[ast.stmt], Callable[[Any, Any, NameScope], None]]] = {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augment,
        ast.Delete: _delete,
        ast.FunctionDef: Leaving.define,
        ast.ClassDef: Leaving.class_,
        ast.Import: Leaving.import_,
        ast.ImportFrom: Leaving.import_,
        ast.If: _if,
        ast.For: _for,
        ast.While: _while,
        ast.Try: Leaving.try_,
        ast.With: Leaving.with_,
        ast.Break: _jump,
        ast.Continue: _jump,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Global: _global,
        ast.Nonlocal: _nonlocal,
        ast.Pass: lambda *_: None,
        ast.Assert: _assert,
    }
    """What reads each kind of statement."""


def _generates(statements: Iterable[ast.stmt]) -> bool:
    """Whether a function of these statements is a generator."""
    own = (each for each in statements if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for each in own for part in within(each))


def _feeds(node: ast.For) -> bool:
    """Whether the body of a loop changes what the loop goes through only as it runs."""
    used = [part for part in ast.walk(node.iter) if isinstance(part, ast.Name)]
    names = {part.id for part in used} - {part.id for part in used if isinstance(part.ctx, ast.Store)}
    for part in (part for statement in node.body for part in ast.walk(statement)):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in names:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name in names and method in CHANGES:
                return True
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in names:
                return True
    return False


_NAMES = {
    "AsyncFor": "an async loop",
    "AsyncWith": "an async with",
    "AsyncFunctionDef": "an async function",
    "Match": "a match statement",
    "TryStar": "an except* group",
}
