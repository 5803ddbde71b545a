"""Evaluation of FLIP-11's notation to Table API values, with its expressions and row windows.

FLIP-11's notation differs from current Flink. ``groupBy`` may precede ``window`` or be absent. A window may lack an
alias, and a window without a time attribute uses processing time. ``'rowtime`` is a keyword for the event time of a
table. ``rowWindow`` accepts row windows. Each notation is read as its equivalent in current Flink, with a note about
the versions that accept it. A row window becomes a :class:`~airflow_flinkcompat.frontends.table_api.values.Spec` of
kind ``Over``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import api_calls, validation
from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.expression_text import Meaning, old_type, short, snake
from airflow_flinkcompat.frontends.table_api.expression_tree import Tree
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Described,
    Expr,
    GroupedTable,
    JobResult,
    NotRead,
    Ref,
    Spec,
    TableEnvironment,
    TableValue,
    UnknownValue,
    Value,
    bounded,
)
from airflow_flinkcompat.sql import Statement, nodes

KINDS: Mapping[str, str] = {"TumbleRows": "Tumble", "SlideRows": "Over", "SessionRows": "Session"}
"""FLIP-11's row windows, each with the current type of window whose lengths follow the same rules."""
_LENGTH = {"TumbleRows": "over", "SessionRows": "with_gap"}
_CALL = {"TumbleRows": "TUMBLE", "SessionRows": "SESSION"}


def with_call(spec: Spec, method: str, args: Sequence[Value], batch: bool) -> Spec:
    """Apply a chained method, such as ``over``, to a row window; raise NotRead for an unknown method."""
    if spec.kind == "SlideRows" and method == "unbounded_preceding" and not args:
        method, args = "preceding", [Expr("bound", ("UNBOUNDED_RANGE",))]
    known = ("preceding", "following", "on") if spec.kind == "SlideRows" else (_LENGTH[spec.kind], "on")
    if method not in known or spec.get(method) is not None or spec.alias:
        raise NotRead(f"{spec.kind} has no {method} here")
    given = args[0] if len(args) == 1 else None
    if not isinstance(given, Expr):
        raise NotRead(f"{method} of {spec.kind} accepts one expression")
    if method == "on":
        validation.time_column("Over", method, given)
    elif spec.kind == "SlideRows":
        if given.kind not in ("interval", "rows", "bound"):
            raise validation.refused(f"{method} of SlideRows is not a constant", "write 5.minutes or 5.rows")
    else:
        validation.length(KINDS[spec.kind], method, given, (), batch)
    return replace(spec, calls=(*spec.calls, (method, (given,))))


def today(spec: Spec, keys: Sequence[Expr], time: Expr) -> Spec:
    """Convert a row window to current Flink's ``Over``. Raises :class:`NotRead` without alias or length."""
    if not spec.alias:
        raise validation.refused("a row window has no alias", "add an alias with as 'w, which aggregates name in over")
    parts: list[tuple[str, tuple[Expr, ...]]] = [("partition_by", tuple(keys))] if keys else []
    parts.append(("order_by", (time,)))
    if spec.kind == "Over":
        parts = [*(part for part in spec.calls if part[0] == "partition_by"), *parts]
    elif spec.kind == "SlideRows":
        parts += _slide(spec)
    else:
        length = spec.get(_LENGTH[spec.kind])
        if length is None:
            raise validation.refused(f"{spec.kind} has no length", f"write {spec.kind} {_EXAMPLE[spec.kind]} as 'w")
        parts.append(("within", (Expr("within", (_CALL[spec.kind], length[0])),)))
    return Spec("Over", tuple(parts), spec.alias)


_EXAMPLE = {"TumbleRows": "over 10.minutes", "SessionRows": "withGap 10.minutes"}


def _slide(spec: Spec) -> list[tuple[str, tuple[Expr, ...]]]:
    preceding, following = spec.get("preceding"), spec.get("following")
    if preceding is None:
        raise NotRead("SlideRows without preceding has no lower bound: write unboundedPreceding")
    if preceding[0].kind == "bound" and following is not None and following[0].kind == "rows":
        preceding = (Expr("bound", ("UNBOUNDED_ROW",)),)
    parts = [("preceding", preceding)]
    if following is not None:
        validation.bounds(Spec("Over", tuple(parts)), "following", following[0])
        parts.append(("following", following))
    return parts


Place = Callable[[int, int], ast.Constant]
OLD = "1.2"
"""The last line of Flink that accepts FLIP-11's notation."""
NEVER = ""
_WINDOWS = ("Tumble", "Slide", "Session", "Over", *KINDS)
_CLASSES = {
    "DataTypes": "pyflink.table.DataTypes",
    "TableEnvironment": "pyflink.table.TableEnvironment",
    "StreamTableEnvironment": "pyflink.table.StreamTableEnvironment",
    "EnvironmentSettings": "pyflink.table.EnvironmentSettings",
    "StreamExecutionEnvironment": "pyflink.datastream.StreamExecutionEnvironment",
}
_OF_ENVIRONMENT = {
    "from": "from_path",
    "scan": "from_path",
    **{
        name: name
        for name in (
            "from_path", "execute_sql", "sql_query", "create_temporary_view", "drop_temporary_view", "use_catalog",
            "use_database", "get_config", "create_statement_set",
        )
    },
}  # fmt: skip
"""Methods of a table environment, by their names in FLIP-11's notation, with their PyFlink names."""
_FUNCTIONS = {"and": "and_", "or": "or_", "not": "not_", "$": "col"}
_OPERATORS = {
    "is_equal": "=", "is_not_equal": "<>", "is_greater": ">", "is_greater_or_equal": ">=", "is_less": "<",
    "is_less_or_equal": "<=", "and": "AND", "or": "OR", "plus": "+", "minus": "-", "times": "*", "divided_by": "/",
    "mod": "%",
}  # fmt: skip
"""Java methods that are operators in Scala."""
_WRITES = {"insert_into": "execute_insert", "execute_insert": "execute_insert", "execute": "execute"}
_KEYWORD = "rowtime"
_UNNAMED = "w$"
"""The alias for a window without an alias."""


class Notation(Meaning):
    """Evaluator of a program; ``names`` are the bound names, and ``used`` the names that were read.

    ``written`` is the number of queries that were written to a sink or executed. ``statement`` is the current
    statement, and ``node`` the current call in this statement. ``place`` makes a node from two offsets.
    """

    def __init__(
        self, session: ScriptBuilder, given: Mapping[str, str], declared: Sequence[Statement], place: Place
    ) -> None:
        self.session, self.given, self.declared, self.place = session, given, declared, place
        self.names: dict[str, Value] = {}
        self.used: set[str] = set()
        self.written = 0
        self.statement: ast.AST = place(0, 0)
        self.node: ast.AST = self.statement

    # -------------------------------------------------------------------------------------------- names and functions
    def name(self, tree: Tree) -> Value:
        word = tree.text
        if word in self.names:
            self.used.add(word)
            value = self.names[word]
            if isinstance(value, UnknownValue):
                raise NotRead(value.reason)
            return value
        if word in _WINDOWS:
            return Spec(word)
        if word in e.BOUNDS:
            return Expr("bound", (word,))
        if word in ("true", "false"):
            return Const(word == "true")
        if word in _CLASSES:
            return Ref(_CLASSES[word])
        if word in self.given:
            given = self.given[word]
            return Const(int(given) if given.isdecimal() and len(given) < 10 else given)
        return self._table(word)

    def _value(self, tree: Tree) -> Value:
        match tree:
            case Tree("text", text):
                return Const(text, self.place(tree.start, tree.end))
            case Tree("infix", "+", args=(left, right)) if _is_text(left) and _is_text(right):
                match self.value(left), self.value(right):
                    case Const(str(before)), Const(str(behind)):
                        return bounded(before + behind)
            case Tree("member", "stripMargin", owner=Tree("text", text), args=None):
                return Const(re.sub(r"(?m)^[ \t]*\|", "", text))
        return super()._value(tree)

    def function(self, tree: Tree, args: Sequence[Value]) -> Value:
        if tree.text in self.names:
            raise NotRead(f"a call of {tree.text} is not supported")
        name = _FUNCTIONS.get(tree.text) or snake(tree.text)
        if name == "row_interval":
            args = [_whole(arg) for arg in args]
        return api_calls.call_name(Ref(f"pyflink.table.expressions.{name}"), args, {}, self.session, self.node)

    def _member(self, tree: Tree) -> Value:
        owner = tree.owner
        if owner is not None and owner.kind == "name" and owner.text not in self.names:
            if owner.text == "Types" and (found := old_type(tree.text)) is not None:
                return found
            if tree.text == "execute" and len(tree.args or ()) == 1:
                return self._executed()
            if (called := _OF_ENVIRONMENT.get(snake(tree.text))) is not None:
                return self.method(TableEnvironment(), called, [self.value(arg) for arg in tree.args or ()], tree)
        return super()._member(tree)

    def _executed(self) -> JobResult:
        """Result of ``env.execute("job")``, which started all inserts as one job in old releases."""
        if self.written > 1:
            raise NotRead("execute starts all inserts as one job: write them as a statement set")
        return JobResult()

    def _table(self, path: str) -> TableValue:
        """The table at a path. Its ``rowtime`` is the column for which ``'rowtime`` stands, if known."""
        found = self._call(TableEnvironment(), "from_path", [Const(path)])
        assert isinstance(found, TableValue)
        return replace(found, rowtime=self._rowtime(path))

    def _rowtime(self, path: str) -> str | None:
        """The event-time column of a table; "" if the table has none, None if the column is unknown."""
        for statement in reversed([*self.declared, *self.session.statements]):
            tree = statement.tree
            if not isinstance(tree, nodes.CreateTable | nodes.CreateView):
                continue
            if tree.this.sql(dialect="flink").replace("`", "").lower() != path.lower():
                continue
            if isinstance(tree, nodes.CreateView) or tree.args.get("like") or tree.args.get("expression"):
                return None
            if any(column.name.lower() == _KEYWORD for column in tree.args.get("columns") or ()):
                return _KEYWORD
            marks = tree.args.get("watermarks") or ()
            return str(marks[0].this.name) if marks else ""
        return None

    # -------------------------------------------------------------------------------------------- methods
    def method(self, owner: Value, name: str, args: Sequence[Value], tree: Tree) -> Value:
        if isinstance(owner, Ref):
            return api_calls.call_name(Ref(f"{owner.path}.{name}"), args, {}, self.session, self.node)
        if isinstance(owner, JobResult) and name == "execute" and not args:
            return owner
        if isinstance(owner, Expr) and name in _OPERATORS and len(args) == 1:
            return Expr("infix", (_OPERATORS[name], owner, e.literal(args[0])))
        if not isinstance(owner, Described):
            raise NotRead(f"{tree.text} of anything but a table is not supported")
        if isinstance(owner, TableEnvironment):
            name = _OF_ENVIRONMENT.get(name, name)
        inside = isinstance(owner, TableValue | GroupedTable) and name not in _WRITES
        self.node = self.place(tree.at, tree.end) if inside else self.statement
        args = api_calls.with_strings(owner, name, args, self.session, self.node)
        if isinstance(owner, Spec | TableValue | GroupedTable):
            args = [e.literal(arg) if _number(arg) else arg for arg in args]
        found = self._of_flip11(owner, name, args)
        if found is not None:
            return found
        if isinstance(owner, GroupedTable) and owner.window is not None and owner.keys is None and name == "select":
            self.note("a window without groupBy", OLD)
            owner = replace(owner, keys=(Expr("column", (owner.window.alias,)),))
        if isinstance(owner, TableValue) and name in _WRITES:
            self.written, name = self.written + 1, _WRITES[name]
        self._no_keyword(owner, args)
        found = self._call(owner, name, args)
        if name == "select" and isinstance(owner, TableValue) and isinstance(found, TableValue):
            return replace(found, rowtime=_rowtime_after(owner.rowtime, args))
        return found

    def _of_flip11(self, owner: Described, name: str, args: Sequence[Value]) -> Value | None:
        """Result of a call whose meaning differs between FLIP-11 and current Flink; None for any other call."""
        match owner, name, args:
            case Spec(alias=""), "alias", [Const(str(alias))] if owner.kind != "Over":
                return replace(owner, alias=alias)
            case Spec(), _, _ if owner.kind in KINDS:
                return with_call(owner, name, args, self.session.batch)
            case TableEnvironment(), "from_path", [Const(str(path))]:
                return self._table(path)
            case ((TableValue() | GroupedTable(window=None, over=None)), "window", [Spec() as spec]) if (
                spec.kind != "Over"
            ):
                return self._window(owner, spec)
            case TableValue(), "window", _:
                return self._call(owner, "over_window", args)
            case ((TableValue() | GroupedTable(window=None, over=None)), "row_window", _) if args:
                return self._row_windows(owner, args)
        return None

    def note(self, what: str, last: str) -> None:
        """Record a notation that only FLIP-11, or Flink up to a version, accepts."""
        who = f"FLIP-11 and Flink up to {last} only" if last else "FLIP-11 only, no release of Flink"
        self.session.note(self.node, f"{what} ({who})", last)

    def _call(self, owner: Described, name: str, args: Sequence[Value]) -> Value:
        return api_calls.call(owner, name, args, {}, self.session, self.node)

    def _window(self, owner: TableValue | GroupedTable, spec: Spec) -> GroupedTable:
        """Result of ``window`` on a table, or after ``groupBy`` as in FLIP-11."""
        if spec.kind in KINDS:
            raise validation.refused(f"window does not take {spec.kind}", "pass row windows to rowWindow")
        table = owner if isinstance(owner, TableValue) else owner.table
        if spec.get("on") is None:
            self.note(f"{spec.kind} without on, which means processing time", OLD)
        others = tuple(part for part in spec.calls if part[0] != "on")
        spec = replace(spec, calls=(*others, ("on", (self._time(spec, table),))))
        if not spec.alias:
            self.note(f"{spec.kind} without an alias", OLD)
            spec = replace(spec, alias=_UNNAMED)
        found = self._call(table, "window", [spec])
        assert isinstance(found, GroupedTable)
        if isinstance(owner, TableValue):
            return found
        self.note("groupBy before window", OLD)
        keys = (Expr("column", (spec.alias,)), *(owner.keys or ()))
        grouped = self._call(found, "group_by", keys)
        assert isinstance(grouped, GroupedTable)
        return grouped

    def _row_windows(self, owner: TableValue | GroupedTable, args: Sequence[Value]) -> GroupedTable:
        table, keys = (owner, ()) if isinstance(owner, TableValue) else (owner.table, owner.keys or ())
        specs = [arg for arg in args if isinstance(arg, Spec) and arg.kind in KINDS]
        if len(specs) != len(args):
            raise NotRead("rowWindow needs TumbleRows, SlideRows or SessionRows")
        for spec in specs:
            self.note(f"{spec.kind} and rowWindow", NEVER)
        windows = [today(spec, keys, self._time(spec, table)) for spec in specs]
        aliases = [window.alias for window in windows]
        if len(set(aliases)) < len(aliases):
            raise validation.refused("two row windows have one alias", "give each window a separate alias")
        if len(windows) > 1:
            self.note("several row windows in one rowWindow", NEVER)
        first, *others = windows
        return GroupedTable(table, over=first, others=tuple(others))

    # -------------------------------------------------------------------------------------------- the keyword rowtime
    def _time(self, spec: Spec, table: TableValue) -> Expr:
        """The time attribute of a window: processing time by default, or event time for ``'rowtime``."""
        given = spec.get("on")
        if given is None:
            return e.PROCTIME
        if given[0] != Expr("column", (_KEYWORD,)) or table.rowtime is None:
            return given[0]
        if not table.rowtime and any(step.startswith("select") for step in table.steps):
            raise NotRead("a select omits the time column that 'rowtime may mean: select this column, too")
        if not table.rowtime:
            raise validation.refused(
                "'rowtime is the event time of a table, but this table has none",
                "declare a WATERMARK for its time column",
                "A group window expects a time attribute for grouping in a stream environment.",
            )
        if table.rowtime != _KEYWORD:
            self.note(f"the keyword 'rowtime, here for {table.rowtime}", OLD)
        return Expr("column", (table.rowtime,))

    def _no_keyword(self, owner: Described, args: Sequence[Value]) -> None:
        """Refuse the keyword ``'rowtime`` where a column is required."""
        table = owner.table if isinstance(owner, GroupedTable) else owner
        if not isinstance(table, TableValue) or table.rowtime in (None, _KEYWORD):
            return
        columns = (part for arg in args if isinstance(arg, Expr) for part in validation.parts(arg))
        if Expr("column", (_KEYWORD,)) in columns:
            raise validation.refused(
                "'rowtime is a keyword of FLIP-11 and no column of the table: it cannot be selected or grouped by",
                f"name the column{f' {table.rowtime}' if table.rowtime else ''} itself",
                "Cannot resolve field [rowtime]",
            )


def _rowtime_after(rowtime: str | None, outputs: Sequence[Value]) -> str | None:
    """The name of the event-time column after a ``select``; "" if it is not selected."""
    for output in outputs:
        match output:
            case Expr("column", ("*",)):
                return rowtime
            case Expr("column", (name,)) if name == rowtime:
                return rowtime
            case Expr("alias", (Expr("column", (name,)), alias)) if name == rowtime:
                return str(alias)
    return rowtime and ""


def _is_text(tree: Tree) -> bool:
    """True if a tree certainly concatenates texts, whatever the values of names are."""
    while tree.kind == "infix" and tree.text == "+" and tree.args is not None:
        if tree.args[1].kind != "text":
            return False
        tree = tree.args[0]
    return tree.kind == "text"


def _number(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, int | float) and not isinstance(value.value, bool)


def _whole(value: Value) -> Value:
    match short(value) if isinstance(value, Expr) else value:
        case Expr("sql", (str(written),)) if written.isdigit():
            return Const(int(written))
    return value
