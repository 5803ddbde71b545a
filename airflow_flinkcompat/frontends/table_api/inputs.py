"""What only the environment knows, as it stands in the statements of a program: ``${name}``.

Until a text becomes SQL the name of such an input stands in it between two marks that no source holds.
"""

from __future__ import annotations

import hashlib
import re

from airflow_flinkcompat.frontends.table_api.values import INPUT_BEGINS, INPUT_ENDS, NotRead

MARKED = re.compile(f"{INPUT_BEGINS}([^{INPUT_ENDS}]*){INPUT_ENDS}")
_TOKEN = re.compile(
    rf"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<bare>\w*(?:{INPUT_BEGINS}[^{INPUT_ENDS}]*{INPUT_ENDS}\w*)+)",
    re.DOTALL,
)
_NAMES_SOMETHING = re.compile(r"(\b(FROM|JOIN|INTO|OVERWRITE|TABLE|EXISTS|VIEW|CATALOG|DATABASE|USE)\s+|\.)\Z", re.I)
"""What stands before the name of a table, catalog or database."""


def shown(name: str) -> str:
    """A name as it can stand in SQL: what could end a text is left out, and a digest keeps such names apart."""
    plain = re.sub(r"[^\w./:\[\]=~ -]", "", name)
    return plain if plain == name and len(name) <= 120 else f"{plain[:120]}~{digest(name)}"


def digest(text: str) -> str:
    """A few digits that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def marked(name: str) -> str:
    """A text that stands for the input."""
    return f"{INPUT_BEGINS}{name}{INPUT_ENDS}"


def names(text: str) -> list[str]:
    """The inputs in a text."""
    return [match[1] for match in MARKED.finditer(text)]


def placeholders(text: str) -> str:
    """The text with ``${name}`` for each input in it."""
    return MARKED.sub(lambda match: f"${{{shown(match[1])}}}", text) if INPUT_BEGINS in text else text


def in_sql(text: str) -> str:
    """A text of SQL with its inputs as placeholders, where these are texts or names of tables.

    Raises :class:`NotRead` for one that stands anywhere else: it may be any SQL.
    """
    return _TOKEN.sub(_placed, text) if INPUT_BEGINS in text else text


def _placed(token: re.Match[str]) -> str:
    text = placeholders(token.group())
    if token["bare"] is None:
        return text
    if _NAMES_SOMETHING.search(token.string[max(token.start() - 40, 0) : token.start()]):
        return f"`{text}`"
    (first, *_) = names(token.group())
    raise NotRead(f"the SQL is not known: {shown(first)}, which stands in it as a part of its own, is not known")
