"""Generated statements, scripts and secrets."""

import json
import re
from html import escape
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.detect import find_secrets
from airflow_flinkcompat.secrets.redact import mask_option
from airflow_flinkcompat.sql import nodes, parse_script
from airflow_flinkcompat.sql.statement_parser import parse_statement
from airflow_flinkcompat.sql.tokenizer import split

# ------------------------------------------------------------------------------------------------ statements
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).map(lambda name: f"c_{name}"),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6).map(
        lambda text: "`" + text.replace("`", "``") + "`"
    ),
)
STRINGS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8).map(
    lambda text: "'" + text.replace("'", "''") + "'"
)
UNITS = st.sampled_from(["SECOND", "MINUTE", "HOUR", "DAY", "minutes", "Days"])
INTERVALS = st.builds(lambda size, unit: f"INTERVAL '{size}' {unit}", st.integers(1, 99), UNITS)
LITERALS = st.one_of(
    *(
        STRINGS,
        INTERVALS,
        st.integers(0, 10**9).map(str),
        st.sampled_from(["NULL", "TRUE", "1.50", "DATE '2024-01-01'"]),
    ),
)
COLUMNS = st.one_of(NAMES, st.builds(lambda table, column: f"{table}.{column}", NAMES, NAMES))
TYPES = st.recursive(
    st.sampled_from(
        ["INT", "STRING", "DECIMAL(10, 2)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "BYTES", "BIGINT NOT NULL"]
    ),
    lambda inner: st.one_of(
        inner.map(lambda text: f"ARRAY<{text}>"),
        st.builds(lambda key, value: f"MAP<{key}, {value}>", inner, inner),
        st.lists(st.builds(lambda name, text: f"{name} {text}", NAMES, inner), min_size=1, max_size=3).map(
            lambda fields: f"ROW<{', '.join(fields)}>"
        ),
    ),
    max_leaves=4,
)


def calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds(
            lambda name, args: f"{name}({args})", st.sampled_from(["f", "SUM", "session", "split", "If"]), arguments
        ),
        inner.map(lambda text: f"COUNT(DISTINCT {text})"),
        st.builds(lambda text, kind: f"CAST({text} AS {kind})", inner, TYPES),
        st.builds(lambda text, unit: f"FLOOR({text} TO {unit})", COLUMNS, st.sampled_from(["DAY", "HOUR"])),
        st.builds(lambda one, two: f"SUM({one}) OVER (PARTITION BY {two} ORDER BY {one})", inner, inner),
        st.builds(lambda one, two: f"SUM({one}) FILTER (WHERE {two} > 1)", inner, inner),
    )


EXPRESSIONS = st.recursive(
    st.one_of(COLUMNS, LITERALS),
    lambda inner: st.one_of(
        calls(inner),
        st.builds(
            lambda one, operator, two: f"({one} {operator} {two})",
            inner,
            st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", "AND", "OR", "LIKE", "IS DISTINCT FROM"]),
            inner,
        ),
        inner.map(lambda text: f"({text} IS NOT NULL)"),
        st.builds(lambda one, two: f"CASE WHEN {one} THEN {two} ELSE {one} END", inner, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"ARRAY[{', '.join(items)}]"),
    ),
    max_leaves=8,
)
WINDOWS = st.builds(
    lambda kind, table, keys, column, sizes: (
        f"TABLE({kind}(TABLE {table}{keys}, DESCRIPTOR({column}), {', '.join(sizes)}))"
    ),
    st.sampled_from(["TUMBLE", "hop", "CUMULATE", "Session"]),
    NAMES,
    st.one_of(st.just(""), NAMES.map(lambda name: f" PARTITION BY {name}")),
    NAMES,
    st.lists(INTERVALS, min_size=1, max_size=3),
)


def queries(relations: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    alias = NAMES.map(lambda name: f" AS {name}")
    joins = st.builds(
        lambda kind, relation, condition: f" {kind} {relation} ON {condition}",
        st.sampled_from(["JOIN", "LEFT JOIN", "FULL OUTER JOIN"]),
        relations,
        EXPRESSIONS,
    )
    return st.builds(
        lambda hint, columns, relation, joined, where, group: (
            f"SELECT {hint}{', '.join(columns)} FROM {relation}{''.join(joined)}{where}{group}"
        ),
        st.sampled_from(["", "DISTINCT ", "/*+ STATE_TTL('a' = '1d') */ "]),
        st.lists(st.builds(lambda text, name: text + name, EXPRESSIONS, alias), min_size=1, max_size=3),
        st.builds(lambda text, name: text + name, relations, alias),
        st.lists(joins, max_size=2),
        st.one_of(st.just(""), EXPRESSIONS.map(lambda text: f" WHERE {text}")),
        st.one_of(
            st.just(""), st.lists(COLUMNS, min_size=1, max_size=3).map(lambda keys: f" GROUP BY {', '.join(keys)}")
        ),
    )


QUERIES = st.recursive(
    queries(st.one_of(NAMES, WINDOWS)),
    lambda inner: st.one_of(
        queries(inner.map(lambda text: f"({text})")),
        st.builds(lambda one, two: f"{one} UNION ALL {two}", inner, inner),
        # Another WITH may stand in brackets alone.
        st.builds(
            lambda name, one, two: f"WITH {name} AS ({one}) {f'({two})' if two.startswith('WITH') else two}",
            NAMES,
            inner,
            inner,
        ),
    ),
    max_leaves=3,
)
COLUMN_DEFINITIONS = st.one_of(
    st.builds(lambda name, kind: f"{name} {kind}", NAMES, TYPES),
    st.builds(lambda name, text: f"{name} AS {text}", NAMES, EXPRESSIONS),
    st.builds(lambda name, kind: f"{name} {kind} METADATA FROM 'x' VIRTUAL", NAMES, TYPES),
    st.builds(lambda name, text: f"WATERMARK FOR {name} AS {name} - {text}", NAMES, INTERVALS),
)
OPTIONS = st.lists(st.builds(lambda key, value: f"{key} = {value}", STRINGS, STRINGS), max_size=3).map(", ".join)
STATEMENTS = st.one_of(
    QUERIES,
    st.builds(lambda name, query: f"INSERT INTO {name} {query}", NAMES, QUERIES),
    st.builds(lambda name, query: f"CREATE TEMPORARY VIEW {name} AS {query}", NAMES, QUERIES),
    st.builds(
        lambda name, columns, options: f"CREATE TABLE {name} ({', '.join(columns)}) WITH ({options})",
        NAMES,
        st.lists(COLUMN_DEFINITIONS, max_size=4),
        OPTIONS,
    ),
    st.builds(lambda key, value: f"SET {key} = {value}", STRINGS, STRINGS),
    st.lists(st.builds(lambda name, query: f"INSERT INTO {name} {query};", NAMES, QUERIES), max_size=2).map(
        lambda inserts: f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END"
    ),
)


@given(STATEMENTS)
def test_generated_statements_round_trip(text: str) -> None:
    tree = parse_statement(text)
    assert not list(tree.find_all(exp.Command))
    assert parse_statement(tree.sql("flink")) == tree


# --------------------------------------------------------------------------------------------------- scripts
NOISE = st.lists(
    st.sampled_from(
        [" ", "\n", "\t", "-- it's; a `comment`\n", "/* it's;\n -- another */", "// ; '\n", "\r\n", "/**/"]
    ),
    max_size=3,
).map("".join)
PIECES = st.sampled_from(
    [
        *("SELECT 1", "SELECT ';' AS `a;b`", "SELECT 'it''s -- ; no /* comment'", "INSERT INTO t SELECT a FROM u"),
        *("SET 'a' = ';'", "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT ';'; INSERT INTO b SELECT 2; END"),
        *("BEGIN STATEMENT SET; INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; END", "SELECT a FROM `end`"),
        *("WHAT IS ';' THIS", "SELECT /*+ STATE_TTL('a;b' = '1d') */ a FROM t", "CREATE TABLE `/* ; */` (a INT)"),
    ]
)


@given(st.lists(st.tuples(NOISE, PIECES, NOISE), min_size=1, max_size=5), st.booleans())
def test_splitting_survives_comments_strings_and_semicolons(parts: list[tuple[str, str, str]], last: bool) -> None:
    script = "".join(f"{before}{piece}{after}\n;" for before, piece, after in parts)
    script = script if last else script.rstrip(";")
    pieces = [piece for _, piece, _ in parts]
    assert [script[chunk.start : chunk.end] for chunk in split(script)] == pieces
    statements = parse_script(script).statements
    assert [statement.text for statement in statements] == pieces
    for statement in statements:
        lines = script.split("\n")
        assert lines[statement.span.line - 1][statement.span.column - 1 :].startswith(statement.text.split("\n")[0])


@given(st.text(st.sampled_from("';`-/*+ \n\rab\\\"0(){}$END"), max_size=40))
def test_any_text_can_be_split_and_masked(text: str) -> None:
    chunks = list(split(text))
    assert all(0 <= one.start < one.end <= len(text) for one in chunks)
    assert all(one.end <= other.start for one, other in pairwise(chunks))
    if chunks:
        for statement in parse_script(text).statements:
            assert (statement.tree is None) != (statement.error is None)
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


# --------------------------------------------------------------------------------------------------- secrets
CORES = st.from_regex(r"Zq[a-zA-Z0-9]{8,12}", fullmatch=True)
ANY = st.text(st.sampled_from("ab1 '\"`\\@:/?#&;,=(){}<>$%\n\té"), max_size=5)
WORD = st.text(st.sampled_from("ab1@:/?#$%.!=-_+~"), max_size=4)
SECRET_KEYS = st.sampled_from(
    [
        *(
            "password",
            "properties.ssl.key.password",
            "API_KEY",
            "api-key",
            "s3.secret-key",
            "auth.token",
            "clientSecret",
        ),
        *("fs.s3a.access.key", "basic-auth.credentials", "connector.private_key", "fs.azure.account.key.x.core"),
    ]
)


HINTS_OF_SECRETS = re.compile(r"api|access|auth|cookie|cred|jaas|key|pass|pwd|secret|sig|token", re.IGNORECASE)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def double_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


#: Places a secret may be planted in: any text goes into the quoted ones, a word into the others.
QUOTED_PLACES = {
    "option": lambda key, secret: (
        f"CREATE TABLE t (a INT) WITH ('connector' = 'x', '{key}' = {quoted(secret)}, 'z' = 'y')"
    ),
    "set": lambda key, secret: f"SET '{key}' = {quoted(secret)}",
    "hint": lambda key, secret: f"SELECT * FROM t /*+ OPTIONS('{key}'={quoted(secret)}) */ AS u",
    "view": lambda key, secret: f"CREATE VIEW v AS SELECT a FROM t WHERE `{key}` = {quoted(secret)} AND b = 1",
    "jaas": lambda key, secret: (
        f"SET 'properties.sasl.jaas.config' = {quoted(f'M required username=x password={double_quoted(secret)};')}"
    ),
    "lines": lambda key, secret: f"'{key}'\n  /* why */ =\n  {quoted(secret)}\n",
    "map": lambda key, secret: f"SELECT call(url, MAP['{key}', {quoted(secret)}]) FROM t",
}
WORD_PLACES = {
    "url": lambda key, secret: f"'url' = 'jdbc:mysql://root:{secret}@db:3306/shop'",
    "parameter": lambda key, secret: f"jdbc:postgresql://db/shop?user=x&password={secret}&ssl=true",
    "comment": lambda key, secret: f"SELECT 1 -- {key} = {secret}\n, 2",
    "block comment": lambda key, secret: f"/* {key}: {secret} */ SELECT 1",
    "bare set": lambda key, secret: f"SET {key} = {secret}; SELECT 1",
    "header": lambda key, secret: f"Authorization: Bearer {secret}",
    "properties": lambda key, secret: f"{key}={secret}\nuser=bob",
}
WRAPPERS = {
    "script": lambda text: f"SET 'a' = 'b';\n{text};\nSELECT 1",
    "json": lambda text: json.dumps({"errors": ["Sql parse failed", text]}),
    "json in json": lambda text: json.dumps({"body": json.dumps({"statement": text})}),
    "error": lambda text: f"ValidationException: could not execute\n\t{text}\n\tat org.apache.flink.X(X.java:1)",
    "html": lambda text: f"<pre>{escape(text)}</pre>",
    "repr": lambda text: f"raise RuntimeError({text!r})",
    "string in SQL": lambda text: f"EXECUTE IMMEDIATE {quoted(text)}",
}


@given(CORES, ANY, ANY, ANY, SECRET_KEYS, st.sampled_from(sorted(QUOTED_PLACES)), st.sampled_from(sorted(WRAPPERS)))
def test_planted_secrets_in_quotes_never_show(
    core: str, before: str, between: str, after: str, key: str, place: str, wrapper: str
) -> None:
    """The value has a head and a tail: what stands behind a blank, a quote or a line break is masked as well."""
    text = WRAPPERS[wrapper](QUOTED_PLACES[place](key, f"{before}{core}{between}{core}{after}"))
    masked = mask_secrets(text)
    assert core not in masked
    assert mask_secrets(masked) == masked


@given(CORES, ANY, ANY, ANY, SECRET_KEYS, st.sampled_from(sorted(WRAPPERS)))
def test_options_masked_by_their_key_never_show(
    core: str, before: str, between: str, after: str, key: str, wrapper: str
) -> None:
    shown = f"{key} = {mask_option(key, f'{before}{core}{between}{core}{after}')}, user = bob"
    assert core not in shown
    assert core not in mask_secrets(WRAPPERS[wrapper](shown))


@given(CORES, WORD, WORD, SECRET_KEYS, st.sampled_from(sorted(WORD_PLACES)), st.sampled_from(sorted(WRAPPERS)))
def test_planted_secrets_without_quotes_never_show(
    core: str, before: str, after: str, key: str, place: str, wrapper: str
) -> None:
    assume(place != "url" or not re.match(r"\d+[/?#]", before))  # digits before a path are a port
    text = WRAPPERS[wrapper](WORD_PLACES[place](key, f"{before}{core}{after}"))
    masked = mask_secrets(text)
    assert core not in masked
    assert mask_secrets(masked) == masked


@given(CORES, ANY, SECRET_KEYS, st.sampled_from(["option", "set", "hint", "view", "jaas", "lines", "map"]))
def test_planted_secrets_are_found(core: str, before: str, key: str, place: str) -> None:
    script = parse_script(f"SELECT 1;\n{QUOTED_PLACES[place](key, before + core)};")
    secrets = find_secrets(script)
    assert secrets
    assert core not in repr(secrets)
    assert all(secret.span.line >= 2 for secret in secrets)


@given(STATEMENTS.filter(lambda text: not HINTS_OF_SECRETS.search(text)))
def test_statements_without_secrets_stay_as_they_are(text: str) -> None:
    assert mask_secrets(text) == text
    assert find_secrets(parse_script(text)) == ()


@pytest.mark.slow
def test_generated_statements_reach_the_interesting_nodes() -> None:
    """The generator above would prove nothing if it only made trivial statements."""
    seen: set[type[exp.Expr]] = set()

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(STATEMENTS)
    def collect(text: str) -> None:
        seen.update(type(node) for node in parse_statement(text).walk())

    collect()
    assert seen >= {nodes.TableFunction, nodes.CreateTable, nodes.StatementSet, nodes.FlinkType, exp.Window, exp.Union}
