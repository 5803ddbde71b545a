"""``CREATE TABLE … LIKE …``: the parts that a new table inherits from an existing table.

The inherited parts and the refusals were observed with Flink 2.3; the messages are Flink's. EXCLUDING PARTITIONS,
EXCLUDING DISTRIBUTION and therefore EXCLUDING ALL only allow the new table to declare these parts itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_flinkcompat.plan.catalog import BindError, options
from airflow_flinkcompat.plan.expressions import Expression, InputRef, transform
from airflow_flinkcompat.plan.nodes import DISTRIBUTION, Table
from airflow_flinkcompat.plan.program import REFUSED
from airflow_flinkcompat.plan.types import Column, TimeAttribute
from airflow_flinkcompat.sql import nodes

_DEFAULTS = {
    "OPTIONS": "OVERWRITING",
    **dict.fromkeys(("CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "PARTITIONS", "WATERMARKS"), "INCLUDING"),
}
_MAY_OVERWRITE = frozenset({"GENERATED", "METADATA", "OPTIONS", "WATERMARKS"})


@dataclass(frozen=True)
class _Own:
    """The declarations of the new table: column names by kind, and True for a primary key."""

    physical: frozenset[str]
    computed: frozenset[str]
    metadata: frozenset[str]
    watermarks: frozenset[str]
    key: bool


def inherited(base: Table, tree: nodes.CreateTable) -> Table:
    """The base table of a LIKE clause, without the parts that the new table does not inherit.

    Columns that the new table overwrites remain, because they determine the position.
    """
    strategies = _strategies(tree.args["like"])
    own = _own(tree)
    excluded = {part for part, strategy in strategies.items() if strategy == "EXCLUDING"}
    computed = () if "GENERATED" in excluded else base.computed
    metadata = () if "METADATA" in excluded else base.metadata
    kept = {*base.physical, *(name for name, _ in computed), *(name for name, _, _ in metadata)}
    watermark = None if "WATERMARKS" in excluded else base.watermark
    key = () if "CONSTRAINTS" in excluded else base.primary_key
    found = replace(
        base,
        columns=tuple(_without_rowtime(column) for column in base.columns if column.name in kept),
        computed=computed,
        metadata=metadata,
        watermark=watermark,
        primary_key=key,
        options=_options(base, tree, strategies),
    )
    _check_columns(found, own, strategies)
    if watermark is not None and own.watermarks:
        if own.watermarks != {watermark.column}:
            raise BindError("construct", "LIKE with a watermark on a different column is not understood")
        if strategies["WATERMARKS"] != "OVERWRITING":
            raise _refused(
                f"There already exists a watermark spec for column '{watermark.column}' in the base table",
                "add EXCLUDING WATERMARKS or OVERWRITING WATERMARKS",
            )
    if key and own.key:
        raise _refused("The base table already has a primary key", "add EXCLUDING CONSTRAINTS")
    if base.partitioned_by and tree.args.get("partitioned_by") and "PARTITIONS" not in excluded:
        raise _refused("The base table already has partitions defined", "add EXCLUDING PARTITIONS")
    return found


def moved(expression: Expression, before: Sequence[Column], after: Sequence[Column]) -> Expression:
    """Convert an expression over columns of one table to the columns of a different table, by name."""
    places = {column.name: i for i, column in enumerate(after)}

    def leaf(part: Expression) -> Expression:
        if not isinstance(part, InputRef):
            return part
        name = before[part.index].name
        if name not in places:
            raise _refused(
                f"Unknown identifier '{name}'", "keep that column, or remove the columns that are computed from it"
            )
        return replace(part, index=places[name], type=after[places[name]].type)

    return transform(expression, leaf)


def _strategies(like: nodes.TableLike) -> Mapping[str, str]:
    """The merging strategy of each part. ALL applies to parts without a separate option."""
    given: dict[str, str] = {}
    for option in like.expressions:
        part, strategy = str(option.args["kind"]), str(option.this)
        if part in given:
            raise _refused("Each like option feature can be declared only once", f"remove one option for {part}")
        if strategy == "OVERWRITING" and part not in _MAY_OVERWRITE:
            raise _refused(
                f"Illegal merging strategy 'OVERWRITING' for '{part}' option", "write INCLUDING or EXCLUDING"
            )
        given[part] = strategy
    every = given.pop("ALL", None)
    return {part: given.get(part) or every or default for part, default in _DEFAULTS.items()}


def _own(tree: nodes.CreateTable) -> _Own:
    columns: Sequence[exp.Expr] = tree.args.get("columns") or ()
    names = {kind: frozenset(part.this.name for part in columns if isinstance(part, kind)) for kind in _COLUMN_KINDS}
    constraints = (*(tree.args.get("constraints") or ()), *(part.args.get("constraint") for part in columns))
    return _Own(
        names[nodes.PhysicalColumn],
        names[nodes.ComputedColumn],
        names[nodes.MetadataColumn],
        frozenset(mark.this.name for mark in tree.args.get("watermarks") or ()),
        any(each is not None and str(each.args["kind"]) == "PRIMARY KEY" for each in constraints),
    )


_COLUMN_KINDS: tuple[type[exp.Expression], ...] = (nodes.PhysicalColumn, nodes.ComputedColumn, nodes.MetadataColumn)


def _check_columns(base: Table, own: _Own, strategies: Mapping[str, str]) -> None:
    computed, metadata = {name for name, _ in base.computed}, {name for name, _, _ in base.metadata}
    for names, alike, part, kind in (
        (own.computed, computed, "GENERATED", "generated"),
        (own.metadata, metadata, "METADATA", "metadata"),
    ):
        for name in sorted(names & alike if strategies[part] == "INCLUDING" else ()):
            raise _refused(
                f"A {kind} column named '{name}' already exists in the base table",
                f"add EXCLUDING {part} or OVERWRITING {part}",
            )
    taken = {column.name for column in base.columns}
    others = (own.physical & taken) | (own.computed & (taken - computed)) | (own.metadata & (taken - metadata))
    for name in sorted(others):
        raise _refused(f"A column named '{name}' already exists in the base table", "remove or rename the new column")


def _options(base: Table, tree: nodes.CreateTable, strategies: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    inherited_options = dict(base.options)
    distribution = inherited_options.pop(DISTRIBUTION, None)
    if distribution is not None and tree.args.get("distribution") and strategies["DISTRIBUTION"] != "EXCLUDING":
        raise _refused("The base table already has a distribution defined", "add EXCLUDING DISTRIBUTION")
    if strategies["OPTIONS"] == "EXCLUDING":
        inherited_options = {}
    own = dict(options(tree.args.get("options")))
    if strategies["OPTIONS"] == "INCLUDING" and (shared := sorted(own.keys() & inherited_options.keys())):
        raise _refused(
            f"There already exists an option '{shared[0]}' in the base table",
            "add EXCLUDING OPTIONS or OVERWRITING OPTIONS",
        )
    if distribution is not None:
        inherited_options[DISTRIBUTION] = distribution
    return tuple(sorted(inherited_options.items()))


def _without_rowtime(column: Column) -> Column:
    return replace(column, time_attribute=None) if column.time_attribute is TimeAttribute.ROWTIME else column


def _refused(words: str, remedy: str) -> BindError:
    return BindError(REFUSED, f"{words}; {remedy}")
