"""Cases of something that fails around a redeploy: collected by name, run, and their results written down."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.local_flink import LocalFlink
from tests.scenarios.deploy.deployment_fixture import DeploymentFixture
from tests.scenarios.deploy.faults import Result, write
from tests.support.nightly import NIGHTLY, sample

Case = Callable[[DeploymentFixture], str]
"""Hits what is around the stage's deployment, checks what becomes of it, and gives what the user was told."""
_NOTES = (
    "What a user is told where something around a redeploy fails, on a real Flink. Each case also checks what runs "
    "afterwards, its rows and the ledger. `make test-full` makes this file."
)


class Cases:
    """The cases of one module, in order. ``name`` and ``title`` are those of their results."""

    def __init__(self, name: str, title: str) -> None:
        self._name, self._title = name, title
        self._cases: dict[str, tuple[Case, Mapping[str, str]]] = {}
        self._results: list[Result] = []

    def __call__(self, name: str, **settings: str) -> Callable[[Case], Case]:
        """Collect a case. ``settings`` are added to those of the job that runs already."""

        def collect(case: Case) -> Case:
            self._cases[name] = (case, settings)
            return case

        return collect

    def sample(self, few: int) -> list[str]:
        return sample(list(self._cases), few)

    def run(self, name: str, flink: LocalFlink, root: Path) -> None:
        began = time.monotonic()
        told, wrong = "", ""
        case, settings = self._cases[name]
        stage = DeploymentFixture(flink, root, f"{re.sub(r'[^a-z]+', '-', name.lower())[:40]}-{new_id()[:6]}", settings)
        try:
            told = case(stage).replace(str(flink.work_dir), "…").replace(str(root), "…")
        except BaseException as error:
            wrong = f"{type(error).__name__}: {error}"
            raise
        finally:
            stage.close()
            print(f"{name}: {wrong or told}", flush=True)
            self._results.append(Result(self._title, name, told, time.monotonic() - began, wrong))
            if NIGHTLY:
                left = len(self._cases) - len(self._results)
                write(self._name, self._title, self._results, [_NOTES], left)
