"""A redeploy on AWS whose process dies at a call, or whose answer is lost: taken up, it makes no second stop or job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.deploy.targets.aws.service import ManagedFlink
from airflow_flinkcompat.testing.target_contract import CHANGED, SCRIPT
from tests.deploy.targets.aws_account import Account
from tests.deploy.targets.aws_stand_in import Refused
from tests.nightly import NIGHTLY, sample

EFFECTS = ("stop_application", "update_application", "start_application")


class Died(BaseException):
    """The process is gone."""


def dying(monkeypatch: pytest.MonkeyPatch, at: tuple[int, bool] | None) -> list[str]:
    """Have the process die before or after its n-th call; the calls it made."""
    made: list[str] = []
    call: Callable[..., Any] = ManagedFlink._call

    def counted(self: ManagedFlink, operation: str, **given: Any) -> Any:
        number = len(made)
        made.append(operation)
        if at == (number, False):
            raise Died
        found = call(self, operation, **given)
        if at == (number, True):
            raise Died
        return found

    monkeypatch.setattr(ManagedFlink, "_call", counted)
    return made


def calls_of_a_redeploy(account: Account, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        account.deploy(root, SCRIPT)
        made = dying(patch, None)
        account.deploy(root, CHANGED)
    account.check_redeployed(root)
    return made


def anew(account: Account) -> None:
    """An application of the same name that has never run."""
    del account.server.apps["orders"]
    account.create("orders")
    account.jobs.started.clear()
    account.jobs.savepoints.clear()


@pytest.mark.timeout(1200 if NIGHTLY else 300)
def test_a_killed_redeploy_is_taken_up(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after every call that does something, and at looks between them."""
    calls = calls_of_a_redeploy(account, tmp_path / "whole", monkeypatch)
    assert [call for call in calls if call in EFFECTS] == list(EFFECTS)
    # After a look is before the next call, but for what the ledger is told in between.
    points = [(number, after) for number, call in enumerate(calls) for after in (False, True)]
    effects = [point for point in points if calls[point[0]] in EFFECTS]
    for at in [*effects, *sample([point for point in points if point not in effects], 4)]:
        root = tmp_path / f"{at[0]}-{at[1]}"
        anew(account)
        account.deploy(root, SCRIPT)
        with monkeypatch.context() as patch:
            dying(patch, at)
            with pytest.raises(Died):
                account.deploy(root, CHANGED, owner="worker")
        account.deploy(root, CHANGED, owner="worker")
        account.check_redeployed(root)


@pytest.mark.parametrize("call", ["StopApplication", "UpdateApplication", "StartApplication"])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("repeats", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_lost_answer_is_asked_about(
    call: str, times: int, repeats: bool, account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the redeploy itself or by its retry, and also where the client repeats the call before anybody notices."""
    account.deploy(tmp_path, SCRIPT)
    if repeats:
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
        monkeypatch.setenv("AWS_RETRY_MODE", "standard")
    lost: list[str] = []

    def loses(asked: str, after: bool) -> Refused | None:
        if asked != call or not after or len(lost) == times:
            return None
        lost.append(asked)
        return Refused("ServiceUnavailable", "no answer", 503)

    account.server.fails = loses
    for _ in range(times + 1):
        try:
            account.deploy(tmp_path, CHANGED, owner="worker")
            break
        except DeployError as error:
            if not error.unanswered:
                raise
    account.check_redeployed(tmp_path)
    assert lost
