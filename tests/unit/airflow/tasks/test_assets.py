"""The names of assets."""

from __future__ import annotations

from airflow_flinkcompat.airflow.operators import deployment_asset


def test_a_uri_names_cluster_and_job_whatever_their_letters() -> None:
    assert deployment_asset("orders").uri == "flink://flink_default/orders"
    assert deployment_asset("a/b c", flink_conn_id="eu prod").uri == "flink://eu%20prod/a%2Fb%20c"
