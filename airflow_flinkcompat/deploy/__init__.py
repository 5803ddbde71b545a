"""Where a deployment runs and what is known of it: targets, the ledger, redeploying, a local Flink.

Names load on first use: reading a ledger needs neither the SQL parser nor an HTTP client, and the clients need nothing
of the extra ``local-flink``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
    from airflow_flinkcompat.deploy.flink.execution import SubmissionUnknown, TargetError
    from airflow_flinkcompat.deploy.flink.gateway import GatewayError, SqlGateway
    from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError, JobStatus
    from airflow_flinkcompat.deploy.flink.rest import ApiError, Endpoint
    from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
    from airflow_flinkcompat.deploy.handover import read_hand_over
    from airflow_flinkcompat.deploy.ledger.history import Ledger, LedgerConflict, LedgerEntry
    from airflow_flinkcompat.deploy.ledger.store import LedgerError
    from airflow_flinkcompat.deploy.local.flink import LocalFlink
    from airflow_flinkcompat.deploy.local.processes import LocalFlinkError
    from airflow_flinkcompat.deploy.plans import PlansUnavailable, compile_plans, explain_plans
    from airflow_flinkcompat.deploy.redeploy.run import Options, RolledBack, StartFailed, Wait, Waiting
    from airflow_flinkcompat.deploy.redeploy.sequence import deploy
    from airflow_flinkcompat.deploy.redeploy.verify import VerificationFailed, verify_start
    from airflow_flinkcompat.deploy.target import (
        EngineInfo,
        SqlGatewayTarget,
        Start,
        StartMode,
        Target,
    )

_HOMES = {
    "errors": ("DeployError", "DeployRefused"),
    "flink.execution": ("SubmissionUnknown", "TargetError"),
    "flink.gateway": ("GatewayError", "SqlGateway"),
    "handover": ("read_hand_over",),
    "flink.jobmanager": ("JobManager", "JobManagerError", "JobStatus"),
    "ledger.history": ("Ledger", "LedgerConflict", "LedgerEntry"),
    "local.flink": ("LocalFlink",),
    "plans": ("PlansUnavailable", "compile_plans", "explain_plans"),
    "local.processes": ("LocalFlinkError",),
    "redeploy.sequence": ("deploy",),
    "flink.rest": ("ApiError", "Endpoint"),
    "redeploy.run": ("Options", "RolledBack", "StartFailed", "Wait", "Waiting"),
    "flink.statements": ("ScriptRefused",),
    "ledger.store": ("LedgerError",),
    "target": ("EngineInfo", "SqlGatewayTarget", "Start", "StartMode", "Target"),
    "redeploy.verify": ("VerificationFailed", "verify_start"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ApiError",
    "DeployError",
    "DeployRefused",
    "Endpoint",
    "EngineInfo",
    "GatewayError",
    "JobManager",
    "JobManagerError",
    "JobStatus",
    "Ledger",
    "LedgerConflict",
    "LedgerEntry",
    "LedgerError",
    "LocalFlink",
    "LocalFlinkError",
    "Options",
    "PlansUnavailable",
    "RolledBack",
    "ScriptRefused",
    "SqlGateway",
    "SqlGatewayTarget",
    "Start",
    "StartFailed",
    "StartMode",
    "SubmissionUnknown",
    "Target",
    "TargetError",
    "VerificationFailed",
    "Wait",
    "Waiting",
    "compile_plans",
    "deploy",
    "explain_plans",
    "read_hand_over",
    "verify_start",
]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
