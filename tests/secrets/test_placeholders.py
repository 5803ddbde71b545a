"""Placeholders for values of Airflow connections."""

import pytest

from airflow_flinkcompat.secrets import Placeholder, placeholders, resolve_placeholders
from airflow_flinkcompat.sql import ScriptError, parse_script

VALUES = {
    Placeholder("db", "password"): 'it\'s "x" \\ y',
    Placeholder("db", "host"): "db.example.com",
    Placeholder("my-db.1", "extra.sasl.user"): "bob",
}


def lookup(placeholder: Placeholder) -> str:
    return VALUES[placeholder]


def test_lists_each_placeholder_once_in_order() -> None:
    text = "'${conn.db.host}' '${conn.my-db.1.extra.sasl.user}' -- ${conn.db.host} ${conn.db.password} ${conn.x} $a {b}"
    assert [str(found) for found in placeholders(text)] == [
        *("${conn.db.host}", "${conn.my-db.1.extra.sasl.user}", "${conn.db.password}"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("WITH ('url' = 'jdbc:mysql://${conn.db.host}:3306/x')", "WITH ('url' = 'jdbc:mysql://db.example.com:3306/x')"),
        ("'${conn.db.password}'", "'it''s \"x\" \\ y'"),
        ("'M required password=\"${conn.db.password}\";'", "'M required password=\"it''s \\\"x\\\" \\\\ y\";'"),
        ("t /*+ OPTIONS('h'='${conn.db.host}') */", "t /*+ OPTIONS('h'='db.example.com') */"),
        ("-- ${conn.db.password}\n'${conn.db.host}'", "-- ${conn.db.password}\n'db.example.com'"),
        ("/* '${conn.db.password}' */ SELECT 1", "/* '${conn.db.password}' */ SELECT 1"),
        ("'it''s ${conn.my-db.1.extra.sasl.user}'", "'it''s bob'"),
        ("'${other} $1 {x}'", "'${other} $1 {x}'"),
    ],
)
def test_resolves_inside_of_literals(text: str, expected: str) -> None:
    assert resolve_placeholders(text, lookup) == expected


def test_a_resolved_script_is_still_one_literal() -> None:
    text = resolve_placeholders("CREATE TABLE t (a INT) WITH ('password' = '${conn.db.password}')", lookup)
    (statement,) = parse_script(text).statements
    assert statement.tree is not None
    assert statement.tree.args["options"][0].expression.name == VALUES[Placeholder("db", "password")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM ${conn.db.schema}", "only stand inside a string"),
        ("SET password = ${conn.db.password}", "only stand inside a string"),
        ("SELECT `${conn.db.schema}` FROM t", "only stand inside a string"),
        ("'${conn.db.pasword}'", "not a placeholder"),
        ("'${conn.db}'", "not a placeholder"),
        ("'${conn.db.extra}'", "not a placeholder"),
        ("'${conn.db.password'", "not a placeholder"),
    ],
)
def test_refuses_what_would_be_sent_as_it_stands(text: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words) as raised:
        resolve_placeholders(text, lookup)
    assert not any(value in str(raised.value) for value in VALUES.values())


def test_a_value_is_not_resolved_twice() -> None:
    assert resolve_placeholders("'${conn.a.password}'", lambda _: "${conn.b.password}") == "'${conn.b.password}'"
