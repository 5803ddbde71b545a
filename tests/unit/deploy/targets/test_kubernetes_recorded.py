"""What the reader of a resource makes of documents recorded of real operators, at every step and between two steps.

``tests/scenarios/local_kubernetes/recording.py`` recorded them: a file for each step of a job's life, and in
``session-moments.jsonl`` each state that a session job's resource went through meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.deploy.target import Snapshot, same_snapshot
from airflow_flinkcompat.deploy.targets.kubernetes.resource import RUNNING, FlinkResource

RECORDED = Path(__file__).parents[3] / "fixtures" / "recorded"
RELEASES = sorted(
    (path.name.removeprefix("operator-") for path in RECORDED.glob("operator-*")),
    key=lambda release: [int(part) for part in release.split(".")],
)
MOMENTS = "session-moments.jsonl"
FOLLOWED = [release for release in RELEASES if (RECORDED / f"operator-{release}" / MOMENTS).exists()]
# What the target makes of a document: a job that runs, one that was stopped, and so on.
RUNS, STOPPED, CANCELLED, REFUSED, FAILED = "runs", "stopped", "cancelled", "refused", "failed"


@cache
def steps(release: str) -> dict[str, FlinkResource]:
    """The document of each step that has a job."""
    read = {
        path.stem: json.loads(path.read_text()) for path in sorted((RECORDED / f"operator-{release}").glob("*.json"))
    }
    return {name: found for name, document in read.items() if (found := FlinkResource(document)).job}


@cache
def moments(release: str) -> tuple[FlinkResource, ...]:
    """Each state of a session job's resources, in their order, until they are deleted."""
    lines = (RECORDED / f"operator-{release}" / MOMENTS).read_text().splitlines()
    found = (FlinkResource(json.loads(line)) for line in lines)
    return tuple(each for each in found if not each.deleting)


def specs(release: str) -> Iterator[tuple[FlinkResource | None, list[FlinkResource]]]:
    """The states of each spec, and the last one before it of the same resource."""
    by_spec = [list(each) for _, each in groupby(moments(release), key=lambda moment: moment.revision)]
    for before, states in pairwise([[], *by_spec]):
        same = before and before[-1].revision[0] == states[0].revision[0]
        yield before[-1] if same else None, states


def read(found: FlinkResource) -> str:
    """What the reader says of a document, in words."""
    savepoint = found.upgrade_savepoint
    said = {
        "reconciled": found.reconciled,
        "unaccepted": found.unaccepted,
        "ended": found.ended,
        "goes on from it": savepoint is not None and found.resumes_from(savepoint),
        "in vain": found.in_vain,
        "coming up": found.coming_up,
        "without an id": found.flink_job is None,
    }
    words = [
        f"{'suspended' if found.wants_suspended else RUNNING} {found.generation}/{found.reconciled_generation}",
        f"job {found.job_state or '-'}, final {found.final_state}",
        f"savepoint {savepoint.rpartition('/')[2] if savepoint else '-'}",
        *(word for word, holds in said.items() if holds),
        *([f"error: {found.why(redact)}"] if found.error else []),
    ]
    return "; ".join(words)


def verdict(found: FlinkResource) -> str | None:
    """The one thing that a document says of its job; None: not yet."""
    if found.unaccepted and found.in_vain:
        return REFUSED
    if found.reconciled and not found.ended and found.job_state == "RUNNING":
        return RUNS
    if not found.ended:
        return None
    if found.job_state == "FAILED":
        return FAILED
    savepoint = found.upgrade_savepoint
    return STOPPED if savepoint is not None and found.resumes_from(savepoint) else CANCELLED


@pytest.mark.parametrize("release", RELEASES)
def test_every_recorded_step(release: str, snapshot: SnapshotAssertion) -> None:
    """All that is said of each, held as text."""
    assert {name: read(found) for name, found in steps(release).items()} == snapshot


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("running", RUNS),
        ("running-again", RUNS),
        ("suspended", STOPPED),
        ("cancelled", CANCELLED),
        ("stateless", RUNS),
        ("broken-script", REFUSED),
        ("broken-script-later", REFUSED),
        ("way-back-from-broken-script", RUNS),
        ("suspended-before-misfit", STOPPED),
        ("state-does-not-fit", FAILED),
        ("operators-do-not-fit-later", {"1.7.0": REFUSED}),
        ("way-back-from-operators", RUNS),
        ("savepoint-missing", REFUSED),
        ("recreated", RUNS),
    ],
)
def test_what_became_of_a_session_job(release: str, part: str, says: str | dict[str, str]) -> None:
    """The same of every release, but that a later one notices itself that Flink has a job that failed to begin."""
    expected = says if isinstance(says, str) else says.get(release, FAILED)
    assert verdict(steps(release)[f"session-{part}"]) == expected


def test_a_stop_that_the_operator_forgot_is_no_start() -> None:
    """STABLE, reconciled and without an error: the job that it takes for its own ended by that very stop."""
    forgot = steps("1.15.0")["session-stop-interrupted"]
    assert forgot.status["lifecycleState"] == "STABLE"
    assert (forgot.reconciled, forgot.error, forgot.wants_suspended) == (True, None, False)
    assert forgot.ended
    assert verdict(forgot) != RUNS
    savepoint = forgot.upgrade_savepoint
    assert savepoint is not None
    assert not forgot.resumes_from(savepoint)


@pytest.mark.parametrize("release", FOLLOWED)
def test_what_is_said_of_the_spec_before_is_never_taken_for_this_one(release: str) -> None:
    """The first state of a spec has the status of the one before: neither STABLE nor SUSPENDED says anything of it."""
    changed = [(before, states[0]) for before, states in specs(release) if before is not None]
    stale = [(before, first) for before, first in changed if before.status == first.status]
    assert len(stale) >= 10
    assert {verdict(before) for before, _ in stale} >= {RUNS, STOPPED}
    for before, first in stale:
        assert not first.reconciled
        assert not any(first.resumes_from(each) for each in _savepoints(before, first))
        assert not first.ended
        assert verdict(first) == (REFUSED if verdict(before) == REFUSED else None)


@pytest.mark.parametrize("release", FOLLOWED)
def test_what_was_said_once_of_a_spec_stays_true(release: str) -> None:
    """Whoever asks a moment earlier or later is told the same: that the job runs, or by which savepoint it ended."""
    told: set[str | None] = set()
    for _, states in specs(release):
        said = [verdict(each) for each in states]
        first = next((number for number, each in enumerate(said) if each is not None), len(said))
        if said[first:] and said[first] in (STOPPED, CANCELLED):
            assert set(said[first:]) == {said[first]}
        if said[first:] and said[first] == RUNS:
            # A job may fail later, but it stays the same job.
            assert {each.flink_job for each in states[first:]} == {states[first].flink_job}
        told |= set(said)
    assert told >= {None, RUNS, STOPPED, CANCELLED, REFUSED, FAILED}


@pytest.mark.parametrize("release", FOLLOWED)
def test_a_stop_names_its_own_savepoint_as_soon_as_it_says_that_the_job_ended(release: str) -> None:
    """Never the one of the stop before, and never none."""
    stops = 0
    for before, states in specs(release):
        ended = [each for each in states if each.wants_suspended and each.ended]
        if before is None or verdict(before) != RUNS or verdict(states[-1]) != STOPPED:
            continue
        stops += 1
        final = states[-1].upgrade_savepoint
        assert final is not None
        assert not same_snapshot(final, before.upgrade_savepoint)
        assert [each.upgrade_savepoint for each in ended] == [final] * len(ended)
    assert stops >= 4


def _savepoints(*found: FlinkResource) -> Sequence[Snapshot]:
    return [each.upgrade_savepoint for each in found if each.upgrade_savepoint is not None]
