"""What another job could keep, on the plans of measured pairs and of savepoints."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.state.compiled import CompiledPlan, read_plan
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.from_compiled import compiled_state, job_state
from airflow_flinkcompat.state.migration import Keep, Kept, OperatorMigration, migration
from airflow_flinkcompat.state.model import StateKind
from tests.savepoint.savepoints import FOLDER, TAKEN
from tests.state.test_layouts import SINKS
from tests.state.test_mapping import kept

pytestmark = pytest.mark.slow


def plan(name: str) -> CompiledPlan:
    return read_plan((FOLDER / name / "plan.json").read_text("utf-8"))


def rewritten(name: str) -> OperatorMigration:
    (found,) = (each for each in kept(name).operators if each.keep is Keep.REWRITTEN)
    return found


@pytest.mark.parametrize("name", TAKEN)
def test_a_job_keeps_all_of_itself(name: str) -> None:
    symbols = Symbols()
    same = migration(*(job_state(compiled_state(plan(name), symbols, {}, SINKS), symbols) for _ in range(2)))
    assert same.kept is Kept.WHOLE
    assert {each.keep for each in same.operators} == {Keep.CARRIED}


def test_a_metric_that_is_added_begins_and_the_others_go_on() -> None:
    found = rewritten("w-add-agg-front")
    assert found.begun
    assert not found.lost
    assert [source for state in found.states for source in state.fields].count(None) == len(found.begun)
    assert kept("w-add-agg-front").kept is Kept.PARTIAL


def test_metrics_in_another_order_are_kept_whole() -> None:
    found = rewritten("g-reorder")
    assert (found.begun, found.lost) == ((), ())
    assert found.states[0].fields != tuple(range(len(found.states[0].fields)))
    assert kept("g-reorder").kept is Kept.WHOLE


def test_keys_in_another_order_are_kept_whole() -> None:
    assert rewritten("g-keys-swap").key == (1, 0)
    assert kept("g-keys-swap").kept is Kept.WHOLE


def test_a_key_that_goes_is_named() -> None:
    found = rewritten("ga-key-del")
    assert found.merges
    assert found.lost == ("d",)
    assert kept("ga-key-del").kept is Kept.PARTIAL


def test_a_metric_that_goes_is_named() -> None:
    found = rewritten("g-del-agg")
    assert found.lost
    assert not found.begun
    assert kept("g-del-agg").kept is Kept.PARTIAL


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ga-key-add-notshown", "is a key now, by which nothing that is stored can be told apart"),
        ("g-hop", "other rows, windows or conditions"),
        ("mr-where-add", "was not measured"),
    ],
)
def test_what_cannot_be_kept_says_why(name: str, reason: str) -> None:
    found = kept(name)
    assert found.kept is Kept.NONE
    (lost,) = (each for each in found.operators if each.keep is Keep.IMPOSSIBLE)
    assert reason in lost.reason


def test_an_identity_that_moves_costs_nothing() -> None:
    found = kept("ms-two-sources-reorder")
    assert found.kept is Kept.WHOLE
    assert Keep.MOVED in {each.keep for each in found.operators}


def test_another_table_is_another_source() -> None:
    found = kept("ua-replace")
    assert found.kept is not Kept.WHOLE
    assert {Keep.BEGINS, Keep.DROPPED} <= {
        each.keep
        for each in found.operators
        if StateKind.POSITIONS in {each.old and each.old.kind, each.new and each.new.kind}
    }


def test_metrics_over_rows_that_are_taken_back_cannot_begin_later() -> None:
    symbols = Symbols()
    old, new = (
        job_state(compiled_state(plan(f"2.3/{name}"), symbols, {}, SINKS), symbols)
        for name in ("retracting-sum", "retracting-numbers")
    )
    reasons = [each.reason for each in migration(old, new).operators if each.keep is Keep.IMPOSSIBLE]
    assert reasons, "the upper aggregation cannot be kept"


def test_an_operator_that_comes_above_one_that_goes_on_would_lack_its_rows_of_before() -> None:
    (line,) = (each for each in kept("rj-third-add").operators if each.keep is Keep.IMPOSSIBLE)
    assert line.old is None
    assert line.reason == "it would begin empty, and never see what join handed on before"
    assert kept("rj-third-add").kept is Kept.NONE
