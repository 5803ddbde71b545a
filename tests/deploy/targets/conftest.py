"""Applications of the stand-in for AWS, and redeploys of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.targets.aws_account import Account
from tests.deploy.targets.aws_stand_in import MemoryJobs, StandIn


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account with the application ``orders``; no client repeats a call."""
    for key, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(key, value)
    jobs = MemoryJobs()
    with StandIn(jobs).serving() as server:
        found = Account(server, jobs)
        found.create("orders")
        yield found
        found.close()
