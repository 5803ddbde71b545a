"""Scripts nobody would write, made from those somebody wrote: cut, torn, swapped, spliced, swollen and mis-encoded.

Every case follows from its seed, kind and number alone. ``python -m tests.support.fuzzing SEED/KIND/NUMBER``
prints one.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from airflow_flinkcompat.testing.fixture_cases import load_cases
from dev.measure import measured
from tests.support.lexemes import TOKEN, UNITS, Token, placed, tokens

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEED = "FLINKCOMPAT_FUZZ_SEED"
"""Another seed than the usual one; any text will do."""
CASES = "FLINKCOMPAT_FUZZ_CASES"
"""How many mutated scripts the slow test makes."""


def seed() -> str:
    """The seed of this run."""
    return os.environ.get(SEED) or "2026-11-22"


def number_of_cases(default: int) -> int:
    """How many cases to make in all."""
    return int(os.environ.get(CASES) or default)


@dataclass(frozen=True)
class Original:
    """A script of the fixtures."""

    name: str
    text: str


@cache
def originals() -> tuple[Original, ...]:
    """Every script of the fixtures: documents, measured restores, and those that hold every kind of statement."""
    tables = (FIXTURES / "mutations" / "tables.sql").read_text(encoding="utf-8")
    found = [
        Original(path.stem, (tables if folder == "mutations" else "") + path.read_text(encoding="utf-8"))
        for folder in ("sql", "mutations")
        for path in sorted((FIXTURES / folder).glob("*.sql"))
    ]
    for folder in sorted({path.parent for path in (FIXTURES / "vvr").rglob("*.sql")}):
        for each in load_cases(folder):
            found += [Original(f"{each.id} old", each.old_script), Original(f"{each.id} new", each.new_script)]
    for restore in measured.everything():
        found += [Original(f"{restore} old", restore.old), Original(f"{restore} new", restore.new)]
    return tuple({original.text: original for original in found}.values())


@dataclass(frozen=True)
class Case:
    """A mutated script beside the one it was made from."""

    key: str
    kind: str
    original: Original
    mutated: str | bytes

    def __str__(self) -> str:
        return f"{self.key}, made of {self.original.name}; print it with: python -m tests.support.fuzzing '{self.key}'"


def case(seed_: str, kind: str, number: int) -> Case:
    """Case ``number`` of its kind."""
    key = f"{seed_}/{kind}/{number}"
    chance = random.Random(key)
    original = chance.choice(originals())
    return Case(key, kind, original, MUTATORS[kind](chance, original.text))


def _any(chance: random.Random, text: str) -> Token:
    return chance.choice(tokens(text) or [Token("", 0)])


def _stretch(chance: random.Random, text: str, lengths: tuple[int, ...]) -> tuple[int, int]:
    """Where some tokens in a row begin and end."""
    found = tokens(text) or [Token("", 0)]
    first = chance.randrange(len(found))
    return found[first].start, found[min(first + chance.choice(lengths), len(found) - 1)].end


ODD = (
    *("", "99999999999999999999999999", "1e999", "1e-999", "0x1F", ".5", "5.", "1.2.3", "1_000", "٣", "½", "-0", "1e"),
    *("NULL", "TRUE", "*", "?", ":p", "@x", "#", "\\", "$", "${conn.db.password}", "{{ ds }}", "{% if x %}", "{# c #}"),
    *("\u00a0", "\u200b", "\u2028", "\ufeff", "\u3000", "\u2018x\u2019", "\uff1b", "\u202e", "e\u0301", "😀", "\x00"),
    *("u&'\\0041'", "x'zz'", "N'x'", "_utf8'x'", "'a' 'b'", '"x"', "``", "''", "$$x$$", "::", "->", "<=>", "==", "&&"),
    *("/*+ */", "--", "//", "/**/", "END", "BEGIN", ";;", "EXPLAIN", "INTERVAL '1'", "DATE 'x'", "ARRAY[]", "ROW()"),
    *("INTERVAL 'NaN' DAY", "LIMIT 1.5", "\x1a", "9" * 5000, "x" * 5000, "DISTINCT", "NOT", "ALL", "OVER", "ON", ","),
)


def _other(chance: random.Random, text: str) -> str:
    """A token of this script, of another one, or an odd one."""
    where = chance.random()
    if where < 0.2:
        return chance.choice(ODD)
    return _any(chance, text if where < 0.7 else chance.choice(originals()).text).text


# ---------------------------------------------------------------------------------------------- mutators
def truncated(chance: random.Random, text: str) -> str:
    """Cut anywhere: in the middle of a word, a string or a comment, between tokens, at the end of a line."""
    inside = [m for m in TOKEN.finditer(text) if m.end() - m.start() > 1]
    token = _any(chance, text)
    long = chance.choice(inside)
    places = (
        chance.randrange(len(text)),
        chance.choice((token.start, token.end)),
        chance.choice([m.end() for m in re.finditer(r"\n|;|\(", text)] or [0]),
        chance.randrange(long.start() + 1, long.end()),
    )
    place = chance.choice(places)
    return text[:place] if chance.random() < 0.7 else text[place:]


def unbalanced(chance: random.Random, text: str) -> str:
    """A bracket, quote or comment mark too many or too few."""
    marks = ("(", ")", "[", "]", "<", ">", "'", "`", '"', "/*", "*/", "/*+", "--", ";", "CASE", "END", "BEGIN", ",")
    for _ in range(chance.choice((1, 1, 2, 5))):
        mark = chance.choice(marks)
        found = [m.start() for m in re.finditer(re.escape(mark), text)]
        if found and chance.random() < 0.5:
            place = chance.choice(found)
            text = text[:place] + text[place + len(mark) :]
        else:
            place = chance.randrange(len(text) + 1)
            text = f"{text[:place]}{mark}{text[place:]}"
    return text


def dropped(chance: random.Random, text: str) -> str:
    """A few tokens left out."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        token = _any(chance, text)
        text = text[: token.start] + text[token.end :]
    return text


def doubled(chance: random.Random, text: str) -> str:
    """A token, or a stretch of tokens, twice or many times."""
    start, end = _stretch(chance, text, (0, 0, 1, 5, 30))
    return text[:end] + f" {text[start:end]}" * chance.choice((1, 1, 1, 2, 20)) + text[end:]


def swapped(chance: random.Random, text: str) -> str:
    """Two tokens, next to each other or not, in each other's place."""
    found = tokens(text)
    first = chance.randrange(len(found) - 1)
    second = chance.choice((first + 1, first + 1, chance.randrange(len(found))))
    a, b = (found[i] for i in sorted((first, second)))
    return text if a is b else text[: a.start] + b.text + text[a.end : b.start] + a.text + text[b.end :]


def replaced(chance: random.Random, text: str) -> str:
    """A few tokens replaced by others."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        token = _any(chance, text)
        text = text[: token.start] + _other(chance, text) + text[token.end :]
    return text


def inserted(chance: random.Random, text: str) -> str:
    """A few tokens more."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = _any(chance, text).end
        text = f"{text[:place]} {_other(chance, text)} {text[place:]}"
    return text


def spliced(chance: random.Random, text: str) -> str:
    """The head of one script and the tail of another, or a piece of one inside another."""
    other = chance.choice(originals()).text
    cut = _any(chance, text).end
    start, end = sorted((_any(chance, other).start, _any(chance, other).start))
    if chance.random() < 0.5:
        return f"{text[:cut]} {other[start:]}"
    return f"{text[:cut]} {other[start:end]} {text[cut:]}"


def shuffled(chance: random.Random, text: str) -> str:
    """Lines or statements moved, doubled or left out."""
    mark = chance.choice(("\n", ";"))
    parts = text.split(mark)
    for _ in range(chance.choice((1, 1, 2, 5))):
        i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(3):
            case 0:
                parts[i], parts[j] = parts[j], parts[i]
            case 1:
                parts.insert(i, parts[j])
            case _ if len(parts) > 1:
                del parts[i]
    return mark.join(parts)


DEEP: tuple[tuple[str, str], ...] = (
    *(("(", ")"), ("ABS(", ")"), ("f(1, ", ")"), ("- ", ""), ("NOT ", ""), ("ARRAY[", "]"), ("", "[1]"), ("", ".x")),
    *(("CASE WHEN ", " THEN 1 END"), ("CASE 1 WHEN 1 THEN ", " END"), ("CAST(", " AS BIGINT)"), ("TRIM(", ")")),
    *(("(SELECT ", " FROM t)"), ("SELECT * FROM (", ")"), ("EXISTS (SELECT 1 FROM t WHERE ", ")"), ("ROW<x ", ">")),
    *(("WITH c AS (SELECT 1) ", ""), ("1 IN (SELECT ", " FROM t)"), ("/* ", " */"), ("TABLE(f(", "))"), ("{", "}")),
    *(("1 + ", ""), ("", " AND TRUE"), ("JSON_VALUE(", ", '$')"), ("FLOOR(", " TO DAY)"), ("(1, ", ")")),
)


def nested(chance: random.Random, text: str) -> str:
    """A stretch of tokens wrapped into itself, up to 200 levels deep."""
    start, end = _stretch(chance, text, (0, 0, 0, 3, 20))
    before, after = chance.choice(DEEP)
    depth = chance.choice((1, 2, 10, 50, 200))
    return text[:start] + before * depth + text[start:end] + after * depth + text[end:]


def swollen(chance: random.Random, text: str) -> str:
    """One token grown long, or a list grown to hundreds of items."""
    token = _any(chance, text)
    size = chance.choice((100, 1_000, 5_000))
    grown = (
        token.text * size,
        f"{token.text}, " * (size // 10) + token.text,
        f"{token.text} " * (size // 10),
        chance.choice((" ", "\n", "x", "9", "'", "-", "/", "(", "é", "\x00")) * size,
    )
    return text[: token.start] + chance.choice(grown) + text[token.end :]


def encoded(chance: random.Random, text: str) -> bytes:
    """Other encodings, marks and bytes than a script is written in."""
    match chance.randrange(8):
        case 0:
            return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")))
        case 1:
            accented = re.sub(r"(?<=\w)e", "é", text, count=3)
            return accented.encode(chance.choice(("latin-1", "cp1252", "utf-7")), "replace")
        case 2:
            return b"\xef\xbb\xbf" * chance.choice((1, 2)) + text.encode()
        case 3:
            return re.sub(r"\r?\n", chance.choice(("\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028")), text).encode()
        case 4:
            return "".join(char + chance.choice(("", "", "", "\x00", "\u0301", "\u200d")) for char in text).encode()
        case 5:
            return chance.randbytes(chance.choice((1, 10, 1_000)))
    data = bytearray(text.encode())
    for _ in range(chance.choice((1, 1, 3, 20))):
        place = chance.randrange(len(data))
        data[place : place + chance.randrange(2)] = [chance.choice((0, 0xFF, 0xC3, 0x80, 0x1A, 0xED, 0x2D, 0x27))]
    return bytes(data)


STATEFUL = ("WINDOW", "AGGREGATE", "FILTER", "WHERE", "GROUP", "OVER", "PARTITION", "ORDER")
_COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")
_COLUMN = re.compile(r"[(,]\s*(\w+)\s+(?:STRING|BIGINT|INT|DOUBLE|DECIMAL|BOOLEAN|VARCHAR|TIMESTAMP)", re.IGNORECASE)


_CONSTANT = re.compile(
    r"\b(?:WHERE|AND|OR|NOT|ON|HAVING)\s*\(*\s*(?:'[^']*'|\d+)\s*[<>=]|\b(?:TRUE|FALSE)\b"
    r"|\bPARTITION\s+BY\s+(?:[\w.`]+\s*,\s*)*(?:'[^']*'|\d+)\s*(?:,|\)|\bORDER\b)",
    re.IGNORECASE,
)
"""A condition that is always true or never, whatever stands beside it; a part of a key that is one for every row."""


def reworded(chance: random.Random, text: str) -> str:
    """One word, number or sign of a clause that reaches state says something else; as it was where none can."""
    if _CONSTANT.search(text):
        return text
    every = placed(text)
    standing = {(token.clause, token.text) for token in every}
    columns = sorted(set(_COLUMN.findall(text)))
    changes = [
        (token, other)
        for before, token, after in zip(every, every[1:], every[2:], strict=False)
        if token.clause in STATEFUL
        and not (before.text == "(" and token.text.isdigit())  # a precision says nothing
        and after.text != "1"  # rank <= 1 and rank = 1 say the same
        and not (token.text.upper() in UNITS and before.text == "'0'")  # nothing is nothing in every unit
        for other in _sayings(token, columns)
        if (token.clause, other) not in standing  # a key named twice is one key
    ]
    token, other = chance.choice(changes or [(every[0], every[0].text)])
    return text[: token.start] + other + text[token.end :]


def _sayings(token: Token, columns: list[str]) -> list[str]:
    """What could stand there instead and says something else."""
    word = token.text.upper()
    if word in UNITS or word in _COMPARISONS:
        return [other for other in (UNITS if word in UNITS else _COMPARISONS) if other != word]
    if token.text.isdigit():
        return [str(int(token.text) + 1)]
    if re.fullmatch(r"'\d+'", token.text):
        return [f"'{int(token.text[1:-1]) * 2 + 1}'"]
    if token.text.startswith("'") and len(token.text) > 2:
        return [f"'{token.text[1:-1]}x'"]
    if word in ("AND", "OR"):
        return ["OR" if word == "AND" else "AND"]
    return [other for other in columns if other != token.text] if token.text in columns else []


MUTATORS: Mapping[str, Callable[[random.Random, str], str | bytes]] = {
    mutator.__name__: mutator
    for mutator in (
        *(truncated, unbalanced, dropped, doubled, swapped, replaced, inserted),
        *(spliced, shuffled, nested, swollen, encoded, reworded),
    )
}


if __name__ == "__main__":
    seed_of_case, kind_of_case, number_of_case = sys.argv[1].rsplit("/", 2)
    shown = case(seed_of_case, kind_of_case, int(number_of_case))
    print(shown.original.text, "-" * 40, shown.mutated, sep="\n")
