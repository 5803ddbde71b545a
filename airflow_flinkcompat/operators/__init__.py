"""Airflow operators. Names load on first use: a DAG file pays only for what it imports."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.operators.approval import FlinkSqlApprovalOperator
    from airflow_flinkcompat.operators.arguments import Template
    from airflow_flinkcompat.operators.backfill import FlinkBackfillOperator
    from airflow_flinkcompat.operators.compatibility import FlinkSqlCompatibilityOperator
    from airflow_flinkcompat.operators.deploy import FlinkSqlDeployOperator
    from airflow_flinkcompat.operators.deployments import Deployment, DeploymentsError, read_deployments
    from airflow_flinkcompat.operators.gated import gated_redeploy, redeploy_dag, redeploy_dags
    from airflow_flinkcompat.operators.rehearsal import FlinkRestoreRehearsalOperator

__all__ = [
    "FlinkSqlApprovalOperator",
    "FlinkBackfillOperator",
    "FlinkRestoreRehearsalOperator",
    "FlinkSqlCompatibilityOperator",
    "FlinkSqlDeployOperator",
    "Deployment",
    "DeploymentsError",
    "Template",
    "gated_redeploy",
    "read_deployments",
    "redeploy_dag",
    "redeploy_dags",
]

_HOMES = {
    "FlinkSqlApprovalOperator": "approval",
    "FlinkBackfillOperator": "backfill",
    "FlinkRestoreRehearsalOperator": "rehearsal",
    "FlinkSqlCompatibilityOperator": "compatibility",
    "FlinkSqlDeployOperator": "deploy",
    "Deployment": "deployments",
    "DeploymentsError": "deployments",
    "Template": "arguments",
    "gated_redeploy": "gated",
    "read_deployments": "deployments",
    "redeploy_dag": "gated",
    "redeploy_dags": "gated",
}


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
