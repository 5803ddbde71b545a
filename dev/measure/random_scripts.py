"""Random jobs as scripts: their operators, their connectors, and the text of each choice.

A job is a mapping of choices: its operators with their parameters, its connectors, columns, settings and so on. The
operators are those of :mod:`measure.stacked_pairs` and more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from sqlglot import parse_one
from sqlglot.expressions import Select

from dev.measure.progress import HELD_BACK
from dev.measure.services import PASSWORD
from dev.measure.stacked_pairs import LOWERS, TABLES, UPPERS, Kind, filled, queries

Choices = Mapping[str, str]

_WHERE, _X, _CALLS = (LOWERS["window"].choices["where"], LOWERS["filter"].choices["x"], LOWERS["group"].choices["x"])
_SIDES = "SELECT l.k AS k, r.rc AS g, l.lv AS v, r.rv AS w, {x} AS x"
_OF_SIDES = ("l.lv + r.rv", "r.rv * 2", "l.lv * 2")
_WINDOWED = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '{{n}}' MINUTE)))"
OPERATORS: Mapping[str, Kind] = LOWERS | {
    "rows": Kind(
        "SELECT a AS k, c AS g, b AS v, d AS w, {x} AS x FROM untimed WHERE {where}", {"where": _WHERE, "x": _X}
    ),
    "limit": Kind(
        "SELECT a AS k, c AS g, b AS v, d AS w, {x} AS x FROM untimed WHERE {where} ORDER BY {order} LIMIT {n}",
        {"where": _WHERE, "x": _X, "order": ("b DESC, d, c", "d DESC, b, c", "b, d, c"), "n": "235"},
    ),
    "sort": Kind(
        "SELECT k, g, v, w, x, ts FROM (SELECT a AS k, c AS g, b AS v, d AS w, {x} AS x, ts FROM orders "
        "WHERE {where}) ORDER BY ts{order}",
        {"where": _WHERE, "x": _X, "order": ("", ", v", ", w")},
    ),
    "session": Kind(
        "SELECT a AS k, MAX(c) AS g, {f}(b) AS v, COUNT(*) AS w, {x} AS x FROM TABLE(SESSION(TABLE orders "
        "PARTITION BY a, DESCRIPTOR(ts), INTERVAL '{n}' SECOND)) WHERE {where} GROUP BY a, window_start, window_end",
        {"where": _WHERE, "x": _CALLS, "f": ("SUM", "MAX"), "n": ("15", "20", "40")},
    ),
    "match": Kind(
        "SELECT a AS k, g, v, w, x FROM orders MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES S.c AS g, "
        "S.b AS v, LAST(M.b) AS w, {x} AS x ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN (S {m} U){within} "
        "DEFINE S AS S.b >= {n}, M AS M.b < {n}, U AS U.b >= {n})",
        {
            "x": ("U.b", "U.d", "S.d + U.b"), "skip": ("PAST LAST ROW", "TO NEXT ROW"), "m": ("M+", "M*", "M"),
            "within": ("", " WITHIN INTERVAL '1' HOUR", " WITHIN INTERVAL '2' MINUTE"), "n": ("5", "6"),
        },
    ),
    "lookup join": Kind(
        "SELECT o.a AS k, l.n AS g, o.b AS v, o.d AS w, {x} AS x FROM untimed_clocked AS o {join} names "
        "FOR SYSTEM_TIME AS OF o.pt AS l ON o.a = l.k{and}{where}",
        {
            "x": ("o.b + o.d", "o.d * 2"), "join": ("JOIN", "LEFT JOIN"),
            "and": ("", " AND l.n <> 'ben'", " AND o.d > 2"), "where": ("", " WHERE o.b > 2"),
        },
    ),
    "temporal join": Kind(
        f"{_SIDES} FROM lefts AS l {{join}} versions FOR SYSTEM_TIME AS OF l.ts AS r ON l.k = r.k{{where}}",
        {"x": _OF_SIDES, "join": ("JOIN", "LEFT JOIN"), "where": ("", " WHERE l.lv > 10", " WHERE r.rv > 100")},
        orders=False,
    ),
    "window join": Kind(
        f"{_SIDES} FROM {_WINDOWED.format('lefts')} AS l {{join}} {_WINDOWED.format('rights')} AS r "
        "ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end{and}",
        {
            "x": _OF_SIDES, "join": ("JOIN", "LEFT JOIN", "FULL JOIN"), "n": ("1", "2"),
            "and": ("", " AND r.rv > 10 * l.lv"),
        },
        orders=False,
    ),
}  # fmt: skip
"""The operators over tables; most may stand below one of :data:`measure.stacked_pairs.UPPERS`."""

_ROWS_BY_TABLE = {"timed_clicks": "clicks", "untimed_clocked": "untimed", "versions": "rights"}
COLUMNS = TABLES | {
    "untimed_clocked": "a STRING, b BIGINT, c STRING, d BIGINT, pt AS PROCTIME()",
    "versions": f"{TABLES['rights']}, PRIMARY KEY (k) NOT ENFORCED",
    "names": "k STRING, n STRING",
}
_KAFKA = (
    "'topic' = '{}', 'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'shop', "
    "'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"
)
_UPSERT_KAFKA = (
    "'connector' = 'upsert-kafka', 'topic' = '{}', 'properties.bootstrap.servers' = '127.0.0.1:9092', "
    "'key.format' = 'json', 'value.format' = 'json'"
)
_JDBC = (
    "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/postgres', 'table-name' = '{}', "
    f"'username' = 'postgres', 'password' = '{PASSWORD}'"
)
SOURCES = {
    "filesystem": "'connector' = 'filesystem', 'path' = 'file://DATA/{}', 'format' = 'csv', "
    "'source.monitor-interval' = '100 ms'",
    "kafka": f"'connector' = 'kafka', {_KAFKA}",
    "upsert-kafka": _UPSERT_KAFKA,
    "datagen": "'connector' = 'datagen', 'rows-per-second' = '40', 'fields.id.kind' = 'sequence', "
    "'fields.id.start' = '1', 'fields.id.end' = '200'",
    "postgres-cdc": "'connector' = 'postgres-cdc', 'hostname' = 'db', 'username' = 'shop', "
    f"'password' = '{PASSWORD}', 'database-name' = 'shop', 'schema-name' = 'public', 'table-name' = '{{}}', "
    "'slot.name' = 'shop'",
}
SINKS = {
    "print": "'connector' = 'print'",
    "blackhole": "'connector' = 'blackhole'",
    "filesystem": "'connector' = 'filesystem', 'path' = 'file://OUT/{}', 'format' = 'csv'",
    "kafka": "'connector' = 'kafka', 'topic' = '{}', 'properties.bootstrap.servers' = '127.0.0.1:9092', "
    "'format' = 'json'",
    "upsert-kafka": _UPSERT_KAFKA,
    "jdbc": _JDBC,
}
_GENERATED = (
    "id BIGINT, a AS CAST(MOD(id, 5) AS STRING), b AS MOD(id * 7, 11), c AS CAST(MOD(id, 3) AS STRING), d AS MOD(id, 6)"
)
SPELLINGS: Mapping[str, tuple[str, str]] = {
    "lower case": (r"\b(SELECT|FROM|WHERE|GROUP BY|COUNT|SUM|MAX)\b", r"\L"),
    "layout": (r" (FROM|WHERE|GROUP BY) ", r"\n  \1 /* as before */ "),
    "turned comparison": (r"\b(b|v|tv) > (\d|v\b)", r"\2 < \1"),
    "folded constant": (r"\b([bv]) > (\d)\b", r"\1 > \2 + 0"),
    "negation": (r"\bd < (\d)", r"NOT d >= \1"),
    "IN": (r"<> '(\w+)'", r"NOT IN ('\1')"),
    "COUNT(1)": (r"COUNT\(\*\)", "COUNT(1)"),
    "turned product": (r"\b([bd]|r\.rv|l\.lv|lv) \* 2\b", r"2 * \1"),
    "turned sum": (r"\b(l\.|o\.)?([bl]v?) \+ (\w+(?:\.\w+)?)\b", r"\3 + \1\2"),
    "interval": (r"INTERVAL '1' MINUTE", "INTERVAL '60' SECOND"),
    "another name of the view": (r"\bt\b", "seen"),
    "quoted": (r"(?<!\.)\bk\b(?= *[,)]|$)", "`k`"),
    "AS": (r" AS (l|r|u)\b", r" \1"),
    "parentheses": (r"WHERE ([bdv] [<>] \d)\b", r"WHERE (\1)"),
    "DISTINCT MAX": (r"\bMAX\((\w+)\)", r"MAX(DISTINCT \1)"),
    "SUM of CASE": (r"\bSUM\(b\)", "SUM(CASE WHEN TRUE THEN b END)"),
    "TRUE": (r"\bWHERE (?=[bdv])", "WHERE TRUE AND "),
}
_WITHOUT_UPDATES = frozenset({
    "filter", "union", "interval join", "window", "window top-n", "top windows", "over", "session", "match", "sort",
    "lookup join", "temporal join", "window join", "rows",
})  # fmt: skip


def read(values: Choices) -> list[str]:
    """The tables that a job reads, except for those of the database, sorted."""
    return _named(" ".join(queries_of(values)))


@cache
def _named(text: str) -> list[str]:
    words = re.findall(r"\w+", text)
    return sorted(table for table in COLUMNS if table in words and table != "names")


def queries_of(values: Choices) -> tuple[str, str]:
    """The query of the lower operator, and the one that is written into the sink."""
    parameters = frozenset((name, value) for name, value in values.items() if "." in name)
    return _filled(values["lower"], values["upper"], parameters)


@cache
def _filled(lower: str, upper: str, parameters: frozenset[tuple[str, str]]) -> tuple[str, str]:
    below, above = (
        {name.partition(".")[2]: value for name, value in sorted(parameters) if name.startswith(f"{part}.")}
        for part in ("below", "above")
    )
    under = OPERATORS[lower]
    if upper:
        return queries(under, UPPERS[upper], below, above)
    return filled(under.query, below), "SELECT k, g, v, w, x FROM t"


def updates(values: Choices) -> bool:
    """True if written rows replace earlier ones."""
    if values["source"] in ("upsert-kafka", "postgres-cdc"):
        return True
    below = values["lower"] not in _WITHOUT_UPDATES and values.get("below.order") != "ASC"
    match values["upper"]:
        case "" | "over" | "window" | "same windows":
            return below
        case "join":
            return below or values["above.join"] != "JOIN"
        case "deduplicate":
            return below or values["above.order"] != "ts"
    return True


def generates(values: Choices) -> bool:
    return values["source"] == "datagen"


def session(values: Choices) -> tuple[tuple[str, str], ...]:
    """The settings of a side."""
    pairs = [each.partition("=") for each in values["settings"].split(", ") if each]
    return (("parallelism.default", values["parallelism"]), *((key, value) for key, _, value in pairs))


def script(values: Choices, line: str) -> str:
    """The job as a script."""
    below, above = queries_of(values)
    tables = "".join(_table(values, table, first) for first, table in enumerate(read(values)))
    if values["lower"] == "lookup join":
        tables += f"CREATE TABLE names ({COLUMNS['names']}) WITH ({_JDBC.replace('{}', 'names')});\n"
    if values["hint"]:
        names = ("l", "r") if values["lower"] == "join" else ("untimed",)
        ttl = ", ".join(f"'{name}' = {values['hint']}" for name in names)
        below = below.replace("SELECT", f"SELECT /*+ STATE_TTL({ttl}) */", 1)
    statements = [f"INSERT INTO {values['sink name']}\n{above}{_conflict(values, line)};\n"]
    also = ""
    if values["statement"]:
        also = "CREATE TABLE also (f0 STRING, f1 BIGINT) WITH ('connector' = 'print');\n"
        table = read(values)[0]
        text, number = re.findall(r"(\w+) STRING.*?(\w+) BIGINT", COLUMNS[table])[0]
        query = "SELECT k, v FROM t" if "view" in values["statement"] else f"SELECT {text}, {number} FROM {table}"
        more = f"INSERT INTO also {query} WHERE {'v' if 'view' in values['statement'] else number} > 1;\n"
        statements = [more, *statements] if "first" in values["statement"] else [*statements, more]
    job = "".join(statements)
    if len(statements) > 1:
        job = f"EXECUTE STATEMENT SET\nBEGIN\n{job}END;\n"
    job = f"CREATE TEMPORARY VIEW t AS {below};\n{job}"
    job = spelled(values["spelling"], job) if values["spelling"] else job
    return f"{tables}{_sink(values)}{also}{job}"


def _table(values: Choices, table: str, number: int) -> str:
    """The declaration of a table that is read; a change of columns or types is one of the first."""
    source = values["source"] if table != "versions" else "filesystem"
    columns = COLUMNS[table]
    if source == "datagen":
        timed = ", ts AS TO_TIMESTAMP(FROM_UNIXTIME(id)), WATERMARK FOR ts AS ts"
        columns = _GENERATED + (timed if "WATERMARK" in columns else "")
    if source in ("upsert-kafka", "postgres-cdc"):
        columns = f"{columns}, PRIMARY KEY ({columns.split()[0]}) NOT ENFORCED"
    columns = columns.replace("WATERMARK FOR ts AS ts", f"WATERMARK FOR ts AS ts{values['watermark']}")
    if not number:
        columns = _redeclared(columns, values)
    options = ", ".join(filter(None, (SOURCES[source].replace("{}", _ROWS_BY_TABLE.get(table, table)),
                                      "" if number else values["source option"])))  # fmt: skip
    if "'fields.id.end' = '250'" in options:
        options = options.replace("'fields.id.end' = '200', ", "")
    held_back = f"  {HELD_BACK}\n" if values["lower"] == "interval join" else ""
    return f"CREATE TABLE {table} ({held_back}{columns}) WITH ({options});\n"


def _redeclared(columns: str, values: Choices) -> str:
    """The columns of the first table, with the chosen change."""
    number = re.findall(r"(\w+) BIGINT", columns)[0]
    match values["columns"]:
        case "computed":
            columns = columns.replace(", ", f", e AS {number} + 1, ", 1)
        case "comment":
            columns = columns.replace(" STRING", " STRING COMMENT 'a note'", 1)
        case "b and d exchanged":
            columns = columns.replace("b BIGINT, c STRING, d BIGINT", "d BIGINT, c STRING, b BIGINT")
        case "metadata":
            kafka = values["source"] == "kafka"
            columns += f", e {'TIMESTAMP_LTZ(3)' if kafka else 'STRING'} METADATA"
            columns += " FROM 'timestamp'" if kafka else " FROM 'file.name'"
        case "unread":
            columns = columns.replace(", ", ", e STRING, ", 1)
        case "primary key":
            columns += f", PRIMARY KEY ({columns.split()[0]}) NOT ENFORCED"
    old, _, new = values["type"].partition(" → ")
    return columns.replace(f" {old}", f" {new}", 1) if old else columns


def _output(values: Choices) -> list[tuple[str, str]]:
    """The columns of the sink."""
    _, above = queries_of(values)
    listed = above.removeprefix("SELECT ").partition(" FROM ")[0]
    names = _names(listed.removeprefix("DISTINCT "))
    typed = {"k": "STRING", "g": "STRING", "window_start": "TIMESTAMP(3)", "window_end": "TIMESTAMP(3)"}
    if "tc AS m" in listed:
        typed["m"] = "STRING"
    return [(name, typed.get(name, values["sink type"])) for name in names]


@cache
def _names(listed: str) -> tuple[str, ...]:
    """Names of the expressions of a SELECT list."""
    select = parse_one(f"SELECT {listed}")
    assert isinstance(select, Select)
    return tuple(select.named_selects)


def key_of(values: Choices) -> str:
    """The column by which a keyed sink replaces rows."""
    return _output(values)[0][0]


def _sink(values: Choices) -> str:
    columns = ", ".join(f"{name} {type}" for name, type in _output(values))
    if values["sink"] in ("upsert-kafka", "jdbc") and (values["sink"] != "jdbc" or updates(values)):
        columns += f", PRIMARY KEY ({key_of(values)}) NOT ENFORCED"
    options = ", ".join(filter(None, (SINKS[values["sink"]].replace("{}", values["sink name"]), values["sink option"])))
    return f"CREATE TABLE {values['sink name']} ({columns}) WITH ({options});\n"


def _conflict(values: Choices, line: str) -> str:
    """ON CONFLICT, where a sink's key is not the one of the query and the line asks for it."""
    grouped = values["upper"].startswith("group") or (
        not values["upper"] and values["lower"] == "group" and values["below.key"] == "a"
    )
    keyed = "PRIMARY KEY" in _sink(values)
    return " ON CONFLICT DO DEDUPLICATE" if keyed and not grouped and line == "2.3" else ""


def database(*sides: Choices) -> str:
    """The tables of the database that both sides need."""
    made: dict[str, dict[str, str]] = {}
    keys: dict[str, str] = {}
    for values in sides:
        if values["sink"] == "jdbc":
            sql = {"STRING": "TEXT", "TIMESTAMP(3)": "TIMESTAMP"}
            columns = made.setdefault(values["sink name"], {})
            columns |= {name: sql.get(type, "NUMERIC") for name, type in _output(values)}
            if "PRIMARY KEY" in _sink(values):
                keys[values["sink name"]] = f", PRIMARY KEY ({key_of(values)})"
    texts = [
        f"CREATE TABLE {name} ({', '.join(f'{column} {type}' for column, type in columns.items())}{keys.get(name, '')})"
        for name, columns in made.items()
    ]
    if sides[0]["lower"] == "lookup join":
        texts += [
            "CREATE TABLE names (k TEXT, n TEXT)",
            "INSERT INTO names VALUES ('x', 'ann'), ('y', 'ben'), ('z', 'cid')",
        ]
    return "; ".join(texts)


def spelled(spelling: str, text: str) -> str:
    """A query in another spelling."""
    pattern, instead = SPELLINGS[spelling]
    return re.sub(pattern, (lambda match: match[0].lower()) if instead == r"\L" else instead, text)
