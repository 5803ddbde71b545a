"""Assumed functions in place of functions whose class is absent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.model.text import sql_name
from airflow_flinkcompat.planner.assumed_table import TEXT
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.grammar import nodes_of


@dataclass
class AssumedFunctions:
    """Assumed functions of one script.

    Attributes:
        known: Kind and result of each function, by name.
    """

    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _tried: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """True if a function with this simple name is assumed."""
        return any(simple(each) == name for each in self.known)

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The names of the functions of a kind: ``scalar``, ``table`` or ``aggregate``."""
        return tuple(name for name, each in self.known.items() if each["kind"] == kind)

    def question(self, aggregate: str = "") -> dict[str, Any]:
        """The functions as a part of a question; ``aggregate`` is one that is an aggregate function."""
        return {
            name: {"kind": "aggregate" if name == aggregate else each["kind"], "types": {**each["types"]}}
            for name, each in self.known.items()
        }

    def add(self, name: str, trees: Iterable[exp.Expr]) -> None:
        """Assume a function, of a kind by its use; a scalar function may turn out to be an aggregate function."""
        for each in (node for tree in trees for node in nodes_of(tree)):
            if isinstance(each, nodes.TableFunction) and simple(_path(each.this)) == name:
                fresh = {"kind": "table", "types": {"": "ROW<f0 STRING>"}}
                function = self.known.setdefault(_path(each.this), fresh)
                if (alias := each.args.get("alias")) is not None and alias.columns:
                    type_ = f"ROW<{', '.join(f'{sql_name(one.name)} STRING' for one in alias.columns)}>"
                    function["types"] |= {str(len(each.expressions)): type_, "": type_}
            elif isinstance(each, exp.Window) and isinstance(each.this, exp.Anonymous) and each.this.name == name:
                self.known[name] = {"kind": "aggregate", "types": {"": TEXT}}
        if not self.has(name):
            self.known[name] = {"kind": "scalar", "types": {"": TEXT}}

    def aggregate(self, tree: exp.Expr, column: str) -> bool:
        """Make the scalar functions of a column aggregate functions; False if a statement has none."""
        changed = False
        for call in nodes_of(tree):
            name = next((each for each in self.of_kind("scalar") if _is_call(call, each)), None)
            if name and any(isinstance(each, exp.Column) and each.name == column for each in nodes_of(call)):
                self.known[name]["kind"], changed = "aggregate", True
        return changed

    def perhaps_aggregate(self, trees: Iterable[exp.Expr]) -> tuple[str, ...]:
        """The scalar functions that may be aggregate functions, because no declaration of a column calls them."""
        declared = [node for tree in trees if isinstance(tree, nodes.CreateTable) for node in nodes_of(tree)]
        scalars = self.of_kind("scalar")
        return tuple(name for name in scalars if not any(_is_call(each, name) for each in declared))

    def retype(self, names: Collection[str], order: Sequence[str]) -> bool:
        """Give a function, or a column of a table function, the first type in an order that was not tried."""
        for name, function in self.known.items():
            columns = names if function["kind"] == "table" else [""] if simple(name) in names else []
            if any(self._retyped(name, column, order) for column in columns):
                return True
        return False

    def _retyped(self, name: str, column: str, order: Sequence[str]) -> bool:
        """Change the type of a function's result, or of one of its columns; False if every type was tried."""
        tried, function = self._tried.setdefault((name, column), {TEXT}), self.known[name]
        type_ = next((each for each in order if each not in tried), None)
        if type_ is None:
            return False
        if not column:
            function["types"] = {"": type_}
        else:
            parts = [f"{sql_name(column)} {each}" for each in tried]
            former = next((each for each in parts if any(each in row for row in function["types"].values())), None)
            if former is None:
                return False
            new = f"{sql_name(column)} {type_}"
            function["types"] = {key: row.replace(former, new) for key, row in function["types"].items()}
        tried.add(type_)
        return True


def simple(name: str) -> str:
    """The last part of a name, without backticks."""
    return name.rpartition(".")[2].strip("`")


def _is_call(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == simple(name).lower()


def _path(name: exp.Expr) -> str:
    """The name of a function: simple, or with quoted parts."""
    parts: list[str] = []
    while isinstance(name, exp.Dot):
        parts, name = [name.expression.name, *parts], name.this
    return ".".join(map(sql_name, (name.name, *parts))) if parts else name.name
