"""Builder of a script from the statements that a program executes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_flinkcompat.frontends import Note, ProgramScript, ProgramStatement, Unread, WindowUse
from airflow_flinkcompat.frontends.table_api.validation import called, fields_of
from airflow_flinkcompat.frontends.table_api.values import (
    TEXT_LIMIT,
    Const,
    Expr,
    Inserts,
    NotRead,
    Spec,
    TableValue,
    TooMuch,
    UnknownValue,
    Value,
    in_sql,
    names,
    placeholders,
    shown,
)
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import ScriptError, Statement, nodes, parse_script

_DECLARES = (nodes.CreateTable, nodes.CreateView, nodes.CreateFunction)
_KEEPS_NAMES = (nodes.InsertInto, nodes.StatementSet, nodes.SetOption, nodes.ResetOption, nodes.ResourceStatement)
_CALLS = {"Tumble": ("TUMBLE", "over"), "Slide": ("HOP", "every", "over"), "Session": ("SESSION", "with_gap")}
"""The SQL name of each type of window, and the methods that set its lengths, in order."""
_LOOKS = (nodes.Show, nodes.Describe, nodes.Explain)


@dataclass(eq=False)
class ScriptBuilder:
    """Collector of a program's statements, in order, and of its unread parts."""

    source: str
    text: str = field(repr=False)
    statements: list[Statement] = field(default_factory=list)
    unread: dict[Span, Unread] = field(default_factory=dict)
    epoch: int = 0
    """Number of times that a name changed its meaning. Tables created earlier can no longer be used."""
    made: bool = False
    """True if the program created its table environment."""
    batch: bool = False
    """True if the table environment is in batch mode."""
    sets: list[Inserts] = field(default_factory=list)
    notes: dict[tuple[Span, str], Note] = field(default_factory=dict)
    windows: list[WindowUse] = field(default_factory=list)
    trees: dict[str, ast.Module] = field(default_factory=dict, repr=False)
    """The program and its modules by file; the empty file is the program itself."""
    texts: dict[str, str] = field(default_factory=dict, repr=False)
    """The texts of the program's modules, by file."""
    functions: dict[str, str] = field(default_factory=dict)
    """The kind of each registered Python function, by name."""
    inlined: dict[tuple[str, str], str] = field(default_factory=dict)
    """Names under which unregistered Python functions are declared, by the function's own name and digest."""
    columns: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The columns of declared tables and views, by path; None for unknown columns."""
    inputs: dict[str, None] = field(default_factory=dict)
    """Inputs in statements, by name."""
    dependencies: dict[str, list[str]] = field(default_factory=dict)
    """Dependencies of Python functions, by setting."""
    sources: int = 0
    """Number of sources without a name."""
    streams: bool = False
    """True if the program creates a DataStream."""
    opaque: bool = False
    """True if a part of the program is opaque."""
    _lines: dict[str, list[str]] = field(default_factory=dict, repr=False)
    _declared: set[str] = field(default_factory=set)
    _written: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of statements, statement sets, INSERTs and unread parts so far, and the epoch."""
        inserts = sum(len(each.inserts) for each in self.sets)
        return len(self.statements), len(self.sets), inserts, len(self.unread), self.epoch

    @property
    def carried(self) -> tuple[int, ...]:
        """Numbers, so far, of the effects on which later statements depend.

        These effects are options, names with a changed meaning, and INSERTs that are not executed yet.
        """
        options = sum(isinstance(each.tree, nodes.SetOption | nodes.ResetOption) for each in self.statements)
        return options, self.epoch, sum(len(each.inserts) for each in self.sets)

    def place(self, node: ast.AST) -> Span:
        """The span of a node in its source."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None) or 1
        file = file_of(node)
        last = max(self._column(file, end_line, end), 1)
        return Span(file or self.source, line, self._column(file, line, start) + 1, end_line, last)

    def _column(self, file: str, line: int, offset: int) -> int:
        """Convert a column of :mod:`ast`, which counts UTF-8 bytes, to a column in characters."""
        lines = self.lines(file)
        return len(lines[line - 1].encode()[:offset].decode(errors="replace")) if line <= len(lines) else 0

    def lines(self, file: str = "") -> list[str]:
        """The lines of a source as Python counts them; a form feed does not end a line."""
        if file not in self._lines:
            self._lines[file] = re.split(r"\r\n|\r|\n", self.texts[file] if file else self.text)
        return self._lines[file]

    def report(self, node: ast.AST, reason: str, refused: bool = False) -> None:
        """Record a part of the program that is not read, or that Flink refuses."""
        span = self.place(node)
        self.unread.setdefault(span, Unread(span, placeholders(reason), refused))

    def note(self, node: ast.AST, text: str, last: str | None = None) -> None:
        """Record a trap that Flink accepts, up to version ``last``. An empty text is ignored."""
        span = self.place(called(node))
        if text:
            self.notes.setdefault((span, text), Note(span, text, last))

    def window(self, node: ast.AST, spec: Spec, outputs: Sequence[Expr]) -> None:
        """Record the use of a window in a query."""
        time = [column.parts[0] for method in ("on", "order_by") for column in spec.get(method) or ()]
        if len(time) != 1:
            return
        call, *methods = _CALLS.get(spec.kind, ("OVER",))
        lengths = tuple(columns[0].parts[0] for method in methods if (columns := spec.get(method)) is not None)
        fields = fields_of(spec.alias, outputs)
        self.windows.append(WindowUse(self.place(called(node)), call, time[0], lengths, spec.alias, fields))

    def query(self, sql: Value) -> TableValue:
        """The table of ``sql_query(sql)``. Raises :class:`NotRead` if the text is unknown or not a query."""
        text = self.sql(sql).rstrip().rstrip(";")
        statement = self._parsed(text, None, None)
        if not isinstance(statement.tree, exp.Query | exp.Values):
            raise NotRead("sql_query needs one query, but this text is not a query")
        return TableValue(f"(\n{text}\n)", query=f"{text}\n", steps=("sql_query",), epoch=self.epoch)

    def sql(self, value: Value) -> str:
        """The text of an SQL statement. Raises :class:`NotRead` if the text is unknown."""
        if isinstance(value, Const) and isinstance(value.value, str):
            return value.value
        if isinstance(value, UnknownValue) and value.name:
            raise NotRead(f"the SQL is unknown: {value.reason}")
        raise NotRead(f"the SQL is unknown: {value.reason if isinstance(value, UnknownValue) else 'it is not a text'}")

    def fragment(self, text: str) -> str:
        """A fragment of SQL. Raises :class:`NotRead` if it could end the SQL around it."""
        plain = re.sub(r"'(?:[^']|'')*'|`[^`]*`", "", text)
        depth = lowest = 0
        for character in plain:
            depth += (character == "(") - (character == ")")
            lowest = min(lowest, depth)
        if depth or lowest or re.search(r"[;'`]|--|/\*|\*/", plain):
            raise NotRead("a fragment of SQL with an open bracket or quote is not supported")
        return text

    def execute(self, value: Value, node: ast.AST) -> None:
        """Execute one SQL statement."""
        text = self.sql(value)
        self._add(self._parsed(text, value.origin if isinstance(value, Const) else None, node))

    def say(self, sql: str, node: ast.AST, *steps: tuple[str, ...], kind: str = "") -> None:
        """Execute the SQL equivalent of a Table API call.

        ``steps`` are the steps of each query, in order. ``kind`` is the kind of the declared function.
        """
        statement = self._parsed(sql, None, node)
        tree = statement.tree
        if tree is None:
            raise NotRead("this part of the Table API has no equivalent in SQL")
        if isinstance(tree, nodes.StatementSet) and len(tree.expressions) != len(steps):
            raise NotRead("a text of a statement set is not exactly one INSERT")
        self._add(
            ProgramStatement(
                statement.text,
                statement.span,
                tree,
                statement.error,
                placed=statement.placed,
                malformed=statement.malformed,
                query_steps=steps,
                function_kind=kind,
            )
        )

    def read(self, table: TableValue) -> TableValue:
        """Check that a table is usable. Raises :class:`NotRead` if its names may have changed their meaning."""
        if table.epoch != self.epoch:
            raise NotRead(
                "the table was created before a name was dropped or declared again, or before a different "
                "catalog was used"
            )
        return table

    def script(self) -> ProgramScript:
        """The script. Its text contains only the SQL that is verbatim in the source, at the same places."""
        lines = [" " * len(line) for line in self.lines()]
        for statement in self.statements:
            if not statement.placed or statement.span.source != self.source:
                continue
            for number, line in enumerate(f"{statement.text};".split("\n"), start=statement.span.line - 1):
                column = statement.span.column - 1 if number == statement.span.line - 1 else 0
                if number < len(lines):
                    lines[number] = lines[number][:column] + line + lines[number][column + len(line) :]
        return ProgramScript(
            self.source, "\n".join(lines), tuple(self.statements), tuple(self.unread.values()),
            tuple(self.notes.values()), tuple(self.windows), inputs=tuple(map(shown, self.inputs)),
        )  # fmt: skip

    def _add(self, statement: Statement) -> None:
        tree = statement.tree
        if isinstance(tree, _DECLARES):
            name = ".".join(part.name for part in tree.this.parts).lower()
            self.epoch += name in self._declared
            self._declared.add(name)
            if isinstance(tree, nodes.CreateTable | nodes.CreateView):
                self.columns[name] = None if name in self.columns else _columns_of(tree)
        elif tree is None or not isinstance(tree, (*_KEEPS_NAMES, *_LOOKS, exp.Query, exp.Values)):
            self.epoch += 1
        if not isinstance(tree, _LOOKS):
            self.statements.append(statement)

    def _parsed(self, text: str, origin: ast.Constant | None, node: ast.AST | None) -> Statement:
        """Parse the statement of a text, with its place if the source contains it verbatim."""
        self.inputs.update(dict.fromkeys(names(text)))
        text = in_sql(text)
        self._written += len(text)
        if self._written > 2 * TEXT_LIMIT:
            raise TooMuch(f"the SQL of the program grows beyond {2 * TEXT_LIMIT} characters")
        place = None if origin is None else self._verbatim(text, origin)
        padding = "" if place is None else "\n" * (place[0] - 1) + " " * place[1]
        try:
            source = self.source if origin is None else file_of(origin) or self.source
            statements = parse_script(padding + text, source).statements
        except ScriptError:
            raise NotRead("the text contains no SQL statement") from None
        if len(statements) != 1:
            raise NotRead("the text contains several SQL statements; a call accepts one")
        (statement,) = statements
        if place is not None or node is None:
            return statement
        span = self.place(node)
        error = statement.error and f"{span}: {re.sub(r'^.*?:[0-9]+:[0-9]+: ', '', statement.error)}"
        return replace(statement, span=span, error=error, placed=False)

    def _verbatim(self, text: str, origin: ast.Constant) -> tuple[int, int] | None:
        """Line (from 1) and column (from 0) of a text that the source contains verbatim."""
        span = self.place(origin)
        rows = self.lines(file_of(origin))[span.line - 1 : span.end_line]
        written = "\n".join(rows)
        start = written.find(text, span.column - 1)
        if start < 0 or start + len(text) > len(written) - len(rows[-1]) + span.end_column:
            return None
        line = written.count("\n", 0, start)
        return span.line + line, start - (written.rfind("\n", 0, start) + 1)


def _columns_of(tree: nodes.CreateTable | nodes.CreateView) -> tuple[str, ...] | None:
    """The names of the declared columns; None if there may be more columns."""
    given = tree.args.get("columns") or ()
    if isinstance(tree, nodes.CreateView) or tree.args.get("like") or tree.args.get("expression"):
        return None
    return tuple(column.name if isinstance(column, exp.Identifier) else column.this.name for column in given)


def file_of(node: ast.AST) -> str:
    """The file of a node; empty for the program itself."""
    return str(getattr(node, "file", ""))
