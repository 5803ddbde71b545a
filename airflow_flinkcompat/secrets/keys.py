"""Option keys that name a secret: data, and one function that interprets it."""

from __future__ import annotations

import re
from functools import lru_cache

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
    """A pattern, for Java and Python, that finds most of these words in a key, with any separators."""
    words = ("[._-]?".join(word) for word in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS))
    return "(?i)" + "|".join(words)


_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_IN_KEYS = tuple(part.encode() for part in (*_ALWAYS, *_WORD_ENDINGS, *_LOGIN_ENDINGS, *_WHOLE))

_ANY_KEY = re.compile(b"|".join(_IN_KEYS))


def may_hold_secret_key(text: str) -> bool:
    """True if any part of a text can be the key of a secret, in one test instead of one per word.

    The words above are made of plain letters: their letters must occur in the text.
    """
    joined = text.encode("ascii", "ignore").translate(None, _NO_LETTERS).lower()
    return _ANY_KEY.search(joined) is not None


@lru_cache(maxsize=4096)  # a script names the same few keys over and over
def is_secret_key(key: str) -> bool:
    """True if an option, field or parameter called ``key`` holds a secret, whatever its spelling.

    ``password``, ``properties.sasl.jaas.config``, ``s3.access-key``, ``clientSecret`` do; ``key.format``,
    ``primary key``, ``aws.credentials.provider``, ``token-count`` do not, nor does the name of a file
    (``jobs/orders_secret.sql``). Of a path the last part counts.
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
