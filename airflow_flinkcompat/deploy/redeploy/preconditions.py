"""Conditions of a change before anything is touched: it was checked against the job in force."""

from __future__ import annotations

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.statements import NO_PROGRAMS, ScriptRefused
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
from airflow_flinkcompat.deploy.ledger.steps import Progress
from airflow_flinkcompat.deploy.redeploy.run import Run, age_of, short
from airflow_flinkcompat.deploy.target import EngineInfo
from airflow_flinkcompat.model import StartMode


def check_languages(run: Run, head: HeadEntry | None) -> None:
    """Refuse programs, and the way back to one: targets run SQL. Raises ScriptRefused, DeployRefused."""
    name = run.ledger.deployment
    if run.side.language != "sql":
        raise ScriptRefused(NO_PROGRAMS.format(source=run.side.source, deployment=name, target=run.target))
    if head is not None and head.job.language != "sql" and run.options.roll_back:
        raise DeployRefused(
            f"entry {head.number} of the ledger of {name} deployed a program, which {run.target} cannot "
            "start again if the new script fails: set roll_back=False, and be ready to start it yourself"
        )


def check_mode(run: Run, head: HeadEntry | None, outcome: str | None) -> None:
    """Check that the start mode is possible for the job in force. Raises DeployRefused."""
    if (run.mode is StartMode.MIGRATED) != (run.migration is not None):
        raise DeployRefused(f"start mode {StartMode.MIGRATED} needs a migration, and no other start mode accepts one")
    if head is None and run.mode in (StartMode.SAVEPOINT, StartMode.CHECKPOINT, StartMode.MIGRATED):
        raise DeployRefused(
            f"{run.ledger.deployment} was never deployed: there is no savepoint to start from; use start mode "
            f"{StartMode.AUTO_FIRST}"
        )
    if head is not None and run.mode is not StartMode.STATELESS:
        run.offsets.require_stored()
    if run.mode is StartMode.CHECKPOINT and outcome != "compatible":
        raise DeployRefused(
            f"start mode {run.mode} is for compatible changes only (a checkpoint allows no rollback), and "
            f"the outcome of this one is {outcome or 'unknown'}: use start mode {StartMode.SAVEPOINT}"
        )


def check_head(run: Run, head: HeadEntry | None, checked: str | None) -> None:
    """Check that the change was checked against the job in force. Raises DeployRefused."""
    name = run.ledger.deployment
    if head is None and checked is not None:
        raise DeployRefused(
            f"the change was checked against a deployed side ({short(checked)}), but the ledger of {name} "
            "contains no deployment: make sure that it is the right ledger, then check again"
        )
    if head is not None and head.sha256 != checked:
        seen = f"against {short(checked)}" if checked else "while nothing was deployed"
        raise DeployRefused(
            f"the change was checked {seen}, but entry {head.number} of the ledger of {name} deployed "
            f"{short(head.sha256)} at {head.at}: check the change again, against the deployed version"
        )


def check_claim(run: Run, progress: Progress) -> None:
    """Check that the ledger shows no other run at work. Raises DeployRefused."""
    last = progress.unfinished
    if last is None or last.owner == run.owner:
        return
    age, claimed = age_of(last), run.options.claimed(last)
    if age < claimed:
        raise DeployRefused(
            f"{last.owner} is deploying {run.ledger.deployment} (entry {last.number}, {last.kind}, {age:.0f} "
            f"s ago): wait for it; if it died, its run can be taken over in {claimed - age:.0f} s"
        )
    run.log(f"taking over the unfinished run of {last.owner} (entry {last.number}, {last.kind})")


def check_engine(run: Run, engine: EngineInfo) -> None:
    """Check that the target runs the engine of the checked change. Raises DeployRefused."""
    wanted = (run.side.engine_version or "").split(".")[:2]
    if run.side.engine == engine.engine and wanted != [""] and wanted != engine.version.split(".")[: len(wanted)]:
        raise DeployRefused(
            f"the change was checked for {run.side.engine} {run.side.engine_version}, and the target is "
            f"{engine.engine} {engine.version}: check it again for that version"
        )
