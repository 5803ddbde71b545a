"""``${conn.<conn_id>.<attribute>}``: where a script asks for a value of an Airflow connection.

``attribute`` is ``host``, ``port``, ``login``, ``password``, ``schema`` or ``extra.<key>``. Placeholders stand inside
string literals (hints included). In comments they are text and stay as they are, so that no secret ends up there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from airflow_flinkcompat.sql import lexer
from airflow_flinkcompat.sql.script import ScriptError

#: Matches one placeholder; groups ``conn_id`` and ``attribute``.
PLACEHOLDER = re.compile(
    r"\$\{conn\.(?P<conn_id>[^{}\s'\"`]+?)\.(?P<attribute>host|port|login|password|schema|extra\.[^{}\s'\"`]+)\}"
)
_OPENING = re.compile(r"\$\{conn\b[^}\s'\"`]*\}?")


@dataclass(frozen=True)
class Placeholder:
    """One value asked for; ``str()`` is the placeholder as written in scripts."""

    conn_id: str
    attribute: str

    def __str__(self) -> str:
        return f"${{conn.{self.conn_id}.{self.attribute}}}"


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """The distinct placeholders of ``text`` in order of appearance, those in comments included."""
    return tuple(dict.fromkeys(_placeholder(match) for match in PLACEHOLDER.finditer(text)))


def resolve_placeholders(text: str, lookup: Callable[[Placeholder], str]) -> str:
    """Return ``text`` with each placeholder in a string literal replaced by ``lookup(placeholder)``.

    Values are escaped for the literal they stand in: single quotes are doubled; directly inside double quotes (JAAS,
    JSON) backslashes and double quotes are escaped as well. Raises :class:`ScriptError`, which never holds a value, for
    a malformed placeholder and for one outside of a string literal.
    """
    return "".join(_resolve(lexeme, text, lookup) for lexeme in lexer.lexemes(text))


def _resolve(lexeme: lexer.Lexeme, text: str, lookup: Callable[[Placeholder], str]) -> str:
    source = text[lexeme.start : lexeme.end]
    if lexeme.kind == "hint":
        return f"/*+{resolve_placeholders(source[3:-2], lookup)}*/"
    if lexeme.kind == "comment":
        return source
    if lexeme.kind != "string":
        # `$`, `{` and `conn` are lexemes of their own outside of literals.
        opening = _OPENING.match(text, lexeme.start) if source == "$" else _OPENING.search(source)
        if opening is not None:
            raise ScriptError(f"{opening.group()}: a placeholder may only stand inside a string in single quotes")
        return source
    resolved = PLACEHOLDER.sub(lambda match: _escaped(match, lookup(_placeholder(match))), source)
    for opening in _OPENING.finditer(source):
        if not PLACEHOLDER.match(source, opening.start()):
            raise ScriptError(
                f"{opening.group()}: not a placeholder; write ${{conn.<conn_id>.<attribute>}} with the attribute "
                "host, port, login, password, schema or extra.<key>"
            )
    return resolved


def _placeholder(match: re.Match[str]) -> Placeholder:
    return Placeholder(match["conn_id"], match["attribute"])


def _escaped(match: re.Match[str], value: str) -> str:
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    if before == after == '"':
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return value.replace("'", "''")
