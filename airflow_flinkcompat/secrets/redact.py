"""Masking of secrets in texts: literal secrets by their form, filled-in secrets by their values.

Masked text is for display only. Do not parse or compare it.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from secrets import token_bytes

from airflow_flinkcompat.secrets.detect import is_literal_secret, secret_ranges, secret_ranges_of_script
from airflow_flinkcompat.secrets.spellings import base64_pattern, plain_pattern

#: Replacement for a secret.
MASK = "***"
#: Minimum length of a value to mask. A shorter value would match parts of unrelated words.
SHORTEST = 4

_STRUCTURE = frozenset("'\"`\\:/@,;=&?\n")
_KEY_OF_PROCESS = token_bytes(32)
_BASE64_BEFORE = re.compile(r"[A-Za-z0-9+/_%-]")
_BASE64_AFTER = re.compile(r"(?:[A-Za-z0-9+/_-]|%(?:25)*2[bBfF])*+(?:=|%(?:25)*3[dD])*+")


def mask_secrets(text: str) -> str:
    """Return ``text`` with every literal secret replaced by ``***``; idempotent.

    Values that consist of placeholders (``${conn.…}``) are not secrets.

    Args:
        text: Any text, such as a script, a message or a line of a log.

    Returns:
        The masked text.
    """
    # Some secrets are recognized only after an adjacent secret was masked. A few rounds find all of them.
    while (masked := _cut(text, secret_ranges(text))) != text:
        text = masked
    return text


def shortened(text: str, length: int = 80) -> str:
    """The text on one line with secrets masked, cut to ``length``, after a whole word if possible."""
    line = " ".join(mask_secrets(text).split())
    if len(line) <= length:
        return line
    words = line[:length].rpartition(" ")[0]
    return (words if 2 * len(words) > length else line[: max(length - 1, 0)]) + "…"


def mask_option(key: str, value: str) -> str:
    """The value of option ``key`` for display, with secrets masked.

    If a value contains blanks, quotes or line breaks, its end is certain only while key and value are separate. Call
    this function before you join options without SQL's quotes. In text that was joined as ``key = mask_option(key,
    value)``, :func:`mask_secrets` changes nothing.
    """
    return MASK if is_literal_secret(key, value) else mask_secrets(value)


def disguise_secrets(sql: str) -> str:
    """Replace every literal secret of a script with other characters. Flink can still plan the script.

    Within this process, equal secrets get equal replacements, and different secrets get different replacements.
    """
    for start, end in secret_ranges_of_script(sql):
        sql = f"{sql[:start]}{_disguised(sql[start:end])}{sql[end:]}"
    return sql


def disguise_option(key: str, value: str) -> str:
    """Replace every literal secret in an option's value with other letters; see :func:`disguise_secrets`."""
    if is_literal_secret(key, value):
        return _disguised(value)
    for start, end in secret_ranges(value):
        value = f"{value[:start]}{_disguised(value[start:end])}{value[end:]}"
    return value


def _disguised(secret: str) -> str:
    """Replacement for a secret: letters derived from the secret and a random key of this process.

    Literal delimiters are preserved.
    """
    digest = hmac.digest(_KEY_OF_PROCESS, secret.encode(errors="surrogatepass"), "sha256")
    letters = cycle(b32encode(digest).decode().rstrip("=").lower())
    return "".join(each if each in _STRUCTURE else next(letters) for each in secret)


@dataclass(frozen=True, repr=False)
class Redactor:
    """Masks the passed values, in every spelling, and all literal secrets of a text.

    A spelling is any mixture of plain text, SQL quotes, URL encoding and escapes of JAAS, JSON, Java, Python or HTML.
    Base64 of a text that contains the value (``user:password``) is also a spelling.

    Attributes:
        too_short: Names of values that are too short to mask. Masking a short value would also hide parts of other
            words.
    """

    values: frozenset[str] = frozenset()
    too_short: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Iterable[tuple[str, str]]) -> Redactor:
        """Create a redactor from pairs of name and value."""
        named = [(name, value) for name, value in values if value]
        kept = frozenset(value for _, value in named if _is_long_enough(value))
        return cls(kept, tuple(dict.fromkeys(name for name, value in named if value not in kept)))

    def __repr__(self) -> str:
        return f"Redactor({len(self.values)} values)"

    def __or__(self, other: Redactor) -> Redactor:
        return Redactor(self.values | other.values, tuple(dict.fromkeys((*self.too_short, *other.too_short))))

    def __call__(self, text: str) -> str:
        """The text with all secrets masked."""
        ranges = sorted(found for value in self.values for found in _ranges(value, text))
        return mask_secrets(_cut(text, _merged(ranges)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One warning for each value that is too short to mask, with the name of its placeholder."""
        return tuple(
            f"the value of {name} is too short to be masked in messages (fewer than {SHORTEST} characters, or only "
            "blanks): use a longer value"
            for name in self.too_short
        )


def _is_long_enough(value: str) -> bool:
    return len(value) >= SHORTEST and bool(value.replace("+", " ").strip())


def _ranges(value: str, text: str) -> Iterator[tuple[int, int]]:
    for match in plain_pattern(value).finditer(text):
        yield match.span()
    for match in base64_pattern(value).finditer(text):
        start = match.start()
        while start and _BASE64_BEFORE.match(text, start - 1):
            start -= 1
        rest = _BASE64_AFTER.match(text, match.end())
        assert rest is not None
        yield start, rest.end()


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join overlapping ranges of a sorted sequence."""
    begin = end = -1
    for first, last in ranges:
        if first > end:
            if end > begin:
                yield begin, end
            begin = first
        end = max(end, last)
    if end > begin:
        yield begin, end


def _cut(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    position = 0
    for start, end in ranges:
        parts += (text[position:start], MASK)
        position = end
    return "".join((*parts, text[position:]))
