"""Which query of the deployed script is which query of the proposed one: over the whole script, never first come.

Each level says by what two queries are the same; a query is paired where that is true of one query alone on both
sides. What is left and writes into one sink on both sides cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.plan.operators import AggregateOperator, Operator, Output, operators, sources


@dataclass(frozen=True)
class Pairing:
    """Places of queries among their script's.

    They are pairs in the old order, those gone, those new, and the sinks of queries that cannot be told apart.
    """

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    ambiguous: tuple[str, ...]


def paired(old: Mapping[int, Output], new: Mapping[int, Output]) -> Pairing:
    """Pairs the queries of both sides."""
    left, right = dict(old), dict(new)
    pairs: list[tuple[int, int]] = []

    def match(i: int, j: int) -> None:
        pairs.append((i, j))
        del left[i], right[j]

    unmatched: dict[str, dict[int, Output]] = {}
    for j, output in new.items():
        unmatched.setdefault(output.sink, {})[j] = output
    for i, output in old.items():  # equal ones in their order: it does not matter which is which
        alike = unmatched.get(output.sink, {})
        twin = next((j for j, other in alike.items() if other == output), None)
        if twin is not None:
            match(i, twin)
            del alike[twin]
    if len(left) == len(right) == 1:  # so they end whatever they are; most changes are of one query
        match(next(iter(left)), next(iter(right)))
    for level in LEVELS:
        if not (left and right):
            break
        ours, theirs = _only(left, level), _only(right, level)
        for sign in [sign for sign in ours if sign in theirs]:
            match(ours[sign], theirs[sign])
    open_sinks = {output.sink for output in right.values()}
    ambiguous = tuple(dict.fromkeys(o.sink for o in left.values() if o.sink in open_sinks))
    if len(left) == len(right) == 1 and not ambiguous:
        match(next(iter(left)), next(iter(right)))  # one query left on each side: its sink changed
    gone, come = (tuple(n for n, output in side.items() if output.sink not in ambiguous) for side in (left, right))
    return Pairing(tuple(sorted(pairs)), gone, come, ambiguous)


Sign = Callable[[Output], Hashable | None]


def _only(outputs: Mapping[int, Output], level: Sign) -> dict[Hashable, int]:
    """The signs that one query alone bears."""
    bearers: dict[Hashable, list[int]] = {}
    for i, output in outputs.items():
        sign = level(output)
        if sign is not None:
            bearers.setdefault(sign, []).append(i)
    return {sign: places[0] for sign, places in bearers.items() if len(places) == 1}


def _state(output: Output) -> Hashable | None:
    """All that is stored; None where nothing is."""
    return operators(output) or None


def _frame(operator: Operator) -> Hashable:
    """What a metric or a condition more or less leaves alone."""
    if not isinstance(operator, AggregateOperator):
        return operator.kind
    window: Any = operator.window and (operator.window.window, operator.window.time)
    return operator.kind, operator.keys, operator.window_keys, window


def _frames(output: Output) -> Hashable:
    return output.sink, sources(output), tuple(map(_frame, operators(output)))


def _kinds(output: Output) -> Hashable:
    return output.sink, sources(output), tuple(operator.kind for operator in operators(output))


LEVELS: tuple[Sign, ...] = (
    lambda output: (output.sink, output.segment),
    _state,
    _frames,
    _kinds,
    lambda output: output.sink,
)
"""By what two queries are the same, nearest first: identical operators, then the sink and ever less of the path."""
