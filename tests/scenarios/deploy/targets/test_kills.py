"""A redeploy on every target but the SQL Gateway: killed at its calls, unheard, overtaken, and taken up by a retry."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT
from tests.scenarios.deploy.kill_cases import Hit, Matrix
from tests.scenarios.deploy.kills import Point
from tests.scenarios.deploy.scenarios import SCENARIOS, FlinkCase, FlinkScenario
from tests.scenarios.deploy.targets.stand_in_kills import KINDS, REFUSED, StandInCase, StandInScenario
from tests.support.nightly import NIGHTLY, mostly_nightly

RUN = new_id()[:6]  # in every name: no other run's jobs are taken for this one's
_NOTES = (
    "A redeploy on {where}, killed (SIGKILL) before and after every request that does something, before and after "
    "every entry of the ledger gets its name, and at the looks that decide what is done next. Then the same run once "
    "more; in some cases that one is killed as well, and a third one is let be. In others the first run is paused "
    "(SIGSTOP), and goes on when its retry has come to its end, or a run of somebody else has: of two runs at once, "
    "one deploys and the other one is refused. In others the answer to a request is lost (its connection is reset), or "
    "the request itself before it was sent, once or at two requests of that name. Right is: exactly one job of that "
    "name runs, {rows}, the ledger has no gap and nothing from a late run, one stop and one savepoint. A point is "
    "within the phase that begins with the named entry. `make test-full` makes this file."
)
_WITHOUT_STATE = "^(stopped|starting|started)"
_BACK = "^(started|failed|rolling-back)"
_SCENARIOS = (
    StandInScenario("succeeds", "deployed", late="", again=True, unheard="", two=True),
    StandInScenario(
        "state does not fit",
        "RolledBack",
        script=MISFIT,
        starts=((MISFIT, True), (SCRIPT, True)),
        only=_BACK,
        late="^(failed|rolling-back)",
        again=True,
        unheard="^(failed|rolling-back)",
    ),
    StandInScenario(
        "refused at the start",
        "RolledBack",
        script=REFUSED,
        starts=((SCRIPT, True),),
        only="^(starting|started|failed|rolling-back)",
        unheard="^(starting|failed|rolling-back)",
    ),
    StandInScenario(
        "starts without state",
        "deployed",
        "stateless",
        starts=((CHANGED, False),),
        only=_WITHOUT_STATE,
        unheard="^starting",
    ),
    StandInScenario(
        "first start", "deployed", "auto-first", first=True, starts=((CHANGED, False),), late="", unheard="", two=True
    ),
)
# The other way to be set up, and at which points a run is killed there.
_OTHERS = {
    "kubernetes": ("applications", "POST|PATCH|DELETE|ledger start"),
    "aws": ("the client repeats calls", "(Start|Stop|Update)Application"),
}


# Neither call takes a version or a token: a run that is paused right before it does it, whatever its retry has done by
# then. The application is stopped, with a snapshot; the second instance is ended at once.
_NEVER_LATE = {"aws": "before StopApplication$", "realtime-compute": "before StartJobWithParams$"}


def _scenarios(target: str) -> list[StandInScenario]:
    never = _NEVER_LATE.get(target, "$^")
    found = [
        each if each.late is None else replace(each, late=f"^(?!.*{never}){each.late.removeprefix('^')}")
        for each in _SCENARIOS
    ]
    if target in _OTHERS:
        way, only = _OTHERS[target]
        more = {"only": only, "late": None, "again": False, "two": False, "way": way}
        found += [replace(scenario, name=f"{scenario.name} ({way})", **more) for scenario in _SCENARIOS]
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600 if NIGHTLY else 300)
@pytest.mark.parametrize("target", mostly_nightly(sorted(KINDS), 0))
def test_a_redeploy_that_is_hit_is_taken_up(target: str, tmp_path: Path) -> None:
    """One job runs, and was made once, from the one savepoint that there is; the ledger is whole; nothing is left."""
    numbers = count()

    def case(scenario: StandInScenario, points: tuple[Point, ...], hit: Hit, losses: int) -> StandInCase:
        name = f"orders-{RUN}-{next(numbers):03d}"
        return StandInCase(tmp_path, scenario, name, points, hit, losses, kind=KINDS[target])

    notes = _NOTES.format(where=f"the stand-in for {target}", rows="no other one was made, from no other state")
    Matrix(case, f"kills-{target}", f"Redeploys on {target} killed and taken up", notes, 6 if NIGHTLY else 3).whole(
        _scenarios(target)
    )


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_redeploy_on_a_jobmanager_that_is_hit_is_taken_up(local_flink: LocalFlink, tmp_path: Path) -> None:
    """The same with real jobs, whose rows are those of an undisturbed run."""
    numbers = count()
    known = {scenario.name: scenario for scenario in SCENARIOS}
    scenarios = [
        replace(known["succeeds"], unheard="", two=True),
        *(replace(known[name], late=None, again=False) for name in ("refused at submit", "refused at restore")),
        known["starts without state"],
        replace(known["first start"], unheard="", two=True),
    ]

    def case(scenario: FlinkScenario, points: tuple[Point, ...], hit: Hit, losses: int) -> FlinkCase:
        name = f"{scenario.name.replace(' ', '-')}-{RUN}-{next(numbers):03d}"
        place = partial(JobManagerTarget, local_flink.jobmanager_url)
        return FlinkCase(tmp_path, scenario, name, points, hit, losses, flink=local_flink, place=place)

    notes = _NOTES.format(
        where="a JobManager without a SQL Gateway, on a real Flink", rows="its rows are those of an undisturbed run"
    )
    title = "Redeploys on a JobManager killed and taken up"
    Matrix(case, "kills-jobmanager", title, notes, 6, few=2).whole(scenarios)
