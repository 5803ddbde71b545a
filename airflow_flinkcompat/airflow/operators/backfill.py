"""FlinkBackfillOperator, which recomputes history with the proposed script in a Spark job.

In the DAG of a redeploy, this task recomputes the windows that a start without state, or a migration, leaves
incomplete. ``execute`` plans the backfill in this process, and submits ``backfill/job.py`` with SparkSubmitOperator.
After the Spark job, ``execute`` records the counts in the ledger. For a backfill with a boundary, ``execute`` also
returns the hand-over record for FlinkSqlDeployOperator.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk import BaseHook

from airflow_flinkcompat.airflow.hooks.flink import connection_lookup
from airflow_flinkcompat.airflow.tasks import assets, telemetry
from airflow_flinkcompat.airflow.tasks.base import ScriptOperator, TaskRole, readable_errors, run_name
from airflow_flinkcompat.model import Late, Native

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.tasks.arguments import ScriptArguments, Template
    from airflow_flinkcompat.airflow.tasks.assets import RunLineage
    from airflow_flinkcompat.backfill import BackfillRequest
    from airflow_flinkcompat.backfill.planning import BackfillPlan
    from airflow_flinkcompat.backfill.protocols import Needs
    from airflow_flinkcompat.deploy.ledger.entries import BackfilledEntry
    from airflow_flinkcompat.plan.datasets import Dataset

# Arguments of SparkSubmitOperator that this operator sets itself.
_OWN_ARGUMENTS = ("application", "application_args", "conn_id", "task_id")
_REQUEST, _RESULT = "request.json", "result.json"
# Keys of a run's result that downstream tasks use.
_COUNTS = (
    "rows_read", "rows_late", "rows_dropped_null_time", "rows_written", "windows_written", "chunks",
)  # fmt: skip


class FlinkBackfillOperator(ScriptOperator):
    """Run the proposed script over bounded history with the apache-spark provider's SparkSubmitOperator.

    The operator publishes exactly the windows that lie wholly inside [``from_``, ``to``). All checks that need no Spark
    run before the submission. Placeholders (``${conn.<id>.<attribute>}``) are resolved from Airflow connections, and
    passed to Spark's driver as environment variables. No argument, setting or file contains the values of placeholders.

    Returns the counts of the run (if the driver runs on this machine) and, with a boundary, the ``hand_over`` record
    for FlinkSqlDeployOperator.

    Args:
        tables: Table of the script → URI of its history (default: the location in the script). (templated)
        sinks: Sink of the script → URI for the output; this location then contains exactly the rows of this run.
            (templated)
        from_: Start of the range, inclusive, in ISO 8601; default: the beginning of history. (templated)
        to: End of the range, exclusive, in ISO 8601; default: the end of history. (templated)
        sent_before: Task id of a FlinkStateMigrationOperator, in place of ``to``. The backfill recomputes the windows
            that were emitted before the migration, without the state that the migration computed from history. If no
            window was emitted before the migration, the task is skipped.
        order_by: Table of the script → columns, such as ``a,b``, that define the arrival order of its rows; the key ""
            means all other tables. (templated)
        late: ``include`` or ``drop`` rows that a live job would have dropped as late. (templated)
        native: ``auto`` if DuckDB may aggregate files inside Spark's tasks, else ``off``. (templated)
        chunk: Compute the range in chunks of this length (``1d``, ``6h``). A run after a failed run reuses the finished
            chunks. (templated)
        journal: Folder for finished chunks; default: next to a sink's folder. (templated)
        boundary: Time at which the windows of the live job begin and the backfill ends, in ISO 8601. (templated)
        allow_incomplete: Accept a source whose rows end before the boundary.
        allow_empty: True if a run that reads no row succeeds. If False, a run that reads no row fails and leaves every
            sink unchanged. ``gated_redeploy`` sets False for a backfill after a restart without state.
        hand_over: Path or URI of the file for the hand-over record. (templated)
        dry_run: Log the planned reads, computations and writes, and submit nothing.
        conn_id: Connection of type ``spark``. (templated)
        spark: Additional arguments of SparkSubmitOperator (conf, packages, executor_memory …). (templated)
    """

    role = TaskRole.BACKFILL
    template_fields: Sequence[str] = (
        *ScriptOperator.template_fields, "tables", "sinks", "order_by", "from_", "to", "late", "native", "chunk",
        "journal", "boundary", "hand_over", "conn_id", "spark",
    )  # fmt: skip
    secretive_fields: Sequence[str] = (*ScriptOperator.secretive_fields, "tables", "sinks", "journal", "spark")
    ui_color = "#fde7d9"

    def __init__(
        self,
        *,
        tables: Mapping[str, str] | None = None,
        sinks: Mapping[str, str] | None = None,
        order_by: Mapping[str, str] | None = None,
        from_: str | None = None,
        to: str | None = None,
        sent_before: str | None = None,
        late: Late | Template = "include",
        native: Native | Template = "auto",
        chunk: str | None = None,
        journal: str | None = None,
        boundary: str | None = None,
        allow_incomplete: bool = False,
        allow_empty: bool = True,
        hand_over: str | None = None,
        dry_run: bool = False,
        conn_id: str = "spark_default",
        spark: Mapping[str, Any] | None = None,
        **kwargs: Unpack[ScriptArguments],
    ) -> None:
        super().__init__(**kwargs)
        if own := [name for name in spark or {} if name in _OWN_ARGUMENTS]:
            raise ValueError(f"spark: {', '.join(own)} cannot be set, because this operator sets it")
        self.tables = tables
        self.sinks = sinks
        self.order_by = order_by
        self.from_ = from_
        if sent_before and (to or boundary):
            raise ValueError("sent_before determines the end of the backfill: omit to and boundary")
        self.to = to
        self.sent_before = sent_before
        self.late = late
        self.native = native
        self.chunk = chunk
        self.journal = journal
        self.boundary = boundary
        self.allow_incomplete = allow_incomplete
        self.allow_empty = allow_empty
        self.hand_over = hand_over
        self.only_plan = dry_run  # BaseOperator has a method named dry_run
        self.conn_id = conn_id
        self.spark = spark
        # Unrendered values, because a task declares its outlets before rendering.
        self._tables = assets.tables_alias(self.deployment, flink_conn_id=self.flink_conn_id)
        if not dry_run:
            self.outlets = [*self.outlets, self._tables]
        self._submission: Any = None
        self._lineage: RunLineage | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the backfill. Returns request and counts; raises AirflowException if the job fails."""
        from airflow_flinkcompat.backfill import explain, plan

        if self.sent_before:
            self.to = (context["ti"].xcom_pull(task_ids=self.sent_before) or {}).get("sent_until")
            if self.to is None:
                raise AirflowSkipException("no window that was already emitted lacks rows computed from history")
        with readable_errors():
            request = self.request()
            planned = plan(request)
            record = planned.hand_over
            # The sinks are masked, because Airflow shows the result.
            asked = {
                "deployment": self.deployment,
                "from": self.from_,
                "to": self.to or self.boundary,
                "sinks": dict(self.sinks or {}),
                "hand_over": None if record is None else record.to_dict(),
            }
            if self.only_plan:
                self.log_lines(explain(planned, request))
            if record is not None and self.hand_over:
                _written(self.hand_over, record.to_json())
            if self.only_plan:
                return asked
            secrets = self._secrets(request)
            self._lineage = self._lineage_of(request, planned, {"from": asked["from"], "to": asked["to"]})
        for line in () if record is None else record.lines():
            self.log.info("%s", line)
        self.log.info("Backfill of %s: [%s, %s)", self.deployment, asked["from"] or "beginning", asked["to"] or "end")
        about = {"deployment": self.deployment, "from": asked["from"], "to": asked["to"]}
        with telemetry.span("backfill", about), _private_folder(request.to_dict()) as folder, _environment(secrets):
            self._submission = self._operator(folder, planned.work.needs)
            # Unwrapped, because Airflow warns about an operator that runs inside another operator.
            try:
                inspect.unwrap(type(self._submission).execute)(self._submission, context)
            except AirflowException:
                if error := _result(folder).get("error"):
                    raise AirflowException(f"the backfill failed: {error}") from None
                raise
            counts = _result(folder)
        counted = {key: counts[key] for key in _COUNTS if key in counts}
        telemetry.count("backfill", self.deployment)
        entry = self._record(context, asked, counted)
        self._emit(context, planned, asked, counted, entry)
        return {**asked, **counted}

    def _emit(
        self,
        context: Context,
        planned: BackfillPlan,
        asked: Mapping[str, Any],
        counts: Mapping[str, int],
        entry: BackfilledEntry | None,
    ) -> None:
        """Emit asset events for the written tables, at the locations of the task or else of the script."""
        extra = {
            "event": "backfilled",
            "deployment": self.deployment,
            "entry": entry.number if entry else None,
            "sha256": None if entry is None else entry.version.sha256,
            "from": asked["from"],
            "to": asked["to"],
            **counts,
        }
        assets.emit_tables(self, context, self._tables, self._written(planned), extra)
        if self._lineage is not None:
            self._lineage = replace(self._lineage, facts=extra)

    def _lineage_of(self, request: BackfillRequest, planned: BackfillPlan, facts: Mapping[str, Any]) -> RunLineage:
        """Lineage of the tables read and written, at the locations of the task or else of the script."""
        from airflow_flinkcompat.airflow.tasks.assets import RunLineage
        from airflow_flinkcompat.compat import Side
        from airflow_flinkcompat.plan.datasets import dataset_at, read

        side = Side.of(request.job)
        places = {key.rpartition(".")[2].strip("`"): place for key, place in request.tables.items()}
        inputs = {
            name: tuple(filter(None, [dataset_at(places[plain])]))
            for name in read(side.program)
            if (plain := name.rpartition(".")[2]) in places
        }
        about = {"event": "backfilling", "deployment": self.deployment, **facts}
        return RunLineage(side, about, read=inputs, written=self._written(planned))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """OpenLineage facets of a backfill, requested by the OpenLineage provider in the task's process.

        Args:
            task_instance: The task instance.

        Returns:
            ``OperatorLineage``; None for a dry run.
        """
        from airflow_flinkcompat.airflow.tasks.assets import operator_lineage

        return operator_lineage(self._lineage)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """OpenLineage facets of a failed backfill.

        Args:
            task_instance: The task instance.

        Returns:
            ``OperatorLineage``; None if the backfill was refused before the submission.
        """
        from airflow_flinkcompat.airflow.tasks.assets import operator_lineage

        return operator_lineage(self._lineage, event="failed")

    @staticmethod
    def _written(planned: BackfillPlan) -> dict[str, tuple[Dataset, ...]]:
        from airflow_flinkcompat.plan.datasets import dataset_at, datasets_of

        return {
            write.rows.name: tuple(filter(None, [dataset_at(write.target.place)]))
            if write.target.exclusive
            else datasets_of(write.rows.table)
            for write in planned.work.writes
        }

    def _record(self, context: Context, asked: Mapping[str, Any], counts: Mapping[str, int]) -> BackfilledEntry | None:
        """Record the backfill in the ledger. An error of the ledger does not fail a finished backfill."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.ledger.entries import BackfilledEntry, JobVersion
        from airflow_flinkcompat.secrets import mask_secrets

        try:
            ledger = self.open_ledger()
            head = ledger.head()
            # With the engine of the running version, so that the same version has the same digest.
            engine = (head.job.engine, head.job.engine_version) if head else ("flink", None)
            return ledger.append(
                BackfilledEntry(
                    version=JobVersion.of(self.proposed_side(*engine)),
                    range_from=asked["from"],
                    range_to=asked["to"],
                    sinks=asked["sinks"],
                    counts=dict(counts),
                    hand_over=asked["hand_over"],
                    owner=run_name(context),
                )
            )
        except (DeployError, AirflowException) as error:
            self.log.warning("Cannot record this backfill in the ledger: %s", mask_secrets(str(error)))
            return None

    def on_kill(self) -> None:
        """End the Spark job. Sinks that are not published yet stay unchanged."""
        if self._submission is not None:
            self._submission.on_kill()
        self.log.warning(
            "Killed: the Spark job of %s was asked to end; clear this task to run it again", self.deployment
        )

    def request(self) -> BackfillRequest:
        """The request for the Spark job, from the rendered arguments.

        Returns:
            The request, which contains placeholders but no secret.

        Raises:
            AirflowFailException: The script contains a literal secret, which no file should contain.
            BackfillError: A bound is not a time, or the range is empty.
        """
        from airflow_flinkcompat.backfill import BackfillRequest
        from airflow_flinkcompat.backfill.request import parse_time
        from airflow_flinkcompat.model.durations import parse_duration

        side = self.proposed_side("flink", None)
        if side.secrets:
            places = ", ".join(f"{secret.key} at {secret.span}" for secret in side.secrets)
            raise AirflowFailException(
                f"the script contains secrets in plain text ({places}): use ${{conn.…}} placeholders"
            )
        return BackfillRequest(
            side,
            from_=parse_time(self.from_) if self.from_ else None,
            to=parse_time(self.to) if self.to else None,
            tables=dict(self.rendered("tables") or {}),
            sinks=dict(self.rendered("sinks") or {}),
            order_by=dict(self.order_by or {}),
            late=self.late,
            native=self.native,
            boundary=parse_time(self.boundary) if self.boundary else None,
            allow_incomplete=self.allow_incomplete,
            allow_empty=self.allow_empty,
            chunk=parse_duration(self.chunk) if self.chunk else None,
            journal=self.rendered("journal") or None,
        )

    def _secrets(self, request: BackfillRequest) -> dict[str, str]:
        """Values of the request's placeholders, by environment variable. Raises AirflowFailException."""
        from airflow_flinkcompat.secrets.placeholders import EnvPlaceholder

        # ${env.…} placeholders are read from the driver's own environment.
        found = [each for each in request.placeholders if not isinstance(each, EnvPlaceholder)]
        if found and self._deploy_mode() == "cluster":
            raise AirflowFailException(
                f"{found[0]}: with deploy mode cluster, the driver starts on another machine, and "
                "spark-submit would pass the value in its arguments. Use deploy mode client, or set the "
                "value in the driver's environment through the cluster (on Kubernetes with "
                "spark.kubernetes.driver.secretKeyRef.NAME) and write ${env.NAME} instead of the "
                "placeholder"
            )
        lookup = connection_lookup(BaseHook.get_connection)
        return {placeholder.variable: lookup(placeholder) for placeholder in found}

    def _deploy_mode(self) -> str:
        mode = (self.rendered("spark") or {}).get("deploy_mode")
        return str(mode or BaseHook.get_connection(self.conn_id).extra_dejson.get("deploy-mode") or "client")

    def _operator(self, folder: Path, needs: Needs) -> Any:
        """Create the SparkSubmitOperator, whose module is slow to load because it imports kubernetes."""
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

        from airflow_flinkcompat.backfill.spark import submit_configuration

        options = dict(self.rendered("spark") or {})
        arguments = ["--request", str(folder / _REQUEST), "--result", str(folder / _RESULT)]
        if self._deploy_mode() == "cluster":
            # The driver finds the request in its working directory. The driver's output is not visible here.
            arguments = ["--request", _REQUEST]
            options["files"] = ",".join(filter(None, [options.get("files"), str(folder / _REQUEST)]))
        master = BaseHook.get_connection(self.conn_id).host or ""
        env_vars = {**self._environment(), **(options.pop("env_vars", None) or {})}
        wanted = [*needs.packages, *(options.pop("packages", None) or "").split(",")]
        packages = ",".join(dict.fromkeys(filter(None, wanted)))
        return SparkSubmitOperator(
            task_id=self.task_id,
            conn_id=self.conn_id,
            application=str(_application()),
            application_args=arguments,
            name=options.pop("name", f"flinkcompat-backfill-{self.deployment}"),
            env_vars=env_vars or None,
            packages=packages or None,
            conf={**submit_configuration(master), **dict(needs.conf), **(options.pop("conf", None) or {})},
            **options,
        )

    def _environment(self) -> dict[str, str]:
        """Environment for a local master, with this Python, this package and its spark-submit."""
        if not (BaseHook.get_connection(self.conn_id).host or "").startswith("local"):
            return {}
        root, scripts = str(_application().parents[2]), str(Path(sys.executable).parent)
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        if "PYSPARK_PYTHON" not in os.environ:
            environment["PYSPARK_PYTHON"] = sys.executable
        if not shutil.which("spark-submit") and shutil.which("spark-submit", path=scripts):
            environment["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
        return environment


def _result(folder: Path) -> dict[str, Any]:
    """Output of the driver; empty if the driver ran on a different machine or crashed."""
    file = folder / _RESULT
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _application() -> Path:
    import airflow_flinkcompat

    return Path(airflow_flinkcompat.__file__).parent / "backfill" / "job.py"


def _written(place: str, text: str) -> None:
    from upath import UPath

    try:
        UPath(place).write_text(text, encoding="utf-8")
    except (OSError, ValueError, ImportError) as error:
        raise AirflowFailException(f"the hand-over record cannot be written to {place}: {error}") from None


@contextmanager
def _private_folder(request: Mapping[str, Any]) -> Iterator[Path]:
    """A temporary folder with the request for the Spark job; only this user can open the folder."""
    with tempfile.TemporaryDirectory(prefix="flinkcompat-") as name:  # mode 0700
        folder = Path(name)
        (folder / _REQUEST).touch(mode=0o600)
        (folder / _REQUEST).write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
        yield folder


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Extend this process's environment, which spark-submit and the driver inherit.

    On YARN and Kubernetes, SparkSubmitOperator passes ``env_vars`` as settings, which are arguments of the command
    line.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
