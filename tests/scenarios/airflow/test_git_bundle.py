"""Airflow's own bundle of Git over a repository: the watcher's copy, a run that is pinned, and the commit on record.

The provider is installed for it, beside the environment: it is no dependency.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.airflow.operators import Deployment, script_asset
from airflow_flinkcompat.airflow.tasks.files import BUNDLES, git_origin, place_of, repository_of
from tests.unit.airflow.tasks.test_files import git

PACKAGES = ("apache-airflow-providers-git==1.0.1", "GitPython>=3.1.44", "gitdb", "smmap")
ROOT = Path(__file__).parents[3]
SCRIPT = "jobs/orders.sql"
PLACE = ("shop", SCRIPT)

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def push(work: Path, text: str) -> str:
    """A commit of the script, pushed to the bare repository that the bundle follows; its hash."""
    (work / SCRIPT).write_text(text, encoding="utf-8")
    git(work, "add", "--all")
    git(work, "commit", "-qm", text.strip())
    git(work, "push", "-q", "origin", "main")
    return git(work, "rev-parse", "HEAD")


def scenario(work: Path) -> dict[str, Any]:
    """What a process of Airflow sees of two commits, the second one made while it watches."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    manager = DagBundlesManager()
    first = push(work, "SELECT 1;\n")
    tracking = BUNDLES.path(PLACE)
    told: dict[str, Any] = {
        "class": type(manager.get_bundle("shop")).__module__,
        "read": [tracking.read_text()],
        "commits": [BUNDLES.commit(PLACE)],
        "pushed": [first],
    }
    # What the DAG processor hands to a task of a run that is pinned: a folder of this commit alone.
    pinned = manager.get_bundle("shop", version=first)
    pinned.initialize()
    deployment = Deployment(name="orders", script=str(tracking), ledger=str(work.parent / "ledger"))
    trigger = next(iter(script_asset(deployment, poll_interval=0.05).watchers)).trigger
    told["place"] = trigger.serialize()[1]["places"]["script"]

    async def watch() -> list[dict[str, Any]]:
        events = []
        async with asyncio.timeout(120):
            async for event in trigger.run():
                events.append(dict(event.payload))
                if len(events) == 2:
                    return events
                told["pushed"].append(await asyncio.to_thread(push, work, "SELECT 2;\n"))
        return events

    told["events"] = asyncio.run(watch())
    told["read"].append(BUNDLES.path(PLACE).read_text())
    told["commits"].append(BUNDLES.commit(PLACE))
    script = repository_of(pinned) / SCRIPT
    told["pinned"] = {
        "read": script.read_text(),
        "place": place_of(script),
        "git": (pinned.path / ".git").exists(),
        "commit": git_origin([str(script)], pinned).commit,
    }
    newest = git_origin([str(tracking)], manager.get_bundle("shop"))
    told["origin"] = (newest.commit, newest.author)
    return told


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("provider")
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", folder, *PACKAGES]
    subprocess.run(install, check=True, timeout=300)
    return folder


@pytest.mark.parametrize("subdir", ["", "flows/dags"])
def test_a_bundle_of_git(provider: Path, tmp_path: Path, subdir: str) -> None:
    bare, work = tmp_path / "shop.git", tmp_path / "work"
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch", "main", bare], check=True)
    subprocess.run(["git", "clone", "-q", bare, work], check=True, capture_output=True)
    git(work, "checkout", "-q", "-b", "main")
    for folder in ("jobs", "flows/dags"):
        (work / folder).mkdir(parents=True)
        (work / folder / ".keep").touch()
    push(work, "SELECT 0;\n")
    arguments = {"tracking_ref": "main", "repo_url": str(bare), "subdir": subdir or None, "refresh_interval": 0}
    bundle = {
        "name": "shop",
        "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
        "kwargs": arguments,
    }
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(provider))),
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(tmp_path / "bundles"),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW_CONN_FLINK_DEFAULT": json.dumps({"conn_type": "flink", "extra": {"target": "sql-gateway"}}),
    }
    code = (
        "import json, sys; from pathlib import Path; from tests.scenarios.airflow.test_git_bundle import scenario; "
        "print('\\n' + json.dumps(scenario(Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, work], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    first, second = told["pushed"]
    assert told["class"] == "airflow.providers.git.bundles.git"
    assert told["read"] == ["SELECT 1;\n", "SELECT 2;\n"]
    assert told["commits"] == [first, second]
    assert told["place"] == [*PLACE], "by bundle and path, which every copy has"
    assert [each["commit"] for each in told["events"]] == [first, second]
    assert told["pinned"] == {"read": "SELECT 1;\n", "place": [*PLACE], "git": False, "commit": first}
    assert told["origin"] == [second, "Ada <ada@example.com>"]
