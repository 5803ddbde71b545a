"""What is said of a plain restore against how restores ended on a real Flink."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.stateless import mapped_states
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.exec_graph.diff import diff
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.migration import Migration, migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.symbols import Symbols
from dev.measure.measured import everything, pairs, planned
from tests.unit.exec_graph.test_from_compiled import BESIDE_THE_GRAPH, SINKS

RIGHT_ALL_THE_SAME = {"dd-ra-col-swap", "dd-rap-col-swap", "li-col-swap", "ga-avg-to-sum-count", "x-source-rename"}
"""Right because of what the operator does with its rows, or as a table has another name alone: nothing here tells."""


def effects(sides: tuple[Plans, Plans]) -> set[RestoreEffect]:
    found: set[RestoreEffect] = set()
    for old, new in zip(*sides, strict=True):
        symbols = Symbols()
        before, after = (job_state(compiled_state(plan, symbols, {}, SINKS), symbols) for plan in (old, new))
        found |= {each.effect for each in diff(before, after).states}
    return found


def told(sides: tuple[Plans, Plans]) -> str:
    found = effects(sides)
    if RestoreEffect.REFUSED_AT_SUBMIT in found:
        return "refused_at_submit"
    if RestoreEffect.REFUSED_AT_RESTORE in found:
        return "refused_at_restore"
    if found & {RestoreEffect.SILENTLY_WRONG, RestoreEffect.DROPPED}:
        return "restored_WRONG"
    return "not told" if found & {RestoreEffect.UNKNOWN, RestoreEffect.EMPTY} else "restored_right"


@pytest.mark.slow
def test_what_a_plain_restore_does_is_told() -> None:
    of = {name: told(sides) for name, sides in planned().items() if len(sides[0]) == len(sides[1])}
    ended = {name: pairs()[name].outcome for name in of}
    print(f"\n{Counter((of[name], ended[name]) for name in of)}")

    def only(outcome: str) -> Counter[str]:
        aside = BESIDE_THE_GRAPH | RIGHT_ALL_THE_SAME
        return Counter(ended[name] for name in of if of[name] == outcome and name not in aside)

    assert set(only("restored_right")) == {"restored_right"}
    assert set(only("refused_at_submit")) == {"refused_at_submit"}
    assert set(only("refused_at_restore")) == {"refused_at_restore"}
    assert only("restored_WRONG")["restored_right"] == 0
    assert only("not told").total() < 90, "of about 470"


@pytest.mark.slow
def test_what_is_read_wrong_or_refused_is_never_said_to_be_carried_whole_under_the_same_ids() -> None:
    for name, sides in planned().items():
        if len(sides[0]) != 1 or len(sides[1]) != 1 or name in BESIDE_THE_GRAPH:
            continue
        found = kept(name)
        if pairs()[name].outcome != "restored_right" and found.kept == "whole":
            assert any(each.effect is not RestoreEffect.RIGHT for each in found.operators), name


def kept(name: str) -> Migration:
    (old,), (new,) = planned()[name]
    symbols = Symbols()
    return migration(
        job_state(compiled_state(old, symbols, {}, SINKS), symbols),
        job_state(compiled_state(new, symbols, {}, SINKS), symbols),
    )


BY_SETTINGS = {"x-maxparallelism-change": "refused_at_submit", "u-ttl-add": "refused_at_restore"}
"""Settings decide: another number of key groups, and on 1.20 a time to live that comes."""
ENDS = {
    RestoreEffect.RIGHT: {"restored_right"},
    RestoreEffect.REFUSED_AT_SUBMIT: {"refused_at_submit"},
    RestoreEffect.REFUSED_AT_RESTORE: {"refused_at_restore"},
    RestoreEffect.SILENTLY_WRONG: {"restored_WRONG", "restored_right_on_this_data"},
}


@pytest.mark.slow
def test_what_scripts_alone_tell_of_both_jobs_is_how_restores_ended() -> None:
    """The worst effect is how the restore ended, of every measured change whose jobs are both derived from scripts."""
    classes: Counter[RestoreEffect] = Counter()
    other: set[str] = set()
    for restore in everything():
        old, new = restore.sides()
        change = Change(old, replace(new, beside=old))
        if "python" in (old.language, new.language) or change.unchanged or change.removed or change.added:
            continue
        if len(change.pipelines) != 1 or isinstance(mapped := mapped_states(change.pipelines[0]), Unknown):
            continue
        effect = mapped.stored.worst_effect
        classes[effect] += 1
        if effect is RestoreEffect.UNKNOWN:
            continue
        name = restore.id.removesuffix(" into a sink")
        if restore.outcome not in ENDS[effect] and BY_SETTINGS.get(name) != restore.outcome:
            other.add(name)
    assert other <= RIGHT_ALL_THE_SAME
    assert classes[RestoreEffect.RIGHT] >= 60
    assert (
        min(
            classes[RestoreEffect.REFUSED_AT_SUBMIT],
            classes[RestoreEffect.REFUSED_AT_RESTORE],
            classes[RestoreEffect.SILENTLY_WRONG],
        )
        >= 30
    )
