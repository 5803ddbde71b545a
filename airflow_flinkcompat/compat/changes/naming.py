"""Differences in a reader's words: what changed, never the key that the check knows it by."""

from __future__ import annotations

from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import shortened
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.plan import OtherStatement
from airflow_flinkcompat.plan.nodes import Table

_PARTS = {
    "columns": "columns",
    "types": "types of columns",
    "order": "order of columns",
    "computed": "computed columns",
    "metadata": "metadata columns",
    "partitions": "partitioning",
    "options": "options",
    "operators": "stateful operators",
    "source": "what it reads",
    "kind": "kind",
}
_WHOLE = {
    "inserts": "the queries of the script",
    "pairing": "which query replaced which",
    "insert order": "the order of the queries",
    "statement set": "the statement set around the queries",
    "engine": "the engine or its version",
    "unread": "a statement that could not be read",
}


def name_difference(difference: Difference, change: Change) -> str:
    """What a difference is, as a clause: ``the key of table t changed``."""
    place, _, rest = difference.key.partition("/")
    if place == "statement":
        return _statement(difference)
    if difference.part in _WHOLE:
        return f"{_WHOLE[difference.part]} changed"
    if place == "table":
        return _table(rest.rpartition("/")[0], difference)
    if place in ("view", "function", "setting"):
        return f"{place} {rest} {_how(difference)}"
    return f"{_part(difference)} of {_owner(difference, change)} changed"


def differing(difference: Difference) -> tuple[Any, Any]:
    """The values of both sides; of mappings and tables only what a reader looks for."""
    old, new = difference.before, difference.after
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        return tuple({key: side[key] for key in keys if key in side} for side in (old, new))  # type: ignore[return-value]
    return tuple(side.name if isinstance(side, Table) else side for side in (old, new))  # type: ignore[return-value]


def into(sink: str, article: str = "the") -> str:
    """The query that writes into a sink; a bare SELECT has none."""
    return f"{article} query into {sink}" if sink else f"{article} bare SELECT"


def within(pair: OperatorPair) -> str:
    """An operator by its kind and its query."""
    return f"the {pair.new.kind} in {into(pair.pipeline.sink)}"


def _how(difference: Difference) -> str:
    if difference.before is None:
        return "was added"
    return "was removed" if difference.after is None else "changed"


def _part(difference: Difference) -> str:
    return f"the {_PARTS.get(difference.part, difference.part)}"


def _table(name: str, difference: Difference) -> str:
    if difference.part == "declared":
        return f"the {'deployed' if difference.before is None else 'proposed'} script does not declare table {name}"
    return f"{_part(difference)} of table {name} changed"


def _statement(difference: Difference) -> str:
    fact = difference.before if difference.after is None else difference.after
    if not isinstance(fact, OtherStatement):
        return "statements stand in another order"
    verb = "was removed" if difference.after is None else "was added"
    if fact.kind == "replaced":
        return f"an earlier declaration of {fact.subject[1] or 'the same name'} {verb}"
    return f"the statement {shortened(str(fact), 60)} {verb}"


def _owner(difference: Difference, change: Change) -> str:
    """The query that a difference is of, or the operator in it."""
    for pipeline in change.pipelines:
        if difference in pipeline.differences:
            return into(pipeline.sink)
        for pair in pipeline.operators:
            if difference in pair.differences:
                return within(pair)
    return "a query"
