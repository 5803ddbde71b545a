"""Literal secrets of a program: found by name and by the SQL of its texts, masked, and nothing else with them."""

from __future__ import annotations

import time

import pytest

from airflow_flinkcompat.secrets.programs import mask_program, program_secrets, secret_texts

SECRET = "planted-pw-1"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f'PASSWORD = "{SECRET}"', "PASSWORD"),
        (f'password: str = "{SECRET}"', "password"),
        (f'settings.db_password = "{SECRET}"', "db_password"),
        (f'os.environ["AWS_SECRET_ACCESS_KEY"] = "{SECRET}"', "AWS_SECRET_ACCESS_KEY"),
        (f'x = os.environ.get("DB_PASSWORD", "{SECRET}")', "DB_PASSWORD"),
        (f'x = {{"password": "{SECRET}"}}', "password"),
        (f'connect(user="a", password="{SECRET}")', "password"),
        (f'descriptor.option("password", "{SECRET}")', "password"),
        (f'def f(host, token="{SECRET}"): pass', "token"),
        (f'def f(host, *, token="{SECRET}"): pass', "token"),
        (f'TOKEN = (\n    "{SECRET}"\n)', "TOKEN"),
        (f'TOKEN = os.environ.get("T") or "{SECRET}"', "TOKEN"),
        (f"t_env.execute_sql(\"CREATE TABLE a (b INT) WITH ('password' = '{SECRET}')\")", "password"),
        (f't_env.execute_sql(f"""CREATE TABLE {{t}} (b INT) WITH (\'password\' = \'{SECRET}\')""")', "password"),
        (f"sql = 'CREATE TABLE a (b INT) WITH (' + \"'password' = '{SECRET}'\" + ')'", "password"),
        (f'URL = "jdbc:postgresql://db/x?user=a&password={SECRET}"', "password"),
        (f'URL = "amqp://user:{SECRET}@host/x"', "user info in a URL"),
        (f"x = 1  # password = '{SECRET}'", "password"),
    ],
)
def test_a_literal_secret_is_found_and_masked(text: str, key: str) -> None:
    source = f"import os\n{text}\n"
    (found,) = program_secrets(source, "job.py", "python")
    assert (found.key, found.span.line, found.span.source) == (key, 3 if "(\n" in text else 2, "job.py")
    assert SECRET not in mask_program(source, "python")
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        'password = os.environ["DB_PASSWORD"]',
        'password = getpass("DB_PASSWORD")',
        'password = "${conn.db.password}"',
        'password = ""',
        'token = None if x else ""',
        "sql = \"CREATE TABLE a (b INT) WITH ('password' = '%s')\" % password",
        "sql = \"CREATE TABLE a (b INT) WITH ('password' = '{}')\".format(password)",
        "sql = f\"CREATE TABLE a (b INT) WITH ('password' = '{password}')\"",
        "sql = \"CREATE TABLE a (b INT) WITH ('password' = '\" + password + \"')\"",
        "sql = \"CREATE TABLE a (b INT) WITH ('password' = '${conn.db.password}')\"",
        'def f(password):\n    """:param password: the password of the database"""',
        "# the password is taken from the environment",
        'count(col("token"))',
        'x = {"topic": "user-info", "key": "a"}',
    ],
)
def test_what_is_taken_from_elsewhere_is_none(text: str) -> None:
    assert program_secrets(f"{text}\n", "job.py", "python") == ()


def test_the_values_are_told_to_who_masks_logs() -> None:
    assert secret_texts(f'password = "{SECRET}"\nx = "y"\n', "python") == (SECRET,)


def test_a_program_of_flip_11_is_masked_like_a_script() -> None:
    text = f"CREATE TABLE a (b INT) WITH ('password' = '{SECRET}');\na.select('b)\n"
    (found,) = program_secrets(text, "job.table", "table")
    assert (str(found.span), found.key) == ("job.table:1:44", "password")
    assert SECRET not in mask_program(text, "table")


@pytest.mark.parametrize(
    "text", ["x = (", "x = " + "-" * 50_000 + "1", "x = 'a'" + " + 'a'" * 20_000, "password='a\n" * 2]
)
def test_what_is_no_program_or_a_hostile_one_is_answered_in_bounded_time(text: str) -> None:
    before = time.process_time()
    program_secrets(text, "job.py", "python")
    mask_program(text, "python")
    assert time.process_time() - before < 10
