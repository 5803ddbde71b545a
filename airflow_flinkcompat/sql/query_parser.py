"""Queries: relations (window TVFs, LATERAL TABLE, hints, FOR SYSTEM_TIME), function calls, literals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokens import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.pattern_parser import PatternParser

_TYPED_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP"})

#: Functions Flink calls without parentheses.
NILADIC_FUNCTIONS = (
    "CURRENT_CATALOG",
    "CURRENT_DATABASE",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "LOCALTIME",
    "LOCALTIMESTAMP",
)

#: Calls with keywords between the operands.
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
#: Keyword calls that mean the same as the plain call with commas.
_PLAIN_CALLS = frozenset({"SUBSTRING"})
#: Calls whose first operand is a time unit.
_UNIT_FIRST = frozenset({"EXTRACT", "TIMESTAMPADD", "TIMESTAMPDIFF"})
_TRIM_SIDES = ("BOTH", "LEADING", "TRAILING")


class QueryParser(PatternParser):
    """The part of the parser that reads queries and expressions."""

    # Every function stays the call it was written as: a user's function may carry any name, and the planner
    # upstairs has a catalogue of its own.
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
    ASSIGNMENT: ClassVar[dict[Any, Any]] = {}
    BITWISE: ClassVar[dict[Any, Any]] = {}
    RANGE_PARSERS: ClassVar = {
        token: Parser.RANGE_PARSERS[token]
        for token in (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE, TokenType.SIMILAR_TO)
    }
    QUERY_MODIFIER_PARSERS: ClassVar = {
        token: Parser.QUERY_MODIFIER_PARSERS[token]
        for token in (
            *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW),
            *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.FETCH, TokenType.OFFSET),
        )
    }
    QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)
    OPTIONAL_ALIAS_TOKEN_CTE = False
    SUPPORTS_DIRECTED_JOIN = False
    VALUES_FOLLOWED_BY_PAREN = True
    ID_VAR_TOKENS: ClassVar = {
        token
        for token in Parser.ID_VAR_TOKENS
        if token
        not in {
            *(TokenType.ALL, TokenType.CASE, TokenType.CUBE, TokenType.END, TokenType.FALSE, TokenType.FOR, TokenType.FULL),
            *(TokenType.IN, TokenType.IS, TokenType.LEFT, TokenType.NATURAL, TokenType.OVER, TokenType.PARTITION),
            *(TokenType.RIGHT, TokenType.ROLLUP, TokenType.ROWS, TokenType.TABLE, TokenType.TRUE, TokenType.UNNEST),
            *(TokenType.ESCAPE, TokenType.ASC, TokenType.DESC, TokenType.EXISTS, TokenType.SOME, TokenType.WINDOW),
        }
    }
    TABLE_ALIAS_TOKENS: ClassVar = ID_VAR_TOKENS
    ALIAS_TOKENS: ClassVar = ID_VAR_TOKENS
    WINDOW_ALIAS_TOKENS: ClassVar = ID_VAR_TOKENS - {TokenType.RANGE, TokenType.ROWS}
    FETCH_TOKENS: ClassVar = ID_VAR_TOKENS - {TokenType.ROW, TokenType.ROWS}

    # ---------------------------------------------------------------------------------------- statements
    def _parse_statement(self) -> exp.Expr | None:
        """What may stand in a CTE or after WITH: a query."""
        return self.parse_query()

    def parse_query(self) -> exp.Expr | None:
        """Read a query: SELECT, VALUES, WITH …, set operations, parenthesised ones."""
        if self._match(TokenType.L_PAREN, advance=False):
            query = self._parse_set_operations(self._parse_paren())
            return cast("exp.Expr | None", self._parse_query_modifiers(query))
        return self._parse_select()

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        # sqlglot reads DuckDB's "FROM t" as a query in every dialect.
        if self._match(TokenType.FROM, advance=False):
            self.raise_error("Expected SELECT")
        return super()._parse_select(*args, **kwargs)

    def require_query(self) -> exp.Expr:
        """Read a query or raise."""
        query = self.parse_query()
        if not isinstance(query, (exp.Query, exp.Values)):
            self.raise_error("Expected a query")
            raise AssertionError("unreachable: raise_error raises")
        return query

    # -------------------------------------------------------------------------------------------- hints
    def _parse_hint(self) -> exp.Hint | None:
        hints = self.parse_hints()
        return exp.Hint(expressions=hints) if hints else None

    def parse_hints(self) -> list[nodes.HintCall]:
        """Read ``/*+ NAME(…), NAME */``, possibly several; empty when there is none."""
        hints: list[nodes.HintCall] = []
        while self._match(TokenType.HINT):
            hints.extend(self._parse_csv(self._parse_hint_call))
            if not (self._curr.text == "*/" and self._match(TokenType.HINT)):
                self.raise_error("Expected the end of the hint")
        return hints

    def _parse_hint_call(self) -> nodes.HintCall:
        start = self._curr
        name = self.require_identifier()
        arguments = None
        if self._match(TokenType.L_PAREN):
            arguments = self._parse_csv(self._parse_hint_argument)
            self._match_r_paren()
        return self.place(nodes.HintCall(this=name, expressions=arguments), start)

    def _parse_hint_argument(self) -> exp.Expr:
        start = self._curr
        value = self._parse_string() or self._parse_number()
        key = value if value is not None else self.parse_dotted_name()
        if self._match(TokenType.EQ):
            literal = self._parse_string() or self._parse_number()
            if literal is None:
                self.raise_error("Expected a value for the hint option")
            return self.place(nodes.Option(this=key, expression=literal), start)
        return key

    # ----------------------------------------------------------------------------------------- relations
    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Any = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        if schema:
            return self.parse_name()
        start = self._curr
        relation = self._parse_relation()
        if relation is None:
            return None
        if self._match(TokenType.MATCH_RECOGNIZE):
            relation = self.parse_match_recognize(relation, start)
        elif self._curr.token_type == TokenType.HINT:
            self.raise_error("A hint may only follow SELECT or the name of a table")
        if joins:
            for join in self._parse_joins():
                relation.append("joins", join)
        return relation

    def _parse_relation(self) -> exp.Expr | None:
        start = self._curr
        if self._match(TokenType.LATERAL):
            return self._parse_lateral_relation()
        if self._match_pair(TokenType.TABLE, TokenType.L_PAREN):
            return self._parse_table_function(start.start, wrapped=True)
        if unnest := self._parse_unnest():
            return self.place(unnest, start)
        if values := self._parse_derived_table_values():
            return self.place(values, start)
        if start.token_type == TokenType.SELECT and self._prev.token_type != TokenType.L_PAREN:
            self.raise_error("A subquery in FROM needs parentheses")
        if subquery := self._parse_select(table=True):
            return self.place(subquery, start)
        if self._is_function_ahead():
            return self._parse_table_function(start.start, wrapped=False)
        return self._parse_named_table()

    def _parse_lateral_relation(self) -> exp.Expr:
        start = self._prev
        if self._match_pair(TokenType.TABLE, TokenType.L_PAREN):
            return self._parse_table_function(start.start, wrapped=True, lateral=True)
        relation: exp.Expr | None = self._parse_unnest(with_alias=False)
        if relation is None and self._is_function_ahead():
            return self._parse_table_function(start.start, wrapped=False, lateral=True)
        relation = relation or self._parse_select(table=True, parse_subquery_alias=False)
        if relation is None:
            self.raise_error("Expected TABLE(…), UNNEST(…) or a subquery after LATERAL")
        return self.place(exp.Lateral(this=relation, alias=self._parse_table_alias()), start)

    def _parse_lateral(self) -> exp.Lateral | None:
        return None  # LATERAL is only ever a relation here; see _parse_relation

    def _is_function_ahead(self) -> bool:
        index = self._index
        found = False
        while self._curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            self._advance()
            if self._match(TokenType.L_PAREN, advance=False):
                found = True
                break
            if not self._match(TokenType.DOT):
                break
        self._retreat(index)
        return found

    def _parse_table_function(self, start: int, *, wrapped: bool, lateral: bool = False) -> exp.Expr:
        function = self._parse_table_function_call()
        if wrapped:
            self._match_r_paren()
        function.set("lateral", lateral)
        function.meta.update(start=start, end=self._prev.end)
        function.set("alias", self._parse_table_alias())
        return function

    def _parse_table_function_call(self) -> nodes.TableFunction:
        start = self._curr
        name = self.parse_dotted_name()
        self.expect(TokenType.L_PAREN, "( after the name of the table function")
        arguments = [] if self._match(TokenType.R_PAREN, advance=False) else self._parse_csv(self._parse_table_argument)
        self._match_r_paren()
        return self.place(nodes.TableFunction(this=name, expressions=arguments), start)

    def _parse_table_argument(self) -> exp.Expr:
        start = self._curr
        if self._next.token_type == TokenType.FARROW:
            name = self.require_identifier()
            self._advance()
            return self.place(nodes.NamedArgument(this=name, expression=self._parse_table_argument_value()), start)
        return self._parse_table_argument_value()

    def _parse_table_argument_value(self) -> exp.Expr:
        start = self._curr
        if self._curr.text.upper() == "DESCRIPTOR" and self._next.token_type == TokenType.L_PAREN:
            self._advance()
            columns = self._parse_wrapped_csv(self.require_identifier)
            return self.place(nodes.Descriptor(expressions=columns), start)
        relation: exp.Expr | None = None
        if self._match_pair(TokenType.TABLE, TokenType.L_PAREN):
            relation = self._parse_table_function_call()
            self._match_r_paren()
        elif self._match(TokenType.TABLE):
            relation = self._parse_table_name_with_hints()
        elif self._match(TokenType.SELECT, advance=False) or self._match(TokenType.WITH, advance=False):
            relation = exp.Subquery(this=self.require_query())
        elif self._match(TokenType.L_PAREN, advance=False) and self._next.token_type in (
            TokenType.SELECT,
            TokenType.WITH,
        ):
            relation = self._parse_select(table=True, parse_subquery_alias=False)
        if relation is None:
            value = self._parse_lambda()
            if value is None:
                self.raise_error("Expected an argument")
                raise AssertionError("unreachable: raise_error raises")
            return value
        # PARTITION BY (a, b) and PARTITION BY a, b mean the same, but a comma also ends the argument.
        partition: list[exp.Expr] = []
        if self._match(TokenType.PARTITION_BY):
            if self._match(TokenType.L_PAREN, advance=False):
                partition = self._parse_wrapped_csv(self._require_disjunction)
            else:
                partition = [self._require_disjunction()]
        order = None
        if self._match(TokenType.ORDER_BY):
            wrapped = self._match(TokenType.L_PAREN)
            keys = self._parse_csv(self._parse_ordered) if wrapped else [self._parse_ordered()]
            if wrapped:
                self._match_r_paren()
            order = exp.Order(expressions=keys)
        return self.place(nodes.TableArgument(this=relation, partition_by=partition, order=order), start)

    def _require_disjunction(self) -> exp.Expr:
        expression = self._parse_disjunction()
        if expression is None:
            self.raise_error("Expected an expression")
            raise AssertionError("unreachable: raise_error raises")
        return expression

    def parse_name(self) -> exp.Table:
        """Read ``[catalog.][database.]name`` without hints or alias."""
        start = self._curr
        parts = [self.require_identifier()]
        while self._match(TokenType.DOT):
            parts.append(self.require_identifier())
        if len(parts) > 3:
            self.raise_error("A name has at most three parts (catalog.database.name)", self._prev)
        return self.place(exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))), start)

    def _parse_table_name_with_hints(self) -> exp.Table:
        table = self.parse_name()
        hints = self.parse_hints()
        if hints:
            table.set("hints", hints)
        return table

    def _parse_named_table(self) -> exp.Expr | None:
        if not self._match_set(self.ID_VAR_TOKENS, advance=False):
            return None
        start = self._curr
        table = self._parse_table_name_with_hints()
        if self._match_text_seq("FOR", "SYSTEM_TIME", "AS", "OF"):
            table.set("version", nodes.SystemTime(this=self._require_bitwise()))
        self.place(table, start)
        table.set("alias", self._parse_table_alias())
        return table

    def _require_bitwise(self) -> exp.Expr:
        expression = self._parse_bitwise()
        if expression is None:
            self.raise_error("Expected an expression")
            raise AssertionError("unreachable: raise_error raises")
        return expression

    def _parse_pivots(self) -> None:
        return None

    def _parse_table_sample(self, as_modifier: bool = False) -> None:
        return None

    # --------------------------------------------------------------------------------------- expressions
    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        start = self._curr
        if (
            start.token_type == TokenType.VAR
            and start.text.upper() in _TYPED_LITERALS
            and self._next.token_type == TokenType.STRING
        ):
            self._advance()
            return self.place(nodes.TypedLiteral(this=self._parse_string(), kind=start.text.upper()), start)
        if parse_interval and (interval := self._parse_interval()):
            return interval
        atom = self._parse_atom()
        if atom is not None:
            return atom
        return self._parse_column()

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        if self._next.token_type == TokenType.FARROW:
            start = self._curr
            name = self.require_identifier()
            self._advance()
            return self.place(nodes.NamedArgument(this=name, expression=self._require_disjunction()), start)
        return super()._parse_lambda(alias=False)

    def _parse_niladic(self) -> exp.Expr:
        start = self._prev
        if self._match(TokenType.L_PAREN):
            arguments = self._parse_csv(self._parse_number)
            self._match_r_paren()
            return self.place(exp.Anonymous(this=start.text, expressions=arguments), start)
        return self.place(nodes.Niladic(this=start.text.upper()), start)

    def _parse_function_call(
        self,
        functions: Any = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        start = self._curr
        word = start.text.upper()
        if start.token_type != TokenType.IDENTIFIER and self._next.token_type == TokenType.L_PAREN:
            if word in ("CAST", "TRY_CAST"):
                self._advance(2)
                return self._finish_call(self._parse_cast_call(word), start)
            if word in KEYWORD_CALLS and (call := self._parse_keyword_call(word)):
                return self._finish_call(call, start)
        elif word in ("ARRAY", "MAP", "MULTISET") and self._next.token_type == TokenType.L_BRACKET:
            return self._parse_collection(word)
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        if word in _UNIT_FIRST and isinstance(call, exp.Anonymous):
            _first_operand_to_unit(call)
        return call

    def _finish_call(self, call: exp.Expr, start: Any) -> exp.Expr | None:
        self._match_r_paren(call)
        self.place(call, start)
        return self._parse_window(call)

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        # Called right after the closing parenthesis of a call: the only moment its end is known.
        if isinstance(this, exp.Anonymous) and "start" in this.meta:
            this.meta["end"] = self._prev.end
        return super()._parse_window(this, alias)

    def _parse_cast_call(self, word: str) -> exp.Expr:
        operand = self._require_disjunction()
        self.expect(TokenType.ALIAS, "AS in the cast")
        node_type = exp.Cast if word == "CAST" else exp.TryCast
        return node_type(this=operand, to=self.require_type())

    def _parse_keyword_call(self, word: str) -> exp.Expr | None:
        """Read ``NAME(a KEYWORD b …)``; None (nothing consumed) when it is an ordinary call."""
        index = self._index
        self._advance(2)
        keywords: list[str] = []
        operands: list[exp.Expr | None] = []
        if word == "TRIM" and (side := self.match_word(*_TRIM_SIDES)):
            operands.append(exp.var(side))
            keywords.append("")
        if not (operands and self._match_text_seq("FROM", advance=False)):
            operands.append(self._parse_disjunction())
        elif operands:
            keywords.pop()
        for keyword in KEYWORD_CALLS[word]:
            if self._match_text_seq(keyword):
                keywords.append(keyword)
                operands.append(self._parse_bitwise())
        if not keywords or None in operands or not self._match(TokenType.R_PAREN, advance=False):
            self._retreat(index)
            return None
        if word in _PLAIN_CALLS:
            return exp.Anonymous(this=word, expressions=operands)
        if word in _UNIT_FIRST:
            operands[0] = _as_unit(operands[0])
        elif keywords == ["TO"]:
            operands[1] = _as_unit(operands[1])
        return nodes.KeywordCall(this=word, expressions=operands, keywords=keywords)

    def _parse_collection(self, word: str) -> exp.Expr:
        start = self._curr
        self._advance(2)
        values = [] if self._match(TokenType.R_BRACKET, advance=False) else self._parse_csv(self._parse_disjunction)
        self.expect(TokenType.R_BRACKET, "]")
        node_type = {"ARRAY": exp.Array, "MAP": nodes.MapConstructor, "MULTISET": nodes.MultisetConstructor}[word]
        return self.place(node_type(expressions=values), start)


def _as_unit(operand: exp.Expr | None) -> exp.Expr | None:
    """``DAY`` was read as a column; a time unit is a word."""
    if isinstance(operand, exp.Column) and not operand.table and not operand.this.quoted:
        unit = exp.var(operand.name.upper())
        unit.meta.update(operand.this.meta)
        return unit
    return operand


def _first_operand_to_unit(call: exp.Anonymous) -> None:
    if call.expressions:
        call.set("expressions", [_as_unit(call.expressions[0]), *call.expressions[1:]])
