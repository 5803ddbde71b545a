"""Patterns for the spellings of secret values, for keys that denote secrets, and for placeholders.

The pattern of a value matches each character in any spelling. Therefore the pattern finds nested and mixed escapes,
such as JSON in JSON, JAAS in SQL in JSON, or a URL in HTML.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from urllib.parse import quote, quote_plus

_ESCAPED = r"(?:(?<=\\)|(?<=5[cC])|(?<=92;))"
"""Position directly after a backslash, which may itself be encoded."""
_SLASH = rf"(?:\\|%(?:25)*5[cC]|{_ESCAPED}u005[cC]|&\#92;)"
_BLANK = rf"\s|\+|{_ESCAPED}(?:[nrtfv]|u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}})|%(?:25)*[0-9a-fA-F]{{2}}|&nbsp;|&\#[0-9]+;"
"""Any spelling of a blank, a plus sign (a blank in URLs), or one byte of an encoded blank."""
_EDGES = re.compile(r"^[\s+]+|[\s+]+$")
_SHORTEST = 4
_LINE = 8
"""Minimum length of a line of a value that is also searched for without the other lines.

Some messages contain only one line of a value.
"""


def variants(value: str) -> tuple[str, ...]:
    """The usual spellings of a value for Airflow's log masking, which matches plain texts only."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    plain = (value, escaped, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    quoted = (text.replace("'", "''") for text in plain)
    data = _bytes(value)
    encoded = (quote(data, safe=""), quote(data), quote_plus(data), base64.b64encode(data).decode())
    return tuple(dict.fromkeys((*plain, *quoted, *encoded)))


@lru_cache(maxsize=256)
def plain_pattern(value: str) -> re.Pattern[str]:
    """Pattern of a value with any escapes of its characters and any form of its line breaks."""
    long_lines = (line for line in value.splitlines() if len(line.strip()) >= _LINE)
    return re.compile("|".join(dict.fromkeys((_spelled(value), *map(_spelled, long_lines)))))


@lru_cache(maxsize=256)
def base64_pattern(value: str) -> re.Pattern[str]:
    """Pattern of the base64 form of any text that contains the value (``user:password``)."""
    kinds = {_bytes(variant) for variant in (value, *variants(value)[:4])}
    cores = dict.fromkeys(core for kind in sorted(kinds) for core in _cores(kind))
    return re.compile("|".join(map(_spelled, cores)))


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", errors="surrogatepass")


def _cores(value: bytes) -> Iterator[str]:
    """The base64 letters that depend only on the value, for each of its three possible alignments."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + value).decode()
        first, last = -(-before * 8 // 6), (before + len(value)) * 8 // 6
        core = whole[first:last]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))


def _spelled(value: str) -> str:
    """Pattern of a value that matches each run of equal characters in any spelling."""
    core = _EDGES.sub("", value)
    # In a short value, a blank must not match a plus sign, because both are too common.
    if len(" ".join(core.split())) < _SHORTEST:
        return "|".join(map(re.escape, variants(value)))
    # Match an escape before the first character only from the escape's start. Otherwise a long run of backslashes would
    # be matched again from each position.
    parts = [] if core[0].isalnum() else [r"(?<!\\)(?<!%5[cC])"]
    for kind, group in groupby(core, key=lambda char: " " if char.isspace() or char == "+" else char):
        length = len(tuple(group))
        if kind == " ":
            parts.append(f"(?:{_SLASH}*+(?:{_BLANK}))+")
        elif kind.isascii() and kind.isalnum():
            parts.append(kind * length)
        elif kind == "\\":
            parts.append(f"{_SLASH}{{{length},}}+")
        else:
            one = f"(?:{_SLASH}*+(?:{_encoded(kind)}|{re.escape(kind)}))"
            times = (8, 4, 2, 1) if kind == "'" else (1,)  # SQL doubles a single quote at each nesting level
            parts.append("(?:" + "|".join(f"{one}{{{length * each}}}" for each in times) + ")")
    return "".join(parts)


@lru_cache(maxsize=4096)
def _encoded(char: str) -> str:
    """Pattern of a character's escaped spellings, without a leading backslash."""
    code, units = ord(char), char.encode("utf-16-be", errors="surrogatepass").hex()
    escapes = [f"{_SLASH}+".join(f"u{units[i : i + 4]}" for i in range(0, len(units), 4)), f"U{code:08x}"]
    escapes += [f"x{code:02x}"] if code < 256 else []
    escapes += ["b"] if char == "\b" else []
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in _bytes(char)) + ("|%(?:25)*" if char == "%" else "")
    entities = [rf"&\#0*{code};", rf"&\#x0*{code:x};", *({html.escape(char)} - {char})]
    entities += ["&apos;"] if char == "'" else []
    return "(?i:" + "|".join((*(f"{_ESCAPED}{escape}" for escape in escapes), percent, *entities)) + ")"


#: Matches one placeholder; groups ``conn_id`` and ``attribute``, or ``name``.
PLACEHOLDER = re.compile(
    r"\$\{(?:conn\.(?P<conn_id>[^{}\s'\"`]+?)\.(?P<attribute>host|port|login|password|schema|extra\.[^{}\s'\"`]+)"
    r"|env\.(?P<name>[A-Za-z_][A-Za-z0-9_]*))\}"
)
#: Matches any text that begins like a placeholder.
OPENING = re.compile(r"\$\{(?:conn\b|env\.)[^}\s'\"`]*\}?")
#: Matches a namespace variable, which the platform of engine ``vvr`` fills in itself.
NAMESPACE_VARIABLE = re.compile(r"\$\{secret_values\.[A-Za-z_][\w-]*\}")
#: Matches a variable of shells and other tools, but not one with a default (``${NAME:-value}``), which may be a secret.
VARIABLE = re.compile(r"\$\{[A-Za-z_][\w.-]*\}")


#: A key denotes a secret if it contains one of these words, with separators removed.
_ALWAYS = (
    *("password", "passwd", "passphrase", "secret", "credential", "jaas", "privatekey", "apikey", "accesskey"),
    *("accountkey", "sharedkey", "signingkey", "encryptionkey", "masterkey", "authkey", "clientkey", "storagekey"),
    *("servicekey", "subscriptionkey", "keystorekey", "basicauthuserinfo", "basicauthcredentials", "authorization"),
    *("connectionstring", "sharedaccess"),
)
#: English words that contain a word of ``_ALWAYS`` but denote no secret. They occur, for example, in deployment
#: names.
_OTHER_WORDS = frozenset({"secretive", "secretively", "secretary", "secretaries", "secretariat"})
#: A key denotes a secret if one of its words has one of these endings (``accessToken``, ``mytoken``, ``dbPwd``).
_WORD_ENDINGS = ("token", "pwd")
#: Endings of keys, with separators removed, whose value is ``user:password`` (``basic.auth.user.info``).
_LOGIN_ENDINGS = ("basicauth", "userinfo")
#: Whole keys that denote a secret, such as query parameters that sign a URL.
_WHOLE = frozenset({"sig", "signature", "xamzsignature", "xgoogsignature", "pass", "cookie", "setcookie"})
#: A key that ends in one of these words describes a property of a secret, not the secret.
_DESCRIPTIVE_ENDINGS = frozenset(
    {
        *("algorithm", "class", "class-name", "column", "columns", "count", "dir", "directory", "enable", "enabled"),
        *("encoding", "endpoint", "expiration", "field", "fields", "file", "filename", "format", "ids", "index"),
        *("interval", "length", "lifetime", "limit", "location", "manager", "mode", "ms", "name", "names", "path"),
        *("period", "policy", "prefix", "provider", "providers", "ratio", "renewal", "required", "seconds", "size"),
        *("source", "suffix", "timeout", "ttl", "type", "uri", "url", "validity", "version", "window"),
    }
)
#: Flink options whose keys look like the key of a secret, but whose values contain no secret.
_HARMLESS = frozenset({"kubernetessecrets", "securitykerberosaccesshadoopfilesystems"})
#: Keys that, in exactly this spelling, are names of columns or topics, not keys of secrets.
_NAMES = frozenset({"user_info"})

#: Endings of file names that look like secret keys: ``jobs/orders_secret.sql:64:6``, ``token_usage.py: no such file``.
#: Endings of option keys, such as ``json`` in ``gcp.credentials.json``, are not included.
_FILE = re.compile(
    r"\.(?:sql|ddl|hql|table|pyi?|ipynb|jar|java|kts?|scala|sh|md|rst|txt|log|csv|tsv|jsonl|parquet|orc|avro|gz|zip)$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def java_pattern() -> str:
    """A pattern, valid in Java and Python, for most words that denote a secret, with any separators."""
    words = ("[._-]?".join(word) for word in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS))
    return "(?i)" + "|".join(words)


_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_IN_KEYS = tuple(part.encode() for part in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS, *_WHOLE))

_ANY_KEY = re.compile(b"|".join(_IN_KEYS))


def may_hold_secret_key(text: str) -> bool:
    """True if a text may contain the key of a secret, according to one quick test.

    All words that denote a secret consist of ASCII letters only, so the test ignores all other characters.
    """
    joined = text.encode("ascii", "ignore").translate(None, _NO_LETTERS).lower()
    return _ANY_KEY.search(joined) is not None


@lru_cache(maxsize=4096)  # a script names the same few keys over and over
def is_secret_key(key: str) -> bool:
    """True if the name ``key`` of an option, field or parameter denotes a secret, in any spelling.

    True for ``password``, ``properties.sasl.jaas.config``, ``s3.access-key`` and ``clientSecret``. False for
    ``key.format``, ``primary key``, ``aws.credentials.provider``, ``token-count`` and file names
    (``jobs/orders_secret.sql``). If ``key`` is a path with slashes, only the part after the last slash counts.
    """
    key = key.rsplit("/", 1)[-1]
    if _FILE.search(key):
        return False
    words = [word for word in map(str.lower, _WORDS.findall(key)) if word not in _OTHER_WORDS]
    joined = "".join(words)
    if not words or joined in _HARMLESS:
        return False
    if joined in _WHOLE or (joined.endswith(_LOGIN_ENDINGS) and key.lower() not in _NAMES):
        return True
    if words[-1] in _DESCRIPTIVE_ENDINGS:
        return False
    if any(part in joined for part in _ALWAYS):
        return True
    return any(word.endswith(_WORD_ENDINGS) for word in words)
