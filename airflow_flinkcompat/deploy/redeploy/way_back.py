"""Return of a moved job to the former version, from the savepoint with which the former job stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.ledger.entries import FailedEntry, HeadEntry, RolledBackEntry, RollingBackEntry
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.preconditions import check_claim
from airflow_flinkcompat.deploy.redeploy.run import Options, RolledBack, Run
from airflow_flinkcompat.deploy.redeploy.starting import roll_back
from airflow_flinkcompat.deploy.target import MasksSecrets, Target
from airflow_flinkcompat.model import StartMode

_log = logging.getLogger(__name__)


def move_back(
    target: Target,
    ledger: Ledger,
    *,
    owner: str,
    options: Options | None = None,
    log: Callable[[str], None] = _log.info,
) -> RolledBackEntry:
    """Cancel the deployed job, and restart the version before it from the savepoint of its stop.

    A call that died can be repeated: it continues at the step that the ledger recorded last. The restarted job reads
    all rows since the savepoint again.

    Args:
        target: The target that runs the job, and that can run the former version.
        ledger: The ledger of the deployment.
        owner: The name of this run. A call with the same name resumes the unfinished run immediately.
        options: Timeouts and other options. None means default options.
        log: Function that receives each progress message.

    Returns:
        The ``rolled-back`` entry of the ledger.

    Raises:
        DeployRefused: The deployed version was not started from a savepoint of the version before it.
        StartFailed: The former version does not run. The error message shows the commands that start it.
        DeployError: A step failed. To resume, call the function again.
    """
    entries = ledger.entries()
    progress = Progress.of(entries)
    head = progress.head
    if isinstance(head, RolledBackEntry) and head.owner == owner and not progress.steps:
        return head  # the result of an earlier call of this run
    before = [entry for entry in entries if isinstance(entry, HeadEntry) and head and entry.number < head.number]
    if head is None or not before or not head.start.way_back or head.start.start_mode == StartMode.STATELESS:
        raise DeployRefused(
            f"{ledger.deployment} cannot move back, because its deployed version was not started from the savepoint "
            "of a version before it. Deploy the former script by its own DAG"
        )
    former = before[-1]
    run = Run(
        target, ledger, head.job, StartMode(str(head.start.start_mode)), head.review, None, owner, options or Options(),
        log, origin=head.origin,
    )  # fmt: skip
    run.last = progress.last
    if isinstance(target, MasksSecrets):
        for each in (head, former):
            target.register_secrets(each.job)
    check_claim(run, progress)
    asked, begun = progress.latest(FailedEntry), progress.reached
    if asked is None or asked.rolls_back_to != former.number:
        message = f"job {head.job_id} of entry {head.number} moves back to the version of entry {former.number}"
        failed = FailedEntry(**run.attempt, start=head.start, message=message, rolls_back_to=former.number)
        asked, begun = run.append(failed), None
    result = roll_back(run, former, asked, begun if isinstance(begun, RollingBackEntry) else None)
    if not isinstance(result, RolledBack):
        raise result
    entry = ledger.head()
    assert isinstance(entry, RolledBackEntry)
    return entry
