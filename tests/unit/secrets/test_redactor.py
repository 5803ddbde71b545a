"""Values are hidden in whatever spelling a text holds them; short ones are warned of."""

from __future__ import annotations

import base64
import html
import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.secrets.redact import Redactor
from airflow_flinkcompat.secrets.spellings import variants

CORE = "Qx7Zw9Kv"
"""Stands in the middle of each value: where it shows, the value leaks."""
AROUND = st.text(
    st.one_of(st.sampled_from("'\"\\ %+&\n\t\r/=:;{}$#@x0né😀\u2028\x00\x1b"), st.characters(codec="utf-8")), max_size=6
)

Spell = Callable[[str], str]
ESCAPED: dict[str, Spell] = {
    "plain": lambda text: text,
    "SQL": lambda text: text.replace("'", "''"),
    "JAAS": lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON with signs escaped": lambda text: re.sub(
        "[\x20-\x2f:-@[-`{-~]", lambda match: f"\\u{ord(match[0]):04X}", text
    ),
    "Python": lambda text: repr(text)[1:-1],
    "Markdown": lambda text: re.sub(r"([\\`*_{}\[\]()#+.!|<>-])", r"\\\1", text),
    "one line": lambda text: " ".join(text.split()),
}  # fmt: skip
ENCODED: dict[str, Spell] = {
    "as it is": lambda text: text,
    "URL": lambda text: quote(text, safe=""),
    "URL with slashes": quote,
    "form": quote_plus,
    "URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "lower-case URL": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "HTML": html.escape,
}


def spelled(value: str, escapings: list[str], encoding: str) -> str:
    for each in escapings:
        value = ESCAPED[each](value)
    return ENCODED[encoding](value)


@given(AROUND, AROUND, st.lists(st.sampled_from(sorted(ESCAPED)), max_size=3), st.sampled_from(sorted(ENCODED)))
def test_no_spelling_of_a_value_shows(before: str, after: str, escapings: list[str], encoding: str) -> None:
    value = before + CORE + after
    shown = Redactor.of([("${env.A}", value)])(f"cannot parse at line 3: [{spelled(value, escapings, encoding)}] of t")
    assert CORE not in shown
    assert shown.startswith("cannot parse at line 3: [")
    assert shown.endswith("of t")


@given(AROUND, AROUND, AROUND, st.sampled_from(sorted(ESCAPED)), st.sampled_from(["as it is", "URL"]), st.booleans())
def test_no_base64_of_a_value_shows(
    user: str, before: str, after: str, escaping: str, encoding: str, url_safe: bool
) -> None:
    """Alone, behind a user of any length, and inside a longer text."""
    value = before + CORE + after
    inside = ESCAPED[escaping](value) if escaping in ("JAAS", "JSON", "JSON in UTF-8", "SQL") else value
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    redactor = Redactor.of([("${env.A}", value)])
    for text in (inside, f"{user}:{inside}", f"{user}:{inside}@host"):
        shown = redactor(f"header [{ENCODED[encoding](encode(text.encode()).decode())}] was refused")
        for offset in range(3):
            core = base64.b64encode(bytes(offset) + CORE.encode()).decode().rstrip("=")[4:-1]
            assert core not in shown
        assert shown.startswith("header [")
        assert shown.endswith("was refused")


@given(AROUND, AROUND)
def test_every_variant_for_other_maskers_is_hidden_too(before: str, after: str) -> None:
    value = before + CORE + after
    redactor = Redactor.of([("${env.A}", value)])
    assert value in variants(value)
    for variant in variants(value):
        assert CORE not in redactor(f"a {variant} b")


@pytest.mark.parametrize(
    "value", ["s3cr3t", "it's", 'quo"te\\d', 'it\'s "both"', "a'''b", "50%25", "pä ss", "\\x\\y", "C:\\n"]
)
def test_nothing_but_the_value_is_hidden(value: str) -> None:
    redactor = Redactor.of([("${env.A}", value)])
    for variant in variants(value):
        assert redactor(f"before {variant} after") == "before *** after"
    assert redactor("before other after") == "before other after"


def test_what_reads_like_a_secret_is_masked_as_well() -> None:
    assert Redactor()("'password' = 'hunter2'") == "'password' = '***'"


def test_a_value_inside_another_one() -> None:
    redactor = Redactor.of([("${env.A}", "abcd"), ("${env.B}", "xabcdx"), ("${env.C}", "dxyz")])
    assert redactor("1 abcd 2 xabcdx 3 abcdxyz 4") == "1 *** 2 *** 3 *** 4"


def test_a_line_of_a_long_value_is_hidden_alone() -> None:
    """A message may hold the first line only."""
    value = "-----BEGIN-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END-----"
    assert Redactor.of([("${env.KEY}", value)])("no key: MIIEvQIBADANBgkq …") == "no key: *** …"


@given(st.text(max_size=3), st.text(st.characters(codec="utf-8"), max_size=200))
def test_short_values_hide_nothing_and_are_warned_of(value: str, text: str) -> None:
    redactor, nothing = Redactor.of([("${env.SHORT}", value)]), Redactor()
    assert redactor(text) == nothing(text)
    assert len(redactor.warnings) == bool(value)
    assert all("${env.SHORT} is too short" in warning for warning in redactor.warnings)


def test_a_warning_never_holds_the_value() -> None:
    redactor = Redactor.of([("${conn.db.password}", "q#7"), ("${env.BLANK}", "     "), ("${env.NONE}", "")])
    assert redactor("stopped     at parse") == "stopped     at parse"
    assert redactor.too_short == ("${conn.db.password}", "${env.BLANK}")
    assert "q#7" not in f"{redactor.warnings}{redactor!r}"


def test_bytes_of_the_environment_that_are_no_text() -> None:
    value = b"caf\xe9-secret".decode(errors="surrogateescape")
    assert Redactor.of([("${env.A}", value)])(f"a {value} b") == "a *** b"


def test_redactors_join() -> None:
    joined = Redactor.of([("a", "first"), ("s", "x")]) | Redactor.of([("b", "second"), ("s", "x")])
    assert joined("first second third") == "*** *** third"
    assert joined.too_short == ("s",)
    assert "first" not in repr(joined)


@pytest.mark.parametrize("text", ["\\" * 100_000, "'" * 100_000, "a " * 50_000, "%25" * 30_000, "QUJD" * 30_000])
@pytest.mark.parametrize("value", ["\\'a\\'b", "'a b c d", "%25%25", "+ + +a", "\\\\\\x"])
@pytest.mark.slow
def test_takes_time_in_proportion_to_the_text(text: str, value: str) -> None:
    redactor = Redactor.of([("${env.A}", value)])
    began = time.process_time()
    redactor(text)
    assert time.process_time() - began < 5
