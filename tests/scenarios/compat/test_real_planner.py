"""The static check against Flink's own planner, over hundreds of generated changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from random import Random

import pytest

from airflow_flinkcompat.compat import Finding, Outcome, Report, Side, check, render_text
from tests.support.generated import Model, changed, models, render
from tests.support.nightly import NIGHTLY
from tests.support.planning import Planned, local_planner, read

STEPS = 6
"""Changes in a row, so that most scripts stand in two pairs."""
SEED = 20251
WALKS = 150 if NIGHTLY else 8
"""Planning a script takes about a tenth of a second."""

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]


def walks(seed: int, number: int) -> Iterator[list[tuple[str, Model, str]]]:
    """The first of a seed's walks. Per step: what was changed, the query after it, and its text.

    The first step is another spelling alone.
    """
    random = Random(seed)
    for model in islice(models(random), number):
        steps = [("", model, render(model, random)), ("spelled otherwise", model, render(model, random))]
        for _ in range(STEPS):
            name, model = changed(random, model)
            steps.append((name, model, render(model, random)))
        yield steps


@dataclass(frozen=True)
class Pair:
    """A change both sides of which Flink takes, judged without and with its plans."""

    name: str
    old: str
    new: str
    static: Report
    sharpened: Report

    @property
    def differences(self) -> list[Finding]:
        """What the plans say differently of chain, layout or meaning."""
        return [finding for finding in self.sharpened.findings if finding.rule == "plan-differs"]

    def __str__(self) -> str:
        return f"{self.name}\n{render_text(self.sharpened)}\n{self.old}\n--->\n{self.new}"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Planned]:
    """What Flink makes of every generated script."""
    scripts = list(dict.fromkeys(text for steps in walks(SEED, WALKS) for _, _, text in steps))
    with local_planner(tmp_path_factory.mktemp("planner")) as planner:
        return dict(zip(scripts, planner.plan((script, {}) for script in scripts), strict=True))


@pytest.fixture(scope="module")
def pairs(planned: dict[str, Planned]) -> list[Pair]:
    taken = {script: read(found) for script, found in planned.items() if isinstance(found, tuple)}
    sides = {script: Side(script, engine="flink") for script in taken}

    def judged(name: str, old: str, new: str) -> Pair:
        plans = taken[old], taken[new]
        return Pair(name, old, new, check(sides[old], sides[new]), check(sides[old], sides[new], plans=plans))

    return [
        judged(name, old, new)
        for steps in walks(SEED, WALKS)
        for (_, _, old), (name, _, new) in pairwise(steps)
        if old in taken and new in taken
    ]


def test_flink_takes_what_is_generated(planned: dict[str, Planned]) -> None:
    refused = [f"{found}\n{script}" for script, found in planned.items() if not isinstance(found, tuple)]
    assert len(refused) <= 0.15 * len(planned), "\n\n".join(refused[:5])


@pytest.mark.nightly
def test_compatible_changes_are_planned_alike(pairs: list[Pair], record_property: pytest.RecordProperty) -> None:
    """No static ``compatible`` whose compiled plans differ in chain, layout or meaning."""
    seen = Counter(f"{pair.static.outcome.value}, {'other' if pair.differences else 'same'} plan" for pair in pairs)
    print(f"\n{len(pairs)} pairs: {dict(seen)}")
    record_property("pairs", dict(seen))
    assert len(pairs) >= 5 * WALKS
    assert seen["compatible, same plan"] >= 1.1 * WALKS
    assert seen["incompatible, other plan"] >= 1.1 * WALKS
    wrong = [pair for pair in pairs if pair.static.outcome is Outcome.COMPATIBLE and pair.differences]
    assert not wrong, f"{len(wrong)} false compatible\n\n" + "\n\n".join(map(str, wrong[:3]))


def test_plans_settle_only_what_was_unknown(pairs: list[Pair]) -> None:
    better = [pair for pair in pairs if pair.sharpened.outcome.rank < pair.static.outcome.rank]
    assert better, "nothing was settled"
    for pair in better:
        assert (pair.static.outcome, pair.sharpened.outcome) == (Outcome.UNKNOWN, Outcome.COMPATIBLE), str(pair)
        assert not pair.differences, str(pair)


def test_another_spelling_is_the_same_plan(pairs: list[Pair]) -> None:
    """So a difference in the plans is one of the query, and the comparison knows what carries no meaning."""
    spelled = [pair for pair in pairs if pair.name == "spelled otherwise"]
    assert len(spelled) >= 0.8 * WALKS
    for pair in spelled:
        assert not [*pair.differences, *pair.sharpened.warnings], str(pair)
