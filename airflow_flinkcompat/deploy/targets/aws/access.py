"""Access to the service by an Airflow connection of type ``aws``, or by boto3's credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import NoRegionError  # type: ignore[import-untyped]

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.access import settings_from_environment
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.aws.service import ManagedFlink

_SERVICE = "kinesisanalyticsv2"
_VARIABLE = "FLINKCOMPAT_AWS_"
_SETTINGS = (
    "runtime_environment",
    "region_name",
    "endpoint_url",
    "script_property",
    "script_s3",
    "settings_property_group",
    "poll_interval",
)
_RUNTIME = re.compile(r"FLINK-\d+_\d+")


def settings_of(access: Access) -> Mapping[str, Any]:
    """Settings of a connection, else of the environment (``FLINKCOMPAT_AWS_REGION_NAME``, for example)."""
    if access.settings is not None:
        return access.settings
    return settings_from_environment(_SETTINGS, _VARIABLE)


def runtime_of(settings: Mapping[str, Any]) -> str:
    """The runtime environment of the applications. Raises DeployError: none is named."""
    runtime = str(settings.get("runtime_environment") or "")
    if not _RUNTIME.fullmatch(runtime):
        raise DeployError(
            f"runtime_environment {runtime!r} is not a Flink runtime: set the one of the applications, for "
            "example FLINK-1_20"
        )
    return runtime


def opened(settings: Mapping[str, Any], hook: Callable[[str], Any] | None) -> ManagedFlink:
    """The client of the service, by Airflow's connection or by boto3's own search for credentials."""
    region, interval = settings.get("region_name") or None, settings.get("poll_interval")
    try:
        poll_interval = 1.0 if interval in (None, "") else float(str(interval))
    except ValueError:
        raise DeployError(f"poll_interval {interval!r} is not a number of seconds") from None
    if conn_id := settings.get("aws_conn_id"):
        if hook is None:
            raise DeployError(f"aws_conn_id {conn_id!r} names an Airflow connection, and this process has none")
        if settings.get("endpoint_url"):
            raise DeployError(f"set endpoint_url in the extra of connection {str(conn_id)!r}")
        service, s3 = (_amazon(hook(str(conn_id)), kind) for kind in (_SERVICE, "s3"))
        client = service.get_client_type(region_name=region)
        return ManagedFlink(
            client,
            s3=lambda: s3.get_client_type(region_name=region),
            waiter=service.get_waiter,
            poll_interval=poll_interval,
        )
    import boto3  # type: ignore[import-untyped]

    try:
        client = boto3.client(_SERVICE, region_name=region, endpoint_url=settings.get("endpoint_url") or None)
    except NoRegionError as error:
        raise DeployError(f"{error} Set region_name") from None
    return ManagedFlink(client, s3=lambda: boto3.client("s3", region_name=region), poll_interval=poll_interval)


def _amazon(hook: Any, kind: str) -> Any:
    """The Amazon provider's hook of a connection for one service, like its own class for that."""
    if not hasattr(hook, "get_client_type"):
        raise DeployError(f"{type(hook).__name__} is not the hook of an aws connection: check aws_conn_id")
    hook.client_type = kind
    return hook
