"""What a value is computed of, however it is written: by that what a compiled plan stores is found in its script."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_


@dataclass(frozen=True)
class Composition:
    """What a value is computed of.

    Attributes:
        columns: The columns of tables.
        functions: The names of what is called, in capitals; a planner may have written some in other ones.
        literals: The constants, as text; a planner may have computed with some.
    """

    columns: frozenset[Hashable] = frozenset()
    functions: frozenset[str] = frozenset()
    literals: frozenset[str] = frozenset()

    def __or__(self, other: Composition) -> Composition:
        return Composition(
            self.columns | other.columns, self.functions | other.functions, self.literals | other.literals
        )


def together(parts: Iterable[Composition | None]) -> Composition | None:
    """What several values are computed of.

    Args:
        parts: Of each.

    Returns:
        Of all of them; None where it is not told of one.
    """
    told = list(parts)
    return None if None in told else reduce(or_, (each for each in told if each is not None), Composition())
