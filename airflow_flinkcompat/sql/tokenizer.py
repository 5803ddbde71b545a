"""Lexical rules of Flink SQL: quoted names, strings, comments, hints, and ends of statements.

Comments start with ``--``, ``//`` or ``/*``. Only words that the grammar needs are keywords. All other words remain
plain words, because Flink accepts functions and columns whose names are keywords in other dialects (``session``,
``name``, ``uuid`` …).
"""

# ruff: noqa: RUF012 -- sqlglot declares its tables as plain class attributes

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

# Two words that form one keyword. They are merged after scanning, so comments and line breaks can separate them.
COMPOUND_KEYWORDS: dict[tuple[str, str], TokenType] = {
    ("GROUP", "BY"): TokenType.GROUP_BY,
    ("ORDER", "BY"): TokenType.ORDER_BY,
    ("PARTITION", "BY"): TokenType.PARTITION_BY,
    ("GROUPING", "SETS"): TokenType.GROUPING_SETS,
    ("SIMILAR", "TO"): TokenType.SIMILAR_TO,
}

_SECOND_WORDS = frozenset(second for _, second in COMPOUND_KEYWORDS)

_NUMBERS = frozenset({TokenType.NUMBER, TokenType.HEX_STRING})
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400

# A name that is or contains a template variable: ``${NAME}``, ``orders_${env}``.
_TEMPLATE = re.compile(r"\w*\$\{[A-Za-z_][\w.:-]*\}(?:\w|\$\{[A-Za-z_][\w.:-]*\})*")

_QUOTED = frozenset({TokenType.IDENTIFIER, TokenType.STRING, TokenType.UNICODE_STRING})
_STRINGS = frozenset({TokenType.STRING, TokenType.UNICODE_STRING})
_HEX = frozenset("0123456789abcdefABCDEF")

_OPERATORS: dict[str, TokenType] = {
    "||": TokenType.DPIPE,
    "<=": TokenType.LTE,
    ">=": TokenType.GTE,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "=>": TokenType.FARROW,
}

_WORDS: tuple[TokenType, ...] = (
    TokenType.ALL,
    TokenType.AND,
    TokenType.ANY,
    TokenType.ASC,
    TokenType.BETWEEN,
    TokenType.CASE,
    TokenType.CROSS,
    TokenType.CUBE,
    TokenType.DEFAULT,
    TokenType.DESC,
    TokenType.DISTINCT,
    TokenType.ELSE,
    TokenType.END,
    TokenType.ESCAPE,
    TokenType.EXCEPT,
    TokenType.EXISTS,
    TokenType.FALSE,
    TokenType.FETCH,
    TokenType.FILTER,
    TokenType.FIRST,
    TokenType.FOR,
    TokenType.FROM,
    TokenType.FULL,
    TokenType.HAVING,
    TokenType.IN,
    TokenType.INNER,
    TokenType.INTERSECT,
    TokenType.INTERVAL,
    TokenType.INTO,
    TokenType.IS,
    TokenType.JOIN,
    TokenType.LATERAL,
    TokenType.LEFT,
    TokenType.LIKE,
    TokenType.LIMIT,
    TokenType.MATCH_RECOGNIZE,
    TokenType.NATURAL,
    TokenType.NEXT,
    TokenType.NOT,
    TokenType.NULL,
    TokenType.OFFSET,
    TokenType.ON,
    TokenType.OR,
    TokenType.ORDINALITY,
    TokenType.OUTER,
    TokenType.OVER,
    TokenType.OVERLAPS,
    TokenType.PARTITION,
    TokenType.QUALIFY,
    TokenType.RANGE,
    TokenType.RECURSIVE,
    TokenType.RIGHT,
    TokenType.ROLLUP,
    TokenType.ROW,
    TokenType.ROWS,
    TokenType.SELECT,
    TokenType.SOME,
    TokenType.TABLE,
    TokenType.THEN,
    TokenType.TRUE,
    TokenType.UNION,
    TokenType.UNKNOWN,
    TokenType.UNNEST,
    TokenType.USING,
    TokenType.VALUES,
    TokenType.WHEN,
    TokenType.WHERE,
    TokenType.WINDOW,
    TokenType.WITH,
)


class FlinkTokenizer(Tokenizer):
    """Tokenizer of one Flink SQL statement."""

    QUOTES = ["'"]
    STRING_ESCAPES = ["'"]
    IDENTIFIERS = ["`"]
    HEX_STRINGS = [("x'", "'"), ("X'", "'")]
    UNICODE_STRINGS = [("u&'", "'"), ("U&'", "'")]
    COMMENTS = ["--", ("/*", "*/")]
    NESTED_COMMENTS = False
    COMMANDS = set()
    # A hint at an invalid place must be an error; it must not disappear as a comment.
    TOKENS_PRECEDING_HINT = set(TokenType)
    KEYWORDS = {
        Tokenizer.HINT_START: TokenType.HINT,
        **_OPERATORS,
        **{word.name: word for word in _WORDS},
        "AS": TokenType.ALIAS,
    }

    def tokenize(self, sql: str) -> list[Token]:
        """The tokens of ``sql``; raises :class:`sqlglot.errors.TokenError` for an invalid string or number."""
        tokens = super().tokenize(_without_slash_comments(sql))
        if not all(_is_number(sql, token) for token in tokens if token.token_type in _NUMBERS):
            raise TokenError("a number that Flink SQL does not accept")
        tokens = self._expand_hints(tokens)
        return _merge(_with_templates(tokens, sql) if "${" in sql else tokens, sql)

    def _expand_hints(self, tokens: list[Token]) -> list[Token]:
        """Replace each hint comment by a HINT token, the tokens of its text, and a closing HINT token ``*/``."""
        if TokenType.HINT not in [token.token_type for token in tokens]:
            return tokens
        expanded: list[Token] = []
        for token in tokens:
            if token.token_type != TokenType.HINT:
                expanded.append(token)
                continue
            body, shift = token.text[3:-2], token.start + 3
            expanded.append(Token(TokenType.HINT, "/*+", token.line, token.col, token.start, token.start + 2))
            for inner in FlinkTokenizer(self.dialect).tokenize(body):
                inner.start += shift
                inner.end += shift
                inner.line, inner.col = token.line, token.col
                expanded.append(inner)
            # The scanner stores the text of the hint as the last comment of its token.
            comments = token.comments[:-1]
            expanded.append(Token(TokenType.HINT, "*/", token.line, token.col, token.end - 1, token.end, comments))
        return expanded


def _is_number(sql: str, token: Token) -> bool:
    """False for numbers of sqlglot that Flink refuses: ``1e``, ``1.2.3``, ``0x1F``, thousands of digits."""
    if token.token_type == TokenType.NUMBER:
        return len(token.text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(token.text) is not None
    return sql[token.start] in "xX"


# sqlglot accepts Jinja comments in every dialect, but they would hide Flink SQL from the parser.
FlinkTokenizer._COMMENTS = {start: end for start, end in FlinkTokenizer._COMMENTS.items() if start != "{#"}


def _without_slash_comments(sql: str) -> str:
    """Replace every ``// …`` comment by blanks. sqlglot would also match the ``//`` in a URL."""
    if "//" not in sql:
        return sql
    return "".join(
        " " * len(lexeme.text)
        if lexeme.kind == "comment" and lexeme.text.startswith("//")
        else sql[lexeme.start : lexeme.end]
        for lexeme in lexemes(sql)
    )


def _merge(tokens: list[Token], sql: str) -> list[Token]:
    """Merge compound keywords, and adjacent string literals on different lines."""
    merged: list[Token] = []
    for token in tokens:
        previous = merged[-1] if merged else None
        if previous is not None:
            continues = token.token_type == TokenType.STRING and previous.token_type in _STRINGS
            if continues and "\n" in sql[previous.end + 1 : token.start]:
                merged[-1] = _joined(previous, token, previous.token_type, previous.text + token.text)
                continue
            second = token.text.upper()
            compound = COMPOUND_KEYWORDS.get((previous.text.upper(), second)) if second in _SECOND_WORDS else None
            if compound is not None and token.token_type not in _QUOTED and previous.token_type not in _QUOTED:
                merged[-1] = _joined(previous, token, compound, f"{previous.text} {token.text}")
                continue
        merged.append(token)
    if TokenType.UNICODE_STRING in [token.token_type for token in merged]:
        return _with_unicode_strings(merged)
    return merged


def _with_templates(tokens: list[Token], sql: str) -> list[Token]:
    """Merge each template variable with the adjacent text into one word."""
    merged: list[Token] = []
    end = -1
    for token in tokens:
        if token.start < end:
            continue
        if token.token_type == TokenType.VAR and (found := _TEMPLATE.match(sql, token.start)):
            end = found.end()
            column = token.col + end - 1 - token.end
            token = Token(TokenType.VAR, found.group(), token.line, column, token.start, end - 1, token.comments)
        merged.append(token)
    return merged


def _with_unicode_strings(tokens: list[Token]) -> list[Token]:
    """Replace each ``U&'…'`` and its UESCAPE by the plain string."""
    plain: list[Token] = []
    at = 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        if token.token_type == TokenType.UNICODE_STRING:
            escape = "\\"
            if [each.text.upper() for each in tokens[at : at + 1]] == ["UESCAPE"]:
                given = tokens[at + 1] if at + 1 < len(tokens) else None
                if given is None or given.token_type != TokenType.STRING:
                    raise TokenError("UESCAPE without a string")
                escape, last, at = given.text, given, at + 2
            else:
                last = token
            token = _joined(token, last, TokenType.STRING, _unescaped(token.text, escape))
        plain.append(token)
    return plain


def _unescaped(text: str, escape: str) -> str:
    """Decode ``U&'…'``: an escape character precedes four hexadecimal digits, or itself."""
    if len(escape) != 1 or escape in _HEX or escape in '+"' or escape.isspace():
        raise TokenError(
            "UESCAPE requires one character other than a hexadecimal digit, blank, plus sign or double quote"
        )
    units: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != escape:
            units.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == escape:
            units.append(escape)
            at += 2
        else:
            digits = text[at + 1 : at + 5]
            if len(digits) != 4 or not _HEX.issuperset(digits):
                raise TokenError("an escape sequence without four hexadecimal digits")
            units.append(chr(int(digits, 16)))
            at += 5
    try:
        # Two escapes may be the two halves of one character.
        return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise TokenError("half of a surrogate pair, which is not a character") from None


def _joined(first: Token, second: Token, token_type: TokenType, text: str) -> Token:
    comments = [*first.comments, *second.comments]
    return Token(token_type, text, second.line, second.col, first.start, second.end, comments)


_LEXEME = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<comment>--[^\r\n]*|(?<!:)//[^\r\n]*|/\*.*?\*/)   # not the // of a URL
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<open>/\*|'|`)                 # never closed: the rest of the script
    | (?P<word>[^\W\d][\w$]*)
    | (?P<semicolon>;)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_SET_STARTS = (("BEGIN", "STATEMENT", "SET"), ("STATEMENT", "SET", "BEGIN"))
_LAST_OF_STARTS = frozenset(words[-1] for words in _SET_STARTS)
_BETWEEN = frozenset({"space", "comment"})
_UNCLOSED = {"/*": "a comment", "'": "a string", "`": "a name in back-ticks"}


class Lexeme(NamedTuple):
    """A piece of text with its kind (a group of the pattern) and its offsets (``end`` is exclusive)."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Chunk:
    """The offsets of a statement in a script (end exclusive), without ``;`` and outer comments.

    ``unclosed`` describes an unclosed string, name or comment, if any; ``unclosed_at`` is its offset.
    """

    start: int
    end: int
    unclosed: str | None = None
    unclosed_at: int = 0


def lexemes(text: str, without: Container[str] = ()) -> Iterator[Lexeme]:
    """Yield every lexeme of ``text``, except the kinds in ``without``.

    An unclosed string, name or comment contains all remaining text and has the kind ``open``.
    """
    for match in _LEXEME.finditer(text):  # the last alternative matches any character
        kind = match.lastgroup
        assert kind is not None
        if kind in without:
            continue
        start, end = match.span()
        if kind == "open":
            yield Lexeme(kind, match.group(), start, len(text))
            return
        yield Lexeme(kind, match.group(), start, end)


def split(text: str) -> Iterator[Chunk]:
    """Yield the statements of ``text``; a statement set is one statement."""
    # This loop uses matches instead of lexemes, because it examines only a few per statement.
    inside: list[re.Match[str]] = []
    in_set = False
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup
        if kind in _BETWEEN:
            continue
        if kind == "semicolon" and not in_set:
            if inside:
                yield _chunk(inside)
            inside = []
            continue
        word = match[0].upper() if kind == "word" else ""
        if in_set and word == "END" and inside[-1][0].upper() in (";", "BEGIN"):
            in_set = False
        inside.append(match)
        if kind == "open":
            yield Chunk(inside[0].start(), len(text), _UNCLOSED[match[0]], match.start())
            return
        # Only these words end the start of a statement set, and few statements contain these words.
        if not in_set and word in _LAST_OF_STARTS:
            in_set = tuple(each[0].upper() for each in inside[-3:]) in _SET_STARTS
    if inside:
        yield _chunk(inside)


def _chunk(inside: list[re.Match[str]]) -> Chunk:
    return Chunk(inside[0].start(), inside[-1].end())
