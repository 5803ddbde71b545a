"""A savepoint of a job that has read no row, with the ids and serializers that a migration writes."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_flinkcompat.deploy.rehearsal.place import COMING_SECONDS, Cluster, Watcher
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Inconclusive,
    Journal,
    RestoreRefused,
    RestoreRunner,
    RunnableSide,
    Timeouts,
)
from airflow_flinkcompat.deploy.target import ClusterOptions
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.installation import cache_directory
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.store import copy_savepoint

_log = logging.getLogger(__name__)
_TIMES = Timeouts(settle=0.0, start=120.0)


def kept_template(
    job: JobSpec,
    location: TargetLocation | None,
    options: Mapping[str, str],
    cluster: Callable[[], Cluster],
    log: Callable[[str], None] = _log.info,
) -> Path:
    """The folder of a job's template, from the cache if it contains one. Raises DeployError.

    ``location``: the cluster that takes it; None: a Flink that ``cluster`` starts for it. ``options``: the options
    of the cluster on which a template depends.
    """
    templates = cache_directory() / "templates"
    folder, part = templates / _digest(job, location, options), templates / f".{uuid.uuid4().hex}"
    if folder.exists():
        return folder
    try:
        take_template(cluster(), job, part, log)
        try:
            part.rename(folder)
        except OSError:
            if not folder.exists():  # otherwise another process has taken it meanwhile
                raise
        return folder
    finally:
        shutil.rmtree(part, ignore_errors=True)


def options_of(cluster: Cluster) -> Mapping[str, str]:
    """The options of a cluster on which a template depends, if it shows them."""
    return cluster.target.cluster_options() if isinstance(cluster.target, ClusterOptions) else {}


def _digest(job: JobSpec, location: TargetLocation | None, options: Mapping[str, str]) -> str:
    """Digest of a template's inputs: script, settings, version, and the cluster with its options."""
    where = None if location is None else [location.target, sorted(location.addresses.items())]
    parts = [job.digest(), job.version, where, sorted(options.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def take_template(
    cluster: Cluster, version: RunnableSide, folder: Path, log: Callable[[str], None] = _log.info
) -> None:
    """Run a script on empty input with stand-ins for its sinks, and keep its savepoint in ``folder``.

    Sources begin where there is nothing to read, if their connectors support that; the few rows that others read are
    discarded. In any case the job is ended and the cluster's own copy deleted. Raises DeployError.
    """
    target = cluster.restore_test_target
    name = f"flinkcompat-template-{uuid.uuid4().hex}"
    runner = RestoreRunner(target, name, _TIMES, Journal())
    checked = runner.check(version, empty=True)
    log(f"starting {version.source} on empty input for a template")
    watcher = Watcher(cluster.location)
    coming = COMING_SECONDS
    try:
        savepoint = runner.restore(watcher, checked, name, None, None).savepoint
        coming = 0.0
        if savepoint is None:
            raise Inconclusive("the job ended by itself before a savepoint could be taken")
        copy_savepoint(target.location(savepoint), folder)
    except (RestoreRefused, SavepointUnreadable) as error:
        coming = 0.0
        raise Inconclusive(str(error)) from None
    finally:
        watcher.end(target, _TIMES.clean_up, coming)
