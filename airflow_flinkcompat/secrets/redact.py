"""Masks literal secrets in any text. Masked text is for eyes only: it is not meant to be parsed or compared."""

from __future__ import annotations

from airflow_flinkcompat.secrets.detect import is_literal_secret, secret_ranges

#: What stands in the place of a secret.
MASK = "***"


def mask_secrets(text: str) -> str:
    """Return ``text`` with every literal secret replaced by ``***``; idempotent.

    Values that consist of placeholders (``${conn.…}``) are not secrets.
    """
    # What stands next to a secret may only be recognised once that secret is masked; a few rounds settle it.
    while (masked := _mask_once(text)) != text:
        text = masked
    return text


def mask_option(key: str, value: str) -> str:
    """The value of option ``key`` as it may be shown, judged by the key and not by where a text seems to end.

    Only where key and value are still apart is it known where a value with blanks, quotes or line breaks ends: what
    quotes options without SQL's quotes masks them with this first. ``key = mask_option(key, value)`` stays as it is in
    :func:`mask_secrets`.
    """
    return MASK if is_literal_secret(key, value) else mask_secrets(value)


def _mask_once(text: str) -> str:
    parts: list[str] = []
    position = 0
    for start, end in secret_ranges(text):
        parts += (text[position:start], MASK)
        position = end
    return "".join((*parts, text[position:]))
