"""Names of differences in words, and their places in both scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import shortened
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.model import Span
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
    """A difference as a clause: ``the key of table t changed``."""
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
    """The values of both sides; from mappings and tables only those that matter to a reader."""
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
        return "statements are in a different order"
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


def clause_spans(differences: Iterable[Difference]) -> tuple[Span | None, Span | None]:
    """The places of some differences in both scripts."""
    pairs = [(each.before, each.after) for each in differences]
    old = place_of(each for before, after in pairs for each in _own(before, after))
    return old, place_of(each for before, after in pairs for each in _own(after, before))


def place_of(values: Iterable[Any]) -> Span | None:
    """Range from the first to the last place of some values."""
    found = [span for value in values for span in _spans(value)]
    if len(found) == 1:
        return found[0]  # as it is: its lines are worked out where they are shown
    if len({span.source for span in found}) != 1:
        return None
    first = min(found, key=lambda span: (span.line, span.column))
    last = max(found, key=lambda span: (span.end_line, span.end_column))
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)


def _own(value: Any, other: Any) -> Iterable[Any]:
    """The members that the other value has not; of the same members in another order those that moved."""
    if not (isinstance(value, tuple | frozenset) and isinstance(other, tuple | frozenset)):
        return (value,)
    added = [each for each in value if each not in other]
    if added or isinstance(value, frozenset) or len(value) != len(other):
        return added
    return [one for one, another in zip(value, other, strict=True) if one != another]


def _spans(value: Any) -> Iterator[Span]:
    """The widest places of a value's parts."""
    if isinstance(value, tuple | frozenset):
        for each in value:
            yield from _spans(each)
    elif is_dataclass(value) and not isinstance(value, Span):
        own = getattr(value, "span", None)
        if own is not None:
            yield own
            return
        for each in fields(value):
            if each.compare:
                yield from _spans(getattr(value, each.name))
