"""Tokens and syntax trees of Scala, Java and the old string expressions.

In Scala, an alphanumeric operator has the lowest precedence and calls a method: ``Tumble over 10.minutes as 'w`` is
``Tumble.over(10.minutes).as('w)``. In a string expression, ``over`` has the precedence of a dot, and ``&&`` and ``||``
have the same precedence (source: the expression parsers of Flink 1.2 and 1.10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_flinkcompat.frontends.table_api.values import EXPRESSION_LIMIT, NotRead

_PROGRAM = re.compile(
    r"""
      (?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
    | \$"(?P<column>[^"\\\r\n$]+)"
    | \"\"\"(?P<block>.*?)\"\"\"
    | (?P<text>"(?:[^"\\\r\n]|\\.)*")
    | (?P<open>/\*|\"\"\"|")
    | (?P<character>'(?:[^'\\\r\n]|\\.)')
    | ['\u2018\u2019](?P<symbol>[^\W\d]\w*)
    | (?P<number>\d\w*(?:\.\d\w*)?)
    | (?P<interpolated>[^\W\d]\w*")
    | `(?P<quoted>[^`\r\n]+)`
    | (?P<name>[^\W\d]\w*|\$)
    | (?P<operator>===|!==|==|!=|<=|>=|&&|\|\||=>|[-+*/%<>=!.,;:?()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_EXPRESSION = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<open>['"])
    | (?P<number>\d\w*(?:\.\d\w*)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<operator>===|!==|==|!=|<>|<=|>=|&&|\|\||[-+*/%<>=!.,?()])
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?([eE]\d{1,2})?[lLfFdDpP]?")
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "r": "\r"}
TOKENS_LIMIT = 50_000
"""Maximum number of tokens of a text."""
_SAME = {"quoted": "name", "block": "text"}
"""Kinds of tokens that differ from other kinds only by their quotes."""
_UNREADABLE = {
    "character": "a single character in quotes is not supported: write a text in double quotes",
    "interpolated": "a text that is put together is not supported",
    "open": "quotes or a comment are never closed",
    "": "a character that is not supported",
}


class Token(NamedTuple):
    """A token of kind ``name``, ``column``, ``symbol``, ``text``, ``number``, ``operator`` or ``end``.

    ``text`` is the content without quotes. ``start`` and ``end`` are offsets in the text. ``fresh`` is True for the
    first token of a line. For the kind ``unreadable``, ``text`` is the reason.
    """

    kind: str
    text: str
    start: int
    end: int
    fresh: bool = False


class Unreadable(NotRead):
    """An unsupported part between two offsets; ``refused`` is True if Flink refuses the part."""

    def __init__(self, message: str, start: int, end: int, refused: bool = False) -> None:
        super().__init__(message)
        self.start, self.end, self.refused = start, end, refused


def program_tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of a program from an offset on; the last token has the kind ``end``."""
    return _tokens(_PROGRAM, text, start)


def _tokens(pattern: re.Pattern[str], text: str, at: int) -> Iterator[Token]:
    fresh, left = True, TOKENS_LIMIT
    while at < len(text):
        left -= 1
        if not left:
            yield Token("unreadable", f"it is not read further: it has over {TOKENS_LIMIT} words", at, at + 1, True)
            break
        match = pattern.match(text, at)
        kind = match.lastgroup or "" if match is not None else ""
        end = at + 1 if match is None else match.end()
        if match is not None and kind == "space":
            fresh = fresh or "\n" in match[0] or "\r" in match[0]
        else:
            if match is not None and kind == "open":
                # An unclosed text or comment may contain all later characters; in double quotes, it ends with its line.
                rest = re.compile(r"[^\r\n]*" if match[0] == '"' and pattern is _PROGRAM else ".*", re.DOTALL)
                end = end if (found := rest.match(text, end)) is None else found.end()
            said = _read(kind, match, pattern is _PROGRAM)
            reason = _UNREADABLE.get(kind, f"a {kind} that is not supported")
            kind, value = ("unreadable", reason) if said is None else (_SAME.get(kind, kind), said)
            yield Token(kind, value, at, end, fresh)
            fresh = False
        at = end
    yield Token("end", "", len(text), len(text), True)


def _read(kind: str, match: re.Match[str] | None, escapes: bool) -> str | None:
    """The value of a token; None if the token is unsupported."""
    if match is None or kind in _UNREADABLE:
        return None
    given = match[kind]
    if kind == "number":
        return given if _NUMBER.fullmatch(given) else None
    if kind != "text":
        return given
    quote, inner = given[0], given[1:-1]
    if not escapes:
        return inner.replace(quote * 2, quote)
    if not set(re.findall(r"\\(.)", inner, re.DOTALL)) <= _ESCAPES.keys():
        return None
    return re.sub(r"\\(.)", lambda part: _ESCAPES[part[1]], inner)


DEPTH_LIMIT = 60
"""Maximum depth of nested brackets and signs."""
_SCALA: Mapping[str, int] = {
    **dict.fromkeys(("||",), 2),
    **dict.fromkeys(("&&",), 3),
    **dict.fromkeys(("===", "!==", "==", "!="), 4),
    **dict.fromkeys(("<", ">", "<=", ">="), 5),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
_STRINGS: Mapping[str, int] = {
    **dict.fromkeys(("||", "&&"), 2),
    **dict.fromkeys(("===", "==", "=", "!==", "!=", "<>", "<", ">", "<=", ">="), 4),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
_WORDS = 1
"""The precedence of an alphanumeric operator in Scala."""
_COMPARISON = 4


@dataclass(frozen=True)
class Tree:
    """A syntax tree of the text from ``start`` to ``end``; ``at`` is the offset of its operator or name.

    Trees of kind ``name``, ``column``, ``symbol``, ``text`` and ``number`` have the ``text`` of their token. ``member``
    is ``owner.text(args)``, with ``args`` None without brackets. ``call`` is ``text(args)``. ``infix`` and ``prefix``
    are the operator ``text`` on ``args``. ``size`` is the number of parts of the tree.
    """

    kind: str
    text: str
    start: int = field(compare=False)
    end: int = field(compare=False)
    owner: Tree | None = None
    args: tuple[Tree, ...] | None = None
    at: int = field(default=-1, compare=False)
    size: int = field(init=False, compare=False, default=1)

    def __post_init__(self) -> None:
        parts = (*(self.args or ()), *((self.owner,) if self.owner is not None else ()))
        size = 1 + sum(part.size for part in parts)
        if size > EXPRESSION_LIMIT:
            raise Unreadable(f"an expression grows beyond {EXPRESSION_LIMIT} parts", self.start, self.end)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "at", self.start if self.at < 0 else self.at)


@dataclass(eq=False)
class Parser:
    """Parser of syntax trees; ``strings`` selects the grammar of the old string expressions."""

    tokens: list[Token]
    strings: bool = False
    at: int = 0
    depth: int = 0
    """Number of open brackets. Inside of brackets, a line may end anywhere."""
    nested: int = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.token
        if token.kind == "unreadable":
            raise Unreadable(token.text, token.start, token.end)
        self.at += token.kind != "end"
        return token

    def sees(self, *operators: str) -> bool:
        return self.token.kind == "operator" and self.token.text in operators

    def take(self, operator: str) -> Token:
        """Consume the next token, which must be this operator. Raises :class:`Unreadable` otherwise."""
        if not self.sees(operator):
            raise self.unexpected(f"{operator} is missing here")
        return self.next()

    def unexpected(self, message: str) -> Unreadable:
        token = self.token
        return Unreadable(token.text if token.kind == "unreadable" else message, token.start, token.end)

    def ended(self) -> bool:
        """True if the statement ends before the next token."""
        token = self.token
        return token.kind == "end" or self.sees(";") or (token.fresh and not self.depth and not self.sees("."))

    def list(self, end: str) -> tuple[Tree, ...]:
        """Expressions separated by commas, up to a closing bracket."""
        found: list[Tree] = []
        while not self.sees(end):
            if found and not self.sees(","):
                raise self.unexpected(f"{end} is missing here")
            if found:
                self.next()
            found.append(self.expression())
        return tuple(found)

    def expression(self, weakest: int = _WORDS) -> Tree:
        """Parse an expression with operators of at least this precedence. Raises :class:`Unreadable`."""
        self.nested += 1
        if self.nested > DEPTH_LIMIT:
            raise self.unexpected("it is nested too deeply")
        left = self._unary()
        while (strength := self._strength()) >= weakest:
            operator = self.next()
            right = self.expression(strength + 1)
            if operator.kind == "name":
                args = right.args if right.kind == "tuple" else (right,)
                word = operator.text.lower() if self.strings else operator.text
                left = Tree("member", word, left.start, right.end, left, args, operator.start)
                continue
            left = Tree("infix", operator.text, left.start, right.end, args=(left, right))
            if self.strings and strength == _COMPARISON and self._strength() == _COMPARISON:
                raise self.unexpected("a comparison of a comparison is not supported")
        self.nested -= 1
        return left

    def _strength(self) -> int:
        """The precedence of the next token; 0 if the token is not an operator."""
        token = self.token
        if token.kind == "operator":
            fresh = token.fresh and not self.depth
            return 0 if fresh else (_STRINGS if self.strings else _SCALA).get(token.text, 0)
        if token.kind == "name" and (self.depth or not token.fresh):
            return _WORDS if not self.strings or token.text.lower() == "as" else 0
        return 0

    def _unary(self) -> Tree:
        if not self.sees("-", "!", "+"):
            return self._suffixed(self._atom())
        sign = self.next()
        if sign.text == "-" and self.token.kind == "number":
            # The sign is part of the number: -5.minutes means -5 minutes.
            number = self.next()
            return self._suffixed(Tree("number", f"-{number.text}", sign.start, number.end))
        self.nested += 1
        if self.nested > DEPTH_LIMIT:
            raise self.unexpected("it is nested too deeply")
        operand = self._unary()
        self.nested -= 1
        return operand if sign.text == "+" else Tree("prefix", sign.text, sign.start, operand.end, args=(operand,))

    def _suffixed(self, tree: Tree) -> Tree:
        while True:
            if self.sees("."):
                self.next()
                name = self.next()
                if name.kind != "name" and not (self.strings and name.text == "?"):
                    raise Unreadable("a name is missing after the dot", name.start, name.end)
                args, end = self._arguments(name.end)
                tree = Tree("member", name.text, tree.start, end, tree, args, name.start)
            elif self.strings and self.token.kind == "name" and self.token.text.lower() == "over":
                name = self.next()
                window = self._atom()
                tree = Tree("member", "over", tree.start, window.end, tree, (window,), name.start)
            else:
                return tree

    def _arguments(self, end: int) -> tuple[tuple[Tree, ...] | None, int]:
        """The content and the end of the following brackets; None without brackets."""
        if not self.sees("(") or (self.token.fresh and not self.depth):
            return None, end
        self.next()
        self.depth += 1
        args = self.list(")")
        self.depth -= 1
        return args, self.take(")").end

    def _atom(self) -> Tree:
        token = self.next()
        if token.kind == "operator" and token.text == "(":
            self.depth += 1
            inner = self.list(")")
            self.depth -= 1
            end = self.take(")").end
            if len(inner) == 1:
                return inner[0]
            return Tree("tuple", "", token.start, end, args=inner)
        if self.strings and token.kind == "operator" and token.text == "*":
            return Tree("name", "*", token.start, token.end)
        if token.kind in ("operator", "end"):
            raise Unreadable("an expression is missing here", token.start, token.end)
        if token.kind == "name":
            args, end = self._arguments(token.end)
            if args is not None:
                return Tree("call", token.text, token.start, end, args=args)
        return Tree(token.kind, token.text, token.start, token.end)


def parse_strings(text: str) -> tuple[Tree, ...]:
    """Parse an old string expression. Raises :class:`Unreadable`."""
    parser = Parser(list(_tokens(_EXPRESSION, text, 0)), strings=True, depth=1)
    found = [parser.expression()]
    while parser.sees(","):
        parser.next()
        found.append(parser.expression())
    if parser.token.kind != "end":
        raise parser.unexpected("the expression continues in an unsupported way")
    return tuple(found)
