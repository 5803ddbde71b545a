"""Statements, which are recognized by their first words, and sqlglot's dialect ``flink``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.base_parser import by_first_word
from airflow_flinkcompat.sql.ddl_parser import RESOURCE_KINDS, DdlParser
from airflow_flinkcompat.sql.generator import FlinkGenerator
from airflow_flinkcompat.sql.grammar import nodes_of, unknown_parts
from airflow_flinkcompat.sql.tokenizer import FlinkTokenizer

BEHIND_THE_END = "Unexpected text after the end of the statement"
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)
_CONFLICT_ACTIONS = ("DEDUPLICATE", "ERROR", "NOTHING")
_EXPLAIN_DETAILS = ("CHANGELOG_MODE", "ESTIMATED_COST", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_DESCRIBED = ("CATALOG", "DATABASE", "FUNCTION", "MODEL")
# Objects that SHOW lists. Longer names are first.
_SHOWN = (
    *("CREATE CATALOG", "CREATE DATABASE", "CREATE FUNCTION", "CREATE MODEL", "CREATE TABLE", "CREATE VIEW"),
    *("CURRENT CATALOG", "CURRENT DATABASE", "FULL MODULES", "MATERIALIZED TABLES", "USER FUNCTIONS"),
    *("CATALOGS", "COLUMNS", "DATABASES", "FUNCTIONS", "JARS", "JOBS", "MODELS", "MODULES", "PARTITIONS"),
    *("PROCEDURES", "TABLES", "VIEWS"),
)
# Words that require an operand, and words that cannot start an operand. sqlglot's parser ignores a missing operand:
# ``JOIN u ON GROUP BY a`` would be a join without a condition.
_OPENING = frozenset(
    {
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
        *(TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.JOIN, TokenType.ON),
        *(TokenType.USING, TokenType.OVER, TokenType.ALIAS, TokenType.DOT, TokenType.AND, TokenType.OR, TokenType.NOT),
        *(TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.BETWEEN, TokenType.LIKE),
        *(TokenType.LIMIT, TokenType.WITH, TokenType.VALUES, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
    }
)
_NOT_FOLLOWING = frozenset(
    {
        *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW),
        *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.FETCH, TokenType.JOIN, TokenType.ON, TokenType.USING),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.AND, TokenType.OR, TokenType.THEN),
        *(TokenType.ELSE, TokenType.END, TokenType.ALIAS, TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET),
        TokenType.SEMICOLON,
    }
)


# Clauses after a table name that only exist in Hive's DDL.
_HIVE_CLAUSES = (
    *(("ROW", "FORMAT"), ("STORED", "AS"), ("STORED", "BY"), ("CLUSTERED", "BY"), ("SKEWED", "BY"), ("TBLPROPERTIES",)),
)


def is_hive(tokens: list[Token]) -> bool:
    """True for table DDL that is only valid in Hive's dialect, by its clauses or typed partition columns."""
    words = ["" if token.token_type in _TEXTS else token.text.upper() for token in tokens]
    if words[:1] not in (["CREATE"], ["ALTER"]) or "TABLE" not in words[1:4]:
        return False
    if any(tuple(words[at : at + len(clause)]) == clause for clause in _HIVE_CLAUSES for at in range(len(words))):
        return True
    if "PARTITIONED" not in words:
        return False
    at = words.index("PARTITIONED")
    return words[at + 1 : at + 3] == ["BY", "("] and words[at + 4 : at + 5] not in ([","], [")"], [])


class FlinkParser(DdlParser):
    """Parser of one Flink SQL statement.

    ``every_node`` contains all nodes of the last parsed tree; empty if the tree is not valid in this grammar.
    """

    every_node: Sequence[exp.Expr] = ()

    STATEMENTS: ClassVar[tuple[tuple[tuple[str, ...], Callable[[FlinkParser], exp.Expr]], ...]] = (
        (("CREATE",), lambda self: self.parse_create()),
        (("REPLACE",), lambda self: self.parse_replace()),
        (("INSERT",), lambda self: self.parse_insert()),
        (("EXECUTE", "STATEMENT", "SET", "BEGIN"), lambda self: self.parse_statement_set()),
        (("BEGIN", "STATEMENT", "SET", ";"), lambda self: self.parse_statement_set()),
        (("EXECUTE", "PLAN"), lambda self: nodes.ExecutePlan(this=self.require_string())),
        (("EXECUTE",), lambda self: self.parse_statement()),
        (("COMPILE", "AND", "EXECUTE", "PLAN"), lambda self: self.parse_compile_plan(execute=True)),
        (("COMPILE", "PLAN"), lambda self: self.parse_compile_plan(execute=False)),
        (("SET",), lambda self: self.parse_set()),
        (("RESET",), lambda self: self.parse_reset()),
        (("DROP",), lambda self: self.parse_drop()),
        (("ALTER",), lambda self: self.parse_alter()),
        (("USE",), lambda self: self.parse_use()),
        (("ADD",), lambda self: self.parse_resource_statement("ADD")),
        (("REMOVE",), lambda self: self.parse_resource_statement("REMOVE")),
        (("LOAD", "MODULE"), lambda self: self.parse_module("LOAD")),
        (("UNLOAD", "MODULE"), lambda self: self.parse_module("UNLOAD")),
        (("EXPLAIN",), lambda self: self.parse_explain()),
        (("DESCRIBE",), lambda self: self.parse_describe()),
        (("DESC",), lambda self: self.parse_describe()),
        (("SHOW",), lambda self: self.parse_show()),
        (("CALL",), lambda self: self.parse_call()),
    )

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Read exactly one statement, and return it in a list. A trailing ``;`` is allowed.

        Raises :class:`sqlglot.errors.ParseError` for any other text. :func:`parse_script` splits scripts.
        """
        try:
            return [self._parse_whole(raw_tokens, sql)]
        except ParseError:
            if not is_hive(raw_tokens):
                raise
        return self.parse_hive(raw_tokens, sql)

    def parse_hive(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Read one statement in Hive's dialect; of the DDL of a table, only the table name is parsed."""
        self._begin(raw_tokens, sql)
        start = self._curr
        words = ["CREATE"] if self.match_words("CREATE") else ["ALTER"] if self.match_words("ALTER") else []
        words += [word for word in ("TEMPORARY", "EXTERNAL") if words and self.match_words(word)]
        if not words or not self._match(TokenType.TABLE):
            return [self._parse_whole(raw_tokens, sql)]
        words += ["TABLE", *(("IF NOT EXISTS",) if self.parse_if_not_exists() else ())]
        table = self.parse_name()
        rest: list[exp.Expr] = []
        while self._curr and self._curr.token_type != TokenType.SEMICOLON:
            rest.append(self._parse_hive_part())
        while self._match(TokenType.SEMICOLON):
            pass
        if self._curr:
            self.fail(BEHIND_THE_END)
        return [self.place(nodes.HiveTable(this=table, kind=" ".join(words), expressions=rest), start)]

    def _parse_hive_part(self) -> exp.Expr:
        token = self._curr
        if token.token_type in (TokenType.UNKNOWN, TokenType.HINT):
            self.fail("Unexpected text in a statement of Hive")
        self._advance()
        if token.token_type == TokenType.STRING:
            return self.place(exp.Literal.string(token.text), token)
        if token.token_type == TokenType.IDENTIFIER:
            return self.place(exp.to_identifier(token.text.lower(), quoted=True), token)
        part: exp.Expr = exp.var(token.text.lower())
        return self.place(part, token)

    def _begin(self, raw_tokens: list[Token], sql: str) -> None:
        self.reset()
        self.every_node = ()
        self.sql = sql
        self._chunks = [raw_tokens]  # sqlglot would split a statement set
        self._advance_chunk()

    def _parse_whole(self, raw_tokens: list[Token], sql: str) -> exp.Expr:
        self._begin(raw_tokens, sql)
        if not self._match_texts(("SET", "RESET"), advance=False):
            self._refuse_gaps(raw_tokens)
        tree = self.parse_statement()
        while self._match(TokenType.SEMICOLON):
            pass
        if self._curr:
            self.fail(BEHIND_THE_END)
        self.every_node = nodes_of(tree)
        for part in unknown_parts(self.every_node):
            self.fail("This clause is not part of Flink SQL", self._token_of(part))
        return tree

    def _refuse_gaps(self, tokens: list[Token]) -> None:
        compared = False  # IS [NOT] DISTINCT FROM
        for token, following in zip_longest(tokens, tokens[1:]):
            opens = token.token_type in _OPENING and not (compared and token.token_type == TokenType.DISTINCT)
            if opens and (following is None or following.token_type in _NOT_FOLLOWING):
                self.fail(f"Expected something after {token.text.upper() or token.token_type.value}", token)
            compared = token.token_type in (TokenType.IS, TokenType.NOT)

    def _token_of(self, node: exp.Expr) -> Token:
        """The token at which ``node`` starts, or the first node below it with a position."""
        starts = {part.meta["start"] for part in node.walk() if "start" in part.meta}
        return next((token for token in self._tokens if token.start in starts), self._tokens[0])

    def parse_statement(self) -> exp.Expr:
        """Read any statement or query."""
        start = self._curr
        for words, reader in _BY_FIRST_WORD.get(start.text.upper(), ()):
            if self.match_words(*words):
                return self.place(reader(self), start)
        query = self.place(self.require_query(), start)
        conflict = self._parse_conflict_action()
        return self.place(nodes.InsertInto(expression=query, conflict=conflict), start) if conflict else query

    # ------------------------------------------------------------------------------------------- insert
    def parse_insert(self) -> nodes.InsertInto:
        """Read the rest of ``INSERT …``."""
        overwrite = self.match_words("OVERWRITE")
        if not overwrite:
            self.expect_words("INTO")
        self._match(TokenType.TABLE)
        table = self.parse_name_with_hints()
        partition = None
        columns = None
        if self._match(TokenType.PARTITION):
            partition = self.wrapped_list(self.parse_partition_value)
        if self._is_column_list_ahead():
            columns = self.wrapped_list(self.parse_dotted_name)
        return nodes.InsertInto(
            this=table,
            partition=partition,
            columns=columns,
            expression=self.require_query(),
            overwrite=overwrite,
            conflict=self._parse_conflict_action(),
        )

    def _is_column_list_ahead(self) -> bool:
        query = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN)
        return self._curr.token_type == TokenType.L_PAREN and self._next.token_type not in query

    def _parse_conflict_action(self) -> str | None:
        if not self.match_words("ON", "CONFLICT", "DO"):
            return None
        return self.require_word(*_CONFLICT_ACTIONS, context=" after ON CONFLICT DO")

    def parse_compile_plan(self, *, execute: bool) -> nodes.CompilePlan:
        """Read ``'file' [IF NOT EXISTS] FOR INSERT … | STATEMENT SET BEGIN … END``."""
        path = self.require_string()
        exists = not execute and self.parse_if_not_exists()
        self.expect(TokenType.FOR, "FOR after the file of the plan")
        if self.match_words("STATEMENT", "SET", "BEGIN"):
            compiled: exp.Expr = self.parse_statement_set()
        else:
            start = self._curr
            self.expect_words("INSERT")
            compiled = self.place(self.parse_insert(), start)
        return nodes.CompilePlan(this=path, expression=compiled, exists=exists, execute=execute)

    def parse_statement_set(self) -> nodes.StatementSet:
        """Read the statements up to and including ``END``."""
        statements: list[exp.Expr] = []
        while not self._match(TokenType.END):
            if not self._curr:
                self.fail("The statement set is not closed with END", self._prev)
            statements.append(self.parse_statement())
            if not self._match(TokenType.SEMICOLON):
                self.fail("Expected ; after a statement of the statement set")
        return nodes.StatementSet(expressions=statements)

    # ------------------------------------------------------------------------------------------ session
    def parse_set(self) -> nodes.SetOption:
        """Read ``SET ['key' = 'value']``; key and value may be unquoted."""
        if not self._curr:
            return nodes.SetOption()
        key = self._parse_raw_text(TokenType.EQ)
        self.expect(TokenType.EQ, "= after the key")
        return nodes.SetOption(this=key, expression=self._parse_raw_text())

    def parse_reset(self) -> nodes.ResetOption:
        """Read ``RESET ['key']``."""
        return nodes.ResetOption(this=self._parse_raw_text() if self._curr else None)

    def _parse_raw_text(self, until: TokenType | None = None) -> exp.Literal:
        """Read a string, or unquoted text up to a token of type ``until`` or the end."""
        start = self._curr
        if start.token_type == TokenType.STRING:
            self._advance()
            return self.place(exp.Literal.string(start.text), start)
        index = self._index
        while self._curr and self._curr.token_type not in (until, TokenType.SEMICOLON):
            if self._curr.token_type in (TokenType.STRING, TokenType.HINT):
                self.fail("Unexpected text in an unquoted option")
            self._advance()
        if self._index == index:
            self.fail("Expected a key and a value, like SET 'key' = 'value'", start or self._prev)
        text = self._find_sql(start, self._prev)
        if "--" in text or "/*" in text or self.sql[self._prev.end + 1 : self._prev.end + 3] in ("--", "/*", "//"):
            self.fail("Write the value in single quotes", start)  # Flink does not end an unquoted value at a comment
        return self.place(exp.Literal.string(text), start)

    def parse_use(self) -> nodes.UseNamespace:
        """Read the rest of ``USE …``."""
        kind = self.match_word("CATALOG", "MODULES") or "DATABASE"
        names = self._parse_csv(self.parse_name) if kind == "MODULES" else [self.parse_name()]
        return nodes.UseNamespace(kind=kind, expressions=names)

    def parse_resource_statement(self, action: str) -> nodes.ResourceStatement:
        """Read ``JAR 'path'`` after ADD or REMOVE."""
        kind = self.require_word(*RESOURCE_KINDS)
        return nodes.ResourceStatement(this=self.require_string(), kind=kind, action=action)

    def parse_module(self, kind: str) -> nodes.ModuleStatement:
        """Read the name and options after LOAD MODULE or UNLOAD MODULE."""
        return nodes.ModuleStatement(this=self.require_identifier(), kind=kind, options=self.parse_options())

    def parse_call(self) -> nodes.Call:
        """Read the procedure call after CALL."""
        call = self._parse_column()
        callee = call.expression if isinstance(call, exp.Dot) else call
        return nodes.Call(this=call) if isinstance(callee, exp.Func) else self.fail("Expected a procedure call")

    # --------------------------------------------------------------------------------------- inspection
    def parse_explain(self) -> nodes.Explain:
        """Read the rest of ``EXPLAIN …``."""
        details: list[str] = []
        if not self.match_words("PLAN", "FOR"):
            while detail := self.match_word(*_EXPLAIN_DETAILS):
                details.append(detail)
                self._match(TokenType.COMMA)
        if self.match_words("STATEMENT", "SET", "BEGIN"):
            return nodes.Explain(this=self.parse_statement_set(), details=details)
        return nodes.Explain(this=self.parse_statement(), details=details)

    def parse_describe(self) -> nodes.Describe:
        """Read the rest of ``DESCRIBE …``."""
        next_is_name = self._next.token_type in self.ID_VAR_TOKENS
        kind = self.match_word(*_DESCRIBED) if next_is_name else None
        extended = bool(self._next) and self.match_words("EXTENDED")
        return nodes.Describe(this=self.parse_name(), kind=kind, extended=extended)

    def parse_show(self) -> nodes.Show:
        """Read the rest of ``SHOW …``."""
        what = next((what for what in _SHOWN if self.match_words(*what.split())), None)
        if what is None:
            self.fail("Expected the kind of objects to show")
        show = nodes.Show(this=what)
        if what.startswith("CREATE ") or what == "PARTITIONS" or self._match_texts(("FROM", "IN")):
            show.set("of", self.parse_name())
        if what == "PARTITIONS" and self._match(TokenType.PARTITION):
            show.set("partition", self.parse_partition_spec())
        negated = self._match(TokenType.NOT)
        like = self.match_word("LIKE", "ILIKE")
        if like:
            show.set("like", like)
            show.set("negated", bool(negated))
            show.set("pattern", self.require_string())
        elif negated:
            self.fail("Expected LIKE or ILIKE after NOT")
        return show


_BY_FIRST_WORD = by_first_word(FlinkParser.STATEMENTS)


class Flink(Dialect):
    """Flink SQL of Apache Flink 1.20 to 2.3, with VVR's additional syntax."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    NORMALIZE_FUNCTIONS: bool | str = False
    SUPPORTS_USER_DEFINED_TYPES = False
    TYPED_DIVISION = True
    INDEX_OFFSET = 0

    Tokenizer = FlinkTokenizer
    Parser = FlinkParser
    Generator = FlinkGenerator


def parse_statement(text: str) -> exp.Expr:
    """Parse exactly one statement. Raises sqlglot's ParseError or TokenError for any other text."""
    dialect = Flink()
    tree = dialect.parse(text)[0]
    assert tree is not None
    return tree
