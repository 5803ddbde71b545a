"""Masking of literal secrets; ``hunter2`` is the secret everywhere."""

import json
import re
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.detect import _SHAPES, Secret, find_secrets
from airflow_flinkcompat.secrets.redact import MASK, disguise_option, disguise_secrets, mask_option
from airflow_flinkcompat.secrets.spellings import (
    _ALWAYS,
    _LOGIN_ENDINGS,
    _WHOLE,
    _WORD_ENDINGS,
    is_secret_key,
    may_hold_secret_key,
)
from airflow_flinkcompat.sql import parse_script

SECRET = "hunter2"

TEXTS = {
    "option": "WITH ('password' = 'hunter2', 'user' = 'bob')",
    "option without blanks": "WITH ('s3.access-key'='hunter2')",
    "quote inside": "WITH ('password' = '''hunter2''x', 'user' = 'bob')",
    "doubled quotes": "EXECUTE '... ''password'' = ''hunter2'', ''user'' = ''bob'''",
    "over lines": "'password'\n  =\r\n\t'hunter2'",
    "value over lines": "'private-key' = 'first\nhunter2\nlast'",
    "comment between": "'password' /* here */ = -- there\n 'hunter2'",
    "set": "SET 'fs.s3a.secret.key' = 'hunter2';",
    "set without quotes": "SET security.ssl.password = my hunter2 phrase; SELECT 1",
    "jaas": "'properties.sasl.jaas.config' = 'o.a.k.PlainLoginModule required username=\"u\" password=\"hunter2\";'",
    "jaas elsewhere": "-- o.a.k.ScramLoginModule required username=u password=hunter2;",
    "half a placeholder": "'sasl.jaas.config' = 'x username=\"${conn.k.login}\" password=\"hunter2\";'",
    "jaas without a sign": "'sasl.jaas.config' = 'x required username=\"${conn.k.login}\" password hunter2;'",
    "jaas that ends early": "'sasl.jaas.config' = 'x required; password=\"${conn.k.password}\" hunter2'",
    "jaas with more around it": "'sasl.jaas.config' = 'x required password=\"${conn.k.password}hunter2\";'",
    "basic auth": "'basic-auth' = 'bob:hunter2'",
    "line comment": "-- password: hunter2\nSELECT 1",
    "block comment": "/* token=hunter2 */",
    "hint": "SELECT * FROM t /*+ OPTIONS('password'='hunter2') */",
    "predicate": "CREATE VIEW v AS SELECT * FROM t WHERE api_key = 'hunter2'",
    "alias": "CREATE VIEW v AS SELECT 'hunter2' AS `password`",
    "map": "HTTP_GET(url, MAP['api-key', 'hunter2'])",
    "url": "'url' = 'jdbc:mysql://root:hunter2@db:3306/shop'",
    "url with odd password": "jdbc:mysql://root:hun/t?e#hunter2@db:3306/shop",
    "url with token": "'https://hunter2@github.com/x.git'",
    "url parameter": "jdbc:postgresql://db/shop?user=x&password=hunter2&ssl=true",
    "signed url": "https://store/x?sv=1&sig=hunter2%3D&se=2",
    "oracle": "jdbc:oracle:thin:scott/hunter2@db:1521:x",
    "header": "Authorization: Bearer hunter2.abc",
    "header with scheme of its own": "Authorization: ApiKey abc hunter2",
    "bearer": "curl -H 'Bearer hunter2abc'",
    "json": '{"password": "hunter2", "user": "bob"}',
    "json with escape": '{"password": "a\\"hunter2", "user": "bob"}',
    "yaml": "password: hunter2",
    "properties": "ssl.keystore.password=hunter2",
    "repr": "{'password': 'a\\'hunter2'}",
    "cut off": "Sql parse failed: 'password' = 'hunter2",
    "words": "private key: hunter2",
    "schema registry": "'avro-confluent.basic-auth.user-info' = 'bob:hunter2'",
    "no sign": "IDENTIFIED PASSWORD 'hunter2'",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIhunter2\n-----END RSA PRIVATE KEY-----",
    "jwt": "eyJhbGciOi.eyJzdWIiOi.hunter2",
}
ESCAPES = {
    "plain": lambda text: text,
    "json": json.dumps,
    "json in json": lambda text: json.dumps({"errors": [json.dumps({"sql": text})]}),
    "html": escape,
    "repr": repr,
    "error": lambda text: (
        f"org.apache.flink.table.api.SqlParserException: SQL parse failed. Encountered\n{text}\nat line 1"
    ),
}


@pytest.mark.parametrize("escaped", ESCAPES)
@pytest.mark.parametrize("name", TEXTS)
def test_masks(name: str, escaped: str) -> None:
    masked = mask_secrets(ESCAPES[escaped](TEXTS[name]))
    assert SECRET not in masked
    assert MASK in masked
    assert mask_secrets(masked) == masked


def test_leaves_what_is_no_secret_around_it() -> None:
    assert mask_secrets(TEXTS["option"]) == "WITH ('password' = '***', 'user' = 'bob')"
    assert mask_secrets(TEXTS["url"]) == "'url' = 'jdbc:mysql://root:***@db:3306/shop'"
    assert mask_secrets(TEXTS["url parameter"]) == "jdbc:postgresql://db/shop?user=x&password=***&ssl=true"
    assert mask_secrets(TEXTS["set without quotes"]) == "SET security.ssl.password = ***; SELECT 1"
    assert mask_secrets(TEXTS["json"]) == '{"password": "***", "user": "bob"}'
    assert mask_secrets(TEXTS["quote inside"]) == "WITH ('password' = '***', 'user' = 'bob')"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT a.token = b.token FROM a JOIN b ON a.token = b.token",
        "CREATE TABLE t (password STRING, token STRING COMMENT 'the token', PRIMARY KEY (password) NOT ENFORCED)",
        "WITH ('key.format' = 'json', 'key.fields' = 'a;b', 'key.fields-prefix' = 'k_', 'value.format' = 'raw')",
        "WITH ('password' = '', 'user' = 'bob')",
        "WITH ('password' = '${conn.db.password}')",
        "WITH ('url' = 'jdbc:mysql://${conn.db.login}:${conn.db.password}@${conn.db.host}:3306/shop')",
        "'sasl.jaas.config' = 'X required username=\"${conn.k.login}\" password=\"${conn.k.password}\";'",
        "'sasl.jaas.config' = 'a.B required\n  user=${conn.k.login}\n  clientSecret=\"${conn.k.password}\";'",
        "WITH ('topic' = 'user-info', 'format' = 'json', 'scan' = 'token', 'x' = 'y')",
        "Authorization: Bearer ${conn.api.password}",
        "WITH ('aws.credentials.provider' = 'BASIC', 'bucket-key' = 'id', 'sequence.field' = 'ts')",
        "SET 'security.delegation.token.provider.hadoopfs.enabled' = 'false'",
        "SELECT * FROM t WHERE name IN ('password', 'token', 'x')",
        "-- the password is kept in a vault\nSELECT 1",
        "http://host:8083/v1/sessions/3f?rowFormat=JSON",
        "abfss://container@account.dfs.core.windows.net/path, s3://bucket/key=1/x, file:///tmp/key=a",
        "Bearer authentication failed: the token is invalid",
        "mail bob@example.com at 12:30",
        "before jobs/token_usage_old.sql:64:6 after jobs/token_usage.sql:7:1",
        "orders_v8_secret.sql:64:6, COUNT(*)",
        "orders_secret.sql: contains no SQL statement",
        "…secret.sql: the window definition changed",
        "/srv/secrets/orders.py:3:1: it is not read; C:\\jobs\\token.sql:12: nor this",
        "api_token.yaml:12:3 and passwords/settings.json:4 are places",
        "in orders_secret.sql 'CUMULATE' is new",
        '{"jobs/orders_secret.sql": "INSERT INTO a SELECT * FROM b"}',
        "jdbc:mysql://db:3306/shop?email=a@b",
        "SELECT max_tokens, token_count, tokenizer FROM t WHERE token_count = 12",
        "{'key': 'a', 'keys': ['b'], 'monkey': 'c'}",
    ],
)
def test_leaves_texts_without_secrets_alone(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "key",
    [
        *("password", "PASSWORD", "dbPassword", "properties.ssl.key.password", "passphrase", "pwd", "db_pwd"),
        *("secret", "fs.s3a.secret.key", "clientSecret", "client-secret", "accessKeySecret"),
        *("api-key", "apikey", "api_key", "s3.access-key", "aws_access_key_id", "private_key", "ssl.keystore.key"),
        *("fs.azure.account.key.acct.blob.core.windows.net", "token", "auth.token", "accessToken", "session-token"),
        *("credentials", "aws.credentials.basic.secretkey", "properties.sasl.jaas.config", "basic-auth.user-info"),
        *("Authorization", "sig", "connection-string", "basic-auth", "basic_auth", "lookup.http.basicAuth"),
        *("userinfo", "user-info", "basic.auth.user.info", "schema.registry.basic.auth.user_info"),
    ],
)
def test_keys_of_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *("key", "key.format", "key.fields", "primary key", "bucket-key", "row.key", "partition.keys", "username"),
        *("password.file", "aws.credentials.provider", "token-count", "max-tokens", "tokenizer", "secret-name"),
        *("security.delegation.tokens.enabled", "sasl.oauthbearer.token.endpoint.url", "monkey", "", "...", "compass"),
        *("basic-auth.enabled", "basic-auth.username", "user_info", "user.information"),
    ],
)
def test_keys_of_other_things(key: str) -> None:
    assert not is_secret_key(key)


ODD_VALUES = (
    *(
        "first hunter2",
        "''hunter2",
        "' hunter2",
        '" hunter2',
        "a, hunter2",
        "a\thunter2",
        "a\nhunter2",
        "a\r\n\nhunter2",
    ),
    *("x', 'y' = 'hunter2", "${conn.a.password} hunter2", "; hunter2", "= hunter2", "*** hunter2", "Basic a hunter2"),
)


@pytest.mark.parametrize("key", ["password", "basic-auth", "properties.sasl.jaas.config", "Authorization"])
@pytest.mark.parametrize("value", ODD_VALUES)
def test_an_option_is_masked_whole_by_its_key(key: str, value: str) -> None:
    assert mask_option(key, value) == MASK
    shown = f"{key} = {mask_option(key, value)}, user = bob"
    assert mask_secrets(shown).startswith(f"{key} = {MASK}")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("user", "bob or 'ann'", "bob or 'ann'"),
        ("password", "", ""),
        ("password", "${conn.db.password}", "${conn.db.password}"),
        ("url", "jdbc:mysql://root:hunter2@db/x", "jdbc:mysql://root:***@db/x"),
        ("sasl.jaas.config", 'x required password="${conn.k.password}";', 'x required password="${conn.k.password}";'),
        ("sasl.jaas.config", 'x required user="${conn.k.login}" password="hunter2";', MASK),
        ("sasl.jaas.config", 'x required user="${conn.k.login}" password hunter2;', MASK),
    ],
)
def test_an_option_shows_what_is_no_secret(key: str, value: str, expected: str) -> None:
    assert mask_option(key, value) == expected


@pytest.mark.slow
@pytest.mark.timeout(30)  # a scan that goes back and forth takes minutes for one of these
@pytest.mark.parametrize(
    "text",
    [
        *("'" * 100_000, "password = " + "\\" * 100_000, "password = " + "--" * 50_000, "password" + "/*" * 50_000),
        *("token " * 20_000, "'password'='x'," * 5_000, "IN (" * 20_000 + "'password','x'", "1" * 100_000),
        *("http://" + "a:" * 50_000 + "@b", "http://a:b@" * 10_000, "'x' AS password " * 5_000, "password\\n" * 20_000),
    ],
    ids=range(12),
)
def test_takes_time_in_proportion_to_the_text(text: str) -> None:
    masked = mask_secrets(text)
    assert mask_secrets(masked) == masked


# ---------------------------------------------------------------------------------------------------- finding
def test_finds_secrets_with_their_place_and_without_their_value() -> None:
    script = parse_script(
        "SET 'a.token' = 'x1';\n"
        "CREATE TABLE t (a INT) WITH (\n"
        "  'password' = 'hunter2',\n"
        "  'url' = 'jdbc:mysql://root:hunter2@db/shop',\n"
        "  'api-key' = '${conn.api.password}'\n"
        ");\n"
        "-- token: hunter2\n"
        "SELECT * FROM a /*+ OPTIONS('secret'='hunter2') */ JOIN b ON a.token = b.id;",
        "job.sql",
    )
    secrets = find_secrets(script)
    assert [(secret.key, str(secret.span)) for secret in secrets] == [
        ("a.token", "job.sql:1:18"),
        ("password", "job.sql:3:17"),
        ("user info in a URL", "job.sql:4:30"),
        ("token", "job.sql:7:11"),
        ("secret", "job.sql:8:39"),
    ]
    assert all(isinstance(secret, Secret) for secret in secrets)
    assert "hunter2" not in repr(secrets)


def test_a_jaas_string_of_placeholders_and_a_literal_is_reported() -> None:
    text = "SET 'sasl.jaas.config' = 'x required username=\"${conn.k.login}\" password hunter2;'; SELECT 1"
    (secret,) = find_secrets(parse_script(text))
    assert secret.key == "sasl.jaas.config"


def test_a_comparison_of_columns_is_not_a_secret() -> None:
    assert find_secrets(parse_script("SELECT * FROM a JOIN b ON a.token = b.id WHERE a.secret > 12")) == ()


def test_a_bare_word_in_an_option_is_a_secret() -> None:
    script = parse_script("SET 'x' = 'a=b; password=hunter2'; SET 'a' = 'b'; SELECT 'token: hunter2', b FROM c")
    assert [(secret.key, secret.span.column) for secret in find_secrets(script)] == [("password", 26), ("token", 66)]


def test_an_unquoted_option_is_a_secret() -> None:
    (secret,) = find_secrets(parse_script("SET s3.secret-key = hunter2;"))
    assert str(secret.span) == "<script>:1:21"


def test_a_value_that_reads_like_a_key_is_not_reported_as_one() -> None:
    script = parse_script("CREATE TABLE t (a INT) WITH ('password' = 'my-secret-password', 'connector' = 'print');")
    assert [secret.key for secret in find_secrets(script)] == ["password"]
    assert "my-secret-password" not in mask_secrets(script.text)


@pytest.mark.parametrize("prefix", ["U&", "u&", "N", "_UTF8", "_UTF-16LE"])
def test_a_literal_with_a_prefix_is_masked_like_any_other(prefix: str) -> None:
    masked = mask_secrets(f"WITH ('password' = {prefix}'hunter2-plain', 'k' = 'v'); SET 'api.token' = {prefix}'abc-9';")
    assert "hunter2" not in masked
    assert "abc-9" not in masked
    assert masked.count(f"= {prefix}'") == 2


@given(st.text(), st.sampled_from([*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS, *_WHOLE]), st.text(), st.data())
def test_no_text_is_passed_over_that_holds_the_key_of_a_secret(
    before: str, word: str, after: str, data: st.DataObject
) -> None:
    between = st.sampled_from(["", ".", "-", "_", " ", "é", "٣"])
    key = "".join(letter + data.draw(between) for letter in word)
    for text in (before + key + after, before + key.upper() + after, before, after):
        assert may_hold_secret_key(text) or not any(map(is_secret_key, {text, *text.split()}))


@pytest.mark.parametrize(("begins", "pattern"), [(begins, pattern) for _, begins, pattern in _SHAPES])
@given(data=st.data())
def test_what_gives_itself_away_by_its_shape_begins_as_is_said(
    begins: tuple[str, ...], pattern: re.Pattern[str], data: st.DataObject
) -> None:
    found = data.draw(st.from_regex(pattern))
    assert any(begin in found for begin in begins)


def test_what_stands_behind_a_value_that_may_be_shown_stays() -> None:
    for shown in (MASK, "${conn.broker.extra.jaas}"):
        text = f"properties.sasl.jaas.config = {shown}, properties.security.protocol = SASL_SSL"
        assert mask_secrets(text) == text
        assert mask_secrets(f"`{text}`") == f"`{text}`"
    assert SECRET not in mask_secrets(f"sasl.jaas.config = {MASK} required username=u {SECRET}")


def test_a_deployment_with_a_name_like_a_secret_masks_no_word() -> None:
    assert (
        mask_secrets("<summary>secretive: not deployable</summary>") == "<summary>secretive: not deployable</summary>"
    )
    assert mask_secrets("secretary.password: hunter2") == "secretary.password: ***"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) WITH ('url' = 'jdbc:mysql://u:hunter2@h/db', 'password' = 'hunter2''s')",
        "SET 'fs.s3.secret-key' = 'hunter2';",
        "INSERT INTO t SELECT a FROM b WHERE password = 'hunter2' -- password = hunter2",
    ],
)
def test_a_disguised_script_holds_no_secret_and_can_still_be_parsed(text: str) -> None:
    found = disguise_secrets(text)
    assert "hunter2" not in found
    assert [len(line) for line in found.splitlines()] == [len(line) for line in text.splitlines()]
    assert found.count("'") == text.count("'")
    assert disguise_secrets(text.replace("hunter2", "hunter3")) != found == disguise_secrets(text)


def test_what_is_no_secret_is_not_disguised() -> None:
    text = "SELECT a.token, '${conn.db.password}' AS password FROM a JOIN b ON a.token = b.token WHERE k = 'json'"
    assert disguise_secrets(text) == text
    assert disguise_option("table.exec.state.ttl", "1 d") == "1 d"
    assert disguise_option("s3.secret-key", "hunter2") not in ("hunter2", MASK)
