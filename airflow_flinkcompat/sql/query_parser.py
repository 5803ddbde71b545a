"""Parser of queries and relations: windowing functions, LATERAL TABLE, hints, FOR SYSTEM_TIME."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.call_parser import CallParser

_QUERY_STARTS = frozenset({TokenType.SELECT, TokenType.WITH})

# Words after a relation or column that start a clause, at least in Flink's grammar.
STATEMENT_WORDS = frozenset({"ALTER", "BEGIN", "CREATE", "DROP", "EXECUTE", "INSERT", "SELECT", "SET"})
"""Reserved words that only start a statement, or follow the first word of a statement."""
_NO_ALIASES = STATEMENT_WORDS | {"BY", "GROUP", "MINUS", "ORDER", "PIVOT", "TABLESAMPLE", "UNPIVOT"}

# Tokens that can be a name without back-ticks.
_NAMES = {
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.DEFAULT, TokenType.FILTER, TokenType.FIRST, TokenType.NEXT),
    *(TokenType.OFFSET, TokenType.ORDINALITY, TokenType.OVERLAPS, TokenType.RANGE, TokenType.RECURSIVE),
    *(TokenType.ROW, TokenType.UNKNOWN),
}


class QueryParser(CallParser):
    """The part of the parser that reads queries."""

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
    ID_VAR_TOKENS: ClassVar = _NAMES
    TABLE_ALIAS_TOKENS: ClassVar = _NAMES
    ALIAS_TOKENS: ClassVar = _NAMES
    WINDOW_ALIAS_TOKENS: ClassVar = _NAMES - {TokenType.RANGE}
    FETCH_TOKENS: ClassVar = _NAMES - {TokenType.ROW}

    # ---------------------------------------------------------------------------------------- statements
    def _parse_statement(self) -> exp.Expr | None:
        """Parse a query in a CTE or after WITH."""
        return self.parse_query()

    def parse_query(self) -> exp.Expr | None:
        """Read a query: SELECT, VALUES, WITH …, a set operation, or a query in parentheses."""
        if self._match(TokenType.L_PAREN, advance=False):
            query: exp.Expr | None = self._parse_set_operations(self._parse_paren())
            return self._parse_query_modifiers(query)
        return self._parse_select()

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        # sqlglot reads DuckDB's "FROM t" as a query in every dialect.
        if self._match(TokenType.FROM, advance=False):
            self.fail("Expected SELECT")
        inside = self._prev.token_type == TokenType.L_PAREN
        if (inside or not kwargs.get("table")) and self._next.token_type != TokenType.L_PAREN:
            start = self._curr
            if self._match(TokenType.TABLE):
                return self._parse_set_operations(self._parse_whole_table(start))
        return super()._parse_select(*args, **kwargs)

    def _parse_whole_table(self, start: Token) -> exp.Select:
        """Read ``TABLE t`` as a query, which means ``SELECT * FROM t``."""
        table = exp.From(this=self.parse_name_with_hints())
        return self.place(exp.Select(expressions=[exp.Star()], from_=table), start)

    def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
        cte = super()._parse_cte()
        # sqlglot accepts a second WITH instead of the comma between two WITH queries, or in addition to the comma.
        comma = self._match(TokenType.COMMA, advance=False)
        if (self._next if comma else self._curr).token_type == TokenType.WITH:
            self.fail("Expected a query or a comma and a name")
        return cte

    def require_query(self) -> exp.Expr:
        """Read a query or raise."""
        start = self._curr
        query = self.parse_query()
        return query if isinstance(query, (exp.Query, exp.Values)) else self.fail("Expected a query", start)

    # -------------------------------------------------------------------------------------------- hints
    def _parse_hint(self) -> exp.Hint | None:
        hints = self.parse_hints()
        return exp.Hint(expressions=hints) if hints else None

    def parse_hints(self) -> list[nodes.HintCall]:
        """Read any number of hints ``/*+ NAME(…), NAME */``."""
        hints: list[nodes.HintCall] = []
        while self._match(TokenType.HINT):
            hints.extend(self._parse_csv(self._parse_hint_call))
            if not (self._curr.text == "*/" and self._match(TokenType.HINT)):
                self.fail("Expected the end of the hint")
        return hints

    def _parse_hint_call(self) -> nodes.HintCall:
        start = self._curr
        name = self.require_identifier()
        arguments = None
        if self._match(TokenType.L_PAREN, advance=False):
            arguments = self.wrapped_list(self._parse_hint_argument, empty=True)
        return self.place(nodes.HintCall(this=name, expressions=arguments), start)

    def _parse_hint_argument(self) -> exp.Expr:
        start = self._curr
        value = self._parse_string() or self._parse_number()
        key = value if value is not None else self.parse_dotted_name()
        if self._match(TokenType.EQ):
            literal = self._parse_string() or self._parse_number() or self.fail("Expected a value for the hint option")
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
            self.fail("A hint may only follow SELECT or the name of a table")
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
            self.fail("A subquery in FROM needs parentheses")
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
        relation = relation or self.fail("Expected TABLE(…), UNNEST(…) or a subquery after LATERAL")
        return self.place(exp.Lateral(this=relation, alias=self._parse_table_alias()), start)

    def _parse_lateral(self) -> exp.Lateral | None:
        return None  # LATERAL is always a relation; see _parse_relation

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
        arguments = self.wrapped_list(self._parse_table_argument, empty=True)
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
        if start.text.upper() == "DESCRIPTOR" and self._next.token_type == TokenType.L_PAREN:
            self._advance()
            return self.place(nodes.Descriptor(expressions=self.wrapped_list(self.require_identifier)), start)
        if start.text.upper() == "MODEL" and self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            self._advance()
            return self.place(nodes.ModelArgument(this=self.parse_name()), start)
        relation = self._parse_argument_relation()
        if relation is None:
            return self._parse_lambda() or self.fail("Expected an argument")
        return self.place(self._parse_argument_clauses(nodes.TableArgument(this=relation)), start)

    def _parse_argument_relation(self) -> exp.Expr | None:
        if self._match_pair(TokenType.TABLE, TokenType.L_PAREN):
            function = self._parse_table_function_call()
            self._match_r_paren()
            return function
        if self._match(TokenType.TABLE):
            return self.parse_name_with_hints()
        if self._match_set(_QUERY_STARTS, advance=False):
            return exp.Subquery(this=self.require_query())
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type in _QUERY_STARTS:
            return self._parse_select(table=True, parse_subquery_alias=False)
        return None

    def _parse_argument_clauses(self, argument: nodes.TableArgument) -> nodes.TableArgument:
        """Read the clauses of a table argument. A comma ends it, so several keys need parentheses."""
        if self._match(TokenType.PARTITION_BY):
            wrapped = self._match(TokenType.L_PAREN, advance=False)
            keys = self.wrapped_list(self.require_expression) if wrapped else [self.require_expression()]
            argument.set("partition_by", keys)
        if self._match(TokenType.ORDER_BY):
            wrapped = self._match(TokenType.L_PAREN, advance=False)
            keys = self.wrapped_list(self._require_ordered) if wrapped else [self._require_ordered()]
            argument.set("order", exp.Order(expressions=keys))
        return argument

    def _require_ordered(self) -> exp.Expr:
        return self._parse_ordered() or self.fail("Expected a sort key")

    def parse_name_with_hints(self) -> exp.Table:
        """Read a table name and the hints after it."""
        table = self.parse_name()
        hints = self.parse_hints()
        if hints:
            table.set("hints", hints)
        return table

    def _parse_named_table(self) -> exp.Expr | None:
        if not self._match_set(self.ID_VAR_TOKENS, advance=False):
            return None
        start = self._curr
        table = self.parse_name_with_hints()
        if self.match_words("FOR", "SYSTEM_TIME", "AS", "OF"):
            table.set("version", nodes.SystemTime(this=self.require_operand()))
        self.place(table, start)
        table.set("alias", self._parse_table_alias())
        return table

    def _parse_join(
        self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None
    ) -> exp.Join | None:
        if self._match(TokenType.COMMA):
            return exp.Join(this=self._parse_table() or self.fail("Expected a table after the comma"))
        join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        if join is not None and join.this is None:
            self.fail("Expected a table after JOIN")
        conditional = join is not None and join.kind != "CROSS" and join.method != "NATURAL"
        if join is not None and conditional and not (join.args.get("on") or join.args.get("using")):
            self.fail("Expected ON or USING after the table of a join", self._prev)
        return join

    def _parse_limit(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        limit = super()._parse_limit(*args, **kwargs)
        if isinstance(limit, exp.Limit) and limit.args.get("offset"):
            self.fail("Write LIMIT … OFFSET …", self._prev)  # sqlglot reads MySQL's LIMIT start, count
        return limit

    def _parse_named_window(self) -> exp.Expr | None:
        window = super()._parse_named_window()
        if self._prev.token_type != TokenType.R_PAREN:
            self.fail("Expected AS (…) after the window's name")
        return window

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        start = self._curr
        explicit = self._match(TokenType.ALIAS)
        if not explicit and not self._match_set(self.TABLE_ALIAS_TOKENS, advance=False):
            return None
        if not explicit and (self._can_parse_limit_or_offset() or self._is_clause_word()):
            return None
        alias = exp.TableAlias(this=self.require_identifier())
        if self._match(TokenType.L_PAREN, advance=False):
            alias.set("columns", self.wrapped_list(self.require_identifier))
        return self.place(alias, start)

    def _is_clause_word(self) -> bool:
        return self._curr.token_type == TokenType.VAR and self._curr.text.upper() in _NO_ALIASES

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if self._match(TokenType.ALIAS):
            if this is None:
                self.fail("Expected something before AS", self._prev)
            return exp.Alias(this=this, alias=self.require_identifier())
        implicit = not explicit and self._match_set(self.ALIAS_TOKENS, advance=False)
        if this is None or not implicit or self._can_parse_limit_or_offset() or self._is_clause_word():
            return this
        return exp.Alias(this=this, alias=self.require_identifier())

    def _parse_pivots(self) -> None:
        return None

    def _parse_table_sample(self, as_modifier: bool = False) -> None:
        return None
