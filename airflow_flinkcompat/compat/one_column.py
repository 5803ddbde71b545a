"""One column that a source, a query and its sink get or lose together is one finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall
from airflow_flinkcompat.plan.operators import sources
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves

_OF_TABLES = ("columns", "types", "order")
_OF_QUERIES = ("columns", "aggregates", "row", "row of input 1", "row of input 2")


def one_for_each_column(findings: Sequence[Finding], change: Change) -> list[Finding]:
    """Findings, those put together that one column explains from its source to its sink."""
    found = list(findings)
    differences = {difference.key: difference for difference in change.differences}
    for pair in change.pipelines:
        allowed = _of_one_column(pair, differences)
        about = [each for each in found if each.claims and allowed.issuperset(each.claims)]
        if len(about) < 2:
            continue
        worst = max(about, key=_weight)
        # What is said of another operator is another matter.
        others = [each for each in about if each is not worst and not each.operator]
        whole = _with(worst, others, differences)
        found = [whole if each is worst else each for each in found if each not in others]
    return found


def _weight(finding: Finding) -> tuple[bool, int, bool, bool]:
    """What is said of the query goes before what is said of its tables."""
    of_query = not any(key.startswith("table/") for key in finding.claims)
    return not finding.overruled_by, finding.outcome.rank, bool(finding.operator), of_query


def _with(worst: Finding, others: Sequence[Finding], differences: Mapping[str, Difference]) -> Finding:
    """A finding that speaks of others too, with what they rest on where they say the same."""
    keys = [key for each in others for key in each.claims]
    tables = dict.fromkeys(f"table {key.split('/')[1]}" for key in keys if key.startswith("table/"))
    more = any(len(differences[key].after) > len(differences[key].before) for key in keys)
    verb = ("get" if more else "lose") + ("s" if len(tables) == 1 else "")
    alike = [worst, *(each for each in others if each.outcome is worst.outcome)]
    return replace(
        worst,
        message=worst.message + (f"; {' and '.join(tables)} {verb} a column with it" if tables else ""),
        source="; ".join(dict.fromkeys(each.source for each in alike if each.source)),
        evidence=tuple(dict.fromkeys(id for each in alike for id in each.evidence)),
    )


def _of_one_column(pair: PipelinePair, differences: Mapping[str, Difference]) -> frozenset[str]:
    """The keys of the differences that one column makes, which the query reads and hands on to its sink."""
    in_query = chain(pair.differences, *(each.differences for each in pair.operators))
    query = {d.key: each for d in in_query if d.part in _OF_QUERIES and (each := _single(d)) is not None}
    read = {name for each in query.values() for name in _columns(each)}
    found = set(query)
    for table in {pair.old.sink, *(source.table for side in (pair.old, pair.new) for source in sources(side))} - {""}:
        declared = [d for part in _OF_TABLES if (d := differences.get(f"table/{table}/{part}"))]
        columns = {_single(d) for d in declared}
        if len(columns) == 1 and None not in columns and (table == pair.old.sink or columns <= read):
            found |= {d.key for d in declared}
    return frozenset(found)


def _single(difference: Difference) -> Any:
    """What alone was added or taken away, nothing else having moved; None where more or other things changed."""
    before, after = difference.before, difference.after
    mappings = isinstance(before, Mapping) and isinstance(after, Mapping)
    if mappings and any(before[key] != after[key] for key in before.keys() & after.keys()):
        return None
    sides = [tuple(side) for side in (before, after) if isinstance(side, tuple | Mapping)]
    if len(sides) != 2 or abs(len(sides[0]) - len(sides[1])) != 1:
        return None
    short, long = sorted(sides, key=len)
    at = next((i for i, each in enumerate(short) if each != long[i]), len(short))
    return long[at] if long[:at] + long[at + 1 :] == short else None


def _columns(value: Any) -> Iterator[str]:
    """The columns of sources that a value is computed from."""
    match value:
        case AggregateCall():
            for part in (*value.args, value.filter):
                yield from () if part is None else _columns(part)
        case KeyOutput():
            yield from _columns(value.key)
        case PassedOutput():
            yield from _columns(value.column)
        case OperatorColumn():
            yield from _columns(value.output)
        case SourceColumn():
            yield value.column
        case FunctionCall():
            for leaf in leaves(value):
                yield from _columns(leaf)
