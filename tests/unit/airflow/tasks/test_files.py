"""Files of a bundle are found in whichever copy of it a process has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.bundles import base
from airflow.dag_processing.bundles.manager import DagBundlesManager

from airflow_flinkcompat.airflow.tasks.files import Bundles, git_origin, place_of
from airflow_flinkcompat.project.origin import GitOrigin


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(base, "get_bundle_storage_root_path", lambda: tmp_path / "bundles")
    return tmp_path / "bundles"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("shop/tracking_repo/jobs/orders.sql", ("shop", "jobs/orders.sql")),
        ("shop/versions/0123abcd/jobs/orders.sql", ("shop", "jobs/orders.sql")),
        ("shop/jobs/orders.sql", ("shop", "jobs/orders.sql")),
        ("shop", ("shop", ".")),
    ],
)
def test_a_path_means_the_same_in_every_copy(root: Path, path: str, place: tuple[str, str]) -> None:
    assert place_of(root / path) == place


def test_a_path_elsewhere_is_itself(root: Path, tmp_path: Path) -> None:
    assert place_of(tmp_path / "orders.sql") == ("", str(tmp_path / "orders.sql"))
    assert place_of(root) == ("", str(root))
    assert Bundles().path(("", "/jobs/orders.sql")) == Path("/jobs/orders.sql")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    return subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


class Repository(base.BaseDagBundle):
    """A bundle laid out as Airflow's bundle of Git is, by the program of that name."""

    supports_versioning = True
    refreshed = 0

    def __init__(self, *, source: Path, subdir: str = "", root: Path, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.source, self.subdir = source, subdir
        self.checkout = root / self.name / "tracking_repo"

    def initialize(self) -> None:
        git(self.source, "clone", "-q", str(self.source), str(self.checkout))
        super().initialize()

    def refresh(self) -> None:
        type(self).refreshed += 1
        git(self.checkout, "pull", "-q")

    def get_current_version(self) -> str:
        return git(self.checkout, "rev-parse", "HEAD")

    @property
    def path(self) -> Path:
        return self.checkout / self.subdir


@pytest.mark.parametrize("subdir", ["", "flows/dags"])
def test_the_newest_commit_is_read_and_fetched_once_for_all(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subdir: str
) -> None:
    source = tmp_path / "source"
    (source / "flows/dags").mkdir(parents=True)
    (source / "orders.sql").write_text("SELECT 1")
    (source / "flows/dags/gate.py").write_text("")
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-qm", "one")
    monkeypatch.setattr(Repository, "refreshed", 0)
    made: list[Repository] = []

    def get_bundle(_self: Any, name: str) -> Repository:
        made.append(Repository(name=name, source=source, subdir=subdir, root=root, refresh_interval=3600))
        return made[-1]

    monkeypatch.setattr(DagBundlesManager, "get_bundle", get_bundle)
    bundles, place = Bundles(), ("shop", "orders.sql")
    assert bundles.path(place).read_text() == "SELECT 1"
    assert place_of(bundles.path(place)) == place
    assert bundles.commit(place) == git(source, "rev-parse", "HEAD")
    (source / "orders.sql").write_text("SELECT 2")
    git(source, "commit", "-qam", "two")
    for _ in range(3):
        assert bundles.path(("shop", "orders.sql")).read_text() == "SELECT 1"
    assert (len(made), Repository.refreshed) == (1, 0), "as often as its configuration says"
    made[0].refresh_interval = 0
    assert bundles.path(place).read_text() == "SELECT 2"
    assert bundles.commit(place) == git(source, "rev-parse", "HEAD")
    assert bundles.commit(("", "/orders.sql")) is None


def test_a_bundle_that_is_not_configured_is_named(root: Path) -> None:
    with pytest.raises(ValueError, match="'nowhere' is not configured"):
        Bundles().path(("nowhere", "orders.sql"))


def test_without_files_and_a_bundle_the_commit_is_unknown() -> None:
    assert git_origin([]) == GitOrigin()


def test_a_versioned_bundle_without_a_repository_tells_its_version(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("SELECT 1")
    inside, outside = str(tmp_path / "orders.sql"), "/somewhere/orders.sql"
    bundle = SimpleNamespace(version="c0ffee" * 6 + "c0ff", path=tmp_path)
    assert git_origin([inside], bundle) == git_origin([], bundle) == GitOrigin(bundle.version)
    assert git_origin([outside], bundle) == GitOrigin()
    for version in (None, "7", SimpleNamespace()):
        assert git_origin([inside], SimpleNamespace(version=version, path=tmp_path)) == GitOrigin()
