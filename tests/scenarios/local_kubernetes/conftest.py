"""Parts of the local Kubernetes that tests share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.targets.jar_run import runner_jar
from airflow_flinkcompat.local_flink import LocalFlink
from dev.local_kubernetes.binary import KubernetesUnavailable, control_plane
from dev.local_kubernetes.rigs import Rig, application_rig, session_rig
from dev.measure.pairs import home


@pytest.fixture(scope="session")
def kubernetes_binary() -> Path:
    """The control plane, built once; where it cannot be built, what needs it is skipped with the reason."""
    try:
        return control_plane()
    except KubernetesUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def flink_1_20() -> Path:
    """The Flink that operator 1.7.0 can run; fetched on first use, 330 MB."""
    return home("1.20")


@pytest.fixture(scope="session")
def runner_jar_path() -> Iterator[Path]:
    with as_file(runner_jar()) as path:
        yield path


@pytest.fixture(scope="class")
def session_flink(
    kubernetes_binary: Path, flink_1_20: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalFlink]:
    """The Flink of the session cluster."""
    with LocalFlink(tmp_path_factory.mktemp("flink"), home=flink_1_20) as flink:
        yield flink


@pytest.fixture(scope="class")
def places(
    kubernetes_binary: Path, flink_1_20: Path, runner_jar_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Path]:
    """A folder for a rig, the Flink and the runner."""
    return tmp_path_factory.mktemp("rig"), flink_1_20, runner_jar_path


@pytest.fixture(scope="class")
def session_jobs(places: tuple[Path, Path, Path]) -> Iterator[Rig]:
    """A session cluster, and the operator."""
    with session_rig(*places) as rig:
        yield rig


@pytest.fixture(scope="class")
def applications(places: tuple[Path, Path, Path]) -> Iterator[Rig]:
    """A Kubernetes whose pods are processes, and the operator."""
    with application_rig(*places) as rig:
        yield rig
