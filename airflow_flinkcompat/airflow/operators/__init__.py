"""Airflow operators. Each name is loaded on first use, so that DAG files import only what they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.operators.approval import FlinkSqlApprovalOperator
    from airflow_flinkcompat.airflow.operators.backfill import FlinkBackfillOperator
    from airflow_flinkcompat.airflow.operators.compatibility import FlinkSqlCompatibilityOperator
    from airflow_flinkcompat.airflow.operators.deploy import FlinkSqlDeployOperator
    from airflow_flinkcompat.airflow.operators.deployments import Deployment, DeploymentsError, read_deployments
    from airflow_flinkcompat.airflow.operators.gated import gated_redeploy, redeploy_dag, redeploy_dags
    from airflow_flinkcompat.airflow.operators.migration import FlinkStateMigrationOperator, FlinkWarmRestartOperator
    from airflow_flinkcompat.airflow.operators.rehearsal import FlinkRestoreRehearsalOperator
    from airflow_flinkcompat.airflow.operators.shadow import FlinkShadowRunOperator
    from airflow_flinkcompat.airflow.operators.upgrade import upgrade_dag
    from airflow_flinkcompat.airflow.operators.watching import script_asset
    from airflow_flinkcompat.airflow.tasks.arguments import Template
    from airflow_flinkcompat.airflow.tasks.assets import deployment_asset, tables_alias

__all__ = [
    "FlinkSqlApprovalOperator",
    "FlinkBackfillOperator",
    "FlinkRestoreRehearsalOperator",
    "FlinkShadowRunOperator",
    "FlinkSqlCompatibilityOperator",
    "FlinkSqlDeployOperator",
    "FlinkStateMigrationOperator",
    "FlinkWarmRestartOperator",
    "Deployment",
    "DeploymentsError",
    "Template",
    "deployment_asset",
    "gated_redeploy",
    "read_deployments",
    "redeploy_dag",
    "redeploy_dags",
    "script_asset",
    "tables_alias",
    "upgrade_dag",
]

_HOMES = {
    ".approval": ("FlinkSqlApprovalOperator",),
    "airflow_flinkcompat.airflow.tasks.arguments": ("Template",),
    "airflow_flinkcompat.airflow.tasks.assets": ("deployment_asset", "tables_alias"),
    ".backfill": ("FlinkBackfillOperator",),
    ".compatibility": ("FlinkSqlCompatibilityOperator",),
    ".deploy": ("FlinkSqlDeployOperator",),
    ".deployments": ("Deployment", "DeploymentsError", "read_deployments"),
    ".gated": ("gated_redeploy", "redeploy_dag", "redeploy_dags"),
    ".migration": ("FlinkStateMigrationOperator", "FlinkWarmRestartOperator"),
    ".upgrade": ("upgrade_dag",),
    ".watching": ("script_asset",),
    ".rehearsal": ("FlinkRestoreRehearsalOperator",),
    ".shadow": ("FlinkShadowRunOperator",),
}


if not TYPE_CHECKING:  # type checkers assume that a module with __getattr__ has every name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
