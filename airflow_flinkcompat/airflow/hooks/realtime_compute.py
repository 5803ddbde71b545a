"""The Airflow connection ``alibaba_realtime_compute``: a namespace of Realtime Compute, with a ledger."""

from __future__ import annotations

from typing import Any

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook


class RealtimeComputeHook(FlinkHook):
    """Hook of a connection of type ``alibaba_realtime_compute``, which opens a namespace and its ledger.

    Login and password are the id and the secret of an access key. Keys of the extra: ``endpoint`` or ``region``,
    ``workspace``, ``namespace``, ``alibaba_conn_id`` (a connection of type ``alibaba_cloud`` whose access key is used
    instead), ``engine_version``, ``deployment_target``, ``ledger``, and ``ui_url`` (address of the console in a
    browser).
    """

    conn_name_attr = "realtime_compute_conn_id"
    default_conn_name = "realtime_compute_default"
    conn_type = "alibaba_realtime_compute"
    hook_name = "Alibaba Cloud Realtime Compute for Apache Flink"

    def __init__(self, realtime_compute_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(flink_conn_id=realtime_compute_conn_id, **kwargs)
