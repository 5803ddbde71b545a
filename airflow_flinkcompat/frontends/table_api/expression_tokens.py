"""Splits Scala, Java and the old string expressions into tokens, by one table of patterns each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from airflow_flinkcompat.frontends.table_api.values import NotRead

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
"""Tokens of a text: no program has that many."""
_SAME = {"quoted": "name", "block": "text"}
"""Kinds that are another one in other quotes."""
_UNREADABLE = {
    "character": "a single character in quotes is not read: a text stands in double quotes",
    "interpolated": "a text that is put together is not read",
    "open": "quotes or a comment are never closed",
    "": "a character that is not read",
}


class Token(NamedTuple):
    """A piece of a text: its kind is ``name``, ``column``, ``symbol``, ``text``, ``number``, ``operator`` or ``end``.

    ``text`` is what it says, without quotes; ``start`` and ``end`` are offsets; ``fresh``: it is the first of its line.
    Of kind ``unreadable``, ``text`` is the reason.
    """

    kind: str
    text: str
    start: int
    end: int
    fresh: bool = False


class Unreadable(NotRead):
    """What is not understood at a place: ``start`` and ``end`` are offsets; ``refused``: Flink refuses it."""

    def __init__(self, message: str, start: int, end: int, refused: bool = False) -> None:
        super().__init__(message)
        self.start, self.end, self.refused = start, end, refused


def program_tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of a program from an offset on, the last one of kind ``end``."""
    return _tokens(_PROGRAM, text, start)


def expression_tokens(text: str) -> Iterator[Token]:
    """The tokens of an old string expression, the last one of kind ``end``."""
    return _tokens(_EXPRESSION, text, 0)


def _tokens(pattern: re.Pattern[str], text: str, at: int) -> Iterator[Token]:
    fresh, left = True, TOKENS_LIMIT
    while at < len(text):
        left -= 1
        if not left:
            yield Token("unreadable", f"it is not read any further: it has over {TOKENS_LIMIT} words", at, at + 1, True)
            break
        match = pattern.match(text, at)
        kind = match.lastgroup or "" if match is not None else ""
        end = at + 1 if match is None else match.end()
        if match is not None and kind == "space":
            fresh = fresh or "\n" in match[0] or "\r" in match[0]
        else:
            if match is not None and kind == "open":
                # Whatever follows may be inside of it: a text in double quotes ends with its line.
                rest = re.compile(r"[^\r\n]*" if match[0] == '"' and pattern is _PROGRAM else ".*", re.DOTALL)
                end = end if (found := rest.match(text, end)) is None else found.end()
            said = _read(kind, match, pattern is _PROGRAM)
            kind, value = (_SAME.get(kind, kind), said) if said is not None else ("unreadable", _reason(kind))
            yield Token(kind, value, at, end, fresh)
            fresh = False
        at = end
    yield Token("end", "", len(text), len(text), True)


def _read(kind: str, match: re.Match[str] | None, escapes: bool) -> str | None:
    """What a token says; None where it is not read."""
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


def _reason(kind: str) -> str:
    return _UNREADABLE.get(kind, f"a {kind} that is not read")
