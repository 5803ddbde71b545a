"""Values a script leaves open, filled in where Spark's driver runs and nowhere before.

``${conn.<conn_id>.<attribute>}`` is read from the variable ``FLINKCOMPAT_CONN_<CONN_ID>_<ATTRIBUTE>`` (upper
case, ``_`` for whatever is no letter or digit), ``${env.NAME}`` from ``NAME``. Plans, requests, command lines and
Spark's settings hold the placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.secrets.placeholders import PLACEHOLDER, Placeholder, placeholders

HIDDEN = "***"
_ENV = re.compile(r"\$\{env\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_ANY = re.compile(rf"{PLACEHOLDER.pattern}|{_ENV.pattern}")
_SHOWN = frozenset({"host", "port", "login", "schema"})


def variable(placeholder: Placeholder) -> str:
    """The environment variable that holds the value of a connection's attribute."""
    name = f"{placeholder.conn_id}_{placeholder.attribute}"
    return "FLINKCOMPAT_CONN_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


def variables(text: str) -> tuple[str, ...]:
    """The environment variables a text asks for, each once, in order."""
    return tuple(dict.fromkeys(_variable(match) for match in _ANY.finditer(text)))


def resolve(text: str, environment: Mapping[str, str]) -> str:
    """The text with every placeholder filled in; directly inside double quotes (JAAS, JSON) values are escaped.

    Raises :class:`BackfillError`, which never holds a value, for a variable that is not set.
    """

    def value(match: re.Match[str]) -> str:
        name = _variable(match)
        if name not in environment:
            raise BackfillError(
                f"{match.group()} is asked for, but the variable {name} is not set in the environment of Spark's driver"
            )
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        given = environment[name]
        return given.replace("\\", "\\\\").replace('"', '\\"') if before == after == '"' else given

    return _ANY.sub(value, text)


def hidden(message: str, text: str, environment: Mapping[str, str]) -> str:
    """The message without the secret values that the placeholders of ``text`` stand for (a host or a login is none)."""
    shown = {variable(found) for found in placeholders(text) if found.attribute in _SHOWN}
    values = {environment.get(name, "") for name in variables(text) if name not in shown}
    for value in sorted(filter(None, values), key=len, reverse=True):
        message = message.replace(value, HIDDEN)
    return message


def _variable(match: re.Match[str]) -> str:
    return match["name"] or variable(Placeholder(match["conn_id"], match["attribute"]))
