"""How a program may leave what it is at: by an exception that is handled, by ``with``, by its end."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink.binding import Binder
from airflow_flinkcompat.frontends.pyflink.effects import Reach, Spend, within
from airflow_flinkcompat.frontends.pyflink.objects import File, Function, Instance, NameScope, ProgramEnded
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import Const, Container, NotRead, Ref, UnknownValue, Value

HALF_WAY = "whether an exception came before it was set is not known"
GOES_ON = "an exception is passed over, and tables are touched behind it: whether all of this was done is not known"
_BY_HAND = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")
"""Exceptions that no environment brings about: somebody ends the program."""


def by_hand(kind: ast.expr | None) -> bool:
    """Whether only such exceptions are meant."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(isinstance(each, ast.Name) and each.id in _BY_HAND for each in kinds)


def suppressed(node: ast.With, frame: NameScope) -> bool:
    """Whether ``with suppress(…)`` passes over an exception that an environment may bring about."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call):
            first = ast.unparse(call.func).partition(".")
            found = frame.find(first[0])
            path = f"{found.path}{first[1]}{first[2]}" if isinstance(found, Ref) else ""
            if path == "contextlib.suppress" and not all(map(by_hand, call.args)):
                return True
    return False


@dataclass
class Attempt:
    """What there was before the statements: names, lists and objects they may change, and what was said."""

    frame: NameScope
    names: dict[str, Value]
    inside: list[tuple[Container | Instance, Sequence[Value] | dict[str, Value]]]
    carried: tuple[int, ...]

    @classmethod
    def of(cls, body: Iterable[ast.stmt], frame: NameScope, session: ScriptBuilder, spend: Spend) -> Attempt:
        reach, stored = Reach(spend), set()
        for statement in body:
            reach.source(statement, frame)
            stored |= {
                part.id for part in within(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
        names = {name: value for name in stored if (value := frame.find(name)) is not None}
        inside = [(each, _copied(each)) for each in reach.found if isinstance(each, Container | Instance)]
        return cls(frame, names, inside, session.carried)

    def passed_over(self, touches: Callable[[Value], bool]) -> None:
        """Whatever is not as it was is not known.

        What was None before is as it is now, where it is a table or an object: with None the program comes to its end.
        """
        for name, value in self.names.items():
            after = self.frame.find(name)
            if after is not None and _differs(value, after):
                self.frame.bind(name, UnknownValue(HALF_WAY, touches(value) or touches(after)))
        for each, before in self.inside:
            if isinstance(each, Container):
                if not each.broken and _copied(each) != before:
                    each.broken = HALF_WAY
                continue
            for name, after in each.names.items():
                if isinstance(before, dict) and name in before and _differs(before[name], after):
                    each.names[name] = UnknownValue(HALF_WAY, touches(before[name]) or touches(after))


def returns(body: Iterable[ast.stmt]) -> list[ast.AST]:
    """The statements that leave a function or a loop."""
    parts = (part for statement in body for part in within(statement))
    return [part for part in parts if isinstance(part, ast.Return | ast.Break | ast.Continue)]


def _differs(before: Value, after: Value) -> bool:
    return before != after and not (before == Const(None) and not isinstance(after, Const | UnknownValue))


def _copied(each: Container | Instance) -> Sequence[Value] | dict[str, Value]:
    if isinstance(each, Instance):
        return dict(each.names)
    return dict(each.value) if isinstance(each.value, dict) else list(each.value)


class Returned(Exception):
    """A function returns a value."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Jumped(Exception):
    """A loop ends here, or goes on with its next round."""

    def __init__(self, ends: bool) -> None:
        self.ends = ends


@dataclass(eq=False)
class Leaving(Binder):
    """Reads ``try`` and ``with``."""

    passed: list[tuple[ast.stmt, tuple[int, ...]]] = field(default_factory=list)
    """Where an exception is passed over, and how much was said by then."""

    @abstractmethod
    def forget(self, node: ast.AST, frame: NameScope, value: UnknownValue, bound: bool = True) -> None:
        """Whatever the source binds or changes stands for ``value``."""

    def try_(self, node: ast.Try, frame: NameScope) -> None:
        """Read as if nothing failed: a program that fails starts no job. One that goes on may be either."""
        left: Returned | Jumped | None = None
        body = [*node.body, *node.orelse]
        attempt = Attempt.of(body, frame, self.session, self.step)
        try:
            self.block(body, frame)
        except (Returned, Jumped) as error:
            left = error
        except ProgramEnded:
            raise NotRead("the program may end here, or go on where the exception is handled") from None
        goes_on = [each for each in node.handlers if not self._leaves(each, frame)]
        for handler in node.handlers:
            why = UnknownValue("whether an exception set it is not known")
            self.forget(handler, frame, why, bound=handler in goes_on)
        if goes_on:
            ways = [returns(handler.body) for handler in goes_on]
            function = None if frame.function is None else frame.function.node
            last = isinstance(function, ast.FunctionDef) and function.body[-1] is node
            self._pass_over(node, attempt, frame, [way for each in ways for way in each], left)
            if isinstance(left, Returned) and not (all(ways) or last):
                left.value = UnknownValue(HALF_WAY, self.touches(left.value))
        self.block(node.finalbody, frame)
        for handler in node.handlers:
            if self.mentions(handler, frame):
                raise NotRead("tables are touched where an exception is handled: whether it runs is not known")
        if left is not None:
            raise left

    def _pass_over(
        self, node: ast.stmt, attempt: Attempt, frame: NameScope, ways: Sequence[ast.AST], left: Exception | None
    ) -> None:
        """The program goes on where it may have been left half way; ``ways`` are how it leaves a function or loop."""
        attempt.passed_over(self.touches)
        elsewhere = any(not isinstance(way, ast.Return) or not isinstance(left, Returned) for way in ways)
        if elsewhere or attempt.carried != self.session.carried:
            self.passed.append((node, self.session.said[:3]))
        answers = [way.value for way in ways if isinstance(way, ast.Return) and way.value is not None]
        # Where it answers None in place of a table the program comes to its end.
        nothing = all(isinstance(each, ast.Constant) and each.value is None for each in answers)
        if isinstance(left, Returned):
            if not (nothing and (left.value == Const(None) or self.touches(left.value))):
                left.value = UnknownValue(HALF_WAY, self.touches(left.value))
        elif not nothing:
            frame.doubt = HALF_WAY

    def with_(self, node: ast.With, frame: NameScope) -> None:
        opened: list[Instance] = []
        for item in node.items:
            value = self.eval(item.context_expr, frame)
            entered: Value = value
            if isinstance(value, Instance):
                entered = self._entered(value, "__enter__")
                opened.append(value)
            elif self.touches(value):
                raise NotRead("a with statement on something that touches a table is not read")
            elif not isinstance(value, File) and not (isinstance(value, UnknownValue) and value.name):
                entered = UnknownValue("what with opens is not known")
            if item.optional_vars is not None:
                self.bind(item.optional_vars, entered, frame)
        left: Returned | Jumped | None = None
        attempt = Attempt.of(node.body, frame, self.session, self.step) if suppressed(node, frame) else None
        try:
            self.block(node.body, frame)
        except (Returned, Jumped) as error:
            left = error
        except ProgramEnded:
            raise NotRead("the program may end here, or go on behind the with statement") from None
        if attempt is not None:
            self._pass_over(node, attempt, frame, (), left)
        for each in reversed(opened):
            self._entered(each, "__exit__", *(Const(None) for _ in range(3)))
        if left is not None:
            raise left

    def _entered(self, value: Instance, name: str, *args: Value) -> Value:
        method = self.member(value, name)
        if not isinstance(method, Function):
            raise NotRead(f"{name} of an object in a with statement is not read")
        return self.inlined(method, args, {})

    def ended(self, node: ast.expr, frame: NameScope) -> None:
        """Ends the program at ``sys.exit()``."""
        if isinstance(node, ast.Call) and self._exits(node.func, frame):
            self.before_the_end(node, frame)
            raise ProgramEnded

    def before_the_end(self, node: ast.expr | None, frame: NameScope) -> None:
        """What ``sys.exit(main())`` and ``raise SystemExit(main())`` do first."""
        for arg in node.args if isinstance(node, ast.Call) else ():
            self.eval(arg.value if isinstance(arg, ast.Starred) else arg, frame)
        for word in node.keywords if isinstance(node, ast.Call) else ():
            self.eval(word.value, frame)

    def _exits(self, node: ast.expr, frame: NameScope) -> bool:
        written = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        first = written.partition(".")[0]
        found = frame.find(first) if first else None
        if written in ("exit", "quit"):
            return found is None
        path = f"{found.path}{written.removeprefix(first)}" if isinstance(found, Ref) else ""
        return path in ("sys.exit", "os._exit")

    def _leaves(self, handler: ast.ExceptHandler, frame: NameScope) -> bool:
        """Whether the program ends where the exception is handled."""
        node = handler.body[-1]
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        ends = isinstance(node, ast.Raise) or (called is not None and self._exits(called, frame))
        return (ends and not returns(handler.body)) or by_hand(handler.type)
