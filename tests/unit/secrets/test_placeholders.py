"""Placeholders for values of Airflow connections."""

import pytest

from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import (
    Placeholder,
    environment_lookup,
    placeholder_faults,
    placeholders_in_script,
    resolve_placeholders,
    resolve_value,
)
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
    assert resolve_placeholders(text, lookup).text == expected


def test_a_resolved_script_is_still_one_literal() -> None:
    text = resolve_placeholders("CREATE TABLE t (a INT) WITH ('password' = '${conn.db.password}')", lookup).text
    (statement,) = parse_script(text).statements
    assert statement.tree is not None
    assert statement.tree.args["options"][0].expression.name == VALUES[Placeholder("db", "password")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM ${conn.db.schema}", "must be inside a string"),
        ("SET password = ${conn.db.password}", "must be inside a string"),
        ("SELECT `${conn.db.schema}` FROM t", "must be inside a string"),
        ("'${conn.db.pasword}'", "not a placeholder"),
        ("'${conn.db}'", "not a placeholder"),
        ("'${conn.db.extra}'", "not a placeholder"),
        ("'${conn.db.password'", "not a placeholder"),
        ("SELECT * FROM ${env.TABLE}", "must be inside a string"),
        ("t /*+ OPTIONS('a' = ${env.A}) */", "must be inside a string"),
        ("'${env.}'", "not a placeholder"),
        ("'${env.A-B}'", "not a placeholder"),
    ],
)
def test_refuses_what_would_be_sent_as_it_stands(text: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words) as raised:
        resolve_placeholders(text, lookup)
    assert not any(value in str(raised.value) for value in VALUES.values())


@pytest.mark.parametrize(
    "text", ["'${conn.db.password}'", "-- ${conn.db}\n'${env.A}'", "/* ${conn.x} */ SELECT '${a}'"]
)
def test_what_is_right_has_no_fault(text: str) -> None:
    assert placeholder_faults(text, "job.sql") == ()


def test_every_fault_has_its_place() -> None:
    text = "SELECT '${conn.db}'\nFROM ${conn.db.schema} /*+ OPTIONS('a' =\n'${env.}') */"
    found = placeholder_faults(text, "job.sql")
    assert [str(place) for place, _ in found] == ["job.sql:1:9", "job.sql:2:6", "job.sql:3:2"]


def test_a_comment_asks_for_nothing() -> None:
    text = "-- ${conn.a.password}\n'${conn.b.password} ${env.C}' t /*+ OPTIONS('x' = '${env.D}') */ /* ${env.E} */"
    asked = ["${conn.b.password}", "${env.C}", "${env.D}"]
    assert [str(each) for each in placeholders_in_script(text)] == asked


def test_variables_of_the_environment_are_filled_in_by_the_same_code() -> None:
    lookup = environment_lookup({"A": "it's", "FLINKCOMPAT_CONN_DB_1_EXTRA_X_Y": "why"})
    resolved = resolve_placeholders("'${env.A}' '${conn.db-1.extra.x.y}'", lookup)
    assert resolved.text == "'it''s' 'why'"
    assert resolved.redactor("it''s why") == "*** why", "three characters are too few"
    assert resolved.redactor.too_short == ("${conn.db-1.extra.x.y}",)
    with pytest.raises(LookupError, match=r"\$\{env.B\} .* B is not set"):
        resolve_value("${env.B}", lookup)


def test_the_redactor_knows_what_was_filled_in_and_no_host() -> None:
    resolved = resolve_placeholders("'${conn.db.password}@${conn.db.host}'", lookup)
    assert resolved.redactor(f"refused {resolved.text}") == "refused '***@db.example.com'"
    assert VALUES[Placeholder("db", "password")] not in repr(resolved)


def test_a_value_is_not_resolved_twice() -> None:
    assert resolve_placeholders("'${conn.a.password}'", lambda _: "${conn.b.password}").text == "'${conn.b.password}'"
