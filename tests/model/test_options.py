"""Each closed list is there once: a type checker reads the same words as the code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

import pytest

from airflow_flinkcompat import model
from airflow_flinkcompat.tasks.arguments import PolicyTable


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        (model.EngineName, model.ENGINES),
        (model.StartModeName, model.StartMode),
        (model.RehearsalFindingName, model.RehearsalFinding),
    ],
    ids=["engines", "start modes", "findings of a rehearsal"],
)
def test_literals_are_the_words_of_the_code(literal: Any, words: Iterable[str]) -> None:
    assert get_args(literal) == tuple(map(str, words))


def test_a_policy_has_a_branch_for_each_outcome() -> None:
    outcomes = [str(outcome) for outcome in model.Outcome]
    assert [field.name for field in fields(model.Policy)] == outcomes
    assert [*PolicyTable.__annotations__] == outcomes


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"compatibel": "resume"}, "policy: unknown outcome 'compatibel'; known are compatible, partial, unknown"),
        ({"partial": "go"}, "policy: partial leads to 'go'; known are resume, restart, approve, reject"),
        ({"incompatible": "resume"}, "policy: an incompatible change is never resumed without approval"),
    ],
)
def test_a_policy_that_cannot_be(policy: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        model.Policy.of(policy)
