"""Choices about shadow runs: when one is made, what follows, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.model.shadow import ShadowPolicy, shadow_policy


@pytest.mark.parametrize(
    ("when", "outcome", "branch", "reason"),
    [
        (None, "compatible", "resume", ""),
        (None, "partial", "approve", ""),
        (None, "incompatible", "approve", "the change is incompatible, and shadow runs are for compatible, partial"),
        (["incompatible"], "incompatible", "approve", ""),
        (["incompatible"], "incompatible", "migrate", "the branch migrate does not start the new script"),
        ([Outcome.UNKNOWN], "unknown", "restart", "the branch restart does not start the new script"),
        ([Outcome.UNKNOWN], "unknown", "approve", ""),
        ([], "compatible", "resume", "the change is compatible, and shadow runs are for no changes"),
        (None, None, "first", "the branch first does not start"),
    ],
)
def test_a_run_follows_some_checks(when: Any, outcome: str | None, branch: str, reason: str) -> None:
    policy = ShadowPolicy() if when is None else ShadowPolicy(when=when)
    found = policy.why_not(outcome, branch)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("branch", ["resume", "approve"])
def test_only_agreeing_rows_keep_the_branch_of_the_check(branch: str) -> None:
    ask, switch = ShadowPolicy(), ShadowPolicy(on_expected="switch")
    for finding in ("differs", "refused", "could not tell", "anything else"):
        assert (ask.branch_after(finding, branch), switch.branch_after(finding, branch)) == ("approve", "approve")
    assert ask.branch_after("equal", branch) == switch.branch_after("equal", branch) == branch
    assert ask.branch_after("differs as expected", branch) == "approve"
    assert switch.branch_after("differs as expected", branch) == branch


def test_a_deployment_makes_runs_on_request() -> None:
    choices = {"duration": "90s", "timeout": "1 h", "expect": ["revenue"], "retries": 3}
    assert shadow_policy({"script": "a.sql", "shadow": choices}) is None
    found = shadow_policy({"script": "a.sql", "start_mode": "shadow", "shadow": choices})
    assert found is not None
    assert (found.seconds, found.run_seconds, found.expect) == (90, 3600, ["revenue"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"start_mode": "shade"}, "start_mode: 'shade' is not one of savepoint, shadow"),
        ({"shadow": 3}, "shadow: a table is needed"),
        ({"shadow": {"expects": ["revenue"]}}, "shadow.expects: is unknown; did you mean expect?"),
        ({"shadow": {"durations": "2h"}}, "shadow.durations: is unknown; did you mean duration?"),
        ({"shadow": {"for": "1h"}}, "shadow.for: is unknown; did you mean duration?"),
        ({"shadow": {"until-rows": 5}}, "shadow.until-rows: is unknown; did you mean until_rows?"),
        ({"shadow": {"migrate": True}}, "shadow.migrate: is an option of flinkcompat shadow, not a key"),
        ({"shadow": {"duration": "soon"}}, "shadow.duration: 'soon' is not a duration"),
        ({"shadow": {"timeout": 60}}, "shadow.timeout: 60 is not a duration"),
        ({"shadow": {"expect": "revenue"}}, "shadow.expect: a list of texts is needed"),
        ({"shadow": {"when": ["partial", "compatibel"]}}, "shadow.when: 'compatibel' is not one of compatible"),
        ({"shadow": {"on_expected": "switch", "expect": ["changed"]}}, "shadow.expect: 'changed' is for values that a"),
        ({"shadow": {"on_expected": "go"}}, "shadow.on_expected: 'go' is not one of ask, switch"),
        ({"shadow": {"savepoint_directory": 3}}, "shadow.savepoint_directory: a text is needed"),
        ({"shadow": {"until_rows": 0}}, "shadow.until_rows: 0 is not a number of rows"),
        ({"shadow": {"until_rows": True}}, "shadow.until_rows: True is not a number of rows"),
        ({"shadow": {"from_earliest": "yes"}}, "shadow.from_earliest: true or false is needed"),
        ({"start_mode": "shadow", "script": "a.py"}, "start_mode: shadow runs are for SQL scripts"),
        ({"start_mode": "shadow", "plan_only": True}, "start_mode: plan_only starts no job"),
    ],
)
def test_a_mistake_begins_with_its_key(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r"^[a-z_.-]+: ") as raised:
        shadow_policy(table)
    assert str(raised.value).startswith(words)
