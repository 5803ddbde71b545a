"""Detection of literal secrets in any text: scripts, comments, hints, URLs, JAAS, logs, errors.

One scan collects the position of every secret. If the end of a secret is ambiguous, the longer range counts as the
secret.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.secrets.spellings import (
    NAMESPACE_VARIABLE,
    PLACEHOLDER,
    VARIABLE,
    is_secret_key,
    may_hold_secret_key,
)
from airflow_flinkcompat.sql import tokenizer
from airflow_flinkcompat.sql.script import Places, Script

# Blank space and comments, plain or JSON-escaped. The length of comments is bounded, because every quote in a text
# starts a search: without a bound, each search would scan an unclosed comment to the end of the text.
_GAP = r"(?:\s|\\+[nrt]|/\*(?:(?!\*/).){0,2000}+\*/|--(?:(?!\\+n)[^\n]){0,2000}+(?:\\+n|\n|$))*+"
_BLANKS = r"(?:\s|\\+[nrt])*+"
# A single or double quote after any number of JSON or HTML escapings. Single quotes may form a run, because a quote
# inside a SQL literal is doubled.
_SINGLE = r"\\*+'|\\++u0027|&\#39;|&\#x27;|&apos;"
_DOUBLE = r"\\*+[\"`]|\\++u0022|&quot;|&\#34;"
_QUOTE = rf"(?:{_SINGLE})++|{_DOUBLE}"

_KEY = re.compile(
    r"(?P<key>(?:api|access|account|private|secret)\s+key\b|[\w.$/-]++)"
    rf"(?P<close>{_QUOTE})?+",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(rf"{_GAP}(?P<sign>=>|:=|[=:,])?{_GAP}", re.DOTALL)
_BLANK = re.compile(_BLANKS)
_VALUE_QUOTE = re.compile(_QUOTE)
_SINGLE_QUOTE = re.compile(_SINGLE)
# The prefix of U&'…', N'…' and _UTF8'…'.
_LITERAL_PREFIX = re.compile(rf"(?:U&|N|_\w[\w-]{{0,40}})(?={_SINGLE})", re.IGNORECASE)
_SET_BEFORE = re.compile(r"\bSET\s+$", re.IGNORECASE)
_SET_STATEMENT = re.compile(r"SET\b", re.IGNORECASE)
_IN_LIST_BEFORE = re.compile(r"\b(?:IN|VALUES)\s*\([^()]*$", re.IGNORECASE)
_IN_MAP_BEFORE = re.compile(r"\bMAP\s*\[[^\]]*$", re.IGNORECASE)
#: A comment line that consists of one option or setting, rather than a sentence.
_ASSIGNMENT = re.compile(r"(?:.*?(?:--|//|\*|#))?\s*(?:SET\s+)?[\w.$/-]+\s*[=:]\s*\S+\s*(?:\*/.*)?", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_IS_VALUE_BEFORE = re.compile(rf"=\s*(?:{_SINGLE})$", re.IGNORECASE)
_NEARBY = 2000
_ALIAS = re.compile(rf"(?<!\\)(?P<quote>{_SINGLE}){_GAP}AS{_GAP}[`\"]?(?P<key>\w+)", re.IGNORECASE | re.DOTALL)
#: Matches the file name in a position such as ``name.json:12:3`` or ``name.yaml:12``.
_FILE_BEFORE_LINE = re.compile(r"[\w$-]\.(?:json|ya?ml|toml|xml|conf|cfg|ini|properties|html)$", re.IGNORECASE)
_LINE = re.compile(r"\d{1,6}(?::\d{1,6})?(?![\w:.-])")
_HARMLESS_VALUE = re.compile(r"(?:true|false|null|none|\*+),?", re.IGNORECASE)
_SCHEME = re.compile(r"^\s*(?:Bearer|Basic|Digest|Token)\s+", re.IGNORECASE)
_BARE_VALUE = re.compile(r"[^\s'\"`]+")
_BARE_PARAMETER = re.compile(r"[^\s'\"`&]+")
_BARE_LINE = re.compile(r"(?:(?!\\+[nr])[^\r\n;])+")
#: A placeholder or a masked value, with nothing else before the next comma. The comma begins the next option.
_SHOWN = re.compile(rf"(?:\*\*\*|{PLACEHOLDER.pattern})(?=[,`]|\s*$)", re.MULTILINE)
_HEADER_LINE = re.compile(r"(?:(?!\\+[nr])[^\r\n'\"])+")
#: A JAAS login entry, ``module flag name=value …;``, whose values are quoted or contain no blanks.
_JAAS = re.compile(
    rf"(?:{_BLANKS}[\w.$]++{_BLANKS}(?:required|requisite|sufficient|optional)\b"
    rf"(?:{_BLANKS}[\w.-]++{_BLANKS}={_BLANKS}(?:(?:{_QUOTE})[^'\"`\\&;]*+(?:{_QUOTE})|[^\s'\"`\\&;=]++))*+"
    rf"{_BLANKS}(?:;{_BLANKS}|\Z))++",
    re.IGNORECASE,
)

_URL = re.compile(r"://(?P<rest>[^\s'\"`<>\\]+)")
_SCHEME_BEFORE = re.compile(r"[A-Za-z][\w+.-]*$")
_LONGEST_SCHEME = 50
_ORACLE_LOGIN = re.compile(
    r"jdbc:oracle:\w+:(?P<user>[^/@\s'\"]+)/(?P<secret>\"[^\"]*\"|[^\s'\"]+?)(?=@)", re.IGNORECASE
)
#: In URLs of these schemes, ``container@account`` is an address, not a login.
_STORAGE_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})

#: Kinds of secrets with a recognizable shape: name of the kind, possible prefixes, pattern.
_SHAPES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "private key",
        ("-----BEGIN ",),
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    ),
    (
        "access key",
        ("A3T", "ABIA", "ACCA", "AGPA", "AIDA", "AKIA", "ANPA", "ANVA", "AROA", "ASIA"),
        re.compile(r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AGPA|AIDA|AKIA|ANPA|ANVA|AROA|ASIA)[A-Z0-9]{16}\b"),
    ),
    ("access key", ("LTAI",), re.compile(r"\bLTAI[0-9A-Za-z]{12,26}\b")),
    ("token", ("eyJ",), re.compile(r"\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*")),
    (
        "token",
        ("gh", "github_pat_", "xox", "AIza"),
        re.compile(r"\b(?:gh[opsur]_[0-9A-Za-z]{30,}|github_pat_\w{30,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{35})"),
    ),
)
_HEADER = "authorization"
_LOGIN = "user info in a URL"
_BEARER = re.compile(
    r"\b(?:Bearer|Basic)\s+(?!(?:auth|authentication|authorization|token|scheme)\b)(?P<secret>[\w.~+/=:-]{6,})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Secret:
    """The option (or kind) and the position of a literal secret in a script; never the secret's value.

    ``variables`` lists other tools' placeholders (``${NAME}``), if placeholders replace every secret of the value.
    """

    key: str
    span: Span
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Hit:
    """A secret at ``text[start:end]`` with option or kind ``key``; ``bare`` means unquoted.

    ``key_at`` is the offset of the key in the text, or -1 if no key precedes the secret.
    """

    key: str
    start: int
    end: int
    bare: bool = False
    key_at: int = -1


def secret_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every literal secret of ``text``, in order and disjoint."""
    return ((hit.start, hit.end) for hit in _merged(_hits(text)))


def is_literal_secret(key: str, value: str) -> bool:
    """True if the option name ``key`` denotes a secret and ``value`` is a literal, not only placeholders."""
    return is_secret_key(key) and _holds_secret(key, value)


def _holds_secret(key: str, value: str) -> bool:
    return not ("jaas" in key.lower() and _is_templated(value)) and any(True for _ in _hit(key, value, 0, len(value)))


def variables_alone(key: str, value: str) -> tuple[str, ...]:
    """Variables of other tools (``${NAME}``) in an option's value, if they replace all its secrets.

    The result is empty if any part of the value may be a literal secret.
    """
    if _holds_secret(key, VARIABLE.sub("${env.NAME}", value)):
        return ()
    found = (match.group() for match in VARIABLE.finditer(value))
    return tuple(dict.fromkeys(each for each in found if not PLACEHOLDER.fullmatch(each)))


def are_of_namespace(variables: tuple[str, ...]) -> bool:
    """True if the platform of engine ``vvr`` fills in these placeholders.

    False if there are no placeholders, because the value may then be a literal secret.
    """
    return bool(variables) and all(NAMESPACE_VARIABLE.fullmatch(each) for each in variables)


def find_secrets(script: Script) -> tuple[Secret, ...]:
    """The literal secrets of ``script`` in order of appearance.

    Unquoted secrets are reported only inside strings and SET statements. Elsewhere, unquoted text is an expression
    (``ON a.token = b.id``). Secrets in comments are reported only if the comment contains an option, a setting or an
    address.
    """
    text = script.text
    hits = _hits_of_script(text)
    if not hits:
        return ()
    places = Places(text, script.source)
    return tuple(
        Secret(hit.key, places.span(hit.start, hit.end), variables_alone(hit.key, text[hit.start : hit.end]))
        for hit in hits
    )


def secret_ranges_of_script(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each literal secret that :func:`find_secrets` finds in a script or statement."""
    return ((hit.start, hit.end) for hit in _hits_of_script(text))


def _hits_of_script(text: str) -> tuple[_Hit, ...]:
    merged = tuple(_merged(_hits(text)))
    if not merged:
        return ()
    # A value can look like a key (``'password' = 'my-secret', …``). Such a value is itself a secret, not the name of
    # one.
    values = _Extents((hit.start, hit.end) for hit in merged)
    strings, prose = _strings_and_prose(text)
    settings = _settings(text)

    def is_secret(hit: _Hit) -> bool:
        if hit.start in prose:
            return _is_secret_in_comment(text, hit)
        if hit.key == _HEADER and hit.key_at == -1:
            return not _looks_like_words(text, hit)
        if hit.key_at != -1 and not hit.bare and not re.search("[=:]", text[hit.key_at : hit.start]):
            before = text[max(hit.key_at - _NEARBY, 0) : hit.key_at]
            return "," not in text[hit.key_at : hit.start] or _IN_MAP_BEFORE.search(before) is not None
        return not hit.bare or hit.start in strings or hit.start in settings

    return tuple(hit for hit in merged if hit.key_at not in values and is_secret(hit))


def _merged(hits: Iterator[_Hit]) -> Iterator[_Hit]:
    """Merge overlapping hits into one hit, so that no two results overlap."""
    current: _Hit | None = None
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if current is None or hit.start >= current.end:
            if current is not None:
                yield current
            current = hit
        elif hit.end > current.end:
            current = _Hit(current.key, current.start, hit.end, current.bare and hit.bare, current.key_at)
    if current is not None:
        yield current


def _hits(text: str) -> Iterator[_Hit]:
    if may_hold_secret_key(text):
        yield from _keyed(text)
        yield from _aliased(text)
    yield from _in_urls(text)
    for match in _BEARER.finditer(text):
        yield from _hit(_HEADER, text, *match.span("secret"))
    for name, begins, pattern in _SHAPES:
        if any(map(text.__contains__, begins)):
            for match in pattern.finditer(text):
                yield _Hit(name, *match.span())


def _hit(key: str, text: str, start: int, end: int, *, bare: bool = False) -> Iterator[_Hit]:
    """Yield a hit unless the value is empty, masked, or consists of placeholders."""
    value = _SCHEME.sub("", text[start:end])
    rest = PLACEHOLDER.sub("", value)
    if rest.strip() and not (rest != value and not rest.strip(":/@, ")) and not _HARMLESS_VALUE.fullmatch(rest.strip()):
        yield _Hit(key, start, end, bare)


# --------------------------------------------------------------------------------------- key and value
def _keyed(text: str) -> Iterator[_Hit]:
    for match in _KEY.finditer(text):
        key = match["key"].strip("./-")
        if is_secret_key(key):
            for hit in _value_after(text, match, key):
                yield replace(hit, key_at=match.start("key"))


def _value_after(text: str, match: re.Match[str], key: str) -> Iterator[_Hit]:
    """The value after a secret's key, quoted or bare. If the text is ambiguous, both are yielded."""
    separator = _SEPARATOR.match(text, match.end())
    assert separator is not None
    sign, start = separator["sign"], separator.end()
    if sign == ":" and _FILE_BEFORE_LINE.search(key) and _LINE.match(text, match.end() + 1):
        return
    if prefix := _LITERAL_PREFIX.match(text, start):
        start = prefix.end()
    quote = _VALUE_QUOTE.match(text, start)
    quoted_key = match["close"] is not None
    if sign is None:  # PASSWORD 'x'
        expected = quote is not None and not quoted_key and start > match.end()
    elif sign == ",":  # MAP['password', 'x'], but not x IN ('password', 'token') nor 'topic' = 'user-info', 'x' = 'y'
        nearby = max(match.start() - _NEARBY, 0)
        expected = (
            quote is not None
            and quoted_key
            and not _IN_LIST_BEFORE.search(text, nearby, match.start())
            and not _IS_VALUE_BEFORE.search(text, max(match.start() - 20, 0), match.start())
        )
    else:
        expected = True
    if not expected:
        return
    starts: set[int] = set()
    if quote is None:
        starts.add(start)
    else:
        begin, end = _quoted_extent(text, match["close"], quote)
        if "jaas" not in key.lower() or not _is_templated(text[begin:end]):
            yield from _hit(key, text, begin, end)
    if sign is not None and not quoted_key and (blank := _BLANK.match(text, separator.end("sign"))):
        # Outside SQL, an apparent comment before the value may be the value itself.
        starts |= {blank.end()} - {start}
    if not starts:
        return
    pattern = _bare_pattern(text, match, key, sign)
    for bare in filter(None, (pattern.match(text, position) for position in starts)):
        if not _same_name(key, bare.group()) and not _SHOWN.match(text, bare.start()):
            yield from _hit(key, text, *bare.span(), bare=True)


def _quoted_extent(text: str, key_quote: str | None, quote: re.Match[str]) -> tuple[int, int]:
    following = text[quote.end() : quote.end() + 1]
    # Pass a function, because counting is slow and only a run of quotes requires it.
    unit = _unit(key_quote, quote.group(), following, lambda: text.count("'", 0, quote.start()) % 2 == 1)
    begin = quote.start() + len(unit)
    return begin, _closing(text, begin, unit)


def _bare_pattern(text: str, match: re.Match[str], key: str, sign: str | None) -> re.Pattern[str]:
    lowered = key.lower()
    if "authorization" in lowered or "cookie" in lowered:
        return _HEADER_LINE
    if sign == "=" and _SET_BEFORE.search(text, max(match.start() - 100, 0), match.start()):
        return _BARE_LINE
    if "jaas" in lowered:
        end = text.find("\n", match.end())
        is_whole = text.find(";", match.end(), end if end != -1 else len(text)) != -1
        return re.compile(r"[^\r\n]+") if is_whole else _BARE_LINE
    return _BARE_PARAMETER if text[match.start() - 1 : match.start()] in ("?", "&") else _BARE_VALUE


def _same_name(key: str, value: str) -> bool:
    """True if an apparent secret is a comparison of columns with the same name (``a.token = b.token``)."""
    last = re.split(r"[.]", value.rstrip(",;)"))[-1]
    return last.lower() == key.rsplit(".", 1)[-1].lower() and "." in value


def _is_templated(value: str) -> bool:
    """True for a well-formed JAAS string with placeholders or a key file instead of secrets."""
    return (
        (PLACEHOLDER.search(value) is not None or "Krb5LoginModule" in value)
        and _JAAS.fullmatch(value) is not None
        and not any(True for _ in _keyed(value))
    )


def _unit(key_quote: str | None, run: str, following: str, is_inside_literal: Callable[[], bool]) -> str:
    """The opening quote of the value. Two quotes are either an empty value or one doubled quote."""
    single = _SINGLE_QUOTE.match(run)
    if single is None:
        return run
    atom = single.group()
    count = len(run) // len(atom)
    key_count = len(key_quote) // len(atom) if key_quote and key_quote.startswith(atom) else 1
    if key_count > 1 and count >= key_count:
        return atom * key_count
    if count % 2 == 0 and is_inside_literal():
        return atom * 2
    return run if count == 2 and not (following.isspace() or following in ",;)]}") else atom


def _closing(text: str, start: int, unit: str) -> int:
    """Offset of the quote that closes a value, or the text's end; ``unit`` is the value's opening quote.

    A doubled quote, or a quote with more backslashes than the opening quote, is part of the value.
    """
    mark = unit.lstrip("\\")
    slashes = len(unit) - len(mark)
    doubles = _SINGLE_QUOTE.match(unit) is not None
    position = start
    while (found := text.find(mark, position)) != -1:
        before = _backslashes_before(text, start, found)
        end = found + len(mark)
        doubled = doubles and text.startswith(unit, end)
        if before <= slashes and not doubled:
            return found - before
        # The text \\'' is ambiguous: an escaped quote before the closing quote, or a backslash before a doubled quote.
        position = end + len(unit) if doubled else end
    return len(text)


def _backslashes_before(text: str, start: int, end: int) -> int:
    position = end
    while position > start and text[position - 1] == "\\":
        position -= 1
    return end - position


def _aliased(text: str) -> Iterator[_Hit]:
    """Yield literals whose column alias denotes a secret, as in ``'literal' AS password``."""
    for match in _ALIAS.finditer(text):
        if not is_secret_key(match["key"]):
            continue
        atom, end = match["quote"], match.start("quote")
        begin = text.rfind(atom, 0, end)
        while begin > 0 and text.endswith(atom, 0, begin):
            begin = text.rfind(atom, 0, begin - len(atom))
        if begin != -1:
            yield from _hit(match["key"], text, begin + len(atom), end)


# ------------------------------------------------------------------------------------------------ URLs
def _in_urls(text: str) -> Iterator[_Hit]:
    for match in _URL.finditer(text):
        # Search backwards from "://". A forward search would try every letter of a long word as the start of the
        # scheme.
        scheme = _SCHEME_BEFORE.search(text, max(match.start() - _LONGEST_SCHEME, 0), match.start())
        span = _user_info("" if scheme is None else scheme.group().lower(), match["rest"])
        if span is not None:
            offset = match.start("rest")
            yield from _hit(_LOGIN, text, offset + span[0], offset + span[1])
    for match in _ORACLE_LOGIN.finditer(text):
        yield from _hit(_LOGIN, text, *match.span("secret"))


def _user_info(scheme: str, rest: str) -> tuple[int, int] | None:
    """Extent of the secret part of ``user:password@host…``, or None.

    Digits between the colon and a ``/``, ``?`` or ``#`` are a port, not a password.
    """
    if "@" not in rest or scheme in _STORAGE_SCHEMES:
        return None
    plain = PLACEHOLDER.sub(lambda match: "x" * len(match.group()), rest)  # placeholders contain no : or @
    authority = re.split(r"[/?#]", plain, maxsplit=1)[0]
    if "@" not in authority:
        # A password may contain / ? or #. A port contains only digits.
        colon = authority.find(":")
        if colon == -1 or authority[colon + 1 :].isdigit():
            return None
    end = plain.rfind("@")  # a password may also contain @
    colon = plain.find(":", 0, end)
    return (colon + 1, end) if colon != -1 else (0, end)


# --------------------------------------------------------------------------------------------- scripts
class _Extents:
    """Disjoint ranges of a text, in order."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._ranges = list(ranges)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._ranges, offset, key=lambda extent: extent[0]) - 1
        return index >= 0 and offset < self._ranges[index][1]


def _strings_and_prose(text: str) -> tuple[_Extents, _Extents]:
    """Ranges of strings and hints, and ranges of comments and COMMENT strings."""
    strings, prose, before = list[tuple[int, int]](), list[tuple[int, int]](), ""
    for lexeme in tokenizer.lexemes(text, without=("space",)):
        if lexeme.kind == "comment" or (lexeme.kind == "string" and before == "COMMENT"):
            prose.append((lexeme.start, lexeme.end))
        elif lexeme.kind in ("string", "hint", "open"):
            strings.append((lexeme.start, lexeme.end))
        if lexeme.kind != "comment":
            before = lexeme.text.upper() if lexeme.kind == "word" else ""
    return _Extents(strings), _Extents(prose)


def _is_secret_in_comment(text: str, hit: _Hit) -> bool:
    """True if a hit in a comment is part of an option, setting or address, not of prose about a secret."""
    if hit.key_at == -1:
        if hit.key == _HEADER:
            return not _looks_like_words(text, hit) and re.search(r"\d", text[hit.start : hit.end]) is not None
        # A user name without a password is no secret.
        return hit.key != _LOGIN or not text.endswith("://", 0, hit.start)
    sign = re.search(r"[=:]", text[hit.key_at : hit.start])
    if sign is None or not hit.bare:
        return sign is not None
    begin, end = text.rfind("\n", 0, hit.key_at) + 1, text.find("\n", hit.end)
    line = text[begin : end if end != -1 else len(text)]
    if text[hit.key_at - 1] in "?&;" or "LoginModule" in line:
        return True
    return _ASSIGNMENT.fullmatch(line) is not None and (sign[0] == "=" or not _looks_like_words(text, hit))


def _looks_like_words(text: str, hit: _Hit) -> bool:
    """True if a value looks like words of a sentence rather than a credential."""
    value = text[hit.start : hit.end]
    if text[: hit.start].rstrip()[-5:].lower() == "basic":
        with suppress(ValueError):
            return b":" not in b64decode(value + "=" * (-len(value) % 4), validate=True)
        return True
    return all(
        each.isalpha() and each in (each.lower(), each.upper(), each.capitalize()) for each in _WORD.findall(value)
    )


def _settings(text: str) -> _Extents:
    """Ranges of SET statements, whose values may be unquoted."""
    return _Extents(
        (chunk.start, chunk.end) for chunk in tokenizer.split(text) if _SET_STATEMENT.match(text, chunk.start)
    )
