"""Test module that runs the target contract on an installed target; see ``pytest_plugin``.

It is collected by name: ``pytest -p airflow_flinkcompat.testing.pytest_plugin --flinkcompat-target NAME --pyargs
airflow_flinkcompat.testing.installed_target``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.testing.pytest_plugin import Misfits, Opens
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract


class TestInstalledTarget(TargetContract):
    """The contract, by the fixtures of the plugin."""

    @pytest.fixture(autouse=True)
    def _told(
        self, flinkcompat_settle_seconds: float, flinkcompat_step_seconds: float, flinkcompat_misfits: Misfits
    ) -> None:
        self.settle_seconds = flinkcompat_settle_seconds
        self.step_seconds = flinkcompat_step_seconds
        self._misfits = flinkcompat_misfits

    @pytest.fixture
    def connect(self, flinkcompat_open: Opens) -> Iterator[Connect]:
        """Open the target again; all are closed after the test."""
        with ExitStack() as opened:
            yield lambda: opened.enter_context(flinkcompat_open())

    def misfits(self, target: Target, name: str) -> None:
        """Use the plugin's fixture."""
        self._misfits(target, name)
