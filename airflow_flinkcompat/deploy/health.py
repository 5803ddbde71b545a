"""Health of deployed jobs: they run, do not fail again, and catch up with their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
from airflow_flinkcompat.deploy.target import JobHistories, JobMetrics, Target


@dataclass(frozen=True)
class JobHealth:
    """Health of one job.

    Attributes:
        name: The name of the deployment.
        since: Time since which the job is healthy, in seconds since the epoch.
        words: Reason why ``since`` is later than the start of the job; "" without a reason.
        ended: True if the job does not run any more.
        absent: Metrics that the running job does not report.
    """

    name: str
    since: float
    words: str = ""
    ended: bool = False
    absent: tuple[str, ...] = ()


def job_health(target: Target, name: str, head: HeadEntry, lag: Mapping[str, float], now: float) -> JobHealth:
    """Observe a deployed job. A target that does not answer makes the job unhealthy now.

    Args:
        target: The target that runs the job.
        name: The name of the deployment.
        head: The ledger entry of the job.
        lag: The largest healthy value of each metric.
        now: The present time, in seconds since the epoch.

    Returns:
        The job's health.
    """
    try:
        return _observed(target, name, head, lag, now)
    except DeployError as error:
        return JobHealth(name, now, f"cannot be observed: {error}")


def _observed(target: Target, name: str, head: HeadEntry, lag: Mapping[str, float], now: float) -> JobHealth:
    job, began = head.start.job_ref, head.written.timestamp()
    status = target.status(job)
    if status is None or status.terminal:
        state = "unknown to the cluster" if status is None else status.state
        why = f": {status.failure}" if status is not None and status.failure else ""
        return JobHealth(name, now, f"job {job} is {state}{why}", ended=True)
    if not status.tasks_running:
        return JobHealth(name, now, f"job {job} is {status.state}, and not all of its tasks run")
    values = {metric: target.highest_metric(job, metric) for metric in lag} if isinstance(target, JobMetrics) else {}
    absent = tuple(metric for metric, value in values.items() if value is None)
    for metric, value in values.items():
        if value is not None and value > (most := lag[metric]):
            return JobHealth(name, now, f"{metric} is {value:,.0f}, above {most:,.0f}", absent=absent)
    failed = max(target.job_history(job).failures, default=began) if isinstance(target, JobHistories) else began
    if failed > began:
        words = f"job {job} failed and restarted: {status.failure or 'the reason is unknown'}"
        return JobHealth(name, failed, words, absent=absent)
    return JobHealth(name, began, absent=absent)


@dataclass(frozen=True)
class FleetHealth:
    """Health of jobs that must be healthy for ``hold`` seconds. The last job started at ``began``."""

    jobs: Sequence[JobHealth]
    began: float
    hold: float

    @property
    def since(self) -> float:
        """Time since which all jobs are healthy, in seconds since the epoch."""
        return max((each.since for each in self.jobs), default=self.began)

    @property
    def failed(self) -> tuple[JobHealth, ...]:
        """Jobs that ended, or that were unhealthy later than ``hold`` seconds after the last start."""
        return tuple(each for each in self.jobs if each.ended or each.since - self.began > self.hold)

    @property
    def unreported(self) -> list[str]:
        """Metrics that no job reports, although every job runs."""
        return sorted(set.intersection(*(set(each.absent) for each in self.jobs))) if self.jobs else []

    def left(self, now: float) -> float:
        """Seconds for which the jobs must still be healthy; at most 0 if the time is over."""
        return self.since + self.hold - now
