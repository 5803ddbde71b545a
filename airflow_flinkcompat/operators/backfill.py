"""History, recomputed by Spark with the proposed script."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import BaseHook

from airflow_flinkcompat.operators.base import ScriptOperator, readable_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

# What this operator decides itself; anything else of SparkSubmitOperator may be given.
_OWN_ARGUMENTS = ("application", "application_args", "conn_id", "task_id")


class FlinkBackfillOperator(ScriptOperator):
    """Runs the proposed script over bounded history, submitted by the apache-spark provider's SparkSubmitOperator.

    Publishes exactly the windows that lie wholly inside [``from_``, ``to``).

    :param tables: table of the script → URI of its history (default: the place the script declares). (templated)
    :param sinks: sink of the script → URI to write to; that place then holds exactly this run's rows. (templated)
    :param from_: begin of the span, inclusive, ISO 8601; default: the beginning of history. (templated)
    :param to: end of the span, exclusive, ISO 8601; default: the end of history. (templated)
    :param conn_id: connection of type ``spark``. (templated)
    :param spark: further arguments of SparkSubmitOperator (conf, packages, executor_memory …). (templated)
    """

    template_fields: Sequence[str] = (
        *ScriptOperator.template_fields, "tables", "sinks", "from_", "to", "conn_id", "spark",
    )  # fmt: skip
    secretive_fields: Sequence[str] = (*ScriptOperator.secretive_fields, "tables", "sinks", "spark")
    ui_color = "#fde7d9"

    def __init__(
        self,
        *,
        tables: Mapping[str, str] | None = None,
        sinks: Mapping[str, str] | None = None,
        from_: str | None = None,
        to: str | None = None,
        conn_id: str = "spark_default",
        spark: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if own := [name for name in spark or {} if name in _OWN_ARGUMENTS]:
            raise ValueError(f"spark: {', '.join(own)} cannot be given, this operator decides about it")
        self.tables = tables
        self.sinks = sinks
        self.from_ = from_
        self.to = to
        self.conn_id = conn_id
        self.spark = spark
        self._submission: Any = None

    def execute(self, context: Context) -> dict[str, Any]:
        """What was asked for. Raises AirflowException when spark-submit fails."""
        with readable_errors():
            request = self.request()
        self.log.info("Backfill of %s: [%s, %s)", self.deployment, self.from_ or "beginning", self.to or "end")
        with _private_file(request) as path:
            self._submission = self._operator(path)
            # The bare function: Airflow warns of an operator that runs inside another one.
            inspect.unwrap(type(self._submission).execute)(self._submission, context)
        # The masked sinks: what is returned is shown.
        return {"deployment": self.deployment, "from": self.from_, "to": self.to, "sinks": dict(self.sinks or {})}

    def on_kill(self) -> None:
        """Ends the Spark job; places that were not published yet stay as they were."""
        if self._submission is not None:
            self._submission.on_kill()
        self.log.warning(
            "Killed: the Spark job of %s was asked to end; clear this task to run it again", self.deployment
        )

    def request(self) -> dict[str, Any]:
        """What the Spark job reads. Raises AirflowFailException: a literal secret, which no file should hold.

        Raises BackfillError: a bound is no time, or the span is empty.
        """
        from airflow_flinkcompat.backfill.request import BackfillRequest, parse_time
        from airflow_flinkcompat.sql import find_secrets

        side = self.proposed_side("flink", None)
        if secrets := find_secrets(side.parsed):
            places = ", ".join(f"{secret.key} at {secret.span}" for secret in secrets)
            raise AirflowFailException(
                f"the script holds secrets in plain text ({places}): use ${{conn.…}} placeholders"
            )
        return BackfillRequest(
            script_text=side.script,
            source=side.source,
            settings=side.settings,
            functions=side.functions,
            catalog=side.catalog,
            from_=parse_time(self.from_) if self.from_ else None,
            to=parse_time(self.to) if self.to else None,
            tables=dict(self.rendered("tables") or {}),
            sinks=dict(self.rendered("sinks") or {}),
        ).to_dict()

    def _operator(self, request: Path) -> Any:
        """Made when the task runs: the provider's module takes seconds to load and brings kubernetes along."""
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

        from airflow_flinkcompat.backfill.session import submit_configuration

        given = dict(self.rendered("spark") or {})
        master = BaseHook.get_connection(self.conn_id).host or ""
        env_vars = {**self._environment(), **(given.pop("env_vars", None) or {})}
        return SparkSubmitOperator(
            task_id=self.task_id,
            conn_id=self.conn_id,
            application=str(_application()),
            application_args=["--request", str(request)],
            name=given.pop("name", f"flinkcompat-backfill-{self.deployment}"),
            env_vars=env_vars or None,
            conf={**submit_configuration(master), **(given.pop("conf", None) or {})},
            **given,
        )

    def _environment(self) -> dict[str, str]:
        """With a local master: this Python, this package, and spark-submit itself where it lies beside this Python.

        A cluster has its own; give it ``spark={"py_files": …}`` or install the package there.
        """
        if not (BaseHook.get_connection(self.conn_id).host or "").startswith("local"):
            return {}
        root, scripts = str(_application().parents[2]), str(Path(sys.executable).parent)
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        if "PYSPARK_PYTHON" not in os.environ:
            environment["PYSPARK_PYTHON"] = sys.executable
        if not shutil.which("spark-submit") and shutil.which("spark-submit", path=scripts):
            environment["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
        return environment


def _application() -> Path:
    import airflow_flinkcompat

    return Path(airflow_flinkcompat.__file__).parent / "backfill" / "job.py"


@contextmanager
def _private_file(request: Mapping[str, Any]) -> Iterator[Path]:
    """The request in a file that only this user can read, for as long as the block lasts."""
    descriptor, name = tempfile.mkstemp(prefix="flinkcompat-", suffix=".json")  # mode 0600
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(request, stream, ensure_ascii=False)
        yield path
    finally:
        path.unlink(missing_ok=True)
