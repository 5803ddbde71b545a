"""Airflow assets of a deployment, and their events.

A deployment is the asset ``flink://<connection>/<deployment>``. The connection is known when a DAG is parsed, holds no
secret in its name, and identifies the cluster if two have a job of one name. A ledger's address may be the
connection's, and may hold a secret. The tables that a script writes are known when its task runs. Both are emitted
through an alias that the task declares: to make an ``Asset`` from a URI, Airflow reads the metadata of all providers,
which takes longer than parsing 200 deployments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.plan.datasets import Dataset

SCHEME = "flink"
_DEFAULT_CONNECTION = "flink_default"


def deployment_uri(deployment: str, flink_conn_id: str = _DEFAULT_CONNECTION) -> str:
    """The URI of a deployment's asset."""
    return f"{SCHEME}://{quote(flink_conn_id, safe='')}/{quote(deployment, safe='')}"


def deployment_asset(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> Asset:
    """The asset of a deployment, for the schedule of a DAG that follows a deploy.

    Args:
        deployment: Name of the Flink job.
        flink_conn_id: Its connection, as its deploy task names it.

    Returns:
        The asset.
    """
    return Asset(deployment_uri(deployment, flink_conn_id))


def deployment_alias(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> AssetAlias:
    """The alias through which a deploy emits the event of its deployment."""
    return AssetAlias(f"{SCHEME}-deployment:{flink_conn_id}/{deployment}")


def tables_alias(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> AssetAlias:
    """Alias of all tables that a deployment writes, for the schedule of a DAG that reads them.

    Args:
        deployment: Name of the Flink job.
        flink_conn_id: Its connection, as its tasks name it.

    Returns:
        The alias.
    """
    return AssetAlias(f"{SCHEME}-tables:{flink_conn_id}/{deployment}")


def emit(task: Any, context: Context, alias: AssetAlias, uris: Mapping[str, Mapping[str, Any]]) -> None:
    """Add an event to each asset, through an alias that is among the outlets of ``task``."""
    accessor = context["outlet_events"][alias]
    for uri, extra in uris.items():
        try:
            asset = Asset(uri)
        except ValueError as error:  # by another provider's own rules for its scheme; what was done is done
            task.log.warning("No asset event on %s: %s", uri, error)
            continue
        accessor.add(asset, extra=dict(extra))
        task.log.info("Asset event on %s", uri)


def emit_tables(
    task: Any, context: Context, alias: AssetAlias, tables: Mapping[str, Sequence[Dataset]], extra: Mapping[str, Any]
) -> None:
    """Add an event to the asset of each table; tables without a known place are named in the log."""
    emit(task, context, alias, {each.uri: {**extra, "table": name} for name, sets in tables.items() for each in sets})
    if unnamed := [name for name, sets in tables.items() if not sets]:
        task.log.info("No asset event on %s: the script does not show where the data is", ", ".join(unnamed))
