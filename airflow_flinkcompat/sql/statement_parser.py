"""Statements: CREATE, INSERT, statement sets, SET …; one table maps the first words to the reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.ddl_parser import DdlParser

_CONFLICT_ACTIONS = ("DEDUPLICATE", "ERROR", "NOTHING")


class FlinkParser(DdlParser):
    """Parser of one Flink SQL statement."""

    STATEMENTS: ClassVar[tuple[tuple[tuple[str, ...], Callable[[FlinkParser], exp.Expr]], ...]] = (
        (("CREATE",), lambda self: self.parse_create()),
        (("INSERT",), lambda self: self.parse_insert()),
        (("EXECUTE", "STATEMENT", "SET", "BEGIN"), lambda self: self.parse_statement_set()),
        (("BEGIN", "STATEMENT", "SET", ";"), lambda self: self.parse_statement_set()),
        (("EXECUTE",), lambda self: self.parse_executed()),
        (("SET",), lambda self: self.parse_set()),
        (("RESET",), lambda self: self.parse_reset()),
    )

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Read exactly one statement (a trailing ``;`` is allowed) and return it in a list.

        Raises :class:`sqlglot.errors.ParseError` for anything else; :func:`parse_script` splits scripts.
        """
        tokens = list(raw_tokens)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        self.reset()
        self.sql = sql
        self._chunks = [tokens]
        self._advance_chunk()
        tree = self.parse_statement()
        if self._curr:
            self.raise_error("Unexpected text after the end of the statement")
        return [tree]

    def parse_statement(self) -> exp.Expr:
        """Read any statement or query."""
        start = self._curr
        for words, reader in self.STATEMENTS:
            if self._match_text_seq(*words):
                return self.place(reader(self), start)
        query = self.place(self.require_query(), start)
        conflict = self._parse_conflict_action()
        return self.place(nodes.InsertInto(expression=query, conflict=conflict), start) if conflict else query

    # ------------------------------------------------------------------------------------------- insert
    def parse_insert(self) -> nodes.InsertInto:
        """Read ``INSERT`` after that word."""
        overwrite = self.match_word("OVERWRITE") is not None
        if not overwrite:
            self.expect_word("INTO")
        self._match(TokenType.TABLE)
        table = self._parse_table_name_with_hints()
        partition = None
        columns = None
        if self._match(TokenType.PARTITION):
            partition = self._parse_wrapped_csv(self.parse_partition_value)
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type not in (
            *(TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN),
        ):
            columns = self._parse_wrapped_csv(self.parse_dotted_name)
        return nodes.InsertInto(
            this=table,
            partition=partition,
            columns=columns,
            expression=self.require_query(),
            overwrite=overwrite,
            conflict=self._parse_conflict_action(),
        )

    def _parse_conflict_action(self) -> str | None:
        if not self._match_text_seq("ON", "CONFLICT", "DO"):
            return None
        action = self.match_word(*_CONFLICT_ACTIONS)
        if action is None:
            self.raise_error(f"Expected {', '.join(_CONFLICT_ACTIONS)} after ON CONFLICT DO")
        return action

    def parse_statement_set(self) -> nodes.StatementSet:
        """Read the statements up to and including ``END``."""
        statements: list[exp.Expr] = []
        while not self._match(TokenType.END):
            if not self._curr:
                self.raise_error("The statement set is not closed with END", self._prev)
            statements.append(self.parse_statement())
            if not self._match(TokenType.SEMICOLON):
                self.raise_error("Expected ; after a statement of the statement set")
        return nodes.StatementSet(expressions=statements)

    def parse_executed(self) -> exp.Expr:
        """Read what follows ``EXECUTE``: a statement run on its own."""
        return self.parse_statement()

    # ------------------------------------------------------------------------------------------ options
    def parse_set(self) -> nodes.SetOption:
        """Read ``SET ['key' = 'value']``; key and value may stand without quotes."""
        if not self._curr:
            return nodes.SetOption()
        key = self._parse_raw_text(TokenType.EQ)
        self.expect(TokenType.EQ, "= after the key")
        return nodes.SetOption(this=key, expression=self._parse_raw_text(None))

    def parse_reset(self) -> nodes.ResetOption:
        """Read ``RESET ['key']``."""
        return nodes.ResetOption(this=self._parse_raw_text(None) if self._curr else None)

    def _parse_raw_text(self, until: TokenType | None) -> exp.Literal:
        """Read a string, or unquoted text as it stands up to a token of type ``until`` or the end."""
        start = self._curr
        if start.token_type == TokenType.STRING:
            self._advance()
            return self.place(exp.Literal.string(start.text), start)
        while self._curr and self._curr.token_type not in (until, TokenType.SEMICOLON):
            if self._curr.token_type in (TokenType.STRING, TokenType.HINT):
                self.raise_error("Unexpected text in an unquoted option")
            self._advance()
        if self._prev is start or self._prev.end >= start.end:
            return self.place(exp.Literal.string(self._find_sql(start, self._prev)), start)
        self.raise_error("Expected a key and a value, like SET 'key' = 'value'", start)
        raise AssertionError("unreachable: raise_error raises")
