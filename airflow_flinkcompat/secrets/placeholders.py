"""Placeholders ``${conn.<conn_id>.<attribute>}`` and ``${env.NAME}`` for values outside a script.

``attribute`` is ``host``, ``port``, ``login``, ``password``, ``schema`` or ``extra.<key>``. The caller passes a lookup
that returns the values: from Airflow's connections, or from the environment of Spark's driver. Placeholders in a script
must be inside string literals, which includes hints. Placeholders in comments stay unchanged, so that no secret is
written into a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.model import ScriptError, Span
from airflow_flinkcompat.secrets.redact import Redactor
from airflow_flinkcompat.secrets.spellings import OPENING, PLACEHOLDER
from airflow_flinkcompat.sql import tokenizer
from airflow_flinkcompat.sql.script import Places

#: Connection attributes whose values are not secret.
_NO_SECRETS = frozenset({"host", "port", "login", "schema"})


@dataclass(frozen=True)
class Placeholder:
    """A placeholder for a value of an Airflow connection; ``str()`` is the text in scripts."""

    conn_id: str
    attribute: str

    def __str__(self) -> str:
        return f"${{conn.{self.conn_id}.{self.attribute}}}"

    @property
    def is_secret(self) -> bool:
        """True if the value must be masked, unlike a host or a login."""
        return self.attribute not in _NO_SECRETS

    @property
    def variable(self) -> str:
        """Name of the environment variable that passes the value to Spark's driver."""
        return "FLINKCOMPAT_CONN_" + re.sub(r"[^A-Z0-9]", "_", f"{self.conn_id}_{self.attribute}".upper())


@dataclass(frozen=True)
class EnvPlaceholder:
    """A placeholder for an environment variable of Spark's driver; ``str()`` is the text in scripts."""

    variable: str

    def __str__(self) -> str:
        return f"${{env.{self.variable}}}"

    @property
    def is_secret(self) -> bool:
        """Always True, because an environment variable may contain a secret."""
        return True


AnyPlaceholder = Placeholder | EnvPlaceholder
#: Returns the value of a placeholder, or raises an error. The error never contains a value.
Lookup = Callable[[AnyPlaceholder], str]


class PlaceholderError(ScriptError):
    """A placeholder is malformed, misplaced or without a value. The error message contains no secret."""


@dataclass(frozen=True)
class Resolved:
    """A text with its placeholders filled in, and a redactor for the secret values in the text."""

    text: str = field(repr=False)
    redactor: Redactor


def placeholders(text: str) -> tuple[AnyPlaceholder, ...]:
    """The distinct placeholders of ``text`` in order of appearance, including placeholders in comments.

    Args:
        text: Any text, such as a script or the value of an option.

    Returns:
        One value per distinct placeholder.
    """
    return tuple(dict.fromkeys(_placeholder(match) for match in PLACEHOLDER.finditer(text)))


def placeholders_in_script(text: str) -> tuple[AnyPlaceholder, ...]:
    """Distinct placeholders that :func:`resolve_placeholders` fills in, in order of appearance."""
    literals = (lexeme.text for lexeme in tokenizer.lexemes(text) if lexeme.kind in ("string", "hint"))
    return tuple(dict.fromkeys(found for literal in literals for found in placeholders(literal)))


def resolve_placeholders(text: str, lookup: Lookup) -> Resolved:
    """Fill in each placeholder in a string literal of a script.

    Single quotes in a value are doubled. If the placeholder is directly inside double quotes (JAAS, JSON), backslashes
    and double quotes in the value are also escaped.
    """
    for _, _, why in _faults(text):
        raise PlaceholderError(why)
    values = _Values(lookup)
    return Resolved("".join(_resolve(text, values)), values.redactor)


def resolve_value(text: str, lookup: Lookup) -> Resolved:
    """Fill in each placeholder of a plain value, such as an option value, that is not a SQL literal.

    Backslashes and double quotes in a value are escaped if its placeholder is directly inside double quotes (JAAS,
    JSON). Returns the text with its placeholders filled in, and a redactor for the secret values. Raises
    PlaceholderError for a malformed placeholder.
    """
    for opening in _malformed(text):
        raise PlaceholderError(_malformed_message(opening))
    values = _Values(lookup)
    return Resolved(_fill_in(text, values), values.redactor)


def redactor_of(asked: Iterable[AnyPlaceholder], lookup: Lookup) -> Redactor:
    """Redactor for the secret values of the placeholders.

    A placeholder for which ``lookup`` raises LookupError is skipped.
    """
    values = _Values(lookup)
    for placeholder in asked:
        try:
            values(placeholder)
        except LookupError:
            continue
    return values.redactor


class _Values:
    """A lookup of placeholder values that remembers each value."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._answered: dict[AnyPlaceholder, str] = {}

    def __call__(self, placeholder: AnyPlaceholder) -> str:
        if placeholder not in self._answered:
            self._answered[placeholder] = self._lookup(placeholder)
        return self._answered[placeholder]

    @property
    def redactor(self) -> Redactor:
        # A lookup may return the placeholder itself, which is not a secret.
        found = ((str(each), value) for each, value in self._answered.items() if each.is_secret)
        return Redactor.of((name, value) for name, value in found if name != value)


def placeholder_faults(text: str, source: str) -> tuple[tuple[Span, str], ...]:
    """Positions and descriptions of malformed or misplaced placeholders in a script."""
    found = tuple(_faults(text))
    places = Places(text, source) if found else None
    return tuple((places.span(start, end), why) for start, end, why in found if places is not None)


def env_in_deployment(placeholder: EnvPlaceholder) -> str:
    """Message that a deployment cannot fill in an environment variable, with the remedy."""
    return (
        f"{placeholder} is filled in only by a backfill, from the environment of Spark's driver. Store the value in a "
        "connection and write ${conn.<connection id>.<attribute>}, which a deployment also fills in"
    )


def _faults(text: str, offset: int = 0) -> Iterator[tuple[int, int, str]]:
    for lexeme in tokenizer.lexemes(text):
        if "$" not in lexeme.text or lexeme.kind == "comment":
            continue
        at = offset + lexeme.start
        if lexeme.kind == "hint":
            yield from _faults(lexeme.text[3:-2], at + 3)
        elif lexeme.kind == "string":
            yield from (
                (at + match.start(), at + match.end(), _malformed_message(match)) for match in _malformed(lexeme.text)
            )
        # Outside literals, `$`, `{` and `conn` are separate lexemes.
        elif opening := OPENING.match(text, lexeme.start) if lexeme.text == "$" else OPENING.search(lexeme.text):
            start = offset + opening.start() + (0 if lexeme.text == "$" else lexeme.start)
            why = f"{opening.group()}: a placeholder must be inside a string in single quotes"
            yield start, start + len(opening.group()), why


def _malformed(text: str) -> Iterator[re.Match[str]]:
    return (opening for opening in OPENING.finditer(text) if not PLACEHOLDER.match(text, opening.start()))


def _malformed_message(opening: re.Match[str]) -> str:
    return (
        f"{opening.group()}: not a placeholder; write ${{conn.<conn_id>.<attribute>}} with the attribute "
        "host, port, login, password, schema or extra.<key>, or, for a backfill, ${env.NAME}"
    )


def _resolve(text: str, lookup: Lookup) -> Iterator[str]:
    for lexeme in tokenizer.lexemes(text):
        if lexeme.kind == "hint":
            yield from ("/*+", *_resolve(lexeme.text[3:-2], lookup), "*/")
        elif lexeme.kind == "string":
            yield _fill_in(lexeme.text, lambda placeholder: lookup(placeholder).replace("'", "''"))
        else:
            yield lexeme.text


def _fill_in(text: str, lookup: Lookup) -> str:
    def value(match: re.Match[str]) -> str:
        found = lookup(_placeholder(match))
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        return found.replace("\\", "\\\\").replace('"', '\\"') if before == after == '"' else found

    return PLACEHOLDER.sub(value, text)


def _placeholder(match: re.Match[str]) -> AnyPlaceholder:
    if match["name"] is not None:
        return EnvPlaceholder(match["name"])
    return Placeholder(match["conn_id"], match["attribute"])


def environment_lookup(environment: Mapping[str, str]) -> Lookup:
    """Lookup that returns values from the environment of Spark's driver."""

    def lookup(placeholder: AnyPlaceholder) -> str:
        if placeholder.variable not in environment:
            raise LookupError(
                f"{placeholder} is in the script, but the variable {placeholder.variable} is not set in the "
                "environment of Spark's driver"
            )
        return environment[placeholder.variable]

    return lookup
