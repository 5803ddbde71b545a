"""Statements that an exception may leave half way, where the program passes over it and goes on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.frontends.pyflink.effects import Reach, Spend, within
from airflow_flinkcompat.frontends.pyflink.objects import Instance, NameScope
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import Const, Container, Ref, Unknown, Value

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
                self.frame.bind(name, Unknown(HALF_WAY, touches(value) or touches(after)))
        for each, before in self.inside:
            if isinstance(each, Container):
                if not each.broken and _copied(each) != before:
                    each.broken = HALF_WAY
                continue
            for name, after in each.names.items():
                if isinstance(before, dict) and name in before and _differs(before[name], after):
                    each.names[name] = Unknown(HALF_WAY, touches(before[name]) or touches(after))


def returns(body: Iterable[ast.stmt]) -> list[ast.AST]:
    """The statements that leave a function or a loop."""
    parts = (part for statement in body for part in within(statement))
    return [part for part in parts if isinstance(part, ast.Return | ast.Break | ast.Continue)]


def _differs(before: Value, after: Value) -> bool:
    return before != after and not (before == Const(None) and not isinstance(after, Const | Unknown))


def _copied(each: Container | Instance) -> Sequence[Value] | dict[str, Value]:
    if isinstance(each, Instance):
        return dict(each.names)
    return dict(each.value) if isinstance(each.value, dict) else list(each.value)
