"""Test module that runs the contract tests on an installed target; see ``pytest_plugin``.

To run the module, name it explicitly: ``pytest -p airflow_flinkcompat.testing.pytest_plugin --flinkcompat-target NAME
--pyargs airflow_flinkcompat.testing.installed_target``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.testing.pytest_plugin import Misfits, Opens
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract


class TestInstalledTarget(TargetContract):
    """The contract tests, configured by the fixtures of the plugin."""

    @pytest.fixture(autouse=True)
    def _limits(
        self, flinkcompat_settle_seconds: float, flinkcompat_step_seconds: float, flinkcompat_misfits: Misfits
    ) -> None:
        self.settle_seconds = flinkcompat_settle_seconds
        self.step_seconds = flinkcompat_step_seconds
        self._misfits = flinkcompat_misfits

    @pytest.fixture
    def connect(self, flinkcompat_open: Opens) -> Iterator[Connect]:
        """Open the target at each call. All opened targets are closed after the test."""
        with ExitStack() as opened:
            yield lambda: opened.enter_context(flinkcompat_open())

    def misfits(self, target: Target, name: str) -> None:
        """Call the plugin's fixture."""
        self._misfits(target, name)
