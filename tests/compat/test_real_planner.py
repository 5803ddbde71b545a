"""The static check against Flink's own planner, over hundreds of generated changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import settings

from airflow_flinkcompat.compat import Outcome, Side, check, render_text
from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.compiled import Aspect
from airflow_flinkcompat.compat.planner import Explained
from tests.generated import Model, changed, models, render
from tests.planning import Planned, local_planner, read

STEPS = 6
"""Changes in a row, so that most scripts stand in two pairs."""
SEED = 20251
WALKS = 50 if settings().max_examples < 1000 else 400
"""More with HYPOTHESIS_PROFILE=thorough (make test-full). Planning a script takes about a tenth of a second."""

pytestmark = pytest.mark.slow


def walks(seed: int, number: int) -> Iterator[list[tuple[str, Model, str]]]:
    """Per walk: what was changed, the query after it, and its text; the first step is another spelling alone."""
    random = Random(seed)
    for model in islice(models(random), number):
        steps = [("", model, render(model, random)), ("spelled otherwise", model, render(model, random))]
        for _ in range(STEPS):
            name, model = changed(random, model)
            steps.append((name, model, render(model, random)))
        yield steps


def flink(script: str) -> Side:
    return Side(script, engine="flink")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Planned]:
    """What Flink makes of every generated script."""
    scripts = list(dict.fromkeys(text for steps in walks(SEED, WALKS) for _, _, text in steps))
    with local_planner(tmp_path_factory.mktemp("planner")) as planner:
        return dict(zip(scripts, planner.plan((script, {}) for script in scripts), strict=True))


def pairs(planned: dict[str, Planned]) -> Iterator[tuple[str, str, str]]:
    """Changes both sides of which Flink takes: their name, the old and the new script."""
    for steps in walks(SEED, WALKS):
        for (_, _, old), (name, _, new) in pairwise(steps):
            if isinstance(planned[old], tuple) and isinstance(planned[new], tuple):
                yield name, old, new


def test_flink_takes_what_is_generated(planned: dict[str, Planned]) -> None:
    refused = [f"{found}\n{script}" for script, found in planned.items() if not isinstance(found, tuple)]
    assert len(refused) <= 0.1 * len(planned), "\n\n".join(refused[:5])


def test_compatible_changes_are_planned_alike(
    planned: dict[str, Planned], record_property: pytest.RecordProperty
) -> None:
    """No static ``compatible`` whose compiled plans differ in chain, layout or meaning."""
    seen: Counter[str] = Counter()
    wrong = []
    for name, old, new in pairs(planned):
        report = check(flink(old), flink(new))
        explained = Explained(Change(flink(old), flink(new)), (read(planned[old]), read(planned[new])))
        different = [each for each in explained.differences if each.aspect is not Aspect.OTHER]
        seen[f"{report.outcome.value}, {'other plan' if different else 'same plan'}"] += 1
        if report.outcome is Outcome.COMPATIBLE and different:
            shown = "\n".join(f"{d.aspect.value}: {d.operator}\n  {d.before}\n  {d.after}" for d in different)
            wrong.append(f"{name}\n{shown}\n{render_text(report)}\n{old}\n--->\n{new}")
    print(f"\n{sum(seen.values())} pairs: {dict(seen)}")
    record_property("pairs", dict(seen))
    assert sum(seen.values()) >= 300
    assert seen["compatible, same plan"] >= 60
    assert not wrong, f"{len(wrong)} false compatible\n\n" + "\n\n".join(wrong[:3])


def test_plans_settle_only_what_was_unknown(planned: dict[str, Planned]) -> None:
    for name, old, new in pairs(planned):
        before = check(flink(old), flink(new)).outcome
        after = check(flink(old), flink(new), plans=(read(planned[old]), read(planned[new]))).outcome
        assert after.rank >= before.rank or (before, after) == (Outcome.UNKNOWN, Outcome.COMPATIBLE), name


def test_another_spelling_is_the_same_plan(planned: dict[str, Planned]) -> None:
    """So a difference in the plans is one of the query, and the comparison knows what carries no meaning."""
    found = [(old, new) for name, old, new in pairs(planned) if name == "spelled otherwise"]
    assert len(found) >= 40
    for old, new in found:
        explained = Explained(Change(flink(old), flink(new)), (read(planned[old]), read(planned[new])))
        assert explained.differences == (), f"{explained.differences}\n{old}\n--->\n{new}"
