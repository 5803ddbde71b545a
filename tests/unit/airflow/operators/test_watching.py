"""A DAG that follows the script of its deployment has no task that waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.bundles import base
from airflow.sdk import DAG, Asset

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy, redeploy_dag, redeploy_dags, script_asset
from airflow_flinkcompat.airflow.triggers.change import FlinkScriptTrigger
from tests.support.airflow.operators.versions import DagSerialization

ORDERS: dict[str, Any] = {"name": "orders", "script": "orders.sql", "flink_conn_id": "prod"}


def watcher(asset: Asset) -> FlinkScriptTrigger:
    (found,) = asset.watchers
    assert isinstance(found.trigger, FlinkScriptTrigger)
    return found.trigger


def test_the_asset_watches_what_the_deployment_says() -> None:
    one = Deployment(**ORDERS, settings={"table": {"ttl": "1 d"}}, functions={"f": "scalar"}, ledger="/ledger")
    asset = script_asset(one, folders="/jobs", poll_interval=5)
    assert asset.uri == asset.name == "x-flink-script://prod/orders"
    assert watcher(asset).serialize()[1] == {
        "arguments": {
            "deployment": "orders",
            "script": "orders.sql",
            "flink_conn_id": "prod",
            "ledger": "/ledger",
            "settings": {"table.ttl": "1 d"},
            "functions": {"f": "scalar"},
        },
        "places": {},
        "folders": [["", "/jobs"]],
        "poll_interval": 5.0,
        "recheck": 600.0,
    }


def test_a_path_in_a_bundle_is_kept_by_the_bundles_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "get_bundle_storage_root_path", lambda: tmp_path)
    pinned, followed = tmp_path / "shop/versions/0123", tmp_path / "shop/tracking_repo"
    found = [
        watcher(script_asset(Deployment(**{**ORDERS, "script": str(at / "orders.sql")}), folders=[at]))
        for at in (pinned, followed)
    ]
    assert found[0].serialize() == found[1].serialize(), "a worker at a pinned commit means the same watcher"
    assert found[0].places == {"script": ["shop", "orders.sql"]}
    assert found[0].folders == [["shop", "."]]


def test_a_dag_that_follows_it_has_no_sensor() -> None:
    one = Deployment(**ORDERS)
    made = redeploy_dag(one, watch="asset", template_searchpath="/jobs")
    assert "changed" not in made.task_ids
    assert made.max_active_runs == 1
    stored = json.dumps(DagSerialization.serialize_dag(made))
    assert "x-flink-script://prod/orders" in stored
    assert "FlinkScriptTrigger" in stored
    with DAG("own", schedule=[Asset("other"), script_asset(one, folders="/jobs")], max_active_runs=1) as own:
        gated_redeploy(one, watch="asset")
    assert "changed" not in own.task_ids


def test_a_file_of_deployments_is_watched_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "deployments.toml"
    file.write_text("[deployments.orders]\nscript = 'orders.sql'\n[deployments.bare]\nscript = '{{ params.x }}'\n")
    made = redeploy_dags(file, watch="asset")
    asset = made["redeploy_orders"].timetable.asset_condition.objects[0]  # type: ignore[attr-defined]
    assert watcher(asset).folders == [["", str(tmp_path)]]
    with pytest.raises(ValueError, match="deployment 'bare': script: a watched script is a file"):
        made["redeploy_.problems"].validate()


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        ({"script": "SELECT 1;"}, {}, "script: a watched script is a file"),
        ({"script": "orders.sql"}, {"folders": ()}, "script: 'orders.sql' is relative; set folders="),
        ({"flink_conn_id": "{{ var.value.c }}"}, {}, "flink_conn_id: a watcher has no task"),
        ({"ledger": "s3://key:secret@bucket/l"}, {}, "ledger: it may contain a secret"),
        ({"plan_only": True}, {}, "plan_only: "),
        ({}, {"poll_interval": 0}, "poll_interval must be a number of seconds above 0"),
        ({}, {"recheck": -1}, "recheck must be a number of seconds above 0"),
    ],
)
def test_what_cannot_be_watched_is_named_when_the_dag_is_parsed(given: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        script_asset(Deployment(**{**ORDERS, **given}), **{"folders": "/jobs", **arguments})


def test_a_dag_that_does_not_follow_it_is_refused() -> None:
    one = Deployment(**ORDERS)
    others: list[Any] = [None, "@continuous", [Asset("x-flink-script://prod/orders")]]
    for schedule in others:
        with (
            DAG("own", schedule=schedule, max_active_runs=1),
            pytest.raises(ValueError, match=r"'own' does not follow the script of 'orders'; set schedule=\["),
        ):
            gated_redeploy(one, watch="asset")
    with pytest.raises(ValueError, match="schedule cannot be set"):
        redeploy_dag(one, watch="asset", schedule="@daily", template_searchpath="/jobs")
    with pytest.raises(ValueError, match="watch is 'always'"):
        redeploy_dag(one, watch="always")  # type: ignore[arg-type]
    with DAG("d", max_active_runs=1), pytest.raises(ValueError, match="watch is 'always'"):
        gated_redeploy(one, watch="always")  # type: ignore[arg-type]


def test_several_files_of_a_catalog_are_sought_like_the_script() -> None:
    asset = script_asset(Deployment(**ORDERS, catalog=["a.sql", "ddl/b.sql"]), folders="/jobs")
    assert watcher(asset).arguments["catalog"] == ["a.sql", "ddl/b.sql"]
    with pytest.raises(ValueError, match="catalog: a watched script accepts several files only as relative paths"):
        script_asset(Deployment(**ORDERS, catalog=["a.sql", "/ddl/b.sql"]), folders="/jobs")
