"""The normal form of SQL: the meaning of a tree without its spelling.

The plan uses the normal form to compare parts of a script that it does not analyse. Two trees with the same normal
form differ only in the case of keywords and functions, quotes around names, comments, layout, superfluous
parentheses, names of table aliases, WITH queries and named windows, or names of output columns that no query reads by
name. Names of tables and columns are case-sensitive in Flink, and literals are data, so the normal form contains both
unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.sql import nodes, tokenizer
from airflow_flinkcompat.sql.base_parser import reserved_words
from airflow_flinkcompat.sql.call_parser import NILADIC_FUNCTIONS
from airflow_flinkcompat.sql.tokenizer import FlinkTokenizer

Path = tuple[str, ...]


def normal_form(
    tree: exp.Expr | Sequence[exp.Expr],
    path: Callable[[exp.Table], Path] | None = None,
    column: Callable[[exp.Column], str | None] | None = None,
) -> NormalForm:
    """The normal form of a statement, a query, an expression or a list of these."""
    trees = tree if isinstance(tree, Sequence) else (tree,)
    writer = _Writer(path, column)
    text = ", ".join(each.sql(dialect="flink", comments=False) for each in trees)
    return NormalForm(" ".join(writer.write(each, _Names()) for each in trees), text)


def normal_words(text: str) -> NormalForm:
    """The normal form of an unparsed statement: its lexemes, without spaces and comments.

    Words that cannot be names lose their case. Words that must be names lose their quotes. All other words are
    unchanged.
    """
    kept = [lexeme for lexeme in tokenizer.lexemes(text) if lexeme.kind not in ("space", "comment")]
    shown = (text[lexeme.start : lexeme.end] for lexeme in kept)
    return NormalForm(" ".join(_normal_word(lexeme) for lexeme in kept), " ".join(shown))


def _normal_word(lexeme: tokenizer.Lexeme) -> str:
    if lexeme.kind == "hint":
        return f"/*+ {normal_words(lexeme.text[3:-2]).form} */"
    if lexeme.kind == "word" and lexeme.text.upper() in RESERVED:
        return lexeme.text.upper()
    if lexeme.kind == "name" and _PLAIN_NAME.fullmatch(lexeme.text) and lexeme.text[1:-1].upper() not in _WORDS:
        return lexeme.text[1:-1]
    return lexeme.text


def _is_surely_name(part: exp.Expr) -> bool:
    return isinstance(part, exp.Identifier) and part.name.upper() not in _WORDS


_PLAIN_NAME = re.compile("`[A-Za-z_][A-Za-z_0-9]*`")


def unquoted(tree: exp.Expr) -> str:
    """Names and constants as SQL, with quotes only where they are necessary."""
    bare = tree.copy()
    for name in bare.find_all(exp.Identifier):
        name.set("quoted", _PLAIN_NAME.fullmatch(f"`{name.name}`") is None)
    return bare.sql(dialect="flink", comments=False)


RESERVED = reserved_words()
"""Words that no version of Flink accepts as a name without back-ticks."""
_WORDS = RESERVED | set(NILADIC_FUNCTIONS) | {word for words in FlinkTokenizer.KEYWORDS for word in words.split()}


def relation_names(query: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """The relations in a SELECT's FROM in order, each with the name that other clauses use."""
    clause = query.args.get("from_")
    if clause is not None:
        yield from _visible(clause.this)
    for join in query.args.get("joins") or ():
        yield from _visible(join.this)


def _visible(relation: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    alias = relation.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.name:
        yield alias.name, relation
    elif isinstance(relation, exp.Table):
        yield relation.name, relation
    elif isinstance(relation, exp.Subquery) and not isinstance(relation.this, exp.Query):
        yield from _visible(relation.this)
    for join in relation.args.get("joins") or ():
        yield from _visible(join.this)


def hint_options(hint: nodes.HintCall, called: Mapping[str, str]) -> list[tuple[str, str]]:
    """The sorted options of a hint, whose order has no effect; the last of several equal keys applies."""
    found = {}
    for option in (part for part in hint.expressions if isinstance(part, nodes.Option)):
        key, value = option.this.name, option.expression.name
        if hint.this.name.upper() == "STATE_TTL":
            key = called.get(key, key)
        elif hint.this.name.upper() == "LOOKUP" and key == "table":
            value = called.get(value, value)
        found[key] = value
    return sorted(found.items())


@dataclass(frozen=True)
class _Names:
    """Names that an expression can use: relations, WITH queries, windows, and output columns by position."""

    relations: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    windows: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


_CONNECTORS: dict[type[exp.Expr], str] = {exp.And: "And", exp.Or: "Or"}


class _Writer:
    """Writer of trees as nested lists ``(Kind argument=value …)``. Different trees have different texts."""

    def __init__(self, path: Callable[[exp.Table], Path] | None, column: Callable[[exp.Column], str | None] | None):
        self.path = path
        self.column = column
        self.numbers = count(1)

    def write(self, value: Any, names: _Names) -> str:
        """The form of an argument: a node, a list of nodes, a word or a flag."""
        match value:
            case list():
                return f"[{' '.join(self.write(each, names) for each in value)}]"
            case exp.Expr():
                return _written_by(type(value))(self, value, names)
            case str():
                return json.dumps(value.upper())
        return str(value)

    def _literal(self, node: exp.Literal, names: _Names) -> str:
        return f"'{json.dumps(node.name)}" if node.is_string else node.name.upper()

    def _marked_text(self, node: exp.Expr, names: _Names) -> str:
        """A string with a prefix: ``U&'…'``, ``N'…'``, ``X'…'``."""
        return f"({type(node).__name__} {json.dumps(node.name)} {self.write(node.args.get('escape'), names)})"

    def _connected(self, node: exp.Expr, names: _Names) -> str:
        parts = " ".join(self.write(each, names) for each in _operands(node))
        return f"({_CONNECTORS[type(node)]} {parts})"

    def _create_view(self, node: nodes.CreateView, names: _Names) -> str:
        named = not node.args.get("columns")
        return self._rest(node, names, expression=self._query(node.expression, names, named))

    def _create_table(self, node: nodes.CreateTable, names: _Names) -> str:
        if node.expression is None:
            return self._rest(node, names)
        return self._rest(node, names, expression=self._query(node.expression, names, named=True))

    def _window(self, node: exp.Window, names: _Names) -> str:
        alias = node.args.get("alias")
        label = None if alias is None else names.windows.get(alias.name, json.dumps(alias.name))
        return self._rest(node, names, alias=label)

    def _hive_table(self, node: nodes.HiveTable, names: _Names) -> str:
        # Names and keywords look the same, so a name only keeps its quotes if it could be a keyword.
        words = [exp.var(part.name) if _is_surely_name(part) else part for part in node.expressions]
        return self._rest(node, names, expressions=self.write(words, names))

    def _chain(self, node: exp.Expr, names: _Names) -> str:
        """Write a chain such as ``a + b + c`` without recursion, because it may exceed the recursion limit."""
        chain: list[exp.Expr] = []
        while isinstance(node, exp.Binary) and not isinstance(node, exp.And | exp.Or | exp.Dot):
            chain.append(node)
            node = node.this.unnest()
        form = self.write(node, names)
        for each in reversed(chain):
            form = self._rest(each, names, this=form)
        return form

    def _rest(self, node: exp.Expr, names: _Names, **written: str | None) -> str:
        """Write a node by its arguments; ``written`` contains arguments whose form is already known."""
        parts = [type(node).__name__]
        for key in sorted({*node.args, *written}):
            value = node.args.get(key)
            if key in written:
                parts += [] if written[key] is None else [f"{key}={written[key]}"]
            elif value is not None and value is not False and value != []:
                parts.append(f"{key}={self.write(value, names)}")
        return f"({' '.join(parts)})"

    def _column(self, node: exp.Column, names: _Names) -> str:
        replaced = self.column(node) if self.column is not None else None
        if replaced is not None:
            return replaced
        first, *rest = node.parts
        if not rest and first.name in names.outputs:
            return names.outputs[first.name]
        label = names.relations.get(first.name) if rest else None
        written = [self.write(first, names) if label is None else label, *(self.write(part, names) for part in rest)]
        return f"(Column {' '.join(written)})"

    def _hint(self, node: nodes.HintCall, names: _Names) -> str:
        found = hint_options(node, names.relations)
        options = [f"{json.dumps(key)}={json.dumps(value)}" for key, value in found]
        others = [
            names.relations.get(part.name) or self.write(part, names) if isinstance(part, exp.Identifier)
            else self.write(part, names)
            for part in node.expressions if not isinstance(part, nodes.Option)
        ]  # fmt: skip
        return f"(HintCall {json.dumps(node.this.name.upper())} {' '.join([*others, *options])})"

    # ------------------------------------------------------------------------------------------ queries
    def _query(self, node: exp.Expr, names: _Names, named: bool) -> str:
        """Write a query in normal form; ``named`` is True if another query may read its columns by name."""
        names, clause = self._with(node, names)
        written: dict[str, str | None] = {"with_": clause}
        match node:
            case exp.Paren():
                return self._query(node.this, names, named)
            case exp.Subquery() if not any(value for key, value in node.args.items() if key != "this"):
                return self._query(node.this, names, named)
            case exp.Subquery() if isinstance(node.this, exp.Query | exp.Values):
                named = named or node.args.get("order") is not None
                return self._rest(node, names, this=self._query(node.this, names, named), **written)
            case exp.SetOperation():
                named = named or node.args.get("order") is not None
                written["this"] = self._query(node.this, names, named)
                written["expression"] = self._query(node.expression, names, named=False)
                return self._rest(node, names, **written)
            case exp.Select():
                return self._select(node, names, named, written)
        return self._rest(node, names)

    def _with(self, node: exp.Expr, names: _Names) -> tuple[_Names, str | None]:
        clause = node.args.get("with_")
        if clause is None:
            return names, None
        parts = ["recursive"] if clause.args.get("recursive") else []
        for cte in clause.expressions:
            label = f"#q{next(self.numbers)}"
            known = {**names.queries, cte.alias: label}
            inner = replace(names, queries=known) if clause.args.get("recursive") else names
            columns = cte.args["alias"].columns
            parts.append(f"({self._query(cte.this, inner, not columns)} {self.write(columns, names)})")
            names = replace(names, queries=known)
        return names, f"[{' '.join(parts)}]"

    def _select(self, node: exp.Select, outer: _Names, named: bool, written: dict[str, str | None]) -> str:
        labels: dict[str, str] = {}
        for name, _ in relation_names(node):
            labels[name] = json.dumps(name) if name in labels else f"#r{next(self.numbers)}"
        windows = {each.this.name: f"#w{next(self.numbers)}" for each in node.args.get("windows") or ()}
        names = replace(outer, relations={**outer.relations, **labels}, windows=windows, outputs={})
        clause = node.args.get("from_")
        written["from_"] = None if clause is None else self._relation(clause.this, outer, names)
        written["joins"] = self._joins(node, outer, names)
        defined = [self._rest(each, names, this=windows[each.this.name]) for each in node.args.get("windows") or ()]
        written["windows"] = " ".join(defined) or None
        if not named:
            # Only the position of a column matters, but ORDER BY and QUALIFY may still use its name.
            bare = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
            written["expressions"] = self.write(bare, names)
            outputs = {each.alias: f"#c{i}" for i, each in enumerate(node.expressions) if isinstance(each, exp.Alias)}
            for key in ("order", "qualify"):
                if node.args.get(key) is not None:
                    written[key] = self.write(node.args[key], replace(names, outputs=outputs))
        return self._rest(node, names, **written)

    def _joins(self, node: exp.Expr, outer: _Names, names: _Names) -> str | None:
        """Write joins. The words INNER and OUTER have no effect, because the side determines the kind."""
        joins = node.args.get("joins")
        if not joins:
            return None
        found = []
        for join in joins:
            kind = str(join.args.get("kind") or "").upper()
            shown = None if kind in ("", "INNER", "OUTER") else json.dumps(kind)
            found.append(self._rest(join, names, this=self._relation(join.this, outer, names), kind=shown))
        return f"[{' '.join(found)}]"

    def _relation(self, node: exp.Expr, outer: _Names, names: _Names) -> str:
        """Write a relation of FROM. Arguments of a function can use sibling relations; a subquery cannot."""
        alias = node.args.get("alias")
        columns = alias.columns if isinstance(alias, exp.TableAlias) else []
        own = next((name for name, relation in _visible(node) if relation is node), None)
        label = None if own is None else names.relations.get(own)
        written: dict[str, str | None] = {
            "alias": " ".join(filter(None, [label, self.write(columns, names) if columns else None])) or None,
            "joins": self._joins(node, outer, names),
        }
        match node:
            case exp.Subquery() if not isinstance(node.this, exp.Query | exp.Values):
                written["this"] = self._relation(node.this, outer, names)
                if all(written[key] is None for key in written if key != "this"):
                    return str(written["this"])
            case exp.Subquery():
                scope, written["with_"] = self._with(node, outer)
                written["this"] = self._query(node.this, scope, named=not columns)
            case exp.Table():
                written |= {"this": self._table(node, outer), "db": None, "catalog": None}
                if node.args.get("hints"):
                    # These hints apply to the table itself, so they contain no name of a relation.
                    written["hints"] = " ".join(sorted(self.write(each, _Names()) for each in node.args["hints"]))
            case exp.Lateral():
                written["this"] = self._relation(node.this, names, names)
            case nodes.TableFunction():
                *path, function = [part.name for part in node.this.find_all(exp.Identifier)]
                written["this"] = json.dumps([*path, function.upper()])
                written["expressions"] = self._arguments(node, outer, names)
            case nodes.MatchRecognize():
                return self._match(node, outer, names, written)
        return self._rest(node, names, **written)

    def _arguments(self, node: nodes.TableFunction, outer: _Names, names: _Names) -> str:
        found = []
        for argument in node.expressions:
            value = argument.expression if isinstance(argument, nodes.NamedArgument) else argument
            if isinstance(value, nodes.TableArgument):
                written = self._rest(value, outer, this=self._relation(value.this, outer, outer))
            else:
                written = self.write(value, names)
            found.append(written if value is argument else f"{json.dumps(argument.this.name)}={written}")
        return f"[{' '.join(found)}]"

    def _table(self, node: exp.Table, names: _Names) -> str:
        query = names.queries.get(node.name) if not node.args.get("db") else None
        if query is not None:
            return query
        if self.path is not None and len(node.parts) <= 3:
            return json.dumps([*self.path(node)])
        return json.dumps([part.name for part in node.parts])

    def _match(self, node: nodes.MatchRecognize, outer: _Names, names: _Names, written: dict[str, str | None]) -> str:
        """Write MATCH_RECOGNIZE. Pattern variables keep their names, which are names of states."""
        below = {name: f"#r{next(self.numbers)}" for name, _ in _visible(node.this)}
        declared = [node.args["pattern"], *(node.args.get("subsets") or ())]
        found = (each for part in declared for each in part.find_all(nodes.PatternVariable, nodes.PatternSubset))
        variables = {each.name: json.dumps(each.name) for each in found}
        inner = replace(names, relations={**names.relations, **below, **variables}, outputs={})
        inside = replace(names, relations={**names.relations, **below})
        written["this"] = self._relation(node.this, outer, inside)
        return self._rest(node, inner, **written)


_Write = Callable[[_Writer, Any, _Names], str]
_WRITTEN: Mapping[type[exp.Expr], _Write] = {
    exp.Paren: lambda writer, node, names: writer.write(node.this, names),
    exp.Identifier: lambda _, node, __: json.dumps(node.name),
    exp.Literal: _Writer._literal,
    **dict.fromkeys((exp.UnicodeString, exp.National, exp.HexString), _Writer._marked_text),
    exp.Var: lambda _, node, __: f"%{json.dumps(node.name.upper())}",
    exp.Column: _Writer._column,
    **dict.fromkeys((exp.And, exp.Or), _Writer._connected),
    exp.Dot: _Writer._rest,
    exp.Binary: _Writer._chain,
    **dict.fromkeys((exp.Query, exp.Values), lambda writer, node, names: writer._query(node, names, named=False)),
    nodes.CreateView: _Writer._create_view,
    nodes.CreateTable: _Writer._create_table,
    nodes.SetQuery: lambda writer, node, names: writer._rest(
        node, names, this=writer._query(node.this, names, named=True)
    ),
    **dict.fromkeys(
        (exp.Table, nodes.TableFunction, nodes.MatchRecognize, exp.Unnest, exp.Lateral),
        lambda writer, node, names: writer._relation(node, names, names),
    ),
    exp.Anonymous: lambda writer, node, names: writer._rest(node, names, this=json.dumps(node.name.upper())),
    nodes.HintCall: _Writer._hint,
    exp.Hint: lambda writer, node, names: (
        f"(Hint {' '.join(sorted(writer.write(part, names) for part in node.expressions))})"
    ),
    exp.Window: _Writer._window,
    nodes.HiveTable: _Writer._hive_table,
    nodes.KeyConstraint: lambda writer, node, names: writer._rest(node, names, enforced=str(node.args.get("enforced"))),
}
"""Writers by node class or nearest base class. Every other node is written by its arguments."""


def _written_by(kind: type[exp.Expr]) -> _Write:
    return next((_WRITTEN[each] for each in kind.__mro__ if each in _WRITTEN), _Writer._rest)


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a chain of one connector in order, without redundant parentheses."""
    pending: list[exp.Expr] = [node]
    while pending:
        part = pending.pop().unnest()
        if type(part) is type(node):
            pending += [part.expression, part.this]
        else:
            yield part
