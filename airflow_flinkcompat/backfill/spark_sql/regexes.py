r"""Regular expressions that have the same meaning in Flink and Spark for every text.

Flink and Spark both pass patterns to Java's ``java.util.regex``. Constructs are refused if they depend on the Java
version (``\b``, ``\X``, ``\p``), or if they could match half of a character above U+FFFF. Constructs that are not
regular are also refused (look-around, references, nested classes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_flinkcompat.plan.expressions import FunctionCall, Literal

_PLAIN_CLASSES = "dDwWsS"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}
_ENDS = "AzZ"
_REPEATED = re.compile(r"(?:\*|(\+)|\?|\{(\d{1,3})(?:,(\d{1,3})?)?\})[?+]?")


class RegexRefused(ValueError):
    """A pattern may match differently in Flink and Spark. The message is the reason."""


@dataclass(frozen=True)
class Regex:
    """Facts about a pattern: its number of groups, the groups in every match, and True if it can match ""."""

    groups: int
    certain: frozenset[int]
    empty: bool


@dataclass(frozen=True)
class _Part:
    empty: bool
    certain: frozenset[int] = frozenset()


@dataclass
class _PatternParser:
    text: str
    at: int = 0
    groups: int = 0

    def next(self, word: str) -> bool:
        found = self.text.startswith(word, self.at)
        self.at += len(word) if found else 0
        return found

    def take(self) -> str:
        if self.at == len(self.text):
            raise RegexRefused("the pattern ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def branches(self) -> _Part:
        parts = [self.sequence()]
        while self.next("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else _Part(any(part.empty for part in parts))

    def sequence(self) -> _Part:
        empty, certain = True, frozenset[int]()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self.repeated()
            empty, certain = empty and part.empty, certain | part.certain
        return _Part(empty, certain)

    def repeated(self) -> _Part:
        part = self.atom()
        found = _REPEATED.match(self.text, self.at)
        if found is None:
            return part
        self.at = found.end()
        plus, least, most = found.groups()
        if most is not None and int(most) < int(least):
            raise RegexRefused(f"the repetition {found.group()} has a maximum below its minimum")
        if plus or int(least or 0) > 0:
            return part
        return _Part(True)

    def atom(self) -> _Part:
        character = self.take()
        if character == "(":
            return self.group()
        if character == "[":
            self.characters()
        elif character == "\\":
            return _Part(self.escaped() in tuple(_ENDS))
        elif character in "^$":
            return _Part(True)
        elif character in "*+?{}]":
            raise RegexRefused(f"{character} must be escaped: write \\{character}")
        else:
            _within_one_unit(character)
        return _Part(False)

    def group(self) -> _Part:
        number = None
        if not self.next("?:"):
            if self.next("?"):
                raise RegexRefused(f"(?{self.text[self.at : self.at + 1]} may not match the same in Flink and Spark")
            self.groups += 1
            number = self.groups
        inner = self.branches()
        if not self.next(")"):
            raise RegexRefused("a group has no closing parenthesis")
        return inner if number is None else _Part(inner.empty, inner.certain | {number})

    def escaped(self) -> str:
        r"""Parse an escape: a literal character, a class such as ``\d``, or an anchor such as ``\A``."""
        character = self.take()
        if character in _PLAIN_CLASSES:
            return f"\\{character}"
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in _ENDS:
            return character
        if character.isalnum() or not character.isascii():
            raise RegexRefused(f"\\{character} may match differently in different Java versions")
        return character

    def characters(self) -> None:
        self.next("^")
        first = True
        while not self.next("]") or first:
            if first and self.text[self.at - 1] == "]":
                raise RegexRefused("a character class begins with ]")
            first = False
            low = self.member()
            if (
                low is not None
                and self.text[self.at : self.at + 1] == "-"
                and self.text[self.at + 1 : self.at + 2] != "]"
            ):
                self.next("-")
                high = self.member()
                if high is None or high < low or (low < "\ud800" and high > "\udfff"):
                    raise RegexRefused(f"the range {low}-{high or ''} may not match the same in Flink and Spark")

    def member(self) -> str | None:
        r"""Parse one member of a character class. Returns None for a class such as ``\d``."""
        if self.text.startswith("&&", self.at):
            raise RegexRefused("&& may not match the same in Flink and Spark")
        character = self.take()
        if character == "[":
            raise RegexRefused("a class within a class may not match the same in Flink and Spark")
        if character != "\\":
            return _within_one_unit(character)
        found = self.escaped()
        if found in tuple(_ENDS):
            raise RegexRefused(f"\\{found} is not a character")
        return None if len(found) > 1 else found


def _within_one_unit(character: str) -> str:
    if character > "\uffff" or "\ud800" <= character <= "\udfff":
        raise RegexRefused(f"{character} is above U+FFFF, and the pattern may match half of it")
    return character


def read(pattern: str) -> Regex:
    """Parse a pattern.

    Raises :class:`RegexRefused` if the pattern may match differently in Flink and Spark.
    """
    reader = _PatternParser(pattern)
    part = reader.branches()
    if reader.at < len(pattern):
        raise RegexRefused("a closing parenthesis has no opening parenthesis")
    return Regex(reader.groups, part.certain, part.empty)


_FUNCTIONS = ("REGEXP", "REGEXP_EXTRACT", "REGEXP_REPLACE")


def reason_against(call: FunctionCall) -> str | None:
    """Reason why a call with a pattern has no exact translation; None if it has one.

    According to measurements, REGEXP_EXTRACT of a group outside the match returns NULL in Flink and '' in Spark. For a
    group that does not exist, Flink returns NULL and Spark fails. If Flink replaces an empty match between the halves
    of a character, the result cannot be written.
    """
    if call.function not in _FUNCTIONS or len(call.args) < 2:
        return None
    pattern = call.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return "its pattern is not a constant"
    try:
        regex = read(pattern.value)
    except RegexRefused as refused:
        return f"in its pattern {refused}"
    if call.function == "REGEXP_REPLACE" and regex.empty:
        return "its pattern may match an empty text, also between the halves of a character"
    if call.function == "REGEXP" and not pattern.value:
        return "its pattern is empty"
    return _reason_against_group(call, regex) if call.function == "REGEXP_EXTRACT" else None


def _reason_against_group(call: FunctionCall, regex: Regex) -> str | None:
    if len(call.args) < 3:
        return None
    wanted = call.args[2].value if isinstance(call.args[2], Literal) else None
    if not isinstance(wanted, int):
        return "its group number is not a constant"
    if not 0 <= wanted <= regex.groups:
        return f"its pattern has {regex.groups} groups, but the group number is {wanted}"
    if wanted and wanted not in regex.certain:
        return f"group {wanted} may be outside the match"
    return None
