"""A savepoint of a job that has read nothing: the identities and serializers that a state migration writes for."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.restore_test.cleaning import clean_up
from airflow_flinkcompat.deploy.restore_test.journal import Journal
from airflow_flinkcompat.deploy.restore_test.place import Cluster
from airflow_flinkcompat.deploy.restore_test.restoring import Inconclusive, RestoreRefused, Runner, Timeouts, Version
from airflow_flinkcompat.deploy.restore_test.watcher import Watcher
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.store import copy_savepoint

_log = logging.getLogger(__name__)
_TIMES = Timeouts(settle=0.0, start=120.0)
# How long (seconds) a job whose submission was not answered may still come up.
_COMING_SECONDS = 30.0


def take_template(cluster: Cluster, version: Version, folder: Path, log: Callable[[str], None] = _log.info) -> None:
    """Start a script on empty input with stand-ins for its sinks, stop it at once, and keep its savepoint.

    Sources begin where there is nothing to read, as far as their connectors can; what little others read goes nowhere.
    What was started is ended and the cluster's own copy of the savepoint disposed of, however this ends.

    Args:
        cluster: Where to start it.
        version: The script and its settings.
        folder: Where to put the savepoint; it must not exist.
        log: Is told what happens, a line each.

    Raises:
        DeployError: The job cannot be started beside others, does not come up, or its savepoint cannot be read.
    """
    target = cluster.restore_test_target
    name = f"flinkcompat-template-{uuid.uuid4().hex}"
    runner = Runner(target, name, _TIMES, Journal())
    checked = runner.check(version, empty=True)
    log(f"starting {version.source} on empty input for a template")
    watcher = Watcher(cluster.location)
    coming = _COMING_SECONDS
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
        left = ["?"]
        with suppress(DeployError):
            left = clean_up(target, watcher.started, timeout=_TIMES.clean_up, coming=coming)
        if left:
            watcher.leave()
        else:
            watcher.dismiss()
