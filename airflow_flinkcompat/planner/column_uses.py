"""Columns of tables that a script uses but does not declare, and the types that their use suggests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_flinkcompat.planner.assumed_table import NUMBER, PROCTIME, ROWTIME, TEXT, TIMESTAMP, AssumedColumn, Parts
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.grammar import nodes_of

_PROCESSING = re.compile(r"proc", re.IGNORECASE)
_EVENT = re.compile(r"\$?row_?time", re.IGNORECASE)
"""Names of columns that are time attributes in most scripts."""
_FIELD = "assumed"
"""Name of a field of a ROW whose fields a statement reads as ``*``."""
_WINDOW_COLUMNS = frozenset(("window_start", "window_end", "window_time"))
_RANKS = frozenset(("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"))
_WINDOWS = "TUMBLE|HOP|SESSION|CUMULATE"
_ARGUMENTS: Mapping[str, str] = {
    rf"(?:{_WINDOWS})(?:_START|_END|_ROWTIME|_PROCTIME)?": ROWTIME,
    "SUM|SUM0|AVG|ABS|ROUND|FLOOR|CEIL|CEILING|MOD|POWER|SQRT|EXP|LN|LOG|LOG10|STDDEV\\w*|VAR_\\w+|VARIANCE|TRUNCATE"
    "|FROM_UNIXTIME|TO_TIMESTAMP_LTZ|SIGN": NUMBER,
    "UPPER|LOWER|TRIM|LTRIM|RTRIM|BTRIM|SUBSTR|SUBSTRING|CONCAT|CONCAT_WS|REPLACE|REGEXP\\w*|JSON_VALUE|JSON_QUERY"
    "|JSON_EXISTS|SPLIT_INDEX|CHAR_LENGTH|CHARACTER_LENGTH|POSITION|LOCATE|INSTR|LPAD|RPAD|INITCAP|OVERLAY|MD5|SHA\\d*"
    "|TO_DATE|TO_TIMESTAMP|STR_TO_MAP|PARSE_URL|LISTAGG|FROM_BASE64|TO_BASE64|LEFT|RIGHT|REVERSE|ASCII|URL_\\w+": TEXT,
    "DATE_FORMAT|YEAR|QUARTER|MONTH|WEEK|DAYOF\\w+|HOUR|MINUTE|SECOND|EXTRACT|TIMESTAMPADD|TIMESTAMPDIFF": TIMESTAMP,
    "CARDINALITY|ELEMENT|ARRAY_\\w+": "ARRAY<STRING>",
    "MAP_KEYS|MAP_VALUES|MAP_ENTRIES": "MAP<STRING, STRING>",
}
"""Types of the arguments of functions, by the functions' names."""
_RESULTS: Mapping[str, str] = {
    "CURRENT_TIMESTAMP|NOW|LOCALTIMESTAMP|PROCTIME|TO_TIMESTAMP|TO_TIMESTAMP_LTZ|TIMESTAMPADD|CURRENT_ROW_TIMESTAMP"
    rf"|(?:{_WINDOWS})_(?:START|END|ROWTIME|PROCTIME)": TIMESTAMP,
    "CURRENT_DATE|TO_DATE": "DATE",
    "COUNT|SUM|AVG|ABS|ROUND|FLOOR|CEIL|MOD|CHAR_LENGTH|CARDINALITY|ROW_NUMBER|UNIX_TIMESTAMP|TIMESTAMPDIFF": NUMBER,
    "UPPER|LOWER|TRIM|SUBSTR|SUBSTRING|CONCAT|CONCAT_WS|REPLACE|JSON_VALUE|JSON_QUERY|DATE_FORMAT|FROM_UNIXTIME": TEXT,
}
"""Types of the results of functions, by the functions' names."""
_ALIKE = frozenset(("COALESCE", "IF", "IFNULL", "NULLIF", "NVL", "GREATEST", "LEAST"))
"""Functions whose arguments and result have one type, apart from the condition of IF."""
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.NullSafeEQ)
_TEXTS = (exp.Like, exp.DPipe, exp.SimilarTo)
_CONDITIONS = (exp.And, exp.Or, exp.Not, exp.Where, exp.Having)


@dataclass
class ColumnUses:
    """Uses of undeclared tables in statements.

    Attributes:
        missing: The names that Flink does not find, although the script declares a table with that name.
        queries: The queries of the script's views, by name.
        declared: The columns of the script's tables, by name; None if the columns are unknown.
        tables: The columns of each undeclared table.
        versioned: The columns of a temporal join's condition, by the table that the join reads.
    """

    missing: Collection[str] = ()
    queries: dict[str, exp.Expr] = field(default_factory=dict)
    declared: dict[str, frozenset[str] | None] = field(default_factory=dict)
    tables: dict[Parts, dict[str, AssumedColumn]] = field(default_factory=dict)
    versioned: dict[Parts, dict[str, None]] = field(default_factory=dict)

    def read(self, tree: exp.Expr) -> None:
        """Add the declarations and the uses of one statement."""
        if isinstance(tree, nodes.CreateTable):
            columns = [each.name for each in tree.args.get("columns") or ()]
            whole = columns and not tree.args.get("like") and not tree.args.get("expression")
            self.declared[tree.this.name] = frozenset(columns) if whole else None
        every = nodes_of(tree)
        ctes = {each.alias: each.this for each in every if isinstance(each, exp.CTE)}
        outer, self.queries = self.queries, {**self.queries, **ctes}
        for each in every:
            if isinstance(each, exp.Table) and each.name not in ctes and _is_used(each):
                self._table(each)
        columns = [each for each in every if isinstance(each, exp.Column)]
        columns.sort(key=lambda each: not isinstance(each.find_ancestor(exp.Join, exp.Select), exp.Join))
        equal: list[tuple[AssumedColumn, AssumedColumn]] = []
        found = {id(each): self._column(each) for each in columns}
        for each in columns:
            for one in found[id(each)]:
                one.suggest(_suggested(each))
                equal += [(one, other) for peer in _peers(each) for other in found.get(id(peer), ())]
        for each in every:
            if isinstance(each, nodes.Descriptor):
                self._descriptor(each)
        for one, other in (*equal, *reversed(equal)):
            one.suggest(other.type if other.type not in (ROWTIME, PROCTIME) else TIMESTAMP)
            other.suggest(one.type if one.type not in (ROWTIME, PROCTIME) else TIMESTAMP)
        self.queries = outer
        if isinstance(tree, nodes.CreateView):
            self.queries[tree.this.name] = tree.expression

    def _table(self, table: exp.Table) -> None:
        if (parts := self._undeclared(table)) is None:
            return
        columns = self.tables.setdefault(parts, {})
        for name in ((alias := table.args.get("alias")) and alias.columns) or ():
            columns.setdefault(name.name, AssumedColumn())
        join = table.parent
        if (version := table.args.get("version")) is not None and not _PROCESSING.search(version.this.name):
            keys = self.versioned.setdefault(parts, {})
            condition = join.args.get("on") if isinstance(join, exp.Join) else None
            names = (each for each in nodes_of(condition) if isinstance(each, exp.Column)) if condition else ()
            keys.update({each.name: None for each in names if each.table == table.alias_or_name})

    def _undeclared(self, table: exp.Table) -> Parts | None:
        parts = tuple(each.name for each in table.parts)
        known = parts[-1] in self.queries or parts[-1] in self.declared
        return None if known and parts[-1] not in self.missing else parts

    def _descriptor(self, descriptor: nodes.Descriptor) -> None:
        function = descriptor.find_ancestor(nodes.TableFunction)
        for name in descriptor.expressions if function is not None else ():
            for one in self._named(self._find(function, name.name) or (), name.name, ()):
                one.suggest(ROWTIME)

    def _column(self, column: exp.Column) -> list[AssumedColumn]:
        """The columns of undeclared tables that a reference may mean."""
        name, *path = [_FIELD if isinstance(each, exp.Star) else each.name for each in column.parts]
        if isinstance(column.this, exp.Star) and (
            not path or any(_label(each) == name for each in _all_sources(column))
        ):
            return []
        own = column.find_ancestor(nodes.TableArgument, nodes.MatchRecognize, exp.Select)
        if isinstance(own, nodes.TableArgument | nodes.MatchRecognize):
            if path and isinstance(own, nodes.MatchRecognize):
                name, *path = path
            return self._named(self._find(own.this, name) or (), name, path)
        if not path and own is not None and _is_output(column, own):
            return []
        for select in _enclosing(column):
            sources = list(_sources(select))
            if path:
                qualified = [each for each in sources if _label(each) == name]
                if qualified:
                    return self._named(self._find(qualified[0], path[0]) or (), path[0], path[1:])
            elif _is_right(column):
                join = column.find_ancestor(exp.Join, exp.Select)
                sources = [*([join.this] if isinstance(join, exp.Join) else []), *reversed(sources)]
            if (tables := self._among(sources, name)) is not None:
                return self._named(tables, name, path)
        return []

    def _named(self, tables: Iterable[Parts], name: str, path: Iterable[str]) -> list[AssumedColumn]:
        found = []
        for table in tables:
            column = self.tables[table].setdefault(name, AssumedColumn())
            for each in path:
                column = column.fields.setdefault(each, AssumedColumn())
            found.append(column)
        return found

    def _among(self, sources: Iterable[exp.Expr], name: str) -> list[Parts] | None:
        """Find the tables that provide a column without a qualifier; None if no source may provide it."""
        found = [each for each in (self._find(source, name) for source in sources) if each is not None]
        if not found or [] in found:
            return [] if found else None
        return next((each for each in found if any(name in self.tables[table] for table in each)), found[0])

    def _find(self, relation: exp.Expr | None, name: str) -> list[Parts] | None:
        """Find the undeclared tables that provide a column of a relation.

        The result is empty if the relation has the column by itself, and None if the relation lacks the column.
        """
        alias = relation.args.get("alias") if relation is not None else None
        renamed = [each.name for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if renamed and not isinstance(relation, exp.Table):
            return [] if name in renamed else None
        match relation:
            case exp.Table():
                if (query := self.queries.get(relation.name)) is not None and not relation.db:
                    queries = {key: each for key, each in self.queries.items() if each is not query}
                    return replace(self, queries=queries)._find(query, name)
                parts = self._undeclared(relation)
                if parts is not None:
                    self.tables.setdefault(parts, {})
                    return [parts]
                columns = self.declared.get(relation.name)
                return [] if columns is None or name in columns else None
            case exp.Subquery() | exp.Paren() | nodes.TableArgument():
                return self._find(relation.this, name)
            case nodes.MatchRecognize():
                measured = name in {each.alias for each in relation.args.get("measures") or ()}
                return [] if measured else self._find(relation.this, name)
            case nodes.TableFunction():
                inner = next((each for each in nodes_of(relation) if isinstance(each, nodes.TableArgument)), None)
                return [] if name in _WINDOW_COLUMNS and inner is not None else self._find(inner, name)
            case exp.SetOperation():
                sides = [self._find(each, name) for each in (relation.this, relation.expression)]
                known = [each for each in sides if each is not None]
                return [table for side in known for table in side] if known else None
            case exp.Select():
                return self._projected(relation, name)
        return None

    def _projected(self, select: exp.Select, name: str) -> list[Parts] | None:
        if any(each.alias_or_name == name for each in select.expressions):
            return []
        sources: list[exp.Expr] = []
        for each in select.expressions:
            if isinstance(each, exp.Star):
                sources += _sources(select)
            elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                sources += [source for source in _sources(select) if _label(source) == each.table]
        return self._among(sources, name)


def _is_used(table: exp.Table) -> bool:
    """True if a statement reads or writes the table, and does not declare or change it."""
    if isinstance(table.parent, nodes.CreateTable | nodes.CreateView):
        return table.arg_key != "this"
    return isinstance(
        table.parent,
        exp.From | exp.Join | exp.Select | nodes.TableArgument | nodes.InsertInto | nodes.MatchRecognize
        | nodes.TableLike | nodes.SystemTime | exp.Subquery | exp.SetOperation,
    )  # fmt: skip


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    first = select.args.get("from_")
    for each in (first, *(select.args.get("joins") or ())):
        if each is not None:
            yield each.this


def _enclosing(node: exp.Expr) -> Iterator[exp.Select]:
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _all_sources(column: exp.Expr) -> Iterator[exp.Expr]:
    for select in _enclosing(column):
        yield from _sources(select)


def _label(source: exp.Expr) -> str:
    return source.alias or (source.name if isinstance(source, exp.Table) else "")


def _is_output(column: exp.Column, select: exp.Expr) -> bool:
    """True if the column is an alias of the query that ORDER BY or HAVING names."""
    own = column.find_ancestor(exp.Window, exp.Order, exp.Having, exp.Select)
    return isinstance(own, exp.Order | exp.Having) and column.name in {
        each.alias for each in select.expressions if isinstance(each, exp.Alias)
    }


def _is_right(column: exp.Column) -> bool:
    return isinstance(column.parent, _COMPARISONS) and column.arg_key == "expression"


def _peers(column: exp.Column) -> Iterator[exp.Expr]:
    """Columns that a statement compares with this column."""
    compared = column.parent
    if isinstance(compared, _COMPARISONS):
        yield from (each for each in compared.args.values() if isinstance(each, exp.Column) and each is not column)


def _by_name(table: Mapping[str, str], call: exp.Expr) -> str:
    name = (call.this if isinstance(call.this, str) else call.name).upper()
    return next((type_ for pattern, type_ in table.items() if re.fullmatch(pattern, name)), "")


def _suggested(column: exp.Column) -> str:
    name = column.parts[-1].name
    if _EVENT.fullmatch(name):
        return ROWTIME
    suggested = _suggested_by(column.parent, column)
    if suggested in (ROWTIME, TIMESTAMP, "") and _PROCESSING.match(name):
        return PROCTIME if suggested or "time" in name.lower() else ""
    return suggested


def _suggested_by(parent: exp.Expr | None, node: exp.Expr) -> str:
    match parent:
        case exp.Paren() | exp.Distinct() | exp.Alias():
            return _suggested_by(parent.parent, parent) if not isinstance(parent, exp.Alias) else ""
        case exp.Anonymous() | nodes.KeywordCall() | exp.If():
            return _by_call(parent, node)
        case nodes.SystemTime():
            return ROWTIME
        case exp.Ordered():
            return ROWTIME if _orders_time(parent) else ""
        case exp.Bracket() if parent.this is node:
            index = parent.expressions[0]
            return "MAP<STRING, STRING>" if isinstance(index, exp.Literal) and index.is_string else "ARRAY<STRING>"
        case exp.Unnest():
            return _array(parent)
    if isinstance(parent, _TEXTS):
        return TEXT
    if isinstance(parent, _CONDITIONS) or (isinstance(parent, exp.Join) and node.arg_key == "on"):
        return "BOOLEAN"
    if isinstance(parent, _ARITHMETIC):
        others = [each for each in parent.iter_expressions() if each is not node]
        moments = any(isinstance(each, exp.Interval) or _type_of(each) == TIMESTAMP for each in others)
        return TIMESTAMP if moments else NUMBER
    if isinstance(parent, _COMPARISONS):
        return _first_type(parent, node)
    return ""


def _by_call(call: exp.Expr, argument: exp.Expr) -> str:
    """The type that a function or a branch of CASE suggests for an argument."""
    name = "CASE" if isinstance(call, exp.If) else call.name.upper()
    if argument.arg_key == "this" or (name == "IF" and call.expressions[0] is argument):
        return "BOOLEAN"
    if isinstance(call, exp.If) and isinstance(call.parent, exp.Case):
        results = [each.args["true"] for each in call.parent.args["ifs"]]
        results += [each for each in (call.parent.args.get("default"),) if each is not None]
        return next(filter(None, map(_type_of, results)), "") or _suggested_by(call.parent.parent, call.parent)
    if name in _ALIKE:
        return _first_type(call, argument) or _suggested_by(call.parent, call)
    return _by_name(_ARGUMENTS, call)


def _first_type(parent: exp.Expr, node: exp.Expr) -> str:
    """The first known type of the other operands or arguments."""
    types = (_type_of(each) for each in parent.iter_expressions() if each is not node)
    return next(filter(None, types), "")


def _orders_time(ordered: exp.Expr) -> bool:
    """True if the order needs a time attribute: MATCH_RECOGNIZE, and OVER without a rank."""
    owner = ordered.parent.parent if ordered.parent is not None else None
    first = ordered.parent is not None and ordered.parent.expressions[0] is ordered
    if isinstance(owner, exp.Window):
        call = owner.this
        return first and not (isinstance(call, exp.Anonymous) and call.name.upper() in _RANKS)
    return first and isinstance(owner, nodes.MatchRecognize)


def _array(unnest: exp.Expr) -> str:
    alias = unnest.args.get("alias")
    names = [each.name for each in alias.columns] if alias is not None else []
    if alias is not None and not names and (select := unnest.find_ancestor(exp.Select)) is not None:
        own = (each for each in nodes_of(select) if isinstance(each, exp.Column) and each.table == alias.name)
        names = list(dict.fromkeys(each.name for each in own if each.name != "*"))
    if alias is None or len(names) < (2 if alias.columns else 1):
        return "ARRAY<STRING>"
    names += [_FIELD] if len(names) == 1 else []  # Flink does not flatten a ROW with one field
    return f"ARRAY<ROW<{', '.join(f'`{each}` STRING' for each in names)}>>"


def _type_of(value: exp.Expr) -> str:
    """The type of a value that is not a column; "" if it is unknown."""
    match value:
        case exp.Literal():
            return TEXT if value.is_string else "DOUBLE" if "." in value.name else NUMBER
        case exp.Boolean():
            return "BOOLEAN"
        case exp.Interval():
            return ""
        case nodes.TypedLiteral():
            kind = str(value.args["kind"]).upper()
            return TIMESTAMP if "TIMESTAMP" in kind else kind
        case exp.Cast():
            return _by_cast(value)
        case exp.Anonymous() | nodes.KeywordCall() | nodes.Niladic():
            return _by_name(_RESULTS, value)
        case exp.Paren() | exp.Neg() | exp.Subquery() | exp.Alias():
            return _type_of(value.this)
        case exp.Select() if value.expressions:
            return _type_of(value.expressions[0])
    if isinstance(value, _ARITHMETIC):
        types = {_type_of(each) for each in value.iter_expressions()}
        moments = any(isinstance(each, exp.Interval) for each in value.iter_expressions())
        return TIMESTAMP if moments or TIMESTAMP in types else NUMBER
    return TEXT if isinstance(value, _TEXTS) else ""


def _by_cast(cast: exp.Expr) -> str:
    name = cast.args["to"].name.upper()
    if "TIMESTAMP" in name:
        return TIMESTAMP
    if "CHAR" in name or name == TEXT:
        return TEXT
    return name if name in ("DATE", "BOOLEAN", "DOUBLE", "FLOAT", "INT", "BIGINT") else ""
