"""Where a literal secret stands: in a string, an option or a setting, and never in the prose of a comment."""

import re

import pytest

from airflow_flinkcompat.secrets.detect import find_secrets
from airflow_flinkcompat.sql import tokenizer
from airflow_flinkcompat.sql.script import Script
from tests.support import corpus

PROSE = [
    "-- modeling basic stream enrichment.",
    "-- Basic extraction (original pattern), a basic 2-column example",
    "/* bearer tokens: see the wiki\n * the token is issued by auth\n * password: required */",
    "-- the password 'changeit' is what the image begins with; 'username', 'password', 'port' are its fields",
    "-- ON a.token=b.id AND a.password > c.hash",
    "-- cloned from ssh://git@github.com/acme/jobs",
    "CREATE TABLE t (a STRING COMMENT 'token: issued by the gateway') COMMENT 'Basic enrichment of orders'",
    "SELECT 'Basic extraction' AS kind, 'Bearer of bad news' AS title",
    "SELECT * FROM t, LATERAL TABLE(parse(body, 'username', 'password', 'city'))",
    "WITH ('avro-confluent.basic-auth.credentials-source' = 'USER_INFO')",
    "WITH ('sasl.jaas.config' = 'com.sun.security.auth.module.Krb5LoginModule required keyTab=\"/k\";')",
]
LEAKS = [
    "-- 'password' = 'hunter2',",
    "/* CREATE TABLE t (a INT) WITH ('password' = 'hunter'); */",
    "-- SET s3.secret-key = hunter;",
    "-- password=hunter",
    "-- token: hunter2",
    "-- jdbc:mysql://root:hunter@db:3306/shop",
    "-- jdbc:postgresql://db/shop?user=x&password=hunter",
    "-- o.a.k.ScramLoginModule required username=u password=hunter;",
    "-- curl -H 'Basic cm9vdDpodW50ZXI='",
    "-- 'hunter' AS password",
    'CREATE TABLE t (a STRING) COMMENT \'with "password" = "hunter"\'',
    "SELECT 'Bearer hunter2abc', 'Basic cm9vdDpodW50ZXI='",
    "SELECT call(url, MAP['accept', upper('json'), 'api-key', 'hunter'])",
    "WITH ('sasl.jaas.config' = 'com.sun.security.auth.module.Krb5LoginModule required password=\"hunter\";')",
]


@pytest.mark.parametrize("text", PROSE)
def test_words_about_a_secret_are_none(text: str) -> None:
    assert find_secrets(Script("job.sql", text, ())) == ()


@pytest.mark.parametrize("text", LEAKS)
def test_a_secret_counts_in_a_comment_as_well(text: str) -> None:
    assert find_secrets(Script("job.sql", text, ()))


def test_no_finding_in_public_scripts_is_prose() -> None:
    """Each stands in a string, a hint or a SET; one in a comment is quoted behind its key."""
    found, prose = 0, list[str]()
    for name, text in corpus.scripts().items():
        places = [match.end() for match in re.finditer("^|\n", text)]
        for secret in find_secrets(Script(name, text, ())):
            found += 1
            at = places[secret.span.line - 1] + secret.span.column - 1
            kind = next(each.kind for each in tokenizer.lexemes(text) if each.start <= at < each.end)
            quoted = re.search(r"'[\w.-]+'\s*=\s*'$", text[places[secret.span.line - 1] : at])
            if kind not in ("string", "hint") and not quoted:
                prose.append(f"{secret.span}: {secret.key}: {text[places[secret.span.line - 1] : at]!r}")
    assert found > 200 or not corpus.scripts()
    assert prose == []
