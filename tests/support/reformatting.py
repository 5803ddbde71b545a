"""The same script in another layout: what a formatter, or another author, may change without changing what it says.

Case of keywords and function names, whitespace, comments, back-ticks around names, superfluous parentheses and the
names of table aliases and of WITH queries. String literals are data and stay as they are.
"""

from __future__ import annotations

import random
import re
from collections import Counter

from sqlglot import exp

from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.sql import Statement, nodes, parse_script
from airflow_flinkcompat.sql.statement_parser import Flink
from tests.support.lexemes import TOKEN, Token

_PIECE = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}|\{%.*?%\}|\$[\w$]+|[^\W\d][\w$]*|" + TOKEN.pattern, re.DOTALL)
_COMMENT = re.compile(r"--|//|/\*(?!\+)")
_WORD = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_RAW = ("SET", "RESET", "ADD", "REMOVE")
"""Statements in which whitespace and names may be values."""
_SPLITTABLE = frozenset("(),=<>+*/")
"""Signs around which whitespace says nothing."""
# Words that no dialect takes for a name: only their case is changed where a statement is not read.
_RESERVED = frozenset(
    {
        *("ALL", "ALTER", "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS", "DISTINCT", "DROP", "ELSE"),
        *("END", "EXCEPT", "EXISTS", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTO"),
        *("IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION"),
        *("PRIMARY", "RIGHT", "SELECT", "TABLE", "THEN", "UNION", "VALUES", "WHEN", "WHERE", "WITH"),
    }
)
_ENDS = frozenset(
    {
        *("GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "QUALIFY", "OFFSET", "FETCH"),
        *("MINUS", "ON", ";", ")"),
    }
)
"""What stands behind a condition."""
_HOLDERS = (
    *(exp.Binary, exp.Connector, exp.Where, exp.Having, exp.Anonymous, exp.In, exp.Between, exp.Is, exp.Not, exp.Neg),
    *(exp.Cast, exp.Alias, nodes.PatternDefinition),
)
"""Nodes around whose columns parentheses say nothing."""


def reformatted(text: str, seed: str) -> str:
    """The script in another layout, which follows from the seed alone."""
    chance = random.Random(seed)
    text = text.removeprefix("\ufeff")
    done: list[str] = []
    end = 0
    lines = text.split("\n")
    for statement in parse_script(text).statements:
        start = sum(len(line) + 1 for line in lines[: statement.span.line - 1]) + statement.span.column - 1
        # Where no semicolon stands, something must stand between two statements.
        done += [text[end:start] or " ", _Layout(chance, statement).written()]
        end = start + len(statement.text)
    return "".join([*done, text[end:]])


class _Layout:
    def __init__(self, chance: random.Random, statement: Statement) -> None:
        self.chance = chance
        self.statement = statement
        self.tokens = [
            Token(m.group(), m.start()) for m in _PIECE.finditer(statement.text) if not _COMMENT.match(m.group())
        ]
        self.places = {token.start: i for i, token in enumerate(self.tokens)}
        self.texts = [token.text for token in self.tokens]
        self.names: dict[int, exp.Identifier] = {}
        """The names of the tree by their token."""
        self.unplaced: set[str] = set()
        for name in () if statement.tree is None else statement.tree.find_all(exp.Identifier):
            place = self.places.get(name.meta.get("start", -1))
            if place is None:
                self.unplaced.add(name.name)
            else:
                self.names[place] = name

    def written(self) -> str:
        first = self.tokens[0].text.upper()
        if first in _RAW or "never closed" in (self.statement.error or ""):
            return self.statement.text
        self._change_case()
        if self.statement.tree is not None and not self.statement.tree.find(exp.Command):
            self._rename_aliases(self.statement.tree)
            self._quote()
            self._bracket(self.statement.tree)
        return self._joined()

    # ------------------------------------------------------------------------------------------- tokens
    def _change_case(self) -> None:
        for i, text in enumerate(self.texts):
            if i in self.names or not _WORD.match(text) or text in self.unplaced:
                continue
            follows = self.statement.text[self.tokens[i].end : self.tokens[i].end + 1]
            if follows in ("'", "&"):  # the prefix of a literal
                continue
            if self.statement.tree is not None or text.upper() in _RESERVED:
                how = self.chance.choice((str, str.upper, str.lower, str.title))
                self.texts[i] = how(text)

    def _quote(self) -> None:
        for i, name in self.names.items():
            if not _is_plain_name(name) or self.chance.random() < 0.5:
                continue
            text = self.texts[i]
            if not self._stands_apart(i):
                continue
            if not text.startswith("`"):
                self.texts[i] = f"`{text}`"
            elif _WORD.match(text[1:-1]) and not _is_word_of_the_language(text[1:-1]):
                self.texts[i] = text[1:-1]

    def _stands_apart(self, i: int) -> bool:
        """Whether no word touches a token, so that it may lose or get quotes."""
        token, text = self.tokens[i], self.statement.text
        return not re.search(r"[\w$]", text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1])

    def _joined(self) -> str:
        parts: list[str] = []
        hint = False
        for i, text in enumerate(self.texts):
            token = self.tokens[i]
            if i:
                between = self.statement.text[self.tokens[i - 1].end : token.start]
                parts.append(self._gap(self.tokens[i - 1].text, between, token.text, hint))
            hint = token.text == "/*+" or (hint and token.text != "*/")
            parts.append(text)
        return "".join(parts)

    def _gap(self, before: str, between: str, after: str, hint: bool) -> str:
        quoted = before[0] == after[0] == "'"
        if quoted or (not between and not _may_be_split(before, after)):
            return between
        gaps = ["\n", "\t  ", " ", "\r\n "]
        if not hint:
            gaps += [" /* it's; a `note` */ ", " -- it's; a (note\n"]
        if not between and self.chance.random() < 0.7:
            return ""
        return self.chance.choice(gaps)

    # --------------------------------------------------------------------------------------------- tree
    def _rename_aliases(self, tree: exp.Expr) -> None:
        uses: dict[str, Counter[str]] = {}
        for name in tree.find_all(exp.Identifier):
            uses.setdefault(name.name, Counter())[_use(name)] += 1
        literals = {literal.name for literal in tree.find_all(exp.Literal) if literal.is_string}
        tables = {table.name for table in tree.find_all(exp.Table) if table.args.get("db")}
        for name, found in uses.items():
            renamed = f"{name}_other"
            alias = found["alias"] and not set(found) - {"alias", "qualifier", "hint"}
            common = (
                found["WITH"] == 1
                and not set(found) - {"WITH", "qualifier", "relation", "hint"}
                and name not in tables
                and not _reads_itself(tree, name)
            )
            taken = renamed in uses or name in literals or name in self.unplaced
            if (alias or common) and not taken and self.chance.random() < 0.7:
                for i, identifier in self.names.items():
                    if identifier.name == name:
                        self.texts[i] = self.texts[i].replace(name, renamed)

    def _bracket(self, tree: exp.Expr) -> None:
        for column in tree.find_all(exp.Column):
            if isinstance(column.this, exp.Star) or not _stands_free(column) or self.chance.random() < 0.6:
                continue
            places = [i for i, name in self.names.items() if name.parent is column]
            if len(places) == len(column.parts):
                self._wrap(min(places), max(places))
        depth = 0
        opened: list[tuple[int, int]] = []
        for i, token in enumerate(self.tokens):
            word = token.text.upper() if i not in self.names else ""
            while opened and opened[-1][1] == depth and word in _ENDS and not self._inside_case(opened[-1][0], i):
                self._wrap(opened.pop()[0], i - 1)
            depth += (token.text == "(") - (token.text == ")")
            if word in ("WHERE", "HAVING") and self.chance.random() < 0.5:
                behind = self.texts[i - 2 : i] if i else []
                if "FILTER" not in [each.upper() for each in behind]:
                    opened.append((i + 1, depth))
        for first, level in reversed(opened):
            if level == 0:
                self._wrap(first, len(self.tokens) - 1)

    def _inside_case(self, first: int, last: int) -> bool:
        words = [token.text.upper() for token in self.tokens[first:last]]
        return words.count("CASE") > words.count("END")

    def _wrap(self, first: int, last: int) -> None:
        self.texts[first] = f"({self.texts[first]}"
        self.texts[last] = f"{self.texts[last]})"


def _is_plain_name(name: exp.Identifier) -> bool:
    """Whether a name stands for a table, a column or an alias: functions, hints and types are words."""
    parent = name.parent
    words = (nodes.HintCall, nodes.TableFunction, exp.Anonymous, nodes.NamedArgument, nodes.Call)
    if isinstance(parent, words) or name.find_ancestor(exp.Hint, nodes.HintCall):
        return False
    kind = name.find_ancestor(nodes.FlinkType)
    in_name = isinstance(parent, exp.Dot) and isinstance(parent.find_ancestor(*words), words)
    return (kind is None or isinstance(parent, nodes.RowField)) and not in_name


def _is_word_of_the_language(text: str) -> bool:
    word = text.upper()
    known = {part for keyword in Flink.tokenizer_class.KEYWORDS for part in keyword.split()}
    return word in known or word in _RESERVED or functions.lookup(word) is not None


def _may_be_split(before: str, after: str) -> bool:
    signs = [text for text in (before, after) if text in _SPLITTABLE]
    others = [text for text in (before, after) if text not in _SPLITTABLE]
    return len(signs) == 2 or (bool(signs) and re.match(r"[\w'`]", others[0]) is not None)


def _use(name: exp.Identifier) -> str:
    match name.parent:
        case exp.TableAlias(parent=exp.CTE()) if name.arg_key == "this":
            return "WITH"
        case exp.TableAlias() if name.arg_key == "this":
            return "alias"
        case exp.Column() if name.arg_key == "table":
            return "qualifier"
        case exp.Table() if name.arg_key == "this":
            return "relation"
        case nodes.HintCall() if name.arg_key == "expressions":
            return "hint"
    return "other"


def _reads_itself(tree: exp.Expr, name: str) -> bool:
    """Whether a WITH query or one before it reads a table of its name, which is another relation."""
    for clause in tree.find_all(exp.With):
        for cte in clause.expressions:
            if any(table.name == name for table in cte.this.find_all(exp.Table)):
                return True
            if cte.alias == name:
                break
    statements = [each for each in tree.find_all(exp.Select, exp.SetOperation) if each.args.get("with_")]
    return not all(
        table.find_ancestor(*{type(each) for each in statements}) for table in tree.find_all(exp.Table)
        if table.name == name
    )  # fmt: skip


def _stands_free(column: exp.Column) -> bool:
    parent = column.parent
    if isinstance(parent, exp.Select):
        return column.arg_key == "expressions"
    return isinstance(parent, _HOLDERS) and not isinstance(parent, exp.Dot | exp.Bracket)
