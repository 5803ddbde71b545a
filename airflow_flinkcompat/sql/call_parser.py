"""Parser of expressions and calls: typed literals, named arguments, keywords, JSON functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.pattern_parser import PatternParser

_TYPED_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP"})

# Functions that Flink calls without parentheses.
NILADIC_FUNCTIONS = (
    "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER",
    "LOCALTIME", "LOCALTIMESTAMP",
)  # fmt: skip

# Calls with keywords between the operands.
KEYWORD_CALLS: dict[str, tuple[str, ...]] = {
    "CEIL": ("TO",),
    "CEILING": ("TO",),
    "EXTRACT": ("FROM",),
    "FLOOR": ("TO",),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
    "POSITION": ("IN",),
    "SUBSTRING": ("FROM", "FOR"),
    "TRANSLATE": ("USING",),
    "TRIM": ("FROM",),
}
# Keyword calls that mean the same as the call with commas.
_PLAIN_CALLS = frozenset({"SUBSTRING"})
# Calls whose first operand is a time unit.
_UNIT_FIRST = frozenset({"EXTRACT", "TIMESTAMPADD", "TIMESTAMPDIFF"})
_COLLECTIONS: dict[str, type[exp.Expr]] = {
    "ARRAY": exp.Array,
    "MAP": nodes.MapConstructor,
    "MULTISET": nodes.MultisetConstructor,
}
_TRIM_SIDES = ("BOTH", "LEADING", "TRAILING")

_ON_NULL = ("NULL ON NULL", "ABSENT ON NULL")
_ON_EVENTS = tuple(f"{action} ON {event}" for event in ("EMPTY", "ERROR") for action in ("NULL", "ERROR"))
_ON_EMPTY_VALUES = tuple(f"EMPTY {kind} ON {event}" for event in ("EMPTY", "ERROR") for kind in ("ARRAY", "OBJECT"))
# Clauses that may follow the operands of each JSON function. Longer clauses are first.
JSON_CALLS: dict[str, tuple[str, ...]] = {
    "JSON_ARRAY": _ON_NULL,
    "JSON_ARRAYAGG": _ON_NULL,
    "JSON_EXISTS": tuple(f"{value} ON ERROR" for value in ("TRUE", "FALSE", "UNKNOWN", "ERROR")),
    "JSON_OBJECT": _ON_NULL,
    "JSON_OBJECTAGG": _ON_NULL,
    "JSON_QUERY": (
        "WITHOUT ARRAY WRAPPER",
        "WITHOUT WRAPPER",
        *(f"WITH {kind}WRAPPER" for kind in ("CONDITIONAL ARRAY ", "CONDITIONAL ", "UNCONDITIONAL ARRAY ")),
        *("WITH UNCONDITIONAL WRAPPER", "WITH ARRAY WRAPPER", "WITH WRAPPER"),
        *_ON_EVENTS,
        *_ON_EMPTY_VALUES,
    ),
    "JSON_VALUE": _ON_EVENTS,
}
# JSON functions whose operands are pairs.
_JSON_PAIRS = frozenset({"JSON_OBJECT", "JSON_OBJECTAGG"})
# JSON functions that can state the type of their result.
_TYPED_JSON = frozenset({"JSON_QUERY", "JSON_VALUE"})
# Every clause of a JSON function contains one of these words.
_CLAUSE_WORDS = ("ON", "RETURNING", "WRAPPER")
_IS_JSON_KINDS = ("VALUE", "SCALAR", "OBJECT", "ARRAY")


class CallParser(PatternParser):
    """The part of the parser that reads expressions."""

    # Every function remains a call as written. A user's function may have any name, and the plan package has a
    # separate catalogue of functions.
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {
        "CASE": lambda self: self._parse_case(),
        **dict.fromkeys(NILADIC_FUNCTIONS, lambda self: self._parse_niladic()),
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {}
    LAMBDAS: ClassVar[dict[Any, Any]] = {}
    COLUMN_OPERATORS: ClassVar = {TokenType.DOT: None}
    BRACKETS: ClassVar = frozenset({TokenType.L_BRACKET})
    RANGE_PARSERS: ClassVar = {
        TokenType.BETWEEN: Parser.RANGE_PARSERS[TokenType.BETWEEN],
        TokenType.IN: lambda self, this: self._parse_in(this),
        TokenType.IS: lambda self, this: self._parse_is(this),
        TokenType.LIKE: Parser.RANGE_PARSERS[TokenType.LIKE],
        TokenType.OVERLAPS: Parser.RANGE_PARSERS[TokenType.OVERLAPS],
        TokenType.SIMILAR_TO: Parser.RANGE_PARSERS[TokenType.SIMILAR_TO],
    }
    ASSIGNMENT: ClassVar[dict[Any, Any]] = {}
    BITWISE: ClassVar[dict[Any, Any]] = {}

    # --------------------------------------------------------------------------------------- expressions
    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        start = self._curr
        word = start.text.upper()
        if start.token_type == TokenType.VAR:
            if word in _TYPED_LITERALS and self._next.token_type == TokenType.STRING:
                self._advance()
                return self.place(nodes.TypedLiteral(this=self.require_string(), kind=word), start)
            if word in _COLLECTIONS and self._next.token_type == TokenType.L_BRACKET:
                return self._parse_column_ops(self._parse_collection(word))
        if parse_interval and (interval := self._parse_interval()):
            return interval
        return self._parse_atom() or self._parse_column()

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        index = self._index
        negate = self._match(TokenType.NOT)
        if self.match_words("JSON"):
            kind = self.match_word(*_IS_JSON_KINDS) or "VALUE"
            test = exp.Is(this=this, expression=exp.var(f"JSON {kind}"))
            return exp.Not(this=test) if negate else test
        if not self._match_texts(("DISTINCT", "NULL", "TRUE", "FALSE", "UNKNOWN"), advance=False):
            self.fail("Expected NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON after IS")
        self._retreat(index)
        return super()._parse_is(this)

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.fail("Expected ( after IN")
        if self._next.token_type == TokenType.R_PAREN:
            self.fail("Expected a value in the parentheses", self._next)
        return super()._parse_in(this, alias)

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        # sqlglot does not require AND, so it would read a stray word as the upper bound.
        value = exp.Paren(this=this) if isinstance(this, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ) else this
        kind = self.match_word("SYMMETRIC", "ASYMMETRIC")
        low = self._parse_bitwise()
        self.expect(TokenType.AND, "AND after BETWEEN …")
        high = self._parse_bitwise()
        if low is None or high is None:
            self.fail("Expected two values after BETWEEN")
        return exp.Between(this=value, low=low, high=high, symmetric=kind and kind == "SYMMETRIC")

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        if self._next.token_type == TokenType.FARROW:
            start = self._curr
            name = self.require_identifier()
            self._advance()
            return self.place(nodes.NamedArgument(this=name, expression=self.require_expression()), start)
        return super()._parse_lambda(alias=False)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if this is None and self._match(TokenType.L_BRACKET, advance=False):
            self.fail("Expected ARRAY, MAP or MULTISET before [")  # sqlglot reads DuckDB's [1, 2] in every dialect
        return super()._parse_bracket(this)

    def _parse_collection(self, word: str) -> exp.Expr:
        start = self._curr
        self._advance(2)
        values = [] if self._match(TokenType.R_BRACKET, advance=False) else self._parse_csv(self.require_expression)
        self.expect(TokenType.R_BRACKET, "]")
        return self.place(_COLLECTIONS[word](expressions=values), start)

    # --------------------------------------------------------------------------------------------- calls
    def _parse_niladic(self) -> exp.Expr:
        start = self._prev
        if self._match(TokenType.L_PAREN, advance=False):
            arguments = self.wrapped_list(self.require_expression, empty=True)
            return self.place(exp.Anonymous(this=start.text, expressions=arguments), start)
        return self.place(nodes.Niladic(this=start.text.upper()), start)

    def _parse_function_call(
        self, functions: Any = None, anonymous: bool = False, optional_parens: bool = True, any_token: bool = False
    ) -> exp.Expr | None:
        start = self._curr
        word = start.text.upper()
        if start.token_type != TokenType.IDENTIFIER and self._next.token_type == TokenType.L_PAREN:
            special = self._parse_special_call(word)
            if special is not None:
                self._match_r_paren(special)
                return self._parse_window(self.place(special, start))
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        if word in _UNIT_FIRST and isinstance(call, exp.Anonymous) and call.expressions:
            call.set("expressions", [_as_unit(call.expressions[0]), *call.expressions[1:]])
        return call

    def _parse_special_call(self, word: str) -> exp.Expr | None:
        """Read a call with a special grammar up to its ``)``; for other calls, consume nothing."""
        if word in ("CAST", "TRY_CAST"):
            self._advance(2)
            operand = self.require_expression()
            self.expect(TokenType.ALIAS, "AS in the cast")
            node_type = exp.Cast if word == "CAST" else exp.TryCast
            return node_type(this=operand, to=self.require_type())
        if word in KEYWORD_CALLS and self._is_word_inside(*KEYWORD_CALLS[word]):
            return self._parse_keyword_call(word)
        if word in _JSON_PAIRS or (word in JSON_CALLS and self._is_word_inside(*_CLAUSE_WORDS)):
            return self._parse_json_call(word)
        return None

    def _is_word_inside(self, *words: str) -> bool:
        """True if the next call contains one of ``words`` outside of its inner brackets.

        The method searches tokens, because trial parses of nested calls take exponential time.
        """
        depth = 0
        for index in range(self._index, len(self._tokens)):
            token = self._tokens[index]
            if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET):
                depth += 1
            elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET):
                depth -= 1
                if depth == 0:
                    return False
            elif depth == 1 and token.token_type not in self.TEXT_MATCH_EXCLUDED_TOKENS and token.text.upper() in words:
                return True
        return False

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        # This runs directly after the closing parenthesis of a call, when the end of the call is known.
        if isinstance(this, exp.Anonymous) and "start" in this.meta:
            this.meta["end"] = self._prev.end
        return super()._parse_window(this, alias)

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        """Read one bound of a frame."""
        before = self._prev.token_type
        again = self._match(TokenType.BETWEEN, advance=False)
        bound = super()._parse_window_spec()
        if again or bound["value"] is None or (bound["value"] == "CURRENT ROW") != (bound["side"] is None):
            self.fail("Expected CURRENT ROW, or a distance with PRECEDING or FOLLOWING")
        followed = self._match(TokenType.AND, advance=False)
        if before != TokenType.AND and (before == TokenType.BETWEEN) != followed:
            self.fail("Expected BETWEEN … AND … in the frame")
        return bound

    def _parse_keyword_call(self, word: str) -> exp.Expr:
        self._advance(2)
        keywords: list[str] = []
        operands: list[exp.Expr] = []
        if word == "TRIM" and (side := self.match_word(*_TRIM_SIDES)):
            operands.append(exp.var(side))
        if not (operands and self._match_texts(("FROM",), advance=False)):
            keywords += [""] * len(operands)  # there is no keyword between BOTH and the characters
            operands.append(self.require_operand())
        for keyword in KEYWORD_CALLS[word]:
            if self.match_words(keyword):
                keywords.append(keyword)
                operands.append(self.require_operand())
            elif keyword != "FOR":
                self.fail(f"Expected {keyword} in {word}")
        if word in _PLAIN_CALLS:
            return exp.Anonymous(this=word, expressions=operands)
        if word in _UNIT_FIRST:
            operands[0] = _as_unit(operands[0])
        elif keywords == ["TO"]:
            operands[1] = _as_unit(operands[1])
        return nodes.KeywordCall(this=word, expressions=operands, keywords=keywords)

    def _parse_json_call(self, word: str) -> exp.Expr:
        self._advance(2)
        operands: list[exp.Expr] = []
        ended = bool(self._match(TokenType.R_PAREN, advance=False))
        while not (ended or self._is_clause_ahead(word)):
            operands.append(self._parse_json_pair() if word in _JSON_PAIRS else self.require_expression())
            ended = not self._match(TokenType.COMMA)
        clauses = list(iter(lambda: self._parse_json_clause(word), None))
        return nodes.KeywordCall(this=word, expressions=operands, clauses=clauses)

    def _is_clause_ahead(self, word: str) -> bool:
        clauses = (*JSON_CALLS[word], *(("RETURNING", "DEFAULT") if word in _TYPED_JSON else ()))
        return any(self._match_text_seq(*clause.split(), advance=False) for clause in clauses)

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self._match(TokenType.ESCAPE):
            return this
        return exp.Escape(this=this, expression=self._parse_unary())

    def _parse_json_pair(self) -> nodes.JsonPair:
        start = self._curr
        self.match_words("KEY")
        key = self.require_operand()
        if not self._match(TokenType.COLON):
            self.expect_words("VALUE")
        return self.place(nodes.JsonPair(this=key, expression=self.require_expression()), start)

    def _parse_json_clause(self, word: str) -> nodes.CallClause | None:
        start = self._curr
        for words in JSON_CALLS[word]:
            if self.match_words(*words.split()):
                return self.place(nodes.CallClause(this=words), start)
        if word in _TYPED_JSON and self.match_words("RETURNING"):
            return self.place(nodes.CallClause(this="RETURNING", expression=self.require_type()), start)
        if word == "JSON_VALUE" and self._match(TokenType.DEFAULT):
            value = self.require_operand()
            self.expect(TokenType.ON, "ON EMPTY or ON ERROR")
            event = self.require_word("EMPTY", "ERROR")
            return self.place(nodes.CallClause(this=f"DEFAULT ON {event}", expression=value), start)
        return None


def _as_unit(operand: exp.Expr) -> exp.Expr:
    """Convert a time unit that was parsed as a column to a word."""
    if isinstance(operand, exp.Column) and not operand.table and not operand.this.args.get("quoted"):
        unit = exp.var(operand.name.upper())
        unit.meta.update(operand.this.meta)
        return unit
    return operand
