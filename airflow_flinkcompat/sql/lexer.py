"""Division of a script into statements without parsing, so that an unreadable one has a place too."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_LEXEME = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<comment>--[^\r\n]*|(?<!:)//[^\r\n]*|/\*.*?\*/)   # not the // of a URL
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<open>/\*|'|`)                 # never closed: the rest of the script
    | (?P<word>[^\W\d][\w$]*)
    | (?P<semicolon>;)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_SET_STARTS = (("BEGIN", "STATEMENT", "SET"), ("STATEMENT", "SET", "BEGIN"))
_LAST_OF_STARTS = frozenset(words[-1] for words in _SET_STARTS)
_BETWEEN = frozenset({"space", "comment"})
_UNCLOSED = {"/*": "a comment", "'": "a string", "`": "a name in back-ticks"}


class Lexeme(NamedTuple):
    """A piece of text: ``kind``, the pattern's group name, and the offsets ``start``/``end`` (exclusive)."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Chunk:
    """One statement's extent in a script (offsets, end exclusive), without its ``;`` and outer comments.

    ``unclosed`` names an unclosed string, comment or hint, if any; ``unclosed_at`` is its offset.
    """

    start: int
    end: int
    unclosed: str | None = None
    unclosed_at: int = 0


def lexemes(text: str, without: Container[str] = ()) -> Iterator[Lexeme]:
    """Yield every lexeme of ``text`` but those of kinds that are left out.

    An unclosed string, name or comment swallows the rest and has kind ``open``.
    """
    for match in _LEXEME.finditer(text):  # the last alternative takes any character
        kind = match.lastgroup
        assert kind is not None
        if kind in without:
            continue
        start, end = match.span()
        if kind == "open":
            yield Lexeme(kind, match.group(), start, len(text))
            return
        yield Lexeme(kind, match.group(), start, end)


def split(text: str) -> Iterator[Chunk]:
    """Yield the statements of ``text``; a statement set counts as one."""
    # Matches, not lexemes: of each statement only the first, the last and few between are looked at.
    inside: list[re.Match[str]] = []
    in_set = False
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup
        if kind in _BETWEEN:
            continue
        if kind == "semicolon" and not in_set:
            if inside:
                yield _chunk(inside)
            inside = []
            continue
        word = match[0].upper() if kind == "word" else ""
        if in_set and word == "END" and inside[-1][0].upper() in (";", "BEGIN"):
            in_set = False
        inside.append(match)
        if kind == "open":
            yield Chunk(inside[0].start(), len(text), _UNCLOSED[match[0]], match.start())
            return
        # Only these words end the start of a set; few statements hold one.
        if not in_set and word in _LAST_OF_STARTS:
            in_set = tuple(each[0].upper() for each in inside[-3:]) in _SET_STARTS
    if inside:
        yield _chunk(inside)


def _chunk(inside: list[re.Match[str]]) -> Chunk:
    return Chunk(inside[0].start(), inside[-1].end())
