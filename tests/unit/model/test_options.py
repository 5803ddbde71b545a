"""Each closed list is there once: a type checker reads the same words as the code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

import pytest

from airflow_flinkcompat import model
from airflow_flinkcompat.airflow.tasks.arguments import PolicyTable
from airflow_flinkcompat.exec_graph.migration import Accept


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        (model.EngineName, model.ENGINES),
        (model.StartModeName, model.StartMode),
        (model.RehearsalFindingName, model.RehearsalFinding),
        (model.AcceptName, [Accept.FILTER, Accept.SOURCE_MOVED, Accept.HISTORY]),
    ],
    ids=["engines", "start modes", "findings of a rehearsal", "what a migration accepts"],
)
def test_literals_are_the_words_of_the_code(literal: Any, words: Iterable[str]) -> None:
    assert get_args(literal) == tuple(map(str, words))


def test_a_policy_has_a_branch_for_each_outcome() -> None:
    outcomes = [str(outcome) for outcome in model.Outcome]
    every = [*outcomes, "migratable", "partly_migratable", "sink_begins_empty"]
    assert [field.name for field in fields(model.Policy)] == every
    assert [*PolicyTable.__annotations__] == every


def test_where_an_incompatible_change_goes_that_can_be_migrated() -> None:
    def goes(kept: str | None, backfill: bool = False, **given: str) -> str:
        return model.Policy.of(given, backfill=backfill).branch_for(model.Outcome.INCOMPATIBLE, kept)

    assert [goes(kept) for kept in ("whole", "partial", "none", None)] == ["migrate", "approve", "approve", "approve"]
    assert [goes(kept, backfill=True) for kept in ("whole", "partial", "none")] == ["migrate", "approve", "restart"]
    assert [goes(kept, incompatible="reject") for kept in ("whole", "partial")] == ["reject", "reject"]
    assert goes("partial", incompatible="reject", partly_migratable="migrate") == "migrate"
    assert model.Policy().branch_for(model.Outcome.UNKNOWN, "whole") == "approve"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"compatibel": "resume"}, "policy: unknown outcome 'compatibel'; choose one of compatible, partial, unknown"),
        (
            {"partial": "go"},
            "policy: partial has the unknown branch 'go'; choose one of resume, migrate, restart, approve, reject",
        ),
        (
            {"unknown": "migrate"},
            "policy: unknown cannot have the branch 'migrate'; use it only for migratable and partly_migratable",
        ),
        (
            {"migratable": "resume"},
            "policy: an incompatible change must not resume without approval; choose a branch other than 'resume'",
        ),
        (
            {"sink_begins_empty": "reject"},
            "policy: sink_begins_empty cannot have the branch 'reject'; choose one of resume, approve",
        ),
        (
            {"incompatible": "resume"},
            "policy: an incompatible change must not resume without approval; choose a branch other than 'resume'",
        ),
    ],
)
def test_a_policy_that_cannot_be(policy: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        model.Policy.of(policy)
