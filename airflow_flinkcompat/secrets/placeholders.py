"""``${conn.<conn_id>.<attribute>}`` and ``${env.NAME}``: placeholders for values outside of a text.

``attribute`` is ``host``, ``port``, ``login``, ``password``, ``schema`` or ``extra.<key>``. Values come from a lookup
that the caller passes: Airflow's connections, or the environment of Spark's driver. In a script placeholders are
inside string literals (hints included). In comments they stay unchanged, so that no secret ends up there.
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

#: Attributes of a connection that are no secrets by themselves.
_NO_SECRETS = frozenset({"host", "port", "login", "schema"})


@dataclass(frozen=True)
class Placeholder:
    """A value of an Airflow connection; ``str()`` is the placeholder as written in scripts."""

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
        """Environment variable with the value for Spark's driver."""
        return "FLINKCOMPAT_CONN_" + re.sub(r"[^A-Z0-9]", "_", f"{self.conn_id}_{self.attribute}".upper())


@dataclass(frozen=True)
class EnvPlaceholder:
    """A variable of the environment of Spark's driver; ``str()`` is the placeholder as written in scripts."""

    variable: str

    def __str__(self) -> str:
        return f"${{env.{self.variable}}}"

    @property
    def is_secret(self) -> bool:
        """True: a variable may hold anything."""
        return True


AnyPlaceholder = Placeholder | EnvPlaceholder
#: Gives the value of a placeholder, or raises; what it raises never holds a value.
Lookup = Callable[[AnyPlaceholder], str]


class PlaceholderError(ScriptError):
    """A malformed or misplaced placeholder, or one without a value; never holds a value."""


@dataclass(frozen=True)
class Resolved:
    """A text with its placeholders filled in, and the redactor of the secret values."""

    text: str = field(repr=False)
    redactor: Redactor


def placeholders(text: str) -> tuple[AnyPlaceholder, ...]:
    """The distinct placeholders of ``text`` in order of appearance, those in comments included.

    Args:
        text: Any text, such as a script or the value of an option.

    Returns:
        One value per distinct placeholder.
    """
    return tuple(dict.fromkeys(_placeholder(match) for match in PLACEHOLDER.finditer(text)))


def placeholders_in_script(text: str) -> tuple[AnyPlaceholder, ...]:
    """Distinct placeholders of a script that :func:`resolve_placeholders` fills in, in their order."""
    literals = (lexeme.text for lexeme in tokenizer.lexemes(text) if lexeme.kind in ("string", "hint"))
    return tuple(dict.fromkeys(found for literal in literals for found in placeholders(literal)))


def resolve_placeholders(text: str, lookup: Lookup) -> Resolved:
    """Fill in each placeholder in a string literal of a script.

    Values are escaped for their literal: single quotes are doubled; directly inside double quotes (JAAS, JSON)
    backslashes and double quotes are escaped as well.
    """
    for _, _, why in _faults(text):
        raise PlaceholderError(why)
    values = _Values(lookup)
    return Resolved("".join(_resolve(text, values)), values.redactor)


def resolve_value(text: str, lookup: Lookup) -> Resolved:
    """Fill in each placeholder of a value that is no SQL literal, such as that of an option.

    Directly inside double quotes (JAAS, JSON) a filled-in value is escaped. Returns the value to use, and the redactor
    of the filled-in values. Raises PlaceholderError for a malformed placeholder.
    """
    for opening in _malformed(text):
        raise PlaceholderError(_not_one(opening))
    values = _Values(lookup)
    return Resolved(_filled_in(text, values), values.redactor)


def redactor_of(asked: Iterable[AnyPlaceholder], lookup: Lookup) -> Redactor:
    """Redactor of the secret values of some placeholders.

    A placeholder without a value (LookupError) is skipped.
    """
    values = _Values(lookup)
    for placeholder in asked:
        try:
            values(placeholder)
        except LookupError:
            continue
    return values.redactor


class _Values:
    """A lookup that remembers its answers."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._answered: dict[AnyPlaceholder, str] = {}

    def __call__(self, placeholder: AnyPlaceholder) -> str:
        if placeholder not in self._answered:
            self._answered[placeholder] = self._lookup(placeholder)
        return self._answered[placeholder]

    @property
    def redactor(self) -> Redactor:
        # A lookup may leave a placeholder as it is: that is no secret.
        found = ((str(each), value) for each, value in self._answered.items() if each.is_secret)
        return Redactor.of((name, value) for name, value in found if name != value)


def placeholder_faults(text: str, source: str) -> tuple[tuple[Span, str], ...]:
    """Malformed or misplaced placeholders of a script."""
    found = tuple(_faults(text))
    places = Places(text, source) if found else None
    return tuple((places.span(start, end), why) for start, end, why in found if places is not None)


def env_in_deployment(placeholder: EnvPlaceholder) -> str:
    """Reason why a deployment does not fill in an environment variable, and the remedy."""
    return (
        f"{placeholder} is filled in by a backfill only, from the environment of Spark's driver: put the "
        "value into a connection and write ${conn.<connection id>.<attribute>}, which a deployment fills in, too"
    )


def _faults(text: str, offset: int = 0) -> Iterator[tuple[int, int, str]]:
    for lexeme in tokenizer.lexemes(text):
        if "$" not in lexeme.text or lexeme.kind == "comment":
            continue
        at = offset + lexeme.start
        if lexeme.kind == "hint":
            yield from _faults(lexeme.text[3:-2], at + 3)
        elif lexeme.kind == "string":
            yield from ((at + match.start(), at + match.end(), _not_one(match)) for match in _malformed(lexeme.text))
        # `$`, `{` and `conn` are lexemes of their own outside of literals.
        elif opening := OPENING.match(text, lexeme.start) if lexeme.text == "$" else OPENING.search(lexeme.text):
            start = offset + opening.start() + (0 if lexeme.text == "$" else lexeme.start)
            why = f"{opening.group()}: a placeholder may only stand inside a string in single quotes"
            yield start, start + len(opening.group()), why


def _malformed(text: str) -> Iterator[re.Match[str]]:
    return (opening for opening in OPENING.finditer(text) if not PLACEHOLDER.match(text, opening.start()))


def _not_one(opening: re.Match[str]) -> str:
    return (
        f"{opening.group()}: not a placeholder; write ${{conn.<conn_id>.<attribute>}} with the attribute "
        "host, port, login, password, schema or extra.<key>, or, for a backfill, ${env.NAME}"
    )


def _resolve(text: str, lookup: Lookup) -> Iterator[str]:
    for lexeme in tokenizer.lexemes(text):
        if lexeme.kind == "hint":
            yield from ("/*+", *_resolve(lexeme.text[3:-2], lookup), "*/")
        elif lexeme.kind == "string":
            yield _filled_in(lexeme.text, lambda placeholder: lookup(placeholder).replace("'", "''"))
        else:
            yield lexeme.text


def _filled_in(text: str, lookup: Lookup) -> str:
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
    """The lookup of Spark's driver."""

    def lookup(placeholder: AnyPlaceholder) -> str:
        if placeholder.variable not in environment:
            raise LookupError(
                f"{placeholder} is in the script, but the variable {placeholder.variable} is not set in the "
                "environment of Spark's driver"
            )
        return environment[placeholder.variable]

    return lookup
