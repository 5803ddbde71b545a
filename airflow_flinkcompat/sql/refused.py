"""Literals, types and declarations that the grammar accepts, but that Flink's planner refuses."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.model.engine import line_numbers
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.base_parser import reserved_words
from airflow_flinkcompat.sql.script import Statement, span_of
from airflow_flinkcompat.sql.tokenizer import lexemes

_WITHOUT_PARAMETERS = frozenset(
    {"BIGINT", "BOOLEAN", "BYTES", "DATE", "DOUBLE", "FLOAT", "INT", "SMALLINT", "STRING", "TINYINT"}
)
_ELEMENTS = {"ARRAY": 1, "MAP": 2, "MULTISET": 1}
_MOST_DIGITS = 38
_LARGEST = 2**63 - 1
_DATE = re.compile(r" *(\d+)-(\d+)-(\d+)")
_TIME = re.compile(r" *(\d+):(\d+):(\d+)(\.\d*)?")
_PATTERNS = {
    "DATE": (re.compile(_DATE.pattern), "yyyy-MM-dd"),
    "TIME": (re.compile(_TIME.pattern), "HH:mm:ss"),
    "TIMESTAMP": (re.compile(rf"{_DATE.pattern}(?: +{_TIME.pattern.strip(' *')})?"), "yyyy-MM-dd HH:mm:ss"),
}
_UNITS = frozenset({
    "MILLENNIUM", "CENTURY", "DECADE", "YEAR", "ISOYEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "ISODOW",
    "HOUR", "MINUTE", "SECOND", "EPOCH", "MILLISECOND", "MICROSECOND", "NANOSECOND", "SQL_TSI_YEAR", "SQL_TSI_QUARTER",
    "SQL_TSI_MONTH", "SQL_TSI_WEEK", "SQL_TSI_DAY", "SQL_TSI_HOUR", "SQL_TSI_MINUTE", "SQL_TSI_SECOND",
    "SQL_TSI_FRAC_SECOND", "SQL_TSI_MICROSECOND",
})  # fmt: skip
_BLANK = re.compile(r"[^\S \t\r\n\f]")
_ONE_VALUE = frozenset({"AVG", "COUNT", "MAX", "MIN", "SUM"})
_WINDOWS = frozenset({"CUMULATE", "HOP", "SESSION", "TUMBLE"})
_CALLS_WITH_UNIT = frozenset({"EXTRACT", "TIMESTAMPADD", "TIMESTAMPDIFF", "FLOOR", "CEIL"})


def refused(statement: Statement, line: str) -> Iterator[tuple[Span, str]]:
    """Find constructs that Flink's parser or validator refuses, whatever the tables are."""
    if not reserved_words(line) or isinstance(statement.tree, nodes.SetOption | nodes.ResetOption):
        return
    yield from _reserved_names(statement, line)
    yield from _unread_comparisons(statement)
    yield from _blanks(statement)
    yield from _insert_into_table(statement)
    for node in statement.nodes:
        if fault := _fault(node) or _too_new(node, line):
            yield span_of(node, statement), fault


def _blanks(statement: Statement) -> Iterator[tuple[Span, str]]:
    """Find characters outside of strings and comments that look like blanks, but that Flink refuses."""
    if not _BLANK.search(statement.text):
        return
    for lexeme in lexemes(statement.text):
        if lexeme.kind == "space" and (found := _BLANK.search(lexeme.text)):
            start = lexeme.start + found.start()
            character = f"U+{ord(found[0]):04X} ({unicodedata.name(found[0], 'a control character').lower()})"
            yield (
                statement.place(start, start + 1),
                f"Flink's parser does not accept {character} as a blank; write a normal blank",
            )


def _insert_into_table(statement: Statement) -> Iterator[tuple[Span, str]]:
    text = statement.text.upper()
    if "INSERT" not in text or "TABLE" not in text:
        return
    words = [each for each in lexemes(statement.text, without=("space", "comment")) if each.kind != "string"]
    for insert, kind, table in zip(words, words[1:], words[2:], strict=False):
        found = [each.text.upper() for each in (insert, kind, table)]
        if found in (["INSERT", "INTO", "TABLE"], ["INSERT", "OVERWRITE", "TABLE"]):
            place = statement.place(table.start, table.end)
            yield place, f"Flink's parser does not accept TABLE after {' '.join(found[:2])}; remove the word TABLE"


def _reserved_names(statement: Statement, line: str) -> Iterator[tuple[Span, str]]:
    """Find reserved words that are used as names."""
    reserved = reserved_words(line)
    for node in statement.nodes:
        if isinstance(node, exp.Identifier) and not node.args.get("quoted") and node.name.upper() in reserved:
            yield (
                span_of(node, statement),
                f"{node.name} is a reserved word in Flink {line}; write the name in backticks, `{node.name}`",
            )


def _unread_comparisons(statement: Statement) -> Iterator[tuple[Span, str]]:
    if "!=" not in statement.text:
        return
    previous = None
    for lexeme in lexemes(statement.text):
        if lexeme.text == "=" and previous is not None and previous.text == "!" and previous.end == lexeme.start:
            yield statement.place(previous.start, lexeme.end), "Flink does not support !=; write <>"
        previous = lexeme


def _too_new(node: exp.Expr, line: str) -> str:
    """The reason why the parser of an older Flink version refuses a construct; "" if it does not."""
    for first, what, written in _SINCE.get(type(node), ()):
        if written(node) and line_numbers(line) < line_numbers(first):
            return f"Flink {line} does not support {what}, which is new in Flink {first}; remove it, or run on {first}"
    return ""


def _fault(node: exp.Expr) -> str:
    check = _CHECKS.get(type(node))
    return "" if check is None else check(node)


def _type(node: nodes.FlinkType) -> str:
    if twice := _repeated(field.name for field in node.expressions if isinstance(field, nodes.RowField)):
        return f"field {twice} is declared twice; remove or rename one of them"
    name, sizes = node.name.upper(), [each.name for each in node.expressions if isinstance(each, exp.Literal)]
    if name in ("TIME_TZ", "TIMESTAMP_TZ", "TIME_LTZ"):
        return f"Flink has no {name.removesuffix('_TZ')} of this time zone; write TIMESTAMP_LTZ or TIMESTAMP"
    if name == "NULL":
        return "NULL is not a column type; write a different type"
    wanted, inner = _ELEMENTS.get(name), [each for each in node.expressions if isinstance(each, nodes.FlinkType)]
    if wanted and len(inner) != wanted:
        return f"{name} requires {wanted} type{'s' * (wanted > 1)}, not {len(inner)}"
    if not sizes or not all(size.isdecimal() for size in sizes):
        return ""
    shown = f"{name}({', '.join(sizes)})"
    if name in _WITHOUT_PARAMETERS:
        return f"{shown}: {name} has no length; write {name}"
    if len(sizes) > (2 if name == "DECIMAL" else 1):
        return f"{shown} has too many parameters"
    if name == "DECIMAL" and int(sizes[0]) < 1:
        return f"{shown}: write a precision from 1 to {_MOST_DIGITS}"
    if name == "DECIMAL" and len(sizes) > 1 and int(sizes[1]) > int(sizes[0]):
        return f"{shown}: the scale is greater than the precision; write a scale up to {sizes[0]}"
    return ""


def _moment(node: nodes.TypedLiteral) -> str:
    kind, text = node.args["kind"], node.name
    if kind not in _PATTERNS or "{" in text:  # the text contains a placeholder
        return ""
    pattern, form = _PATTERNS[kind]
    found = pattern.fullmatch(text)
    if found is not None and _exists(kind, [int(each) for each in found.groups()[:6] if each and each.isdecimal()]):
        return ""
    return f"{kind} '{text}' is not a valid {kind}; write an existing value as {form}"


def _exists(kind: str, parts: list[int]) -> bool:
    try:
        if kind == "TIME":
            hour, minute, second = parts
            time(hour, minute, second)
        else:
            year, month, day, hour, minute, second = [*parts, 0, 0, 0][:6]
            datetime(year, month, day, hour, minute, second)
    except ValueError:
        return parts[0] == 0 or parts[0] > datetime.max.year  # it is unknown if Flink accepts these years
    return True


def _number(node: exp.Literal) -> str:
    if node.is_string or isinstance(node.parent, nodes.FlinkType):
        return ""
    text = node.name
    if "e" in text.lower():
        return f"{text} is out of the range of DOUBLE" if float(text) == float("inf") else ""
    try:
        digits = int(Decimal(text).scaleb(max(0, len(text.partition(".")[2]))))
    except ArithmeticError:
        return ""
    smallest = isinstance(node.parent, exp.Neg) and digits == _LARGEST + 1
    if digits <= _LARGEST or smallest:
        return ""
    return f"{text} is out of range: the digits of a number must fit a BIGINT; write CAST('{text}' AS DECIMAL(…))"


def _untyped_null(node: exp.Null) -> str:
    """Find an untyped NULL as a column of a SELECT, a cell of VALUES, or a field of a ROW."""
    column = node.parent if isinstance(node.parent, exp.Alias) else node
    query = column.parent
    if isinstance(query, exp.Anonymous) and query.name.upper() == "ROW":
        return "ROW(…) contains a NULL without a type; write CAST(NULL AS the type)"
    if isinstance(query, exp.Values) or (isinstance(query, exp.Tuple) and isinstance(query.parent, exp.Values)):
        return "a cell of VALUES is NULL without a type; write CAST(NULL AS the type)"
    if not isinstance(query, exp.Select) or column.arg_key != "expressions" or query.find_ancestor(exp.Exists):
        return ""
    return "a column is NULL without a type; write CAST(NULL AS the type)"


def _array(node: exp.Array) -> str:
    return "" if node.expressions else "ARRAY[] has no element; write at least one element"


def _map(node: nodes.MapConstructor) -> str:
    paired = node.expressions and len(node.expressions) % 2 == 0
    return "" if paired else "MAP[…] requires pairs of keys and values; write at least one pair"


def _bytes(node: exp.HexString) -> str:
    odd = len(node.name) % 2
    return f"X'{node.name}' has an odd number of digits; write two digits for each byte" if odd else ""


def _call(node: exp.Expr) -> str:
    name = node.name.upper()
    if name in _CALLS_WITH_UNIT:
        unit = next((each.name for each in node.expressions if isinstance(each, exp.Var)), None)
        if unit is not None and unit.upper() not in _UNITS:
            return f"{name} does not accept the unit {unit}; write a unit such as DAY, HOUR or MINUTE"
    if name == "COUNT" and not node.expressions:
        return "COUNT() has no argument; write COUNT(*)"
    if name in _ONE_VALUE and any(_every_column(each, name) for each in node.expressions):
        return f"only COUNT(*) accepts * for all columns; write a column as the argument of {name}"
    return ""


def _every_column(argument: exp.Expr, function: str) -> bool:
    distinct = isinstance(argument, exp.Distinct)
    inner = argument.expressions if isinstance(argument, exp.Distinct) else [argument]
    return any(isinstance(each, exp.Star) for each in inner) and (distinct or function != "COUNT")


def _window(node: nodes.TableFunction) -> str:
    """The reason why Flink refuses the arguments of a windowing function; "" if it accepts them."""
    if node.this.name.upper() not in _WINDOWS:
        return ""
    names = [each.this.name if isinstance(each, nodes.NamedArgument) else "" for each in node.expressions]
    if "" in names and any(names):
        return f"{node.this.name.upper()} requires names for all arguments or for none; name all of them"
    if small := next((name for name in names if name != name.upper()), ""):
        return f"{node.this.name.upper()} has no argument {small}; write {small.upper()}"
    if names[:1] != ["DATA"] and any(names):
        return f"Flink accepts DATA only as the first argument of {node.this.name.upper()}; write it before the others"
    return ""


def _parentheses(node: exp.Subquery) -> str:
    inner = node.this
    if isinstance(inner, exp.Table | nodes.TableFunction) and not inner.args.get("joins"):
        return "Flink does not accept a single table in parentheses; remove them"
    return ""


def _statement_set(node: nodes.StatementSet) -> str:
    if not node.expressions:
        return "the statement set is empty; write an INSERT between BEGIN and END"
    if any(isinstance(each, nodes.SetOption | nodes.ResetOption) for each in node.expressions):
        return "a statement set accepts neither SET nor RESET; write them before it"
    return ""


def _name(node: exp.Identifier) -> str:
    return "" if node.name or not node.quoted else "`` is not a name; write a name between the back-ticks"


def _field_of_row(node: exp.Dot) -> str:
    row, field = node.this.unnest(), node.expression
    constructor = isinstance(row, exp.Anonymous) and row.name.upper() == "ROW"
    if constructor and isinstance(field, exp.Identifier) and not field.name.startswith("EXPR$"):
        return f"ROW(…) has no field {field.name}; its fields are `EXPR$0`, `EXPR$1` and so on"
    return ""


def _table(node: nodes.CreateTable) -> str:
    columns = node.args.get("columns") or ()
    if twice := _repeated(column.name for column in columns):
        return f"column {twice} is declared twice; remove or rename one of them"
    own = [column.args["constraint"] for column in columns if column.args.get("constraint")]
    keys = [*own, *(node.args.get("constraints") or ())]
    if any(key.args["kind"] == "UNIQUE" for key in keys):
        return "Flink does not support UNIQUE; remove it, or declare a PRIMARY KEY (…) NOT ENFORCED"
    if any(key.args.get("enforced") is not False for key in keys):
        return "Flink does not enforce a PRIMARY KEY; write PRIMARY KEY (…) NOT ENFORCED"
    if len(keys) > 1:
        return "a table can only have one PRIMARY KEY; remove the others"
    if len(node.args.get("watermarks") or ()) > 1:
        return "a table can only have one WATERMARK; remove the others"
    for key in keys:
        if twice := _repeated(name.name for name in key.expressions):
            return f"the PRIMARY KEY contains column {twice} twice; remove one of them"
    if node.args.get("like") or node.args.get("expression"):
        return ""  # the table also has columns of another table or query
    return next(_unknown_names(node, columns, keys), "")


def _unknown_names(node: nodes.CreateTable, columns: Sequence[exp.Expr], keys: Sequence[exp.Expr]) -> Iterator[str]:
    """Find names in a declaration that match no column of the table, in any case."""
    known = {column.name.upper() for column in columns}
    computed = {column.name.upper() for column in columns if isinstance(column, nodes.ComputedColumn)}
    distribution = node.args.get("distribution")
    for part, names in (
        ("its PRIMARY KEY", [name.name for key in keys for name in key.expressions]),
        ("PARTITIONED BY", [name.name for name in node.args.get("partitioned_by") or ()]),
        ("DISTRIBUTED BY", [name.name for name in distribution.expressions] if distribution else []),
    ):
        for name in names:
            if name.upper() not in known:
                yield f"the table has no column {name} for {part}; name an existing column"
    for column in columns:
        if isinstance(column, nodes.ComputedColumn):
            for used in column.args["expression"].find_all(exp.Column):
                name = used.parts[0].name
                if name.upper() in computed - {column.name.upper()}:
                    yield (
                        f"{column.name} is computed from {name}, which is also a computed "
                        f"column; write out the expression of {name}"
                    )
                elif len(used.parts) == 1 and name.upper() not in known:
                    yield f"{column.name} is computed from {name}, which is not a column of the table"


def _catalog(node: nodes.CreateNamespace) -> str:
    typed = any(option.this.name == "type" for option in node.args.get("options") or ())
    return "a catalog has no 'type'; write WITH ('type' = '…')" if node.args["kind"] == "CATALOG" and not typed else ""


def _repeated(names: Iterable[str]) -> str:
    """The first name, in alphabetical order, that occurs twice; "" if all names are distinct."""
    counted = Counter(names)
    return next((name for name in sorted(counted) if counted[name] > 1), "")


_MODEL = ("1.20", "models", lambda node: node.args.get("kind") == "MODEL")
_SINCE: Mapping[type[exp.Expr], tuple[tuple[str, str, Callable[[Any], Any]], ...]] = {
    nodes.InsertInto: (("2.3", "ON CONFLICT", lambda node: node.args.get("conflict")),),
    nodes.Resource: (("2.3", "USING ARTIFACT", lambda node: node.args["kind"] == "ARTIFACT"),),
    nodes.CreateFunction: (("2.2", "WITH after a function", lambda node: node.args.get("options")),),
    exp.With: (("2.2", "WITH RECURSIVE", lambda node: node.args.get("recursive")),),
    nodes.ModelArgument: (("2.1", "MODEL as an argument", lambda node: True),),
    nodes.FlinkType: (("2.1", "STRUCTURED", lambda node: node.name.upper() == "STRUCTURED"),),
    exp.Qualify: (("2.0", "QUALIFY", lambda node: True),),
    nodes.CreateTable: (
        (
            "2.0",
            "columns without types",
            lambda n: any(isinstance(c, exp.Identifier) for c in n.args.get("columns") or ()),
        ),
    ),
    nodes.Describe: (("2.0", "DESCRIBE FUNCTION", lambda node: node.args.get("kind") == "FUNCTION"), _MODEL),
    nodes.Show: (
        ("2.2", "SHOW MATERIALIZED TABLES", lambda node: node.name == "MATERIALIZED TABLES"),
        ("2.0", "SHOW VIEWS FROM", lambda node: node.name == "VIEWS" and node.args.get("of")),
        ("2.0", "SHOW CATALOGS LIKE", lambda node: node.name == "CATALOGS" and node.args.get("like")),
        ("1.20", "SHOW of models", lambda node: node.name in ("MODELS", "CREATE MODEL")),
        ("1.20", "SHOW CREATE CATALOG", lambda node: node.name == "CREATE CATALOG"),
    ),
    nodes.CreateModel: (("1.20", "models", lambda node: True),),
    nodes.Drop: (_MODEL,),
    nodes.Alter: (_MODEL, ("1.20", "ALTER CATALOG", lambda node: node.args["kind"] == "CATALOG")),
    nodes.Distribution: (("1.20", "DISTRIBUTED BY", lambda node: True),),
    nodes.LikeOption: (("1.20", "DISTRIBUTION in LIKE", lambda node: node.args["kind"] == "DISTRIBUTION"),),
    nodes.CreateNamespace: (
        (
            "1.20",
            "IF NOT EXISTS and COMMENT of a catalog",
            lambda n: n.args["kind"] == "CATALOG" and (n.args.get("exists") or n.args.get("comment")),
        ),
    ),
}
"""The first version of Flink that supports each clause, the name of the clause, and a test."""
_CHECKS: Mapping[type[exp.Expr], Callable[[Any], str]] = {
    nodes.FlinkType: _type,
    nodes.TypedLiteral: _moment,
    exp.Literal: _number,
    exp.Null: _untyped_null,
    exp.Array: _array,
    nodes.MapConstructor: _map,
    exp.HexString: _bytes,
    nodes.KeywordCall: _call,
    exp.Anonymous: _call,
    exp.Dot: _field_of_row,
    exp.Identifier: _name,
    exp.Subquery: _parentheses,
    nodes.StatementSet: _statement_set,
    nodes.TableFunction: _window,
    nodes.CreateTable: _table,
    nodes.CreateNamespace: _catalog,
}
"""Checks by node type. Each check returns the reason why Flink refuses a node, or ""."""
