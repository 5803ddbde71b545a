"""The type of a normalising pass, which makes spellings equal that Flink plans alike.

``plan.lineage.PASSES`` lists all of them in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Function = TypeVar("Function")


@dataclass(frozen=True)
class Pass(Generic[Function]):
    """One normalising pass.

    ``summary`` describes the planner's behaviour, and ``seen_on`` is the version of Flink whose EXPLAIN or restore
    showed it; it is assumed for every engine. ``apply`` does the same; its signature depends on the stage of the pass.
    """

    name: str
    summary: str
    apply: Function
    seen_on: str = "2.3"
