"""Scripts nobody would write, made from those somebody wrote: cut, torn, swapped, spliced, swollen and mis-encoded.

Every case follows from its seed, its kind and its number alone, so one failure is replayed without the rest.
"""

from __future__ import annotations

import datetime
import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import measured
from tests.fixture_cases import load_cases

FIXTURES = Path(__file__).parent / "fixtures"
SEED = "FLINKCOMPAT_FUZZ_SEED"
"""The environment variable that fixes the seed; any text will do."""
CASES = "FLINKCOMPAT_FUZZ_CASES"
"""The environment variable that says how many mutated scripts the slow test makes."""

TOKEN = re.compile(
    r"""--[^\n]*|/\*(?!\+).*?\*/|'(?:[^']|'')*'|`(?:[^`]|``)*`|[^\W\d]\w*|\d+(?:\.\d+)?|<>|<=|>=|!=|=>|\|\||/\*\+|\*/|\S""",
    re.DOTALL,
)
COMMENT = ("--", "/*")


def seed() -> str:
    """The seed of this run: what the environment says, else the CI run's number, else today's date."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return os.environ.get(SEED) or os.environ.get("GITHUB_RUN_ID") or today


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
        for case in load_cases(folder):
            found += [Original(f"{case.id} old", case.old_script), Original(f"{case.id} new", case.new_script)]
    for restore in measured.everything():
        found += [Original(f"{restore} old", restore.old), Original(f"{restore} new", restore.new)]
    return tuple({original.text: original for original in found}.values())


@dataclass(frozen=True)
class Case:
    """A mutated script beside the one it was made from; ``key`` makes it again."""

    key: str
    original: Original
    mutated: str | bytes

    def __str__(self) -> str:
        return f"{self.key} of {self.original.name}"


def case(seed_: str, kind: str, number: int) -> Case:
    key = f"{seed_}/{kind}/{number}"
    chance = random.Random(key)
    original = chance.choice(originals())
    mutated = MUTATORS[kind](chance, original.text)
    return Case(key, original, mutated)


# ------------------------------------------------------------------------------------------------ tokens
def tokens(text: str) -> list[tuple[int, int]]:
    """Where the tokens of a text begin and end; comments are none."""
    return [m.span() for m in TOKEN.finditer(text) if not m.group().startswith(COMMENT) or m.group() == "/*+"]


def _token(chance: random.Random, text: str) -> tuple[int, int]:
    return chance.choice(tokens(text) or [(0, 0)])


def _other(chance: random.Random, text: str) -> str:
    """A token of this script, of another one, or an odd one."""
    where = chance.random()
    if where < 0.2:
        return chance.choice(ODD)
    source = text if where < 0.7 else chance.choice(originals()).text
    start, end = _token(chance, source)
    return source[start:end]


ODD = (
    *("", "99999999999999999999999999", "1e999", "1e-999", "0x1F", ".5", "5.", "1.2.3", "1_000", "٣", "½", "-0", "1e"),
    *("NULL", "TRUE", "*", "?", ":p", "@x", "#", "\\", "$", "${conn.db.password}", "{{ ds }}", "{% if x %}", "{# c #}"),
    *(
        "\u00a0",
        "\u200b",
        "\u2028",
        "\ufeff",
        "\u3000",
        "\u2018x\u2019",
        "\uff1b",
        "\u202e",
        "e\u0301",
        "😀",
        "\x00",
        "\x1a",
    ),
    *("u&'\\0041'", "x'zz'", "N'x'", "_utf8'x'", "'a' 'b'", '"x"', "``", "''", "$$x$$", "::", "->", "<=>", "==", "&&"),
    *("/*+ */", "--", "//", "/**/", "END", "BEGIN", ";;", "EXPLAIN", "INTERVAL '1'", "DATE 'x'", "ARRAY[]", "ROW()"),
)


# ---------------------------------------------------------------------------------------------- mutators
def truncated(chance: random.Random, text: str) -> str:
    """Cut anywhere: in the middle of a word, a string or a comment, between tokens, at the end of a line."""
    inside = [m for m in TOKEN.finditer(text) if m.end() - m.start() > 1]
    places = [
        chance.randrange(len(text)),
        _token(chance, text)[chance.randrange(2)],
        chance.choice([m.end() for m in re.finditer(r"\n|;|\(", text)] or [0]),
        *([chance.randrange(m.start() + 1, m.end())] if (m := chance.choice(inside or [None])) else []),
    ]
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
        start, end = _token(chance, text)
        text = text[:start] + text[end:]
    return text


def doubled(chance: random.Random, text: str) -> str:
    """A token, a line or a stretch of tokens twice, or many times."""
    places = tokens(text) or [(0, 0)]
    first = chance.randrange(len(places))
    last = min(first + chance.choice((0, 0, 1, 5, 30)), len(places) - 1)
    start, end = places[first][0], places[last][1]
    times = chance.choice((1, 1, 1, 2, 20))
    return text[:end] + f" {text[start:end]}" * times + text[end:]


def swapped(chance: random.Random, text: str) -> str:
    """Two tokens, next to each other or not, in each other's place."""
    places = tokens(text)
    if len(places) < 2:
        return text
    first = chance.randrange(len(places) - 1)
    second = chance.choice((first + 1, first + 1, chance.randrange(len(places))))
    (a, b), (c, d) = sorted((places[first], places[second]))
    return text if a == c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def replaced(chance: random.Random, text: str) -> str:
    """A few tokens replaced by others."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        start, end = _token(chance, text)
        text = text[:start] + _other(chance, text) + text[end:]
    return text


def inserted(chance: random.Random, text: str) -> str:
    """A few tokens more."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = _token(chance, text)[1]
        text = f"{text[:place]} {_other(chance, text)} {text[place:]}"
    return text


def spliced(chance: random.Random, text: str) -> str:
    """The head of one script and the tail of another, or a piece of one inside another."""
    other = chance.choice(originals()).text
    cut, start, end = _token(chance, text)[1], *sorted((_token(chance, other)[0], _token(chance, other)[1]))
    if chance.random() < 0.5:
        return text[:cut] + " " + other[start:]
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
    *(
        ("CASE WHEN ", " THEN 1 END"),
        ("CASE 1 WHEN 1 THEN ", " END"),
        ("CAST(", " AS BIGINT)"),
        ("(SELECT ", " FROM t)"),
    ),
    *(
        ("SELECT * FROM (", ")"),
        ("EXISTS (SELECT 1 FROM t WHERE ", ")"),
        ("1 + ", ""),
        ("", " AND TRUE"),
        ("ROW<x ", ">"),
    ),
    *(("WITH c AS (SELECT 1) ", ""), ("1 IN (SELECT ", " FROM t)"), ("/* ", " */"), ("TABLE(f(", "))"), ("{", "}")),
)


def nested(chance: random.Random, text: str) -> str:
    """A stretch of tokens wrapped into itself, up to 200 levels deep."""
    places = tokens(text) or [(0, 0)]
    first = chance.randrange(len(places))
    last = min(first + chance.choice((0, 0, 0, 3, 20)), len(places) - 1)
    start, end = places[first][0], places[last][1]
    before, after = chance.choice(DEEP)
    depth = chance.choice((1, 2, 10, 50, 200))
    return text[:start] + before * depth + text[start:end] + after * depth + text[end:]


def swollen(chance: random.Random, text: str) -> str:
    """One token grown long, or a list grown to thousands of items."""
    start, end = _token(chance, text)
    word = text[start:end]
    size = chance.choice((100, 1_000, 5_000))
    match chance.randrange(4):
        case 0:
            grown = word * size
        case 1:
            grown = f"{word}, " * (size // 10) + word
        case 2:
            grown = f"{word} " * (size // 10)
        case _:
            grown = chance.choice((" ", "\n", "x", "9", "'", "-", "/", "(", "é", "\x00")) * size
    return text[:start] + grown + text[end:]


def encoded(chance: random.Random, text: str) -> bytes:
    """Other encodings, marks and bytes than a script is written in."""
    match chance.randrange(9):
        case 0:
            return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")))
        case 1:
            return re.sub(r"(?<=\w)e", "é", text, count=3).encode(
                chance.choice(("latin-1", "cp1252", "utf-7")), "replace"
            )
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
        data[place : place + chance.randrange(2)] = bytes(
            [chance.choice((0, 0xFF, 0xC3, 0x80, 0x1A, 0xED, chance.randrange(256)))]
        )
    return bytes(data)


MUTATORS: Mapping[str, Callable[[random.Random, str], str | bytes]] = {
    mutator.__name__: mutator
    for mutator in (
        *(
            truncated,
            unbalanced,
            dropped,
            doubled,
            swapped,
            replaced,
            inserted,
            spliced,
            shuffled,
            nested,
            swollen,
            encoded,
        ),
    )
}
