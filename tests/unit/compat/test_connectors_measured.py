"""Engine ``flink`` against restores over Kafka, JDBC, asynchronous lookups and CDC, and from an older Flink."""

from __future__ import annotations

from functools import cache

import pytest

from airflow_flinkcompat.compat import Outcome, Report, check, render_text
from dev.measure.measured import RIGHT, Restore, connectors

SAFE = (Outcome.COMPATIBLE, Outcome.PARTIAL)


@cache
def judged(restore: Restore) -> Report:
    return check(*restore.sides())


def changed_elsewhere(restore: Restore) -> bool:
    """Whether both sides are the same, so that what changed, such as a topic made anew, no script shows."""
    old, new = restore.sides()
    return (old.script, old.settings, old.version) == (new.script, new.settings, new.version)


def test_every_kind_of_pair_is_there() -> None:
    assert len(connectors()) > 500
    assert len({pair.id for pair in connectors()}) == len(connectors())
    outcomes = {pair.outcome for pair in connectors()}
    assert outcomes >= {RIGHT, "refused_at_submit", "refused_at_restore", "restored_WRONG", "not_planned"}
    assert {pair.version for pair in connectors()} == {"2.3.0", "1.20.3"}
    assert {pair.old_version for pair in connectors()} > {"", "1.20.3", "2.2.0"}


def test_what_did_not_restore_right_is_never_compatible() -> None:
    """``restored_right_on_this_data`` is no ground for compatible either."""
    wrong = [pair for pair in connectors() if pair.outcome != RIGHT and not changed_elsewhere(pair)]
    assert len(wrong) > 100
    false = [pair for pair in wrong if judged(pair).outcome in SAFE]
    assert not false, "\n\n".join(f"{pair} ended {pair.outcome}\n{render_text(judged(pair))}" for pair in false)


def test_only_a_topic_made_anew_is_seen_in_no_script() -> None:
    wrong = [pair for pair in connectors() if pair.outcome != RIGHT and changed_elsewhere(pair)]
    assert len(wrong) == 6
    assert all("topic-recreated" in pair.id for pair in wrong)
    assert all([finding.rule for finding in judged(pair).findings] == ["unchanged"] for pair in wrong)


@pytest.mark.parametrize("prefix", ["ks-", "sk-", "ps-", "up-", "cdc-"])
@pytest.mark.slow
def test_what_restored_right_is_seldom_called_incompatible(prefix: str) -> None:
    """Saying unknown of what was right is careful; saying that it cannot be restored is wrong."""
    right = [pair for pair in connectors() if pair.outcome == RIGHT and pair.id.startswith(prefix)]
    assert not [pair.id for pair in right if judged(pair).outcome is Outcome.INCOMPATIBLE]
