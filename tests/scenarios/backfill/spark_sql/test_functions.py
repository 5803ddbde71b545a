"""Functions, each in Flink and as a backfill, over what their translations could trip over and over random values."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, run_backfill
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import Compare
from tests.support.backfill.scripts import filled, script, table
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

Case = tuple[str, Sequence[Sequence[str]], Sequence[str]]

TEXTS = [
    "abc", "NULL", '""', "😀x", "ünï", '"a.b.c"', '"  ab  "', '"key=val;k2=v 2"', '"Hello wORLD-foo_bar 9lives éa ÉA"',
    '"a,b,,c"', '"$1\\d"', '"xx"', "2024-01-05", '"ab\tcd\nef"', '"line\r\n"', "ABC", '"ＡＢ日本 x"', '"👍👍a👍"',
    '"ß.ſ.K"', "a1b22c333",
]  # fmt: skip
LETTERS = [*"ab.c=;1 2XY-$\\", "ü", "日", "😀", "\n"]
PATTERNS = [
    "[a-z]", "(a)(b)", "^a", "c$", "([a-z]+)=([^;]*)", "\\d+", "(\\d{4})-(\\d{2})", "[^\\w\\s]", "(?:a|b)(.)", ".x",
    "\\.", "[.\\-;]", "(\\S+)\\s+(\\S+)", "日", "a.*?b", "(a|b)+", "[ü-ÿ]+", "[0-9]{1,2}", "\\$", "\\W", ".", ".$",
    "[^a]", "\\Aa|b\\z", "\\n", "(a+)+b",
]  # fmt: skip
MAYBE_NOTHING = ["b*", "^$", "x?y?$"]
UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def _texts(draw: random.Random) -> list[str]:
    return TEXTS + ['"' + "".join(draw.choices(LETTERS, k=draw.randint(1, 8))) + '"' for _ in range(60)]


def _with_numbers(texts: Sequence[str], draw: random.Random) -> list[tuple[str, str]]:
    return [(text, str(number)) for text in texts for number in draw.sample([-2, -1, 0, 1, 2, 3, 5], 2)]


def patterns() -> Case:
    calls = [f"REGEXP(s, '{pattern}')" for pattern in PATTERNS + MAYBE_NOTHING]
    calls += [f"REGEXP_EXTRACT(s, '{pattern}')" for pattern in PATTERNS + MAYBE_NOTHING]
    groups = {pattern: pattern.count("(") - pattern.count("(?") for pattern in PATTERNS}
    calls += [f"REGEXP_EXTRACT(s, '{p}', {group})" for p, many in groups.items() for group in range(many + 1)]
    calls += [f"REGEXP_REPLACE(s, '{p}', '{new}')" for p in PATTERNS for new in ("", "<$1\\>", "😀")]
    draw = random.Random(5)
    return "s STRING, i INT", _with_numbers(_texts(draw), draw), [*calls, "REGEXP_REPLACE(s, 'a', s)"]


def texts() -> Case:
    draw = random.Random(6)
    calls = [
        "REPEAT(s, i)", "STARTSWITH(s, 'a')", "STARTSWITH(s, '')", "STARTSWITH(s, '😀')", "ENDSWITH(s, 'c')",
        "ENDSWITH(s, '')", "ENDSWITH(s, s)", "BTRIM(s)", "BTRIM(s, 'ac ')", "BTRIM(s, '😀\"$\\')", "LTRIM(s, 'a')",
        "RTRIM(s, 'cx')", "TRIM(LEADING 'a' FROM s)", "TRIM(BOTH 'ab' FROM s)", "TRIM(TRAILING 'c2' FROM s)",
        "TRIM(TRAILING FROM s)", "TRIM(LEADING FROM s)", "TRIM(BOTH '日' FROM s)", "INITCAP(s)",
        "TRANSLATE(s, 'ab', 'x')", "TRANSLATE(s, 'aba', 'xyz')", "TRANSLATE(s, '😀', 'z')", "TRANSLATE(s, '', 'z')",
        "TRANSLATE(s, 'a.', '')", "TRANSLATE(s, 'ü', '😀')", "SPLIT_INDEX(s, '.', i)", "SPLIT_INDEX(s, 'b', 0)",
        "SPLIT_INDEX(s, ',', 2)", "SPLIT_INDEX(s, '\\', 1)", "SPLIT_INDEX(s, '😀', i)", "SPLIT_INDEX(s, '||', 0)",
        "SPLIT_INDEX(s, '\\d', 1)", "SPLIT_INDEX(s, ' ', i)", "SPLIT_INDEX(s, 'xx', 0)", "SPLIT_INDEX(s, 'ab', 1)",
        "GREATEST(s, 'b')", "LEAST(s, 'b', 'c')", "GREATEST(i, 3)", "LEAST(i, CAST(7000000000 AS BIGINT))",
        "GREATEST(i, NULLIF(i, 3), 1)", "HEX(s)", "TO_BASE64(s)", "TO_BASE64(REPEAT(s, 20))",
    ]  # fmt: skip
    return "s STRING, i INT", _with_numbers(_texts(draw), draw), calls


def padded() -> Case:
    draw = random.Random(7)
    short = [text for text in _texts(draw) if max(text) <= "\uffff"]
    lengths, pads = ("i", "4", "0", "30"), ("'x'", "'xyz'", "''", "'日'", "s")
    calls = [f"{name}(s, {length}, {pad})" for name in ("LPAD", "RPAD") for length in lengths for pad in pads]
    return "s STRING, i INT", _with_numbers(short, draw), calls


def _doubles(draw: random.Random) -> list[str]:
    numbers = [
        "NULL", "0.0", "-0.0", "1.5", "-2.25", "0.5", "-0.5", "2.5", "-3.5", "1e10", "1e-5", "0.15", "2.675", "1.005",
        "4503599627370497.5", "-9.007199254740993E15", "1e300", "4.9E-324", "0.49999999999999994",
        "9223372036854775807",
    ]  # fmt: skip
    any_bits = [struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0] for _ in range(200)]
    numbers += [repr(number) for number in any_bits if abs(number) < float("inf")]
    return numbers + [repr(round(draw.uniform(-1000, 1000), draw.randint(0, 6))) for _ in range(300)]


def numbers() -> Case:
    draw = random.Random(8)
    decimals = ["NULL", "0", "1.25", "-1.25", "99999999.99", "-0.05", "-99999999.99", "5.55", "-14.99", "15"]
    long = ["0.000000000000000001", "-0.000000000000000001", "99999999999999999999.5", "-12.345", "0"]
    integers = ["NULL", "0", "-7", "14", "15", "-15", "2147483647", "-2147483648"]
    bigs = ["NULL", "0", "-7", "9223372036854775807", "-9223372036854775808"]
    rows = [(x, *map(draw.choice, (decimals, integers, bigs, long))) for x in _doubles(draw)]
    calls = [
        *(f"SIGN({column})" for column in "xdibg"), "FLOOR(x)", "CEIL(x)", "CEILING(x)", "ROUND(x)",
        *(f"ROUND(x, {digits})" for digits in (0, 1, 2, 6, -1, -3)), "ROUND(i, 1)", "ROUND(d, -1)", "ROUND(d, 1)",
        "ROUND(d)", "ROUND(g, -2)", "ROUND(g, 20)", "TRUNCATE(d, 1)", "TRUNCATE(d)", "TRUNCATE(d, 0)",
        "TRUNCATE(d, 5)", "TRUNCATE(g, 3)", "TRUNCATE(i)", "TRUNCATE(b, 2)", "HEX(i)", "HEX(b)", "CHR(i)",
        *(f"TRY_CAST({column} AS {kind})" for column in "ixd" for kind in ("INT", "BIGINT", "DOUBLE", "TINYINT")),
        "TRY_CAST(i AS DECIMAL(5, 2))", "TRY_CAST(d AS DECIMAL(5, 2))", "TRY_CAST(i AS STRING)",
    ]  # fmt: skip
    return "x DOUBLE, d DECIMAL(10, 2), i INT, b BIGINT, g DECIMAL(38, 18)", rows, calls


def not_numbers() -> Case:
    rows = [[number] for number in ("NaN", "Infinity", "-Infinity", "1")]
    return "x DOUBLE", rows, ["SIGN(x)", "FLOOR(x)", "CEIL(x)"]


def _times(draw: random.Random, first: int, last: int) -> list[tuple[str, ...]]:
    rows = [("NULL", "NULL", "NULL", "1")]
    for _ in range(150):
        date = f"{draw.randint(first, last):04d}-{draw.randint(1, 12):02d}-{draw.choice([1, 1, 15, 28]):02d}"
        time = f"{draw.choice([0, 0, 12, 23]):02d}:{draw.choice([0, 0, 59]):02d}:{draw.choice([0, 59]):02d}"
        milliseconds = f"{date} {time}.{draw.choice([0, 0, 1, 999]):03d}"
        fraction = draw.choice(["000", "001", "500", "999"])
        rows.append((milliseconds, milliseconds + fraction, date, str(draw.randint(-100, 100))))
    return rows


MOVED = [
    *(f"TIMESTAMPADD({unit}, {by}, {column})" for unit in UNITS for by in ("i", "-3") for column in "tu"),
    "TIMESTAMPADD(SECOND, i * 1000000, t)", "da + INTERVAL '1' DAY", "da - INTERVAL '40' DAY",
    "da + INTERVAL '1' MONTH", "da - INTERVAL '13' MONTH", "da - INTERVAL '1' YEAR", "da + INTERVAL '48' HOUR",
    *(f"CEIL(t TO {unit})" for unit in ("DAY", "HOUR", "MINUTE", "SECOND")), "DAYOFWEEK(da)", "EXTRACT(DOW FROM da)",
]  # fmt: skip
TIME_COLUMNS = "t TIMESTAMP(3), u TIMESTAMP(6), da DATE, i INT"


def times() -> Case:
    calls = [
        *(f"FLOOR({column} TO {unit})" for unit in ("WEEK", "QUARTER", "MONTH") for column in ("t", "u", "da")),
        *(f"CEIL({column} TO {u})" for u in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND") for column in "tu"),
        "FLOOR(da TO YEAR)", "DAYOFWEEK(t)", "EXTRACT(DOW FROM u)",
    ]  # fmt: skip
    return TIME_COLUMNS, _times(random.Random(9), 1970, 2200), calls + MOVED


def earlier_times() -> Case:
    return TIME_COLUMNS, _times(random.Random(10), 1583, 1969), MOVED


def tried() -> Case:
    draw = random.Random(11)
    odd = [
        "1", "+1", "-1", "1.5", "1.", "1e3", '""', "abc", "2147483648", "-2147483649", "99999999999999999999", "-128",
        "128", "１", '"1,5"', "true", "TRUE", "True", "t", "NULL", "n/a", "00012", "300", "-0", "-0.9", "YES", "No",
        '"ＴＲＵＥ"', "K", '"  x"', "1L", "日本",
    ]  # fmt: skip
    ends = ["", "", ".5", ".", "abc", "%"]
    odd += [f"{draw.randint(-(10**k), 10**k)}{draw.choice(ends)}" for k in range(1, 25) for _ in range(3)]
    dates = ["2024-01-01", "2024-02-30", "2023-02-29", "2024-13-01", "1969-12-31", "n/a", '""', "NULL", "9999-12-31"]
    times = ["2024-01-01 00:00:00", "2024-02-29 23:59:59.123456", "abc", '""', "NULL", "1969-12-31 23:59:59.9"]
    doubles = [repr(draw.uniform(-1, 1) * 10 ** draw.randint(-300, 300)) for _ in range(40)]
    doubles += ["1e400", "-1E-400", "n/a", "NULL", '""', "123456789012345678901234567890123456789", "日本"]
    exact = [f"{draw.randint(-(10**k), 10**k)}.{draw.randint(0, 10**6)}" for k in range(1, 8) for _ in range(9)]
    exact += ["-0", "+0.0", "0.005", "99999999.994", "NULL", '""', "1."]
    rows = [tuple(map(draw.choice, (dates, times, doubles, exact))) for _ in odd]
    kinds = ("TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "STRING", "VARCHAR(2)")
    calls = [f"TRY_CAST(s AS {kind})" for kind in kinds]
    calls += [
        "TRY_CAST(d AS DATE)",
        "TRY_CAST(t AS TIMESTAMP(3))",
        "TRY_CAST(t AS TIMESTAMP(6))",
        "TRY_CAST(x AS DOUBLE)",
    ]
    calls += [f"TRY_CAST(e AS DECIMAL({kind}))" for kind in ("10, 2", "38, 0", "38, 18", "20, 3")]
    columns = "s STRING, d STRING, t STRING, x STRING, e STRING"
    return columns, [(text, *row) for text, row in zip(odd, rows, strict=True)], calls


def _json(draw: random.Random, depth: int) -> object:
    """A document without fractions, which have no exact answer, and without halves of characters."""
    kind = draw.randrange(8 if depth else 5)
    if kind == 0:
        return draw.randint(-(10**18), 10**18)
    if kind == 1:
        return draw.choice([True, False, None, {}, []])
    if kind < 5:
        return "".join(draw.choices([*'aü"\\\n/ 日1', "\x01", "\u2028"], k=draw.randint(0, 5)))
    if kind == 5:
        return [_json(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    return {
        draw.choice(["a", "b", "c", "A", "a.b", "", "ü"]): _json(draw, depth - 1) for _ in range(draw.randint(1, 3))
    }


def json_values() -> Case:
    draw = random.Random(12)
    documents = [
        json.dumps(
            {draw.choice(["a", "b"]): _json(draw, 3), "c": _json(draw, 1)},
            ensure_ascii=draw.random() < 0.5,
            indent=draw.choice([None, None, 2]),
        )
        for _ in range(200)
    ]
    documents += [
        '{"a": "x"} trailing', ' {"a": "x"}', '{"a": -0}', "null", "5", '"str"', "[1]", "{}", '[{"a": 1}]',
        '{"a": [{"b": "y"}]}', '{"a": {"b": {"c": "deep"}}}', '{"a": 9223372036854775807}', '{"a": "\\u0041\\t\\/😀"}',
    ]  # fmt: skip
    rows = [('"' + document.replace('"', '""') + '"', "1") for document in documents]
    paths = ("$.a", "$.a.b", "$.b.a", "$.a.b.c", "$.A")
    return "s STRING, n INT", [*rows, ("NULL", "1")], [f"JSON_VALUE(s, '{path}')" for path in paths]


CASES = (json_values, patterns, texts, padded, numbers, not_numbers, times, earlier_times, tried)


@pytest.mark.parametrize("case", mostly_nightly(CASES, 1), ids=lambda case: case.__name__)
def test_functions(compare: Compare, case: type[Case]) -> None:
    columns, rows, calls = case()  # type: ignore[misc]
    compare(columns, rows, calls)


@pytest.mark.parametrize("zone", mostly_nightly(["UTC", "Europe/Berlin", "America/Los_Angeles", "GMT+05:30"], 1))
def test_local_times(compare: Compare, zone: str) -> None:
    """Hours that do not exist, hours that come twice, and clocks of before there were time zones."""
    draw = random.Random(13)
    changes = ["2024-03-31 00:59:59.999", "2024-03-31 01:00:00.000", "2024-10-27 00:30:00.000", "2024-11-03 09:00:00.5"]
    instants = changes + [row[0] for row in _times(draw, 1971, 2200)[1:]]
    seconds = ["0", "1", "253370764799", *(str(draw.randint(0, 2**33)) for _ in instants[3:])]
    rows = [(f"{z}Z", z[:19], n, "1900-01-01 00:00:00Z") for z, n in zip(instants, seconds, strict=True)]
    early = [row[0] for row in _times(draw, 1700, 1969)[1:]]
    rows = [(*row[:3], f"{old}Z") for row, old in zip(rows, early, strict=False)] + [("NULL",) * 4]
    shown = [f"DATE_FORMAT({{}}, '{form}')" for form in ("yyyy-MM-dd HH:mm:ss", "yyyyMMddHH", "HH:mm:ss.SSS")]
    shown += [f"CAST({{}} AS {kind})" for kind in ("TIMESTAMP(3)", "TIMESTAMP(6)", "STRING", "DATE")]
    parts = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "DOW", "HOUR", "MINUTE", "SECOND")
    calls = [
        *(call.format(column) for call in shown for column in ("z", "e")), "HOUR(z)", "YEAR(z)",
        *(f"EXTRACT({part} FROM z)" for part in parts), "CAST(z AS TIMESTAMP(0))", "TRY_CAST(z AS DATE)",
        "FROM_UNIXTIME(n)", "FROM_UNIXTIME(n, 'yyyy-MM-dd')", "FROM_UNIXTIME(n, 'HH:mm:ss.SSS')",
        *(f"TIMESTAMPDIFF({unit}, z, TO_TIMESTAMP_LTZ(n, 0))" for unit in ("SECOND", "MINUTE", "HOUR", "DAY")),
        "TIMESTAMPADD(DAY, 40, z)", "TIMESTAMPADD(HOUR, -3, z)",
    ]  # fmt: skip
    if "/" not in zone:
        calls.append("UNIX_TIMESTAMP(s)")
    columns = "z TIMESTAMP_LTZ(3), s STRING, n BIGINT, e TIMESTAMP_LTZ(3)"
    compare(columns, rows, calls, settings={"table.local-time-zone": zone})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("call", "value", "words"),
    [
        ("LPAD(s, 3, 'x')", "😀", "LPAD of characters beyond U"),
        ("JSON_VALUE(s, '$.a')", "{'a': 1}", "the result of Flink for it is unknown"),
        ("JSON_VALUE(CONCAT('[', s), '$.a')", "1", "the result of Flink for it is unknown"),
        ("JSON_VALUE(CONCAT('{\"a\": ', s, '}'), '$.a')", "1.10", "keeps the digits of this number"),
        (
            "FROM_UNIXTIME(- CHAR_LENGTH(s))",
            "1",
            "no exact translation to Spark for seconds before 1970",
        ),
        ("UNIX_TIMESTAMP(s)", "2024-02-30 00:00:00", "is not a time of the form"),
        ("TRY_CAST(s AS INT)", " 1", "TRY_CAST of  1 to an integer"),
        ("TRY_CAST(s AS DECIMAL(10, 2))", "99999999.995", "to DECIMAL"),
        ("CASE WHEN ROUND(CAST(s AS DOUBLE) / 0, 1) > 0 THEN 'a' END", "1", "fails to round"),
        ("TIMESTAMPADD(YEAR, CHAR_LENGTH(s) * 4000, TIMESTAMP '2024-01-01 00:00:00')", "xx", "is outside the years"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_values_without_an_exact_answer(tmp_path: Path, call: str, value: str, words: str) -> None:
    source = filled("t", "nr INT, s STRING", tmp_path / "in", [f"1,{value}\n"])
    sink = table("o", "v STRING", tmp_path / "out")
    with pytest.raises(BackfillError, match=words):
        run_backfill(
            BackfillRequest(
                JobSpec(
                    script(source, sink, f"INSERT INTO o SELECT CAST({call} AS STRING) FROM t"),
                    settings={"table.local-time-zone": "UTC"},
                )
            )
        )
