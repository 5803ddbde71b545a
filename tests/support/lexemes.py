"""What stands in a script, token by token: where, in which clause, and what a statement says by them.

It knows nothing of the dialect's own tokenizer and parser, so that these can be held against it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

TOKEN = re.compile(
    r"--[^\r\n]*|(?<!:)//[^\r\n]*|/\*(?!\+).*?\*/"  # comments
    r"|'(?:[^']|'')*'|`(?:[^`]|``)*`|[^\W\d]\w*|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
    r"|<>|<=|>=|!=|=>|\|\||/\*\+|\*/|\S",
    re.DOTALL,
)
_COMMENT = re.compile(r"--|//|/\*(?!\+)")


@dataclass(frozen=True)
class Token:
    """``text`` at ``start``; ``clause`` is the innermost clause it stands in, such as ``WHERE`` or ``AGGREGATE``."""

    text: str
    start: int
    clause: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str) -> list[Token]:
    """The tokens of a text; comments are none."""
    return [Token(m.group(), m.start()) for m in TOKEN.finditer(text) if not _COMMENT.match(m.group())]


WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
AGGREGATES = ("SUM", "COUNT", "MIN", "MAX", "AVG", "FIRST_VALUE", "LAST_VALUE")
_STARTS = ("SELECT", "CREATE", "INSERT", "UNION", "EXCEPT", "INTERSECT")
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "PARTITION", "LIMIT", "ON", "QUALIFY", "SET", "WITH")
_CALLS = {
    **dict.fromkeys(WINDOWS, "WINDOW"),
    **dict.fromkeys(AGGREGATES, "AGGREGATE"),
    **{name: name for name in ("FILTER", "OVER")},
}


def placed(text: str) -> list[Token]:
    """The tokens with their clauses; what stands in the brackets of a window or an aggregate belongs to that call."""
    stack = [""]
    found: list[Token] = []
    for token in tokens(text):
        word = token.text.upper()
        if word == "(":
            stack.append(_CALLS.get(found[-1].text.upper() if found else "", stack[-1]))
        elif word == ")" and len(stack) > 1:
            stack.pop()
        elif word == ";":
            stack = [""]
        elif word in _STARTS or (word in _CLAUSES and stack[-1] not in _CALLS.values()):
            stack[-1] = word
        found.append(Token(token.text, token.start, stack[-1]))
    return found


UNITS = ("SECOND", "MINUTE", "HOUR", "DAY")
_TYPES = frozenset({"STRING", "BIGINT", "INT", "DOUBLE", "BOOLEAN", "DATE", ")"})
_OTHERWISE = {"INTEGER": "INT", "NUMERIC": "DECIMAL", "DEC": "DECIMAL", "UNKNOWN": "NULL", "!=": "<>", "*/": "/"}
_SAYS_NOTHING = frozenset({"AS", "TABLE", "EXECUTE", "NULLS", "FIRST", "LAST"})
_SIGNS = frozenset({"=", "<>", "<=", ">=", "||", "/", "%"})
# Printed in other words: settings in quotes, frames in full, SUBSTRING with commas, types by short names, JSON pairs,
# joined strings. Of a declared column a.b Flink reads a.
_IN_OTHER_WORDS = re.compile(
    r"\A(?:SET|RESET|EXPLAIN|DESC|SHOW)\b|\b(?:ROWS|RANGE)\s+(?!BETWEEN\b)|\bROW\s*\(\s*\)"
    r"|\b(?:SUBSTRING|JSON_\w+|TIME\s+ZONE|PRECISION|CHARACTER|VARYING)\b|\{\s*,|'\s*\n\s*'|\bU&'"
    r"|[(,]\s*\w+\.[\w.]+\s+(?:STRING|BIGINT|INT|DOUBLE|BOOLEAN|DATE|TIMESTAMP|DECIMAL)\b",
    re.IGNORECASE,
)


def content(text: str) -> Counter[str] | None:
    """The words, names, numbers and strings a statement says something by; None where it may be said in other words."""
    if _IN_OTHER_WORDS.search(text):
        return None
    found: Counter[str] = Counter()
    before = ""
    for token in tokens(text):
        word = token.text.strip("`").replace("``", "`") if token.text[0] == "`" else token.text.upper()
        word = _OTHERWISE.get(word, word)
        word = word.removesuffix("S") if word.removesuffix("S") in UNITS else word
        word = word.lstrip("0") or "0" if word[:1].isdigit() else word
        superfluous = (
            word in _SAYS_NOTHING
            or (word == "ALL" and before in ("SELECT", "("))
            or (word == "DISTINCT" and before in ("UNION", "EXCEPT", "INTERSECT"))
            or (word in ("ROW", "ROWS") and before[:1].isdigit())
            or (word == "NULL" and before in _TYPES)
        )
        if not superfluous and (re.match(r"[\w'.]", word) or word in _SIGNS or token.text[0] == "`"):
            found[word] += 1
        before = word
    return found
