"""Scripts: their text, statements and places.

``parse_script`` never fails because of SQL that it cannot read. An unreadable statement has an ``error`` instead of a
``tree``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, ScriptError, Span
from airflow_flinkcompat.sql import nodes, tokenizer
from airflow_flinkcompat.sql.grammar import nodes_of
from airflow_flinkcompat.sql.query_parser import STATEMENT_WORDS
from airflow_flinkcompat.sql.statement_parser import BEHIND_THE_END, Flink, FlinkParser

_LARGEST = 8_000_000
_DIALECT = "table.sql-dialect"
_WITHOUT_GRAMMAR = frozenset(
    {
        "ANALYZE",
        "CLEAR",
        "COMPILE",
        "DELETE",
        "EXIT",
        "HELP",
        "JAR",
        "MERGE",
        "QUIT",
        "STOP",
        "TRUNCATE",
        "UPDATE",
        "UPSERT",
    }
)
"""First words of statements that Flink or its SQL client supports, but this grammar does not.
"""
_BEGINS_ANOTHER = re.compile(rf"(?:{'|'.join(sorted(STATEMENT_WORDS))})\b", re.IGNORECASE)
"""The first word of a statement that follows a complete statement without a ``;``."""
_MATERIALIZED = re.compile(
    r"(?:CREATE(?:\s+OR\s+ALTER)?|ALTER|DROP|SHOW\s+CREATE)\s+MATERIALIZED\s+TABLE\b", re.IGNORECASE
)
_PLACEHOLDER = re.compile(
    r"\{\{[^{}\n]{0,80}\}\}|\{[%#][^\n]{0,80}?[%#]\}|\$?\{[A-Za-z_][\w.:-]*\}|(?<!\w)<[A-Za-z][\w .-]{0,40}>|"
    r"%(?:\(\w+\))?s\b|(?<![:\w]):[A-Za-z_]\w*"
)
"""A placeholder of a template engine, or a placeholder that a person replaces."""
AS_SUBMITTED = "pass the script as it is submitted"
"""The remedy for a script that is a template."""
NO_PROGRAM = "{}: is a program of the Table API; an SQL script is expected"


@quick_init
@dataclass(frozen=True)
class Statement:
    """One statement: its text without ``;`` and outer comments, its place, and its tree or error.

    ``repr()`` omits text and tree, which may contain secrets, and ``error`` never quotes the text. ``malformed`` is
    True for a syntax error in a kind of statement that this grammar supports; otherwise Flink may still accept the
    statement. ``like`` is an identical statement of another script, which shares its tree. ``placed`` is False if the
    text was generated; then ``span`` is the place of every part.
    """

    text: str = field(repr=False)
    span: Span
    tree: exp.Expr | None = field(default=None, compare=False, repr=False)
    error: str | None = None
    like: Statement | None = field(default=None, compare=False, repr=False)
    placed: bool = True
    malformed: bool = False
    unended: Span | None = None

    @cached_property
    def nodes(self) -> Sequence[exp.Expr]:
        """The nodes of the tree, level by level from the root. Callers must not change the nodes."""
        if self.like is not None:
            return self.like.nodes
        return () if self.tree is None else nodes_of(self.tree)

    @cached_property
    def column_names(self) -> frozenset[str]:
        """Every name in the statement that may be the name of a column."""
        if self.like is not None:
            return self.like.column_names
        found: set[str] = set()
        in_front: set[str] = set()  # prefixes of names such as a.b.c, which may be row columns
        relations: set[str] = set()
        for node in self.nodes:
            if isinstance(node, exp.Column):
                found.add(node.name)
                if node.args.get("table"):
                    in_front.update(part.name for part in node.parts[:-1])
            elif isinstance(node, exp.TableAlias | exp.Table):
                relations.add(node.name)
            elif isinstance(node, nodes.Descriptor):
                found.update(part.name for part in node.expressions)
        found |= in_front - relations
        return frozenset(found)

    def place(self, start: int, end: int) -> Span:
        """The place of a part of the text in the script.

        Args:
            start: The offset of the first character in ``text``.
            end: The offset after the last character.

        Returns:
            The place.
        """
        return _span(self, (start, end - 1)) if self.placed else self.span

    @cached_property
    def _places(self) -> Places:
        return Places(self.text, self.span.source)

    @cached_property
    def _extents(self) -> dict[int, tuple[int, int]]:
        # Nodes are identified by identity, because the tree lives as long as the statement and never changes.
        if self.like is not None:
            return self.like._extents
        return _extents(self.nodes)


@dataclass(frozen=True)
class Script:
    """A script and its statements in order."""

    source: str
    text: str = field(repr=False)
    statements: tuple[Statement, ...]


def read_script(path: str | Path) -> Script:
    """Read and parse the SQL file at ``path``. Raises ScriptError for a file without statements."""
    return parse_script(read_text(path), str(path))


def read_text(path: str | Path, program: bool = False) -> str:
    """The text of the script at ``path``, without a byte order mark.

    Raises ScriptError if the file is missing, unreadable or not UTF-8. Also raises ScriptError for a program, unless
    ``program`` is True.
    """
    source = str(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ScriptError(f"{source}: cannot be read: {error.strerror}") from error
    return decode_script(content, source, program)


def decode_script(content: bytes, source: str, program: bool = False) -> str:
    """Decode a script without a byte order mark; errors are those of :func:`read_text`."""
    if source.endswith(PROGRAM_SUFFIXES) and not program:
        raise ScriptError(NO_PROGRAM.format(source))
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ScriptError(f"{source}:{line}: is not UTF-8 text; save the script as UTF-8") from error


def parse_script(text: str, source: str = "<script>", like: Script | None = None) -> Script:
    """Split ``text`` into statements and parse each statement; a byte order mark is removed.

    A statement that cannot be parsed is kept without a tree. If a complete statement is followed by a word that can
    only start a statement, a ``;`` is certainly missing. The text is split before this word, and the complete
    statement records the place.

    Args:
        text: The script.
        source: The name or path of the script, for places and messages.
        like: A script that was parsed before. Identical statements are not parsed again, and both scripts share
            their trees.

    Returns:
        The script with its statements in order.

    Raises:
        ScriptError: There is no statement, the text contains half of a surrogate pair, or the text is too large.
    """
    if len(text) > _LARGEST:
        raise ScriptError(f"{source}: contains {len(text):,} characters; a script can have at most {_LARGEST:,}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ScriptError(f"{source}:{line}: contains half of a surrogate pair, which is not a character") from None
    text = text.removeprefix("\ufeff")
    places = Places(text, source)
    known = {} if like is None else {each.text: each for each in like.statements if each.tree is not None}
    dialect = Flink()
    statements: list[Statement] = []
    hive = False
    for whole in tokenizer.split(text):
        chunk: tokenizer.Chunk | None = whole
        while chunk is not None:
            statement, chunk = _statement(text, chunk, places, {} if hive else known, dialect, hive)
            hive = _sets_hive(statement.tree, hive)
            statements.append(statement)
    if not statements:
        raise ScriptError(f"{source}: contains no SQL statement")
    return Script(source, text, tuple(statements))


def span_of(node: exp.Expr, statement: Statement) -> Span:
    """The place in the script of a node of ``statement.tree``.

    The place includes every position that the parser recorded on the node and below it. A node that was built rather
    than parsed has no position; its place is that of the statement. The tree must not change.
    """
    span = object.__new__(_LaterSpan)
    span.__dict__["_of"] = node, statement
    return span


class _LaterSpan(Span):
    """A span that is computed on first use, because most places of a plan are never shown."""

    @property
    def _span(self) -> Span:
        if "_known" not in self.__dict__:
            node, statement = self.__dict__["_of"]
            extent = statement._extents.get(id(node)) or _extents(nodes_of(node)).get(id(node))
            self.__dict__["_known"] = statement.span if extent is None else statement.place(extent[0], extent[1] + 1)
            del self.__dict__["_of"]
        known: Span = self.__dict__["_known"]
        return known

    def __getattr__(self, name: str) -> Any:
        if name not in Span.__dataclass_fields__:
            raise AttributeError(name)
        self.__dict__.update(vars(self._span))  # later attribute accesses do not call this method
        return self.__dict__[name]

    def __eq__(self, other: object) -> bool:
        return self._span == (other._span if isinstance(other, _LaterSpan) else other)

    def __hash__(self) -> int:
        return hash(self._span)

    def __repr__(self) -> str:
        return repr(self._span)

    def __reduce__(self) -> tuple[Any, ...]:
        span = self._span
        return Span, (span.source, span.line, span.column, span.end_line, span.end_column)


def _span(statement: Statement, extent: tuple[int, int]) -> Span:
    (line, column), (end_line, end_column) = (_shift(statement, offset) for offset in extent)
    return Span(statement.span.source, line, column, end_line, end_column)


def _extents(tree: Sequence[exp.Expr]) -> dict[int, tuple[int, int]]:
    """The first and last offset that the parser recorded at and below each node, by ``id()``."""
    found: dict[int, tuple[int, int]] = {}

    for node in reversed(tree):  # child nodes come before their parent
        extent = found.get(id(node))
        meta = node._meta
        if meta and "start" in meta and "end" in meta:
            start, end = meta["start"], meta["end"]
            if extent is not None:
                start, end = min(start, extent[0]), max(end, extent[1])
            extent = found[id(node)] = start, end
        if extent is not None and node.parent is not None:
            above = found.get(id(node.parent), extent)
            found[id(node.parent)] = min(above[0], extent[0]), max(above[1], extent[1])
    return found


def _shift(statement: Statement, offset: int) -> tuple[int, int]:
    line, column = statement._places.at(offset)
    return statement.span.line + line - 1, column if line > 1 else statement.span.column + offset


class Places:
    """Conversion of the offsets of one text to lines and columns, which start at 1."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._starts = [0, *[match.end() for match in re.finditer("\n", text)]]

    def span(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``."""
        line, column = self.at(start)
        end_line, end_column = self.at(max(end - 1, start))
        return Span(self._source, line, column, end_line, end_column)

    def at(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        return self._starts[line - 1] + column - 1


def _sets_hive(tree: exp.Expr | None, before: bool) -> bool:
    """True if the statements after this statement are in Hive's dialect."""
    if isinstance(tree, nodes.SetOption) and tree.this is not None and tree.this.name == _DIALECT:
        return bool(tree.expression.name.lower() == "hive")
    if isinstance(tree, nodes.ResetOption) and (tree.this is None or tree.this.name == _DIALECT):
        return False
    return before


def _statement(
    text: str, chunk: tokenizer.Chunk, places: Places, known: Mapping[str, Statement], dialect: Flink, hive: bool
) -> tuple[Statement, tokenizer.Chunk | None]:
    """The statement at the start of a chunk, and the rest of the chunk if a ``;`` is missing."""
    body = text[chunk.start : chunk.end]
    span = places.span(chunk.start, chunk.end)
    if not chunk.unclosed and (same := known.get(body)) is not None:
        return Statement(body, span, same.tree, like=same), None
    if chunk.unclosed:
        place = places.span(chunk.unclosed_at, chunk.unclosed_at + 1)
        return Statement(body, span, error=f"{place}: {chunk.unclosed} is never closed", malformed=True), None
    if body.startswith("/*+"):
        why = "A hint may only follow SELECT or the name of a table"
        return Statement(body, span, error=f"{span}: {why}", malformed=True), None
    try:
        tokens = dialect.tokenize(body)
        parser = FlinkParser(dialect=dialect)
        tree = (parser.parse_hive if hive else parser.parse)(tokens, body)[0]
    except ParseError as error:
        if (cut := _cut(error, body, chunk)) is not None:
            first, rest = cut
            statement, _ = _statement(text, first, places, known, dialect, hive)
            return replace(statement, unended=places.span(rest.start, rest.start + 1)), rest
        if _MATERIALIZED.match(body) is not None:
            why = "a materialized table is not supported: Flink refreshes it with a separate job"
            return Statement(body, span, error=f"{span}: {why}"), None
        if (word := tokens[0].text.upper()) in _WITHOUT_GRAMMAR:
            return Statement(body, span, error=f"{span}: the statement {word} is not supported"), None
        return Statement(body, span, error=_describe(error, parser, chunk, places), malformed=True), None
    except SqlglotError:
        return Statement(body, span, error=f"{span}: a literal of this statement cannot be read"), None
    except RecursionError:
        return Statement(body, span, error=f"{span}: this statement is nested too deeply to be read"), None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # For some unexpected text, such as a join without a relation, sqlglot's parser raises other errors.
        return Statement(body, span, error=f"{span}: this statement cannot be read"), None
    statement = Statement(body, span, tree)
    if parser.every_node:
        vars(statement)["nodes"] = parser.every_node  # the parser already listed the nodes
    return statement, None


def _cut(error: ParseError, body: str, chunk: tokenizer.Chunk) -> tuple[tokenizer.Chunk, tokenizer.Chunk] | None:
    """Split a chunk after a complete statement, if the next word can only start a statement."""
    first = error.errors[0] if error.errors else {}
    if first.get("description") != BEHIND_THE_END:
        return None
    offset = _error_offset(first, body)
    if _BEGINS_ANOTHER.match(body, offset) is None:
        return None
    (before,) = tokenizer.split(body[:offset])
    return (tokenizer.Chunk(chunk.start, chunk.start + before.end), tokenizer.Chunk(chunk.start + offset, chunk.end))


def _describe(error: ParseError, parser: FlinkParser, chunk: tokenizer.Chunk, places: Places) -> str:
    """The place and message of an error, without an excerpt of the text, which may be secret."""
    first = error.errors[0] if error.errors else {}
    description = str(first.get("description") or "cannot be read").rstrip(".")
    if description.startswith("Required keyword"):
        description = "Something is missing at this place"
    if description == BEHIND_THE_END:
        unexpected = parser.found().removeprefix("a ")
        description = f"Unexpected {unexpected} after the end of the statement; remove it, or write ; before it"
    offset = _error_offset(first, parser.sql)
    around = (each for each in _PLACEHOLDER.finditer(parser.sql) if each.start() <= offset <= each.end())
    if (found := next(around, None)) is not None:
        description = f"{found[0]} is a placeholder of a template; {AS_SUBMITTED}"
        offset = found.start()
    return f"{places.span(chunk.start + offset, chunk.start + offset + 1)}: {description}"


def _error_offset(first: Mapping[str, Any], body: str) -> int:
    return max(_offset(body, first.get("line"), first.get("col")) - len(first.get("highlight") or ""), 0)


def _offset(body: str, line: int | None, column: int | None) -> int:
    """The offset after the token that ends at sqlglot's ``line`` and ``column``, which start at 1."""
    if not line or column is None:
        return 0
    lines = body.split("\n")
    return sum(len(text) + 1 for text in lines[: line - 1]) + column
