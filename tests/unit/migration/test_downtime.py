"""Expected downtime: kind of rewriting by operator, sum of the steps, and the sentence."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.exec_graph.model import StateKind
from airflow_flinkcompat.migration import downtime as module
from airflow_flinkcompat.migration.downtime import Downtime, Rewriting, StateSize, expected_downtime
from dev.measure.savepoint_fixtures import FOLDER, change

GB = 1 << 30


@pytest.mark.parametrize(
    ("case", "rewriting"),
    [
        ("a-metric-is-added-to-a-tumbling-window", Rewriting.FIXED),
        ("a-column-comes-to-the-highest-two-of-a-key", Rewriting.TEXTS),
        ("the-keys-of-a-group-aggregation-change-places", Rewriting.MOVED),
        ("hopping-windows-become-tumbling-ones", Rewriting.MERGED),
    ],
)
def test_each_operator_has_the_rate_of_its_change(
    case: str, rewriting: Rewriting, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[StateSize] = []
    monkeypatch.setattr(Downtime, "of", lambda sizes, **_: seen.extend(sizes))
    expected_downtime(change(case), str(FOLDER / case / "old"))
    positions, operator = seen
    assert (positions.bytes, positions.rewriting) == (0, Rewriting.COPIED)
    assert operator.bytes > 0
    assert (operator.subtasks, operator.rewriting) == (1, rewriting)


def test_an_unchanged_operator_is_copied() -> None:
    made = change("a-metric-is-added-to-a-tumbling-window")
    kinds = {line.old.kind: module._rewriting(line) for line in made.operators if line.old is not None}
    assert kinds == {StateKind.POSITIONS: Rewriting.COPIED, StateKind.OPERATOR: Rewriting.FIXED}


def test_steps_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPILED", True)
    monkeypatch.setattr(module, "REWRITE_RATES", {Rewriting.FIXED: 100, Rewriting.MOVED: 50})
    for name, value in (("STOP_SECONDS", 1), ("STOP_RATE", 100), ("START_SECONDS", 3), ("START_RATE", 10)):
        monkeypatch.setattr(module, name, value)
    sizes = StateSize(400_000_000, 4, Rewriting.FIXED), StateSize(200_000_000, 1, Rewriting.MOVED)
    assert Downtime.of(sizes) == Downtime(600_000_000, stop=1 + 3, rewrite=4 + 4, rehearse=0, start=3 + 30)
    assert Downtime.of(sizes, rehearsed=5).rehearse == 3 + 30 + 5 + 1 + 3
    assert Downtime.of(sizes, stop=7.5).stop == 7.5
    steps = {"stop_seconds": 1, "rewrite_seconds": 0, "rehearse_seconds": 0, "start_seconds": 3}
    assert Downtime.of(()).to_dict() == {"bytes": 0, **steps}
    monkeypatch.setattr(module, "COMPILED", False)
    monkeypatch.setattr(module, "PLAIN_RATES", dict.fromkeys(Rewriting, 2))
    assert Downtime.of(sizes).rewrite == 300


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Downtime(0, 0.1, 0, 0, 2.6), "3 s for 0 bytes of state (stop 1 s, rewrite and verify 1 s, start 3 s)"),
        (
            Downtime(12 * GB, 41, 68, 172, 131),
            "7 min for 12.0 GB of state (stop 40 s, rewrite and verify 70 s, rehearse 3 min, start 2 min)",
        ),
        (
            Downtime(900 * GB, 99, 5400, 0, 9000),
            "4.0 h for 900.0 GB of state (stop 100 s, rewrite and verify 1.5 h, start 2.5 h)",
        ),
    ],
)
def test_the_sentence(found: Downtime, words: str) -> None:
    source = "The rates were measured on 2 cores with a local disk; other machines, stores and state backends differ."
    assert str(found) == f"Expected downtime: about {words}. {source}"
