"""Placeholders filled in from the environment of Spark's driver."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.spark import fill_in
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import environment_lookup, redactor_of

ENVIRONMENT = {
    "FLINKCOMPAT_CONN_PG_MAIN_PASSWORD": 'p"\\1',
    "FLINKCOMPAT_CONN_PG_MAIN_HOST": "db",
    "FLINKCOMPAT_CONN_PG_MAIN_EXTRA_SSL_MODE": "require",
    "DATABASE": "shop",
}
URL = "jdbc:postgresql://${conn.pg-main.host}/${env.DATABASE}?sslmode=${conn.pg-main.extra.ssl-mode}"


def test_every_placeholder_is_filled_in() -> None:
    assert fill_in(URL, ENVIRONMENT) == "jdbc:postgresql://db/shop?sslmode=require"
    assert fill_in("nothing ${here} to ${do}", {}) == "nothing ${here} to ${do}"


def test_a_value_is_not_looked_into() -> None:
    assert fill_in("${env.A}", {"A": "${env.B}", "B": "x"}) == "${env.B}"


def test_a_value_in_double_quotes_is_escaped() -> None:
    assert fill_in("${conn.pg-main.password}", ENVIRONMENT) == 'p"\\1'
    assert fill_in('Login password="${conn.pg-main.password}";', ENVIRONMENT) == 'Login password="p\\"\\\\1";'


def test_a_variable_that_is_missing_is_named() -> None:
    with pytest.raises(BackfillError, match=r"\$\{conn.pg.password\} .* FLINKCOMPAT_CONN_PG_PASSWORD is not set"):
        fill_in("${conn.pg.password}", ENVIRONMENT)


def test_variables_are_told_once_and_in_order() -> None:
    assert tuple(each.variable for each in placeholders(f"{URL} {URL}")) == (
        "FLINKCOMPAT_CONN_PG_MAIN_HOST",
        "DATABASE",
        "FLINKCOMPAT_CONN_PG_MAIN_EXTRA_SSL_MODE",
    )


def test_a_malformed_placeholder_is_refused_as_in_a_deployment() -> None:
    for text in ("${conn.pg.pasword}", "${env.}", "${env.A-B}"):
        with pytest.raises(BackfillError, match="not a placeholder"):
            fill_in(text, ENVIRONMENT)


def shown(message: str, text: str, environment: dict[str, str] = ENVIRONMENT) -> str:
    return redactor_of(placeholders(text), environment_lookup(environment))(message)


def test_messages_hide_secrets_only() -> None:
    message = 'db refused p"\\1 for shop'
    assert shown(message, URL + "${conn.pg-main.password}") == "db refused *** for ***"
    assert shown(message, "") == message


def test_the_spelling_that_was_filled_in_is_hidden() -> None:
    """Inside double quotes a value is escaped: that is what a client echoes."""
    text = 'Login password="${conn.pg-main.password}";'
    assert shown(f"cannot parse {fill_in(text, ENVIRONMENT)}", text) == 'cannot parse Login password="***";'


def test_a_short_value_is_warned_of_and_not_hidden() -> None:
    redactor = redactor_of(placeholders("${env.S} ${conn.pg.password}"), environment_lookup({"S": "t", "OTHER": "x"}))
    assert redactor("stopped at parse") == "stopped at parse"
    (warning,) = redactor.warnings
    assert "${env.S} is too short" in warning
