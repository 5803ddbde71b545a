"""Operators, displays, subscripts and comprehensions of a program."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from airflow_flinkcompat.frontends.pyflink import constants, inputs, paths
from airflow_flinkcompat.frontends.pyflink.evaluation import Evaluator, dotted
from airflow_flinkcompat.frontends.pyflink.objects import (
    Class,
    File,
    Function,
    Instance,
    Module,
    NameScope,
    ProgramEnded,
)
from airflow_flinkcompat.frontends.table_api.arguments import expression
from airflow_flinkcompat.frontends.table_api.inputs import marked
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    Asked,
    Const,
    Container,
    Described,
    Expr,
    NotRead,
    Path,
    Ref,
    UnknownValue,
    Value,
)

_OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Mod": "%", "Eq": "=", "NotEq": "<>", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "BitAnd": "AND", "BitOr": "OR",
}  # fmt: skip
_ASKS = {"Eq": "==", "Is": "is", "In": "in", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CHANGES = ("append", "extend", "insert", "pop", "update", "setdefault", "clear", "reverse", "remove", "sort", "add")
"""Methods that change a container."""
_OBJECTS = (Described, Class, Instance, Function, Module, Path, Container)
"""What is never None."""


def changes(node: ast.AST) -> bool:
    """Whether a piece of source changes names, attributes or containers of others."""
    return any(
        isinstance(part, ast.Global | ast.Nonlocal)
        or (isinstance(part, ast.Attribute) and (part.attr in CHANGES or not isinstance(part.ctx, ast.Load)))
        or (isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load))
        for part in ast.walk(node)
    )


def _named(node: ast.AST, frame: NameScope) -> Value | None:
    """The function that a name, or a method of a named object, stands for."""
    match node:
        case ast.Name(id=name):
            return frame.find(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            owner = frame.find(name)
            if isinstance(owner, Class | Instance):
                return (owner if isinstance(owner, Class) else owner.type).find(attribute)
    return None


def _of_expressions(name: str, left: Value, right: Value) -> Expr:
    """An operator, by the name of its node, between expressions of the Table API."""
    if name == "Pow":
        return Expr("call", ("POWER", (expression(left), expression(right))))
    if name not in _OPERATORS:
        raise NotRead("an operator between expressions that is not read")
    return Expr("infix", (_OPERATORS[name], expression(left), expression(right)))


class _NotKnown(Exception):
    """Which values a comprehension goes through is not known."""


class Operators(Evaluator):
    """Evaluates operators on constants, containers, paths and expressions of the Table API."""

    def apart(self, node: ast.expr, frame: NameScope) -> Value | None:
        read = self._PARTS.get(type(node))
        return None if read is None else read(self, node, frame)

    def _conditional(self, node: ast.IfExp, frame: NameScope) -> Value | None:
        test = self.eval(node.test, frame)
        truth = self.truth(test)
        if truth is None:
            return self._either(node, test, frame)
        return self.eval(node.body if truth else node.orelse, frame)

    def _sequence(self, node: ast.List | ast.Tuple | ast.Set, frame: NameScope) -> Value | None:
        values = self.unpacked(node.elts, frame)
        return None if values is None else self._display(values, type(node).__name__.lower())

    def _assigned(self, node: ast.NamedExpr, frame: NameScope) -> Value | None:
        value = self.eval(node.value, frame)
        frame.bind(node.target.id, value)
        return value

    # -------------------------------------------------------------------------------------------- many values
    def iterate(self, value: Value) -> list[Value] | None:
        """What a loop over a value goes through; None where that is not known. An iterator is at its end after it."""
        match value:
            case Container(dict(inner), ""):
                return [Const(key) for key in inner]
            case Container(list(inner), "", kind):
                if kind == "iterator":
                    if value.moment not in (-1, self.moment):
                        value.broken = "an iterator is not read behind the statement that makes it"
                        return None
                    value.broken = "an iterator gives its values once"
                return None if kind == "set" and len(inner) > 1 else list(inner)
            case Const(str(text)) if not paths.symbolic(text):
                self.step(len(text))
                return [Const(character) for character in text]
            case File(text, False):
                value.read = True
                return [Const(line) for line in text.splitlines(keepends=True)]
        return None

    def unpacked(self, nodes: Sequence[ast.expr], frame: NameScope) -> list[Value] | None:
        """The values of a display or of arguments, ``*`` taken apart; None where one of these is not known."""
        values: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                values.append(self.eval(node, frame))
                continue
            inner = self.iterate(self.eval(node.value, frame))
            if inner is None:
                return None
            values += inner
        return values

    def _display(self, values: list[Value], kind: str) -> Value | None:
        if kind != "set":
            return Container(values, kind=kind)
        if not all(isinstance(value, Const) for value in values):
            return None
        return Container(list({value.value: value for value in values if isinstance(value, Const)}.values()), kind=kind)

    def _dict(self, node: ast.Dict, frame: NameScope) -> Value | None:
        found: dict[Any, Any] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.eval(part, frame)
            if key is None:
                if not (isinstance(value, Container) and isinstance(value.value, dict) and not value.broken):
                    return None
                found |= value.value
                continue
            name = self.eval(key, frame)
            if not isinstance(name, Const) or paths.symbolic(name.value):
                return None
            found[name.value] = value
        return Container(found, kind="dict")

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, frame: NameScope
    ) -> Value | None:
        if isinstance(node, ast.GeneratorExp) and (changes(node) or self.acts(node, frame)):
            # Whether and when anybody asks for its values is not followed.
            return None
        inner = NameScope(outer=frame.around)
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                inner.elsewhere[part.target.id] = frame.elsewhere.get(part.target.id, frame)
        said = self.session.said
        found: dict[Any, Any] = {}
        values: list[Value] = []
        try:
            for _ in self._rounds(node.generators, inner, frame):
                if isinstance(node, ast.DictComp):
                    key = self.eval(node.key, inner)
                    if not isinstance(key, Const) or paths.symbolic(key.value):
                        return None
                    found[key.value] = self.eval(node.value, inner)
                else:
                    values.append(self.eval(node.elt, inner))
        except _NotKnown:
            return None
        if isinstance(node, ast.GeneratorExp) and self.session.said != said:
            raise NotRead("a generator that touches a table is not read")
        if isinstance(node, ast.DictComp):
            return Container(found, kind="dict")
        kinds = {"ListComp": "list", "SetComp": "set", "GeneratorExp": "iterator"}
        made = self._display(values, kinds[type(node).__name__])
        if isinstance(made, Container) and made.kind == "iterator":
            made.moment = self.moment
        return made

    def acts(self, node: ast.AST, frame: NameScope) -> bool:
        """Whether a function of the program that this source may call changes what others see."""
        pending, seen = [(node, frame)], set[int]()
        while pending:
            source, around = pending.pop()
            for part in ast.walk(source):
                self.step()
                found = _named(part, around)
                if isinstance(found, Function) and id(found.node) not in seen:
                    if changes(found.node):
                        return True
                    seen.add(id(found.node))
                    pending.append((found.node, found.frame))
        return False

    def _rounds(
        self, generators: Sequence[ast.comprehension], frame: NameScope, begins: NameScope | None = None
    ) -> Iterator[None]:
        """Binds the names of each round. Raises :class:`_NotKnown` where which rounds there are is not known."""
        if not generators:
            yield None
            return
        first, *rest = generators
        values = None if first.is_async else self.iterate(self.eval(first.iter, begins or frame))
        if values is None:
            raise _NotKnown
        for value in values:
            self.step()
            self.bind(first.target, value, frame)
            tests = [self.truth(self.eval(test, frame)) for test in first.ifs]
            if None in tests:
                raise _NotKnown
            if all(tests):
                yield from self._rounds(rest, frame)

    @abstractmethod
    def bind(self, target: ast.expr, value: Value, frame: NameScope) -> None:
        """Bind what an assignment, a loop or an import names."""

    # -------------------------------------------------------------------------------------------- operators
    def text(self, value: Value) -> str | None:
        """``str(value)``; None where that is not known."""
        match value:
            case Const(given):
                return str(given)
            case Path(text):
                return text
            case UnknownValue(name=name) if name and self.known_input(value) is value:
                return marked(name)
        return None

    def _joined(self, node: ast.JoinedStr, frame: NameScope) -> Value:
        parts: list[str] = []
        unknown: UnknownValue | None = None
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.eval(part.value, frame)
                if isinstance(value, Ref):
                    value = UnknownValue(Asked(f"{value.path} is not known here", ast.unparse(part.value)))
                shown = self._formatted(value, part, frame)
                if shown is not None:
                    parts.append(shown)
                elif self.touches(value):
                    raise NotRead("a table inside a text is not read")
                else:
                    unknown = (
                        value if isinstance(value, UnknownValue) else UnknownValue("a formatted value is not known")
                    )
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        if unknown is not None:
            return unknown
        self.step(sum(map(len, parts)) // 1000)
        return constants.joined(parts)

    def _formatted(self, value: Value, part: ast.FormattedValue, frame: NameScope) -> str | None:
        spec = self.eval(part.format_spec, frame) if part.format_spec is not None else Const("")
        if not isinstance(spec, Const):
            return None
        if isinstance(value, Const):
            conversion = None if part.conversion == -1 else chr(part.conversion)
            return constants.shaped(value.value, str(spec.value), conversion)
        if isinstance(value, UnknownValue) and value.name:
            # However it is shown, it is shown the same way each time.
            how = "" if part.conversion == -1 else f"!{chr(part.conversion)}"
            how += f":{spec.value}" if spec.value else ""
            return self.text(inputs.named(f"({value.name}){how}", (value,)) if how else value)
        return self.text(value) if not spec.value and part.conversion in (-1, ord("s")) else None

    def _binary(self, node: ast.BinOp, frame: NameScope) -> Value:
        left, right = self.eval(node.left, frame), self.eval(node.right, frame)
        return self.operate(type(node.op).__name__, left, right)

    def _percent(self, text: str, right: Value) -> Value | None:
        match right:
            case Container(list(values), "", "tuple"):
                shown = [self.shown(value) for value in values]
                if None not in shown:
                    return constants.percent(text, [each.value for each in shown if each is not None])
            case UnknownValue(name=of) if of and (only := self.shown(right)):
                return constants.percent(text, [only.value])
            case Container(dict(values), ""):
                known = {key: each.value for key, value in values.items() if (each := self.shown(value)) is not None}
                return constants.percent(text, known)
        return None

    def operate(self, name: str, left: Value, right: Value) -> Value:
        """``left OP right``, the operator by the name of its node."""
        if isinstance(left, Expr) or isinstance(right, Expr):
            return _of_expressions(name, left, right)
        found: Value | None = None
        match left, right:
            case (Const(str()), UnknownValue(tables=False, name=of)) | (
                UnknownValue(tables=False, name=of),
                Const(str()),
            ) if of and name == "Add" and (texts := (self.text(left), self.text(right)))[0] and texts[1]:
                found = constants.joined([texts[0], texts[1]])
            case Const(a), Const(b):
                self.step((len(a) if isinstance(a, str) else 0) // 1000)
                found = constants.binary(name, a, b)
            case Const(str(a)), Container() | UnknownValue() if name == "Mod":
                found = self._percent(a, right)
            case Container(list(a), "", kind), Container(list(b), "", other) if name == "Add" and kind == other:
                self.step(len(a) + len(b))
                found = Container([*a, *b], kind=kind)
            case Container(list(a), "", kind), Const(int(b)) if name == "Mult" and 0 <= b < 1000:
                self.step(len(a) * b)
                found = Container(a * b, kind=kind)
            case Container(dict(a), ""), Container(dict(b), "") if name == "BitOr":
                self.step(len(a) + len(b))
                found = Container({**a, **b}, kind="dict")
            case (Path(a), Const(str(b)) | Path(b)) | (Const(str(a)), Path(b)) if name == "Div" and (
                INPUT_BEGINS not in b
            ):
                found = Path(constants.joined([paths.join(a, b)]).value)  # type: ignore[arg-type]
        if found is None and (self.touches(left) or self.touches(right)):
            raise NotRead("an operator on something that touches a table is not read")
        found = found or self.known_input(inputs.operation(left, _OPERATORS.get(name, name), right))
        return found or self.first_unknown("what an operator gives is not known", left, right)

    def shown(self, value: Value) -> Const | None:
        """A value as ``%s`` and ``format`` take it; None where that is not known."""
        if isinstance(value, Const):
            return value
        text = self.text(value) if isinstance(value, UnknownValue) else None
        return None if text is None else Const(text)

    def _comparison(self, node: ast.Compare, frame: NameScope) -> Value | None:
        if len(node.ops) > 1:
            return self._chain(node, frame)
        return self._compare(node.ops[0], self.eval(node.left, frame), self.eval(node.comparators[0], frame))

    def _compare(self, operator: ast.cmpop, left: Value, right: Value) -> Value:
        name = type(operator).__name__
        if (isinstance(left, Expr) or isinstance(right, Expr)) and name in _OPERATORS:
            return _of_expressions(name, left, right)
        found: Value | None = None
        match left, right:
            case Const(a), Const(b):
                found = constants.compare(name, a, b)
            case (Const(None), other) | (other, Const(None)) if name in ("Is", "IsNot") and isinstance(other, _OBJECTS):
                found = Const(name == "IsNot")
            case Const(a), Container(inner, "", kind) if (
                name in ("In", "NotIn") and kind != "iterator" and not paths.symbolic(a)
            ):
                keys = list(inner) if isinstance(inner, dict) else [v.value for v in inner if isinstance(v, Const)]
                if len(keys) == len(inner) and not any(map(paths.symbolic, keys)):
                    found = Const((a in keys) is (name == "In"))
        found = found or self._asked(name, left, right)
        return found or self.first_unknown("what a comparison gives is not known", left, right)

    def _asked(self, name: str, left: Value, right: Value) -> Value | None:
        """A comparison of inputs: a condition by its name, the same for ``is not`` and ``is``."""
        same = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}.get(name, name)
        if same == "Eq" and Const(None) in (left, right):
            same = "Is"
        if same in ("Eq", "Is") and isinstance(left, Const) and not inputs.has_input(left):
            left, right = right, left
        found = self.known_input(inputs.operation(left, _ASKS.get(same, same), right))
        if same != name and isinstance(found, UnknownValue) and found.name and name in ("NotEq", "IsNot", "NotIn"):
            return inputs.named(f"not {found.name}", (found,))
        return found

    def _chain(self, node: ast.Compare, frame: NameScope) -> Value | None:
        """``a < b < c`` of constants."""
        values = [self.eval(part, frame) for part in (node.left, *node.comparators)]
        if not all(isinstance(value, Const) for value in values):
            return None
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        found = [self.truth(self._compare(operator, left, right)) for operator, left, right in pairs]
        return None if None in found else Const(all(found))

    def _unary(self, node: ast.UnaryOp, frame: NameScope) -> Value:
        value = self.eval(node.operand, frame)
        match node.op, value:
            case ast.Invert(), Expr():
                return Expr("postfix", ("IS NOT TRUE", value))
            case ast.USub(), Expr():
                return Expr("prefix", ("-", value))
            case ast.USub(), Const(int() | float() as number):
                return Const(-number)
            case ast.Not(), UnknownValue(tables=False, name=of) if of:
                return inputs.named(of.removeprefix("not ") if of.startswith("not ") else f"not {of}", (value,))
            case ast.Not(), _ if (truth := self.truth(value)) is not None:
                return Const(not truth)
        if self.touches(value) and not isinstance(node.op, ast.Not):
            raise NotRead("an operator on something that touches a table is not read")
        return self.first_unknown("what an operator gives is not known", value)

    def _bool(self, node: ast.BoolOp, frame: NameScope) -> Value | None:
        stops = isinstance(node.op, ast.Or)
        value: Value = Const(None)
        for part in node.values:
            value = self.eval(part, frame)
            if part is node.values[-1]:
                return value
            truth = self.truth(value)
            if truth is None:
                return self._either(node, value, frame)
            if truth is stops:
                return value
        return value

    def _either(self, node: ast.expr, test: Value, frame: NameScope) -> Value:
        """What depends on a test that is not known: what stands behind it may run or not."""
        found = self.whole(node, frame)
        return UnknownValue(test.reason) if isinstance(test, UnknownValue) else found

    # -------------------------------------------------------------------------------------------- elements
    def _subscript(self, node: ast.Subscript, frame: NameScope) -> Value | None:
        if (written := dotted(node)) in self.given:
            return Const(self.given[written])
        owner = self.eval(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice, frame)
        key = self.eval(node.slice, frame)
        asked = inputs.element(owner, key)
        if asked is not None and owner == Ref("sys.argv"):
            asked = self.surroundings.input(asked.name, asked.reason, text=True)
        return self.known_input(asked) or self._element(owner, key)

    def _element(self, owner: Value, key: Value) -> Value:
        match owner, key:
            case Expr(), Const():
                return Expr("item", (owner, expression(key)))
            case Const(None), _:
                raise ProgramEnded
            case Container(dict()), Const(at) if paths.symbolic(at):
                return UnknownValue("which element is asked for is not known", self.touches(owner))
            case Ref("os.environ"), _:
                return self.environment(key)
            case Container(values, "", "list" | "tuple" | "dict"), Const(at):
                try:
                    found: Value = values[at]  # type: ignore[index]
                except (LookupError, TypeError):
                    raise NotRead("a key or index that is not there") from None
                return found
            case Const(str(text)), Const(int(at)) if not paths.symbolic(text) and -len(text) <= at < len(text):
                return Const(text[at])
            case Container(broken=why), _ if why:
                return UnknownValue(why, tables=self.touches(owner))
        if self.touches(owner):
            raise NotRead("an element of something that touches a table is not read")
        return self.first_unknown("an element is not known", owner, key)

    def _slice(self, owner: Value, part: ast.Slice, frame: NameScope) -> Value:
        ends = [Const(None) if end is None else self.eval(end, frame) for end in (part.lower, part.upper, part.step)]
        numbers = [end.value for end in ends if isinstance(end, Const) and isinstance(end.value, int | None)]
        if len(numbers) == 3 and inputs.has_input(owner) and (where := inputs.canonical(owner)):
            written = ":".join("" if number is None else str(number) for number in numbers)
            return self.known_input(self.surroundings.made(inputs.named(f"({where})[{written}]", (owner,)))) or owner
        if len(numbers) == 3 and numbers[2] != 0:
            match owner:
                case Container(list(values), "", "list" | "tuple" as kind):
                    return Container(values[slice(*numbers)], kind=kind)
                case Const(str(text)) if not paths.symbolic(text):
                    return Const(text[slice(*numbers)])
        if self.touches(owner):
            raise NotRead("a part of something that touches a table is not read")
        return self.first_unknown("a part of it is not known", owner, *ends)

    _PARTS: ClassVar[Mapping[type[ast.expr], Callable[[Any, Any, NameScope], Value | None]]] = {
        ast.JoinedStr: _joined,
        ast.BinOp: _binary,
        ast.Compare: _comparison,
        ast.UnaryOp: _unary,
        ast.BoolOp: _bool,
        ast.IfExp: _conditional,
        **dict.fromkeys((ast.List, ast.Tuple, ast.Set), _sequence),
        ast.Dict: _dict,
        ast.Subscript: _subscript,
        ast.NamedExpr: _assigned,
        **dict.fromkeys(_COMPREHENSIONS, _comprehension),
    }
    """What reads each kind of expression."""
