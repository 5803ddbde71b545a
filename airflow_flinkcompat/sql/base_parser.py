"""Shared parts of the parser: positions, required tokens, names, literals and reserved words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

_LITERALS = Parser.STRING_PARSERS.keys() | Parser.NUMERIC_PARSERS.keys()
_WORD = re.compile(r"[^\W\d]|\$")
N = TypeVar("N", bound=exp.Expr)
T = TypeVar("T")


def by_first_word(rows: Iterable[tuple[tuple[str, ...], T]]) -> Mapping[str, Sequence[tuple[tuple[str, ...], T]]]:
    """Group rows by the first word that they match, so that few rows must be compared."""
    found: dict[str, list[tuple[tuple[str, ...], T]]] = {}
    for row in rows:
        found.setdefault(row[0][0], []).append(row)
    return found


class BaseParser(Parser):
    """sqlglot's parser, with helpers that raise instead of returning None."""

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise a ParseError at ``token``; by default, at the next token."""
        self.raise_error(message, *(() if token is None else (token,)))
        raise AssertionError("raise_error always raises under ErrorLevel.IMMEDIATE")

    def raise_error(self, message: str, *token: Token) -> None:
        """Raise a ParseError at ``token``; without a token, the message describes the next one."""
        if not token and message.startswith("Expect"):
            found = f", found {self.found()}" if self._curr else " at the end of the statement"
            message = f"Expected{message.removeprefix('Expecting').removeprefix('Expected')}{found}"
        super().raise_error(message, *token)

    def found(self) -> str:
        """Describe the next token: keywords and symbols verbatim, but no other text, which may be secret."""
        token = self._curr
        kind = token.token_type
        if kind in _LITERALS:
            return "a string" if kind == TokenType.STRING else "a number" if kind == TokenType.NUMBER else "a literal"
        if kind == TokenType.IDENTIFIER:
            return "a quoted name"
        return "a name" if kind == TokenType.VAR and token.text.upper() not in reserved_words() else token.text

    def place(self, node: N, start: Token) -> N:
        """Record that ``node`` was read from ``start`` to the last consumed token."""
        node.meta.update(start=start.start, end=self._prev.end)
        return node

    def match_word(self, *words: str) -> str | None:
        """Consume one of ``words`` (upper case) and return it."""
        return self._prev.text.upper() if self._match_texts(words) else None

    match_words = Parser._match_text_seq
    """Consume a sequence of words if it is next."""

    def require_word(self, *words: str, context: str = "") -> str:
        """Consume one of ``words`` and return it, or raise."""
        return self.match_word(*words) or self.fail(f"Expected {' or '.join(words)}{context}")

    def expect_words(self, *words: str) -> None:
        """Consume the sequence ``words`` or raise."""
        if not self.match_words(*words):
            self.fail(f"Expected {' '.join(words)}")

    def expect(self, token_type: TokenType, what: str) -> None:
        """Consume a token of ``token_type``, or raise an error that names ``what``."""
        if not self._match(token_type):
            self.fail(f"Expected {what}")

    def require_identifier(self) -> exp.Identifier:
        """Read one name (any word, or back-ticked) or raise."""
        token = self._curr
        is_word = token.token_type not in _LITERALS and _WORD.match(token.text) is not None
        named = is_word or token.token_type == TokenType.IDENTIFIER
        identifier = self._parse_id_var(any_token=True) if named else None
        return identifier if isinstance(identifier, exp.Identifier) else self.fail("Expected a name")

    def parse_dotted_name(self) -> exp.Identifier | exp.Dot:
        """Read ``a.b.c``: an Identifier, or Dots of identifiers."""
        start = self._curr
        name: exp.Identifier | exp.Dot = self.require_identifier()
        while self._match(TokenType.DOT):
            name = self.place(exp.Dot(this=name, expression=self.require_identifier()), start)
        return name

    def parse_name(self) -> exp.Table:
        """Read ``[catalog.][database.]name`` without hints or alias."""
        start = self._curr
        parts = [self.require_identifier()]
        while self._match(TokenType.DOT):
            parts.append(self.require_identifier())
        if len(parts) > 3:
            self.fail("A name has at most three parts (catalog.database.name)", self._prev)
        return self.place(exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))), start)

    def require_string(self) -> exp.Literal:
        """Read a string literal or raise."""
        literal = self._parse_string()
        return literal if isinstance(literal, exp.Literal) else self.fail("Expected a string in single quotes")

    def parse_string_literal(self) -> exp.Literal | None:
        """Read a string literal if it is next."""
        return self.require_string() if self._curr.token_type == TokenType.STRING else None

    def require_expression(self) -> exp.Expr:
        """Read an expression or raise."""
        return self._parse_disjunction() or self.fail("Expected an expression")

    def require_operand(self) -> exp.Expr:
        """Read an expression without comparisons and AND/OR, or raise."""
        return self._parse_bitwise() or self.fail("Expected an expression")

    def wrapped_list(self, read: Callable[[], T], *, empty: bool = False) -> list[T]:
        """Read ``(item, …)``; ``()`` is refused unless the list may be ``empty``."""
        self._match_l_paren()
        items: list[T] = [] if empty and self._match(TokenType.R_PAREN, advance=False) else self._parse_csv(read)
        self._match_r_paren()
        return items or ([] if empty else self.fail("Expected a value in the parentheses", self._prev))

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        # sqlglot accepts a comma without an item before or after it, but Flink does not.
        def read() -> Any:
            item = parse_method()
            if item is None and sep in (self._prev.token_type, self._curr.token_type):
                self.fail("Expected a value on both sides of the comma")
            return item

        return super()._parse_csv(read, sep)


DATA = Path(__file__).with_name("reserved_words.json")
"""Reserved words by version of Flink, written by ``python -m dev.measure reserved-words``."""
EVERY_LINE = "every line"


@lru_cache
def reserved_words(line: str = EVERY_LINE) -> frozenset[str]:
    """Upper-case words that a version of Flink refuses as a name without back-ticks."""
    by_line = json.loads(DATA.read_text())
    return frozenset(by_line[EVERY_LINE]).union(by_line[line]) if line in by_line else frozenset()
