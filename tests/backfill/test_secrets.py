"""Placeholders filled in from the environment of Spark's driver."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.secrets import hidden, resolve, variables

ENVIRONMENT = {
    "FLINKCOMPAT_CONN_PG_MAIN_PASSWORD": 'p"\\1',
    "FLINKCOMPAT_CONN_PG_MAIN_HOST": "db",
    "FLINKCOMPAT_CONN_PG_MAIN_EXTRA_SSL_MODE": "require",
    "DATABASE": "shop",
}
URL = "jdbc:postgresql://${conn.pg-main.host}/${env.DATABASE}?sslmode=${conn.pg-main.extra.ssl-mode}"


def test_every_placeholder_is_filled_in() -> None:
    assert resolve(URL, ENVIRONMENT) == "jdbc:postgresql://db/shop?sslmode=require"
    assert resolve("nothing ${here} to ${do}", {}) == "nothing ${here} to ${do}"


def test_a_value_is_not_looked_into() -> None:
    assert resolve("${env.A}", {"A": "${env.B}", "B": "x"}) == "${env.B}"


def test_a_value_in_double_quotes_is_escaped() -> None:
    assert resolve("${conn.pg-main.password}", ENVIRONMENT) == 'p"\\1'
    assert resolve('Login password="${conn.pg-main.password}";', ENVIRONMENT) == 'Login password="p\\"\\\\1";'


def test_a_variable_that_is_missing_is_named() -> None:
    with pytest.raises(BackfillError, match=r"\$\{conn.pg.password\} .* FLINKCOMPAT_CONN_PG_PASSWORD is not set"):
        resolve("${conn.pg.password}", ENVIRONMENT)


def test_variables_are_told_once_and_in_order() -> None:
    assert variables(f"{URL} {URL}") == (
        "FLINKCOMPAT_CONN_PG_MAIN_HOST",
        "DATABASE",
        "FLINKCOMPAT_CONN_PG_MAIN_EXTRA_SSL_MODE",
    )


def test_messages_hide_secrets_only() -> None:
    message = 'db refused p"\\1 for shop'
    assert hidden(message, URL + "${conn.pg-main.password}", ENVIRONMENT) == "db refused *** for ***"
    assert hidden(message, "", ENVIRONMENT) == message
