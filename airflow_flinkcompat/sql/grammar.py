"""The closed set of nodes and arguments that a Flink SQL tree may contain.

sqlglot's parser accepts clauses of many dialects. No other package reads the arguments of these clauses, so two
different scripts could seem equal. A tree with a part outside of this table is therefore refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.sql import nodes

_SET_OPERATION = frozenset({"this", "expression", "distinct", "with_", "order", "limit", "offset"})
_OPERATOR = frozenset({"this", "expression"})
_OPERAND = frozenset({"this"})
_LIST = frozenset({"expressions"})

# sqlglot's node classes that trees use, with their arguments. All classes of :mod:`airflow_flinkcompat.sql.nodes` are
# allowed too.
STOCK_NODES: dict[type[exp.Expr], frozenset[str]] = {
    # Queries
    exp.Select: frozenset(
        {
            *("with_", "hint", "distinct", "expressions", "from_", "joins", "where", "group", "having", "qualify"),
            *("windows", "order", "limit", "offset"),
        }
    ),
    exp.Union: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Subquery: frozenset({"this", "alias", "joins", "with_", "order", "limit", "offset"}),
    exp.Values: frozenset({"expressions", "alias", "joins", "order", "limit", "offset"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Distinct: _LIST,
    exp.Hint: _LIST,
    exp.From: _OPERAND,
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using"}),
    exp.Where: _OPERAND,
    exp.Group: _LIST,
    exp.GroupingSets: _LIST,
    exp.Cube: _LIST,
    exp.Rollup: _LIST,
    exp.Having: _OPERAND,
    exp.Qualify: _OPERAND,
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    # Relations
    exp.Table: frozenset({"this", "db", "catalog", "alias", "hints", "version", "joins"}),
    exp.Unnest: frozenset({"expressions", "alias", "offset", "joins"}),
    exp.Lateral: frozenset({"this", "alias", "joins"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    # Names and literals
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Var: _OPERAND,
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Dot: _OPERATOR,
    exp.Star: frozenset(),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _OPERAND,
    exp.Null: frozenset(),
    exp.National: _OPERAND,
    exp.HexString: _OPERAND,
    exp.Interval: frozenset({"this", "unit"}),
    exp.IntervalSpan: _OPERATOR,
    # Calls
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Filter: _OPERATOR,
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.WithinGroup: _OPERATOR,
    exp.IgnoreNulls: _OPERAND,
    exp.RespectNulls: _OPERAND,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Array: _LIST,
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.Tuple: _LIST,
    exp.Paren: _OPERAND,
    # Operators
    **dict.fromkeys(
        (
            *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT),
            *(exp.LTE, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.SimilarTo, exp.Escape, exp.Overlaps),
        ),
        _OPERATOR,
    ),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Between: frozenset({"this", "low", "high", "symmetric"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Exists: _OPERAND,
    exp.Any: _OPERAND,
    exp.All: _OPERAND,
    exp.AtTimeZone: frozenset({"this", "zone"}),
    exp.Not: _OPERAND,
    exp.Neg: _OPERAND,
}

# The argument without which a node is invalid, by class.
_REQUIRED: dict[type[exp.Expr], str] = {
    exp.Select: "expressions",
    exp.Cube: "expressions",
    exp.Rollup: "expressions",
    exp.GroupingSets: "expressions",
    exp.Fetch: "count",
}
# Classes in which ``()`` is valid: the grouping set without keys.
_MAY_HOLD_NOTHING = (exp.Group, exp.GroupingSets, exp.Cube, exp.Rollup)

_OWN_EXTRAS = frozenset({"joins"})  # every relation may contain joins inside parentheses


@cache
def _allowed(kind: type[exp.Expr]) -> frozenset[str] | None:
    """The arguments that a node of this class may have; None if the class is unknown."""
    if kind.__module__ == nodes.__name__:
        return frozenset(kind.arg_types) | _OWN_EXTRAS
    return STOCK_NODES.get(kind)


def nodes_of(tree: exp.Expr) -> list[exp.Expr]:
    """The nodes of ``tree`` level by level, in the order of ``walk()``, as one list."""
    found = [tree]
    for node in found:  # the list grows during iteration
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif isinstance(value, list):
                found += [item for item in value if isinstance(item, exp.Expr)]
    return found


def unknown_parts(nodes_of_tree: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield incomplete nodes, and nodes with a class or argument that is not in the table."""
    for node in nodes_of_tree:
        kind: Any = type(node)
        allowed = _allowed(kind)
        if allowed is None:
            yield node
            continue
        lacking = kind in _REQUIRED and not node.args.get(_REQUIRED[kind])
        nothing = isinstance(node, exp.Tuple) and not (node.expressions or isinstance(node.parent, _MAY_HOLD_NOTHING))
        if lacking or nothing:
            yield node
            continue
        for key, value in node.args.items():
            if value and key not in allowed:
                yield node
                break
