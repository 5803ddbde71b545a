"""Spellings of secrets in texts that repeat them, of keys that name secrets, and of placeholders.

A pattern matches each character in any of its spellings. So it finds nested and mixed escapes (JSON in JSON, JAAS in
SQL in JSON, a value in a URL in HTML) without a list of them.
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
"""Position after a backslash, or after an encoded one."""
_SLASH = rf"(?:\\|%(?:25)*5[cC]|{_ESCAPED}u005[cC]|&\#92;)"
_BLANK = rf"\s|\+|{_ESCAPED}(?:[nrtfv]|u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}})|%(?:25)*[0-9a-fA-F]{{2}}|&nbsp;|&\#[0-9]+;"
"""One blank or plus sign (equal in a URL), or a byte of one, in any spelling, for wrapped lines."""
_EDGES = re.compile(r"^[\s+]+|[\s+]+$")
_SHORTEST = 4
_LINE = 8
"""Minimum length of a line that is searched by itself: some messages contain one line of a value."""


def variants(value: str) -> tuple[str, ...]:
    """The usual spellings of a value, for Airflow's logs, which mask plain texts only."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    plain = (value, escaped, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    quoted = (text.replace("'", "''") for text in plain)
    data = _bytes(value)
    encoded = (quote(data, safe=""), quote(data), quote_plus(data), base64.b64encode(data).decode())
    return tuple(dict.fromkeys((*plain, *quoted, *encoded)))


@lru_cache(maxsize=256)
def plain_pattern(value: str) -> re.Pattern[str]:
    """Pattern of a value with any escapes of its characters, and any wraps of its line breaks."""
    long_lines = (line for line in value.splitlines() if len(line.strip()) >= _LINE)
    return re.compile("|".join(dict.fromkeys((_spelled(value), *map(_spelled, long_lines)))))


@lru_cache(maxsize=256)
def base64_pattern(value: str) -> re.Pattern[str]:
    """Pattern of a value's base64 form, and of any text with it (``user:password``), except its ends."""
    kinds = {_bytes(variant) for variant in (value, *variants(value)[:4])}
    cores = dict.fromkeys(core for kind in sorted(kinds) for core in _cores(kind))
    return re.compile("|".join(map(_spelled, cores)))


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", errors="surrogatepass")


def _cores(value: bytes) -> Iterator[str]:
    """The letters of base64 that depend on a value alone, for each of its three possible alignments."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + value).decode()
        first, last = -(-before * 8 // 6), (before + len(value)) * 8 // 6
        core = whole[first:last]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))


def _spelled(value: str) -> str:
    """Pattern of a value: each run of one character in any spelling, with repeated escapes."""
    core = _EDGES.sub("", value)
    if len(" ".join(core.split())) < _SHORTEST:  # blanks and plus signs are too common to be taken for one another
        return "|".join(map(re.escape, variants(value)))
    # What escapes the first character is tried from its beginning only, or a long run would be from each of its places.
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
            times = (8, 4, 2, 1) if kind == "'" else (1,)  # SQL doubles it, at each level
            parts.append("(?:" + "|".join(f"{one}{{{length * each}}}" for each in times) + ")")
    return "".join(parts)


@lru_cache(maxsize=4096)
def _encoded(char: str) -> str:
    """Other spellings of a character, without a leading backslash."""
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
#: Matches what begins as a placeholder does.
OPENING = re.compile(r"\$\{(?:conn\b|env\.)[^}\s'\"`]*\}?")
#: Matches a variable that the platform of engine ``vvr`` keeps for all jobs of a namespace, and fills in itself.
NAMESPACE_VARIABLE = re.compile(r"\$\{secret_values\.[A-Za-z_][\w-]*\}")
#: Matches a variable as shells and other tools write it; one with a default (``${NAME:-value}``) may hold a secret.
VARIABLE = re.compile(r"\$\{[A-Za-z_][\w.-]*\}")


#: Anywhere in the key, with separators removed.
_ALWAYS = (
    *("password", "passwd", "passphrase", "secret", "credential", "jaas", "privatekey", "apikey", "accesskey"),
    *("accountkey", "sharedkey", "signingkey", "encryptionkey", "masterkey", "authkey", "clientkey", "storagekey"),
    *("servicekey", "subscriptionkey", "keystorekey", "basicauthuserinfo", "basicauthcredentials", "authorization"),
    *("connectionstring", "sharedaccess"),
)
#: English words that hold one of these and are about no secret, such as the name of a deployment.
_OTHER_WORDS = frozenset({"secretive", "secretively", "secretary", "secretaries", "secretariat"})
#: Only as a word of its own, or at the end of one (``accessToken``, ``mytoken``, ``dbPwd``).
_WORD_ENDINGS = ("token", "pwd")
#: At the end of the key, with separators removed: ``user:password`` (``basic-auth``, ``basic.auth.user.info``).
_LOGIN_ENDINGS = ("basicauth", "userinfo")
#: Query parameters that sign a URL.
_WHOLE = frozenset({"sig", "signature", "xamzsignature", "xgoogsignature", "pass", "cookie", "setcookie"})
#: A key that ends in one of these words says something *about* a secret.
_DESCRIPTIVE_ENDINGS = frozenset(
    {
        *("algorithm", "class", "class-name", "column", "columns", "count", "dir", "directory", "enable", "enabled"),
        *("encoding", "endpoint", "expiration", "field", "fields", "file", "filename", "format", "ids", "index"),
        *("interval", "length", "lifetime", "limit", "location", "manager", "mode", "ms", "name", "names", "path"),
        *("period", "policy", "prefix", "provider", "providers", "ratio", "renewal", "required", "seconds", "size"),
        *("source", "suffix", "timeout", "ttl", "type", "uri", "url", "validity", "version", "window"),
    }
)
#: Flink options that match a word above and hold no secret.
_HARMLESS = frozenset({"kubernetessecrets", "securitykerberosaccesshadoopfilesystems"})
#: Spelled like this it is the name of a column or a topic.
_NAMES = frozenset({"user_info"})

#: A file of this kind is named, not set: ``jobs/orders_secret.sql:64:6``, ``token_usage.py: no such file``. Endings
#: in which an option's key may end too are not among them (``gcp.credentials.json``).
_FILE = re.compile(
    r"\.(?:sql|ddl|hql|table|pyi?|ipynb|jar|java|kts?|scala|sh|md|rst|txt|log|csv|tsv|jsonl|parquet|orc|avro|gz|zip)$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def java_pattern() -> str:
    """A pattern, for Java and Python, of most of these words in a key, with any separators."""
    words = ("[._-]?".join(word) for word in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS))
    return "(?i)" + "|".join(words)


_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_IN_KEYS = tuple(part.encode() for part in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS, *_WHOLE))

_ANY_KEY = re.compile(b"|".join(_IN_KEYS))


def may_hold_secret_key(text: str) -> bool:
    """True if any part of a text may be the key of a secret, in one test instead of one per word.

    The words above consist of plain letters, which must occur in the text.
    """
    joined = text.encode("ascii", "ignore").translate(None, _NO_LETTERS).lower()
    return _ANY_KEY.search(joined) is not None


@lru_cache(maxsize=4096)  # a script names the same few keys over and over
def is_secret_key(key: str) -> bool:
    """True if an option, field or parameter called ``key`` holds a secret, whatever its spelling.

    ``password``, ``properties.sasl.jaas.config``, ``s3.access-key``, ``clientSecret`` do; ``key.format``,
    ``primary key``, ``aws.credentials.provider``, ``token-count`` do not, nor does the name of a file
    (``jobs/orders_secret.sql``). In a path the last part decides.
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
