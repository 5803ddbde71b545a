"""The template of a migration on a pretended target: what is started, kept and ended, and what cannot be had."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import JobStatus
from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError
from airflow_flinkcompat.deploy.rehearsal import template
from airflow_flinkcompat.deploy.rehearsal.template import kept_template, take_template
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, StandInIds, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.unit.deploy.rehearsal.test_restoring import SIDE, Place, Watched

SAVEPOINT = Path(__file__).parents[3] / "fixtures" / "migrations" / "a-metric-is-added-to-sessions" / "template"


class TemplatePlace(Place):
    """A target whose savepoints lie in a folder."""

    lies: Path = Path()

    def restore_test(self, _job: JobSpec, private: str, *, empty: bool = False) -> Place:
        self.done.append(("stand-ins", private.rpartition("-")[0], empty))
        return self

    def location(self, _savepoint: str) -> str:
        return self.lies.as_uri()

    def dispose(self, savepoint: str) -> None:
        self.done.append(("disposed", savepoint))
        shutil.rmtree(self.lies)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TemplatePlace:
    made = TemplatePlace()
    made.lies = tmp_path / "cluster"
    shutil.copytree(SAVEPOINT, made.lies)

    class Child(Watched):
        def __init__(self, _location: object) -> None:
            super().__init__()

        def dismiss(self) -> None:
            made.done.append("nothing is left")

        def leave(self) -> None:
            made.done.append("something is left")

    monkeypatch.setattr(template, "Watcher", Child)
    return made


def taken(place: TemplatePlace, folder: Path) -> list[Any]:
    cluster: Any = SimpleNamespace(restore_test_target=place, location=None)
    take_template(cluster, SIDE, folder, lambda line: None)
    return place.done


def test_it_is_copied_before_the_cluster_disposes_of_it(place: TemplatePlace, tmp_path: Path) -> None:
    done = taken(place, tmp_path / "kept")
    assert done[0] == ("stand-ins", "flinkcompat-template", True)
    assert (done[1][0], done[1][2]) == ("started", None)
    assert done[2:] == [
        ("stopped", "job-7", None),
        ("cancelled", "job-7"),
        ("disposed", "own"),
        "nothing is left",
    ]
    assert {file.name: file.read_bytes() for file in (tmp_path / "kept").iterdir()} == {
        file.name: file.read_bytes() for file in SAVEPOINT.iterdir()
    }


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (JobStatus(JobRef("job-7"), "n", "FINISHED", True), "ended by itself before a savepoint could be taken"),
        (JobStatus(JobRef("job-7"), "n", "FAILED", True, failure="no such file"), "no such file"),
    ],
)
def test_none_can_be_had(status: JobStatus, says: str, place: TemplatePlace, tmp_path: Path) -> None:
    place.status_now = status
    with pytest.raises(DeployError, match=says):
        taken(place, tmp_path / "kept")
    assert place.done[-1] == "nothing is left"
    assert not (tmp_path / "kept").exists()


def test_a_savepoint_that_cannot_be_read_from_here(place: TemplatePlace, tmp_path: Path) -> None:
    (place.lies / "_metadata").write_bytes(b"no savepoint")
    with pytest.raises(DeployError, match="_metadata"):
        taken(place, tmp_path / "kept")
    assert ("disposed", "own") in place.done


def test_a_source_of_one_reader(place: TemplatePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CannotRehearse("a replication slot allows only one reader")

    monkeypatch.setattr(place, "restore_test", refuse)
    with pytest.raises(CannotRehearse, match="one reader"):
        taken(place, tmp_path / "kept")
    assert place.done == []


def test_a_kept_template_has_the_ids_of_the_real_job(
    place: TemplatePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same script with other ids has a template of its own, which lacks the operators of stand-ins."""
    monkeypatch.setenv("FLINKCOMPAT_CACHE", str(tmp_path / "cache"))
    cluster: Any = SimpleNamespace(restore_test_target=place, location=None)
    sink, *others = (each.id for each in read_metadata(str(SAVEPOINT)).operators)
    renamed = StandInIds({each[::-1]: each for each in others}, {sink})

    def kept(ids: StandInIds) -> list[str]:
        if not place.lies.exists():
            shutil.copytree(SAVEPOINT, place.lies)
        place.status_now = TemplatePlace().status_now  # the job of the former template was cancelled
        folder = kept_template(JobSpec("SELECT 1", engine_version="2.3.0"), None, {}, ids, lambda: cluster, print)
        return [each.id for each in read_metadata(str(folder)).operators]

    assert kept(renamed) == [each[::-1] for each in others]
    assert kept(UNKNOWN_IDS[StandIns.IDLE]) == [sink, *others]
    begun = len(place.done)
    assert kept(renamed) == [each[::-1] for each in others]
    assert len(place.done) == begun, "both templates are cached"
