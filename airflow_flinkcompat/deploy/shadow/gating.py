"""Shadow run of a gate: the deployed script against the checked one, with an entry in the ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, HeadEntry, ShadowedEntry
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.restoring import RunnableSide
from airflow_flinkcompat.deploy.shadow.changes import PlanBoth
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
from airflow_flinkcompat.model.shadow import ShadowPolicy

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.migration import SavepointMigration


def run_for_gate(
    cluster: Cluster,
    ledger: Ledger,
    head: HeadEntry,
    checked: CheckedEntry,
    new: RunnableSide,
    policy: ShadowPolicy,
    *,
    plan: PlanBoth,
    migration: SavepointMigration | None = None,
    owner: str,
    log: Callable[[str], None],
) -> tuple[ShadowedEntry, ShadowReport]:
    """Run the deployed and the checked script over the same rows, and record result and branch.

    Args:
        cluster: The cluster of the live job.
        ledger: The ledger of the deployment.
        head: The deployed version.
        checked: The check of the proposed version.
        new: The proposed version.
        policy: Choices about the run.
        plan: Compiler of the plans of both scripts, for a target that cannot compile plans.
        migration: Migration of the state, if the new script starts from a migrated savepoint.
        owner: The run that writes the entry.
        log: Function that receives lines about the progress.

    Returns:
        The entry in the ledger, and the report.

    Raises:
        DeployRefused: The target cannot run scripts next to the live job.
        ScriptRefused: A script cannot be deployed.
        DeployError: The target or the ledger does not answer.
    """
    options = ShadowOptions(
        policy.seconds,
        policy.run_seconds,
        policy.expect,
        policy.savepoint_directory,
        plan_dir=policy.plan_dir,
        from_earliest=policy.from_earliest,
        until_rows=policy.until_rows,
    )
    if head.job_id is None:
        why = f"entry {head.number} of the ledger has no job"
        report = ShadowReport(ShadowFinding.INCONCLUSIVE, why)
    else:
        report = shadow(cluster, head.job_id, head.job, new, options, log, migration=migration, plan=plan)
    finding, message = report.decisive
    entry = ShadowedEntry(
        version=checked.version,
        review=checked.review,
        branch=policy.branch_after(finding, checked.branch or "approve"),
        shadow=report.to_dict(),
        message=message,
        owner=owner,
    )
    return ledger.append(entry), report
