"""The type of a normalising pass: of what Flink's planner makes one plan, the operators say in one way.

``plan.lineage.PASSES`` lists all of them, in the order in which they are applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Function = TypeVar("Function")


@dataclass(frozen=True)
class Pass(Generic[Function]):
    """One normalising pass.

    ``summary`` says what the planner does, and ``seen_on`` is the version of Flink whose EXPLAIN or restore showed it;
    it is taken to hold on every engine. ``apply`` does the same; what it takes and gives depends on the stage at which
    the pass stands.
    """

    name: str
    summary: str
    apply: Function
    seen_on: str = "2.3"
