"""Deployments: the targets where jobs run, the ledger of each deployment, and redeploys.

Names are imported on first use, because reading a ledger requires neither the SQL parser nor an HTTP client. Names that
earlier releases exported can still be imported, although ``__all__`` omits them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.errors import (
        DeployError,
        DeployRefused,
        PlansUnavailable,
        SubmissionUnknown,
        TargetError,
    )
    from airflow_flinkcompat.deploy.flink.rest import ApiError
    from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
    from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
    from airflow_flinkcompat.deploy.ledger.ledger import Ledger, LedgerConflict
    from airflow_flinkcompat.deploy.ledger.store import LedgerError
    from airflow_flinkcompat.deploy.plans import explain_plans
    from airflow_flinkcompat.deploy.redeploy.run import Options, RolledBack, StartFailed, Wait, Waiting
    from airflow_flinkcompat.deploy.redeploy.sequence import deploy
    from airflow_flinkcompat.deploy.redeploy.verify import VerificationFailed
    from airflow_flinkcompat.deploy.target import (
        EngineInfo,
        JobRef,
        JobStatus,
        Operation,
        Proof,
        Snapshot,
        Start,
        Target,
    )
    from airflow_flinkcompat.model import StartMode

_HOMES = {
    ".errors": ("DeployError", "DeployRefused", "PlansUnavailable", "SubmissionUnknown", "TargetError"),
    ".flink.gateway": ("GatewayError", "SqlGateway"),
    ".flink.jobmanager": ("JobManager", "JobManagerError"),
    ".ledger.entries": ("LedgerEntry",),
    ".ledger.ledger": ("Ledger", "LedgerConflict"),
    ".plans": ("explain_plans",),
    ".redeploy.preconditions": ("read_hand_over",),
    ".redeploy.sequence": ("deploy",),
    ".flink.rest": ("ApiError", "Endpoint"),
    ".redeploy.run": ("Options", "RolledBack", "StartFailed", "Wait", "Waiting"),
    ".flink.statements": ("ScriptRefused",),
    ".ledger.store": ("LedgerError",),
    ".target": ("EngineInfo", "JobRef", "JobStatus", "Operation", "Proof", "Snapshot", "Start", "Target"),
    ".targets.gateway": ("SqlGatewayPlanner", "SqlGatewayTarget"),
    ".redeploy.verify": ("VerificationFailed", "verify_start"),
    "airflow_flinkcompat.model": ("StartMode",),
}

__all__ = [
    "ApiError",
    "DeployError",
    "DeployRefused",
    "EngineInfo",
    "JobRef",
    "JobStatus",
    "Ledger",
    "LedgerConflict",
    "LedgerEntry",
    "LedgerError",
    "Operation",
    "Options",
    "PlansUnavailable",
    "Proof",
    "RolledBack",
    "ScriptRefused",
    "Snapshot",
    "Start",
    "StartFailed",
    "StartMode",
    "SubmissionUnknown",
    "Target",
    "TargetError",
    "VerificationFailed",
    "Wait",
    "Waiting",
    "deploy",
    "explain_plans",
]


if not TYPE_CHECKING:  # type checkers assume that a module with __getattr__ has every name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
