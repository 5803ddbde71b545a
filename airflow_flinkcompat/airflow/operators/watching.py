"""Watched asset of a deployment's script: a DAG runs when the script changes, and no run waits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_flinkcompat.airflow.operators.deployments import Deployment
from airflow_flinkcompat.airflow.tasks.assets import deployment_uri
from airflow_flinkcompat.airflow.tasks.files import place_of
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, is_path

_FILES = (".sql", *PROGRAM_SUFFIXES)
# Fields that must be known before any task runs, because they determine the asset and the ledger.
_NO_TEMPLATES = ("name", "script", "flink_conn_id", "target", "ledger")


def script_asset(
    deployment: Deployment,
    *,
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    poll_interval: float = 10,
    recheck: float = 600,
) -> Asset:
    """Asset of a deployment's script, with a watcher that fires for each version that needs a check.

    Use the asset as the schedule of a DAG whose tasks are ``gated_redeploy(deployment, watch="asset")``.

    Args:
        deployment: The Flink job.
        folders: Folders in which relative paths of script and catalog are searched for, in this order.
        poll_interval: Seconds between two reads of the files in the triggerer.
        recheck: Seconds after which the ledger is read even if no file changed.

    Returns:
        The asset ``x-flink-script://<connection>/<deployment>``.

    Raises:
        ValueError: The script is not a file, is not found, or an argument is a template or contains a secret.
    """
    all_folders = [folders] if isinstance(folders, str | os.PathLike) else [*folders]
    _check(deployment, [Path(folder) for folder in all_folders])
    for word, seconds in (("poll_interval", poll_interval), ("recheck", recheck)):
        if not seconds > 0:
            raise ValueError(f"{word} must be a number of seconds above 0, not {seconds!r}")
    arguments: dict[str, Any] = {"deployment": deployment.name}
    places: dict[str, list[str]] = {}
    for name in ("script", "catalog", "flink_conn_id", "target", "ledger", "settings", "functions", "variables"):
        value = getattr(deployment, name)
        if name == "catalog" and not isinstance(value, str) and any(Path(path).is_absolute() for path in value):
            raise ValueError("catalog: a watched script accepts several files only as relative paths; set folders=")
        if name in ("script", "catalog") and is_path(value, _FILES) and Path(value).is_absolute():
            places[name] = [*place_of(value)]
        elif isinstance(value, tuple):
            arguments[name] = [*value]
        elif value:
            arguments[name] = dict(value) if isinstance(value, Mapping) else value
    from airflow_flinkcompat.airflow.triggers.change import FlinkScriptTrigger

    sought = [[*place_of(Path(folder).absolute())] for folder in all_folders]
    uri = asset_uri(deployment)
    trigger = FlinkScriptTrigger(arguments, places, sought, float(poll_interval), float(recheck))
    return Asset(uri, watchers=[AssetWatcher(name=uri, trigger=trigger)])


def asset_uri(deployment: Deployment) -> str:
    """URI of a script's asset. Airflow reads no provider metadata for a scheme that begins with ``x-``."""
    return f"x-{deployment_uri(deployment.name, deployment.flink_conn_id).replace(':', '-script:', 1)}"


def check_schedule(deployment: Deployment, dag: DAG) -> None:
    """Raise ValueError if the DAG is not scheduled on the script's asset."""
    uri = asset_uri(deployment)
    if not any(asset.name == uri and asset.watchers for asset in _assets(dag.timetable)):
        raise ValueError(
            f'watch="asset": DAG {dag.dag_id!r} does not follow the script of {deployment.name!r}; set '
            "schedule=[script_asset(deployment)]"
        )


def _assets(condition: Any) -> Iterator[Asset]:
    if isinstance(condition, Asset):
        yield condition
    for each in getattr(condition, "objects", None) or filter(None, [getattr(condition, "asset_condition", None)]):
        yield from _assets(each)


def _check(deployment: Deployment, folders: list[Path]) -> None:
    if not is_path(deployment.script, _FILES):
        raise ValueError('script: a watched script is a file; with watch="asset" write its path')
    for name in _NO_TEMPLATES:
        if "{{" in str(getattr(deployment, name) or "") or "{%" in str(getattr(deployment, name) or ""):
            raise ValueError(
                f"{name}: a watcher has no task context to fill in a template; write the value, or use watch=True"
            )
    if deployment.plan_only:
        raise ValueError('plan_only: only the sensor notices that a plan was carried out; omit watch="asset"')
    if deployment.ledger and (urlsplit(deployment.ledger).username or urlsplit(deployment.ledger).query):
        raise ValueError("ledger: it may contain a secret, which a watcher would store; set it in the connection")
    if not Path(deployment.script).is_absolute() and not folders:
        raise ValueError(
            f"script: {deployment.script!r} is relative; set folders= (or template_searchpath= of "
            "redeploy_dag) to the folders to search"
        )
