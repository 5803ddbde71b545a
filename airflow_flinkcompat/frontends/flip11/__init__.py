"""Reader of texts in FLIP-11's notation: SQL statements, followed by one program in Scala or Java.

An example is ``tab.groupBy('a).window(Tumble over 10.minutes on 'rowtime as 'w).select('a, 'b.sum)``. A name that no
statement binds is a table. A table that no insert uses is executed as a query with an unnamed sink. No code is run. An
unsupported construct is reported with its place.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from sqlglot import exp

from airflow_flinkcompat.frontends import ProgramScript
from airflow_flinkcompat.frontends.flip11.notation import Notation
from airflow_flinkcompat.frontends.table_api.expression_tree import Parser, Tree, Unreadable, program_tokens
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Config,
    Const,
    Inserts,
    JobResult,
    NotRead,
    StreamEnvironment,
    TableEnvironment,
    TableValue,
    TooMuch,
    UnknownValue,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import Script, ScriptError, Statement, nodes, tokenizer

__all__ = ["read"]

SIZE_LIMIT = 1_000_000
"""Maximum number of characters of a text."""
STATEMENTS_LIMIT = 300
_SQL = (
    "ADD", "ALTER", "BEGIN", "CREATE", "DROP", "EXECUTE", "INSERT", "LOAD", "REMOVE", "RESET", "SET", "UNLOAD", "USE",
)  # fmt: skip
_SQL_START = re.compile(r"([A-Za-z]+)\s+['`\w]")
_QUERIES = (nodes.InsertInto, nodes.StatementSet, exp.Query)
_BINDS = ("val", "var", "final", "lazy")
_SKIPPED = ("import", "package")
_AROUND = ("object", "class", "trait", "def", "public", "private", "static", "void", "if", "for", "while", "try")


def read(job: JobSpec, catalog: Script | None = None) -> ProgramScript:
    """Read a text in FLIP-11's notation as a script.

    Args:
        job: The text and its variables.
        catalog: Declarations of tables that the text does not declare.

    Returns:
        The statements, and the parts that were not read.

    Raises:
        ScriptError: The text is empty, contains half of a surrogate pair, or is too long.
    """
    return parse_table(job.script, job.source, job.variables, catalog)


def parse_table(
    text: str, source: str = "<program>", given: Mapping[str, str] | None = None, catalog: Script | None = None
) -> ProgramScript:
    """Read a text in FLIP-11's notation as a script; ``catalog`` declares additional tables.

    ``given`` are the values of names that the text does not bind. Raises :class:`~airflow_flinkcompat.sql.ScriptError`
    if the text is empty, contains half of a surrogate pair, or is too long.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > SIZE_LIMIT:
        raise ScriptError(f"{source}: is longer than {SIZE_LIMIT} characters, the limit for a program")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ScriptError(f"{source}:{line}: contains half of a surrogate pair, which is not a character") from None
    session = ScriptBuilder(source, text)
    _StatementReader(session, given or {}, () if catalog is None else catalog.statements).read()
    script = session.script()
    if not script.statements and not script.unread:
        raise ScriptError(f"{source}: contains no program: no query of a table, and no SQL statement")
    return script


class _StatementReader:
    def __init__(self, session: ScriptBuilder, given: Mapping[str, str], declared: Sequence[Statement]) -> None:
        self.session = session
        self.text = session.text
        self.starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", self.text))]
        self.notation = Notation(session, given, declared, self.node)
        self.tables: dict[str, ast.AST] = {}
        """The node that bound each table name."""
        self.binds: str | None = None
        """The name that the current statement binds."""

    def read(self) -> None:
        parser = Parser(list(program_tokens(self.text, self._declarations())))
        left = STATEMENTS_LIMIT
        while parser.token.kind != "end":
            start = parser.token.start
            left -= 1
            try:
                if not left:
                    raise TooMuch(f"it has more than {STATEMENTS_LIMIT} statements")
                try:
                    tree = self._parsed(parser)
                except (Unreadable, RecursionError):
                    _resume(parser)
                    raise
                if tree is not None:
                    self._run(tree, self.node(start, tree.end))
            except Unreadable as error:
                self._report(error.start, error.end, str(error), error.refused)
            except NotRead as error:
                self._report(start, parser.token.start, str(error))
            except RecursionError:
                self._report(start, parser.token.start, "it is nested too deeply")
            except TooMuch as error:
                self._report(start, start, f"the program is not read further: {error}")
                break
        self._results()
        for inserts in self.session.sets:
            if inserts.inserts:
                self.session.report(
                    inserts.node, "this statement set is not executed in the part of the text that was read"
                )

    def node(self, start: int, end: int) -> ast.Constant:
        """An :mod:`ast` node for a place in the text, with columns in UTF-8 bytes."""
        found = ast.Constant(None)
        found.lineno, found.col_offset = self._at(start)
        found.end_lineno, found.end_col_offset = self._at(end)
        return found

    def _at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, len(self.text[self.starts[line - 1] : offset].encode())

    def _report(self, start: int, end: int, reason: str, refused: bool = False) -> None:
        if self.binds is not None:
            self.notation.names[self.binds] = UnknownValue(
                f"{self.binds} was not read where it was created", tables=True
            )
            self.tables.pop(self.binds, None)
        self.session.report(self.node(start, max(end, start + 1)), reason, refused)

    def _declarations(self) -> int:
        """Execute the SQL statements at the beginning, and return the offset of the program."""
        at = 0
        # The program is not SQL, so its quotes must not be tokenized as SQL.
        while (first := next(tokenizer.lexemes(self.text[at:], ("space", "comment")), None)) is not None:
            at += first.start
            if first.kind == "semicolon":
                at += 1
                continue
            match = _SQL_START.match(self.text, at)
            if match is None or match[1].upper() not in _SQL:
                break
            text = self.text[at : at + next(tokenizer.split(self.text[at:])).end]
            node = self.node(at, at + len(text))
            at += len(text)
            try:
                self.session.execute(Const(text, node), node)
            except NotRead as error:
                self.session.report(node, str(error))
            except TooMuch as error:
                self.session.report(node, f"the program is not read further: {error}")
                return len(self.text)
        return at

    def _parsed(self, parser: Parser) -> Tree | None:
        """Parse a statement; None if it has no expression."""
        self.binds = None
        parser.depth = parser.nested = 0
        if parser.sees(";"):
            parser.next()
            return None
        if parser.token.kind == "name" and parser.token.text in _SKIPPED:
            parser.at += 1
            while not (parser.token.kind == "end" or parser.token.fresh or parser.sees(";")):
                parser.at += 1
            return None
        if parser.token.kind == "name" and parser.token.text in _AROUND:
            raise parser.unexpected(
                "a class, a function or a condition is not supported: write the statements without it"
            )
        self.binds = _target(parser)
        tree = parser.expression()
        if not parser.ended():
            raise parser.unexpected("the statement continues in an unsupported way")
        return tree

    def _run(self, tree: Tree, node: ast.Constant) -> None:
        name = self.binds
        self.notation.statement = self.notation.node = node
        value = self.notation.value(tree)
        if name is not None:
            self.notation.names[name] = value
            self.notation.used.discard(name)
            self.tables.pop(name, None)
            if isinstance(value, TableValue):
                self.tables[name] = node
        elif isinstance(value, TableValue):
            self.notation.method(value, "execute", [], tree)
        elif not isinstance(
            value, JobResult | Const | UnknownValue | Inserts | Config | StreamEnvironment | TableEnvironment
        ):
            raise Unreadable("a statement that neither binds a name nor is a query", tree.start, tree.end)

    def _results(self) -> None:
        """Execute the table that no insert uses, as the query."""
        if any(isinstance(statement.tree, _QUERIES) for statement in self.session.statements):
            return
        unused = {name: node for name, node in self.tables.items() if name not in self.notation.used}
        for name, node in unused.items():
            table = self.notation.names[name]
            if len(unused) > 1:
                self.session.report(node, "one of several tables is the query; write .insertInto(…) to select it")
            elif isinstance(table, TableValue):
                try:
                    self.session.say(table.sql, node, (*table.steps, "execute"))
                except (NotRead, TooMuch, RecursionError) as error:
                    self.session.report(node, str(error) or "it is nested too deeply")


def _target(parser: Parser) -> str | None:
    """The name that a statement binds: ``val w =``, ``val w: Window =``, ``Table res =``, ``w =``."""
    bound = False
    while parser.token.kind == "name" and parser.token.text in _BINDS:
        parser.at += 1
        bound = True
    words = parser.tokens[parser.at : parser.at + 4]
    match ["name" if token.kind == "name" else token.text for token in words]:
        case ["name", "=", *_]:
            name, length = words[0].text, 2
        case ["name", ":", "name", "="]:
            name, length = words[0].text, 4
        case ["name", "name", "=", *_] if not words[1].fresh:
            name, length = words[1].text, 3
        case _ if bound:
            raise parser.unexpected("this binding is not supported: write val name = …")
        case _:
            return None
    parser.at += length
    return name


def _resume(parser: Parser) -> None:
    """Skip to the next line that may begin a statement."""
    while not (parser.token.kind == "end" or parser.sees(";")):
        parser.at += 1
        if parser.token.fresh and not parser.sees(".", ",", ")", "]", "}"):
            return
