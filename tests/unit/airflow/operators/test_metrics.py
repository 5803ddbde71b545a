"""What Airflow's client of metrics is given by the tasks of a redeploy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, Stats

from tests.support.airflow.operators.fakes import script
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_approval import ASKING, RESTART, event


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The last value of each metric; of a counter how often."""
    seen: dict[str, Any] = {}

    def of(deployment: Any) -> None:
        assert deployment == {"deployment": "orders"}

    def incr(name: str, *, tags: Any) -> None:
        of(tags)
        seen[name] = seen.get(name, 0) + 1

    def put(name: str, value: Any, *, tags: Any) -> None:
        of(tags)
        seen[name] = value

    monkeypatch.setattr(Stats, "incr", incr)
    monkeypatch.setattr(Stats, "timing", put)
    monkeypatch.setattr(Stats, "gauge", put)
    return seen


def test_a_redeploy_is_counted_by_verdict_start_and_time(deployed: Site, sent: dict[str, Any]) -> None:
    run, tasks, _ = deployed.checked(script())
    run.execute(tasks["resume"])
    run, tasks, _ = deployed.checked(script(size=5))
    run.execute(tasks["restart"])
    counted = {name: value for name, value in sent.items() if isinstance(value, int)}
    assert counted == {
        "flinkcompat.check.compatible": 1,
        "flinkcompat.check.incompatible": 1,
        "flinkcompat.deploy.savepoint": 1,
        "flinkcompat.deploy.stateless": 1,
    }
    accepted, verified = sent["flinkcompat.downtime.accepted"], sent["flinkcompat.downtime.verified"]
    assert timedelta() <= accepted <= verified < timedelta(minutes=1)


def test_a_first_start_has_no_downtime(site: Site, sent: dict[str, Any]) -> None:
    site.deploy(script())
    assert sent == {"flinkcompat.check.first": 1, "flinkcompat.deploy.stateless": 1}


def test_a_decision_is_counted_with_the_time_that_it_took(deployed: Site, sent: dict[str, Any]) -> None:
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    answered = event(RESTART, {"id": "7", "name": "ada"})
    asked = {"at": answered["responded_at"].timestamp() - 90, "until": None, "escalates_at": None, "answers": []}
    context = run.render(tasks["approve"])
    run._skipped(tasks["approve"], tasks["approve"].execute_complete, context, answered, asked)
    assert sent["flinkcompat.decision.restart"] == 1
    assert sent["flinkcompat.decision.duration"] == timedelta(seconds=90)


def test_a_rollback_is_counted_and_is_no_deploy(deployed: Site, sent: dict[str, Any]) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.fail = "restore"
    with pytest.raises(AirflowFailException, match="Rolled back"):
        run.execute(tasks["restart"])
    assert sent == {"flinkcompat.check.incompatible": 1, "flinkcompat.rolled_back": 1}
