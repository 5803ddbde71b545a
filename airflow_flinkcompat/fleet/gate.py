"""The gate of one deployment outside Airflow: check with facts from the target, branch, record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.compat import Side, render_markdown
from airflow_flinkcompat.compat.gate import ChangeIdentity, branch_of, policy_branch, waivers_held
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, HeadEntry, JobVersion, Origin, Review
from airflow_flinkcompat.deploy.ledger.gating import is_in_force, record_check
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.target import JobRef, SourceTables, Target
from airflow_flinkcompat.fleet.baselines import Baseline, FormerBaseline
from airflow_flinkcompat.fleet.review import Request, diff_fleet, judged_options
from airflow_flinkcompat.fleet.sides import side_of_deployment
from airflow_flinkcompat.fleet.values import DeploymentReview, Status
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner.judgement import DeployedJob
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.origin import GitOrigin, of_work_tree
from airflow_flinkcompat.project.revisions import root_of
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile
from airflow_flinkcompat.secrets import mask_secrets


@dataclass(frozen=True)
class _DeployedVersion:
    """The deployed version as the only baseline of a review."""

    baseline: Baseline

    @property
    def words(self) -> str:
        return self.baseline.words

    def of(self, deployment: ProjectDeployment) -> Baseline:
        return self.baseline

    def deleted(self, project: ProjectFile) -> Mapping[str, FormerBaseline]:
        return {}

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class DeploymentGate:
    """The gate of one deployment.

    Attributes:
        head: The deployed version; None if nothing is deployed.
        given: Options of the command line, which override the project file.
        owner: The name of the run in the ledger.
        log: Function that receives each message.
    """

    target: Target
    ledger: Ledger
    head: HeadEntry | None
    project: ProjectFile
    deployment: ProjectDeployment
    given: JobOptions
    owner: str
    log: Callable[[str], None]

    def proposed(self) -> Side:
        """The proposed version, on the engine of the target unless the project file names one."""
        found = side_of_deployment(
            replace(self.deployment, options=self._options), self.project.folder, root_of(self.project.folder)
        )
        if found is None:
            raise InputError(f"{self.deployment.script}: cannot be read: there is no such file")
        return found

    def review(self, new: Side) -> DeploymentReview:
        """Compare the proposed version with the deployed one. Raises InputError for a faulty version."""
        baseline = replace(Baseline.of_head(self.head, str(self.ledger.directory)), job=self._job(new))
        named, root = (self.deployment.name,), root_of(self.project.folder)
        fleet = diff_fleet(
            Request(self.project, root, "never", self._options, named, "plan"), _DeployedVersion(baseline)
        )
        (found,) = fleet.deployments
        if found.faults:
            raise InputError("\n".join(each.message for each in found.faults))
        if found.change != ChangeIdentity.of(baseline.side, new):
            raise InputError(f"{new.source} changed while it was checked: run the command again")
        for note in fleet.notes:
            self.log(f"note: {note}")
        return found

    def branch(self, review: DeploymentReview) -> str:
        """The branch of the DAG. Raises InputError for a version that the redeploy would refuse."""
        if review.status is Status.ADDED:
            return "first"
        if review.status is Status.UNCHANGED:
            if self.of_check.get("redeploy_unchanged") is not True and self._is_in_force():
                return "unchanged"
            return branch_of(review.reports[0], self.deployment.policy, migrates=self.deployment.migrates)
        if not review.branch:
            raise InputError(review.action.removeprefix("refuses it: "))
        return review.branch[0]

    def record(
        self, new: Side, review: DeploymentReview, branch: str, origin: Origin
    ) -> tuple[CheckedEntry, DeploymentReview]:
        """Record the check, unless this run has already recorded it; also return the review with more context."""
        found, policy = Review(), None
        if self.head is not None:
            (report,) = review.reports
            offsets = isinstance(self.target, SourceTables)
            known = replace(review.known, approver=branch == "approve", takes_commands=False, chooses_offsets=offsets)
            review = replace(review, known=known)
            kept = {**report.to_dict(), "context": known.to_dict()}
            pointer = mask_secrets(self.ledger.store_report(kept, render_markdown(report, known), new))
            found = Review(
                str(report.outcome), pointer, waivers=tuple(each.to_dict() for each in waivers_held([report]))
            )
            if branch != "unchanged":
                policy = policy_branch(report, self.deployment.policy, migrates=self.deployment.migrates)
        entry = record_check(
            self.ledger,
            JobVersion.of(new),
            found,
            origin,
            branch=branch,
            policy=policy,
            against=self.head.number if self.head else 0,
            owner=self.owner,
        )
        self.log(f"{entry.message} → {branch}")
        return entry, review

    def origin(self) -> Origin:
        """Commit and author of the proposed version, and owners of the deployment."""
        files = (self.deployment.script, *self.deployment.options.catalog_files)
        found = of_work_tree([(self.project.folder / each).resolve() for each in files]) or GitOrigin()
        if found.why:
            self.log(f"the commit is unknown: {found.why}")
        team, owner = (str(self.deployment.table.get(key) or "") or None for key in ("team", "owner"))
        return Origin(found.commit, found.author, team, owner)

    @property
    def of_check(self) -> Mapping[str, Any]:
        """The unchecked table ``check``."""
        found: Mapping[str, Any] = self.deployment.table.get("check") or {}
        return found

    @cached_property
    def _options(self) -> JobOptions:
        own, running = self.deployment.options, self.target.engine()
        engine = own.engine or running.engine
        version = own.engine_version or (running.version if engine == running.engine else None)
        planner = "always" if self.of_check.get("explain_plan") is True else self.given.planner
        return judged_options(replace(self.given, engine=engine, engine_version=version, planner=planner), own)

    def _job(self, new: Side) -> DeployedJob | None:
        """Facts about the deployed job for Flink's planner; None without a planner or an answer."""
        if self.head is None or self._options.planner == "never":
            return None
        try:
            return DeployedJob.of(self.target, self.ledger, self.head, new)
        except DeployError as error:
            self.log(f"warning: Flink's planner does not know the options of the cluster: {error}")
            return None

    def _is_in_force(self) -> bool:
        """True if the deployed job runs and no redeploy is unfinished."""
        return self.head is not None and is_in_force(self.ledger, self.head, self._runs)

    def _runs(self, job: JobRef) -> bool:
        status = self.target.status(job)
        return status is not None and not status.terminal
