"""Template of a migration: a savepoint of the new job without rows, with its ids and serializers."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_flinkcompat.deploy.rehearsal.place import Cluster, Watcher
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Inconclusive,
    RestoreRefused,
    RestoreRunner,
    RunnableSide,
    Timeouts,
    check_side,
)
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.target import ClusterOptions
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.exec_graph.stand_ins import StandInIds
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.installation import cache_directory
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.replay import write_renamed
from airflow_flinkcompat.savepoint.store import copy_savepoint

_log = logging.getLogger(__name__)
_TIMES = Timeouts(settle=0.0, start=120.0)


def kept_template(
    job: JobSpec,
    location: TargetLocation | None,
    options: Mapping[str, str],
    ids: StandInIds,
    cluster: Callable[[], Cluster],
    log: Callable[[str], None] = _log.info,
) -> Path:
    """The folder of a job's template savepoint, which is taken unless it is cached. Raises DeployError.

    ``location`` is the cluster that takes the template, or None for a temporary Flink that ``cluster`` starts.
    ``options`` are the cluster options on which the template depends. ``ids`` are the operator ids with stand-ins, and
    those of the job, which the template gets.
    """
    templates = cache_directory() / "templates"
    folder, part = templates / _digest(job, location, options, ids), templates / f".{uuid.uuid4().hex}"
    if folder.exists():
        return folder
    try:
        take_template(cluster(), job, part, log)
        if ids.differ:
            write_renamed(str(part), str(part), ids.real)
        try:
            part.rename(folder)
        except OSError:
            if not folder.exists():  # otherwise a different process has stored it meanwhile
                raise
        return folder
    finally:
        shutil.rmtree(part, ignore_errors=True)


def options_of(cluster: Cluster) -> Mapping[str, str]:
    """The cluster options on which a template depends, if the target shows them."""
    return cluster.target.cluster_options() if isinstance(cluster.target, ClusterOptions) else {}


def _digest(job: JobSpec, location: TargetLocation | None, options: Mapping[str, str], ids: StandInIds) -> str:
    """Cache key of a template: digest of script, settings, version, cluster options and changed ids."""
    where = None if location is None else [location.target, sorted(location.addresses.items())]
    renamed = [sorted(ids.ids.items())] if ids.differ else []
    parts = [job.digest(), job.version, where, sorted(options.items()), *renamed]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def take_template(
    cluster: Cluster, version: RunnableSide, folder: Path, log: Callable[[str], None] = _log.info
) -> None:
    """Run a script on empty input with stand-ins for its sinks, and store its savepoint in ``folder``.

    Sources skip all existing rows if their connectors support that. A source without that support may read a few
    rows, and the job discards them. The job is always cancelled, and the cluster's copy of the savepoint is deleted.
    Raises DeployError.
    """
    target = cluster.restore_test_target
    name = f"flinkcompat-template-{uuid.uuid4().hex}"
    runner = RestoreRunner(target, _TIMES, Journal())
    checked = check_side(target, version, name, empty=True)
    log(f"starting {version.source} on empty input for a template")
    watcher = Watcher(cluster.location)
    try:
        savepoint = runner.restore(watcher, checked, name, None, None).savepoint
        if savepoint is None:
            raise Inconclusive("the job ended by itself before a savepoint could be taken")
        copy_savepoint(target.location(savepoint), folder)
    except (RestoreRefused, SavepointUnreadable) as error:
        raise Inconclusive(str(error)) from None
    finally:
        watcher.end(target, _TIMES.clean_up)
