"""Variants of unknown parts of a job whose answers differ, without Java."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript
from airflow_flinkcompat.exec_graph.model import NOTHING, Restore, RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import ConditionKind, Prediction
from airflow_flinkcompat.planner import questions
from airflow_flinkcompat.planner.assumptions import Variant

SIDE = Side("SET 'parallelism.default' = '1'; SELECT a FROM t", engine="flink")
REFUSED = Restore((StateEffect(RestoreEffect.REFUSED_AT_RESTORE, "Rank", message="the state of Rank differs"),))
DOUBLE = Variant({"double": True}, "the result depends on types", case="numbers of t are of type DOUBLE")


def answered(monkeypatch: pytest.MonkeyPatch, usual: Restore, double: Restore) -> Prediction:
    def planned(_old: Side, _new: Side, _installed: object, asked: Mapping[str, Any], _: object) -> Any:
        restore = double if asked.get("double") else usual
        scripts = PlannedScript("1.20.3"), PlannedScript("2.3.0")
        return questions.PlannedChange(*scripts, Prediction("2.3.0", restore))

    monkeypatch.setattr(questions, "_planned", planned)
    installed: Any = (None, None)
    return questions._predicted(SIDE, SIDE, installed, frozenset(), None, {"assumed": {}}, [DOUBLE]).prediction


@pytest.mark.parametrize(
    ("usual", "double", "condition"),
    [
        (NOTHING, REFUSED, "compatible unless numbers of t are of type DOUBLE; then the state of Rank differs"),
        (REFUSED, NOTHING, "compatible if numbers of t are of type DOUBLE; otherwise the state of Rank differs"),
    ],
)
def test_a_state_that_is_refused_with_one_type_alone_is_a_condition(
    monkeypatch: pytest.MonkeyPatch, usual: Restore, double: Restore, condition: str
) -> None:
    said = answered(monkeypatch, usual, double)
    assert said.restore == NOTHING
    assert said.conditions == ((ConditionKind.TYPES, f"{condition}: pass a file with the missing DDL as --catalog"),)


@pytest.mark.parametrize("restore", [NOTHING, REFUSED])
def test_equal_answers_need_no_condition(monkeypatch: pytest.MonkeyPatch, restore: Restore) -> None:
    said = answered(monkeypatch, restore, restore)
    assert (said.restore, said.conditions) == (restore, ())
