"""Stand-ins below the edge of the Airflow layer: a task's context with its XComs, and a cluster in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

TABLES = """\
CREATE TABLE orders (shop STRING, price DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE totals (ws TIMESTAMP(3), shop STRING, total DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '/out', 'format' = 'csv');
"""
QUERY = """\
INSERT INTO totals
SELECT window_start, shop, SUM(price) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '{size}' MINUTE))
GROUP BY window_start, window_end, shop;
"""


def script(size: int = 10) -> str:
    """A windowed sum; another window size is an incompatible change."""
    return TABLES + QUERY.format(size=size)


def _outlet_events() -> Any:
    from airflow.sdk.execution_time.context import OutletEventAccessors  # the scripts of this module need no Airflow

    return OutletEventAccessors()


@dataclass
class Run:
    """One DAG run: renders a task, gives it a context, and keeps what it pushed."""

    run_id: str = "run-1"
    # What the run was triggered with.
    conf: Mapping[str, Any] = field(default_factory=dict)
    pushed: dict[tuple[str, str], Any] = field(default_factory=dict)
    # What each task said of assets, as Airflow collects it.
    events: dict[str, Any] = field(default_factory=lambda: defaultdict(_outlet_events))

    def context(self, task: Any) -> dict[str, Any]:
        ti = MagicMock(task=task, task_id=task.task_id, dag_id=task.dag_id, run_id=self.run_id, map_index=-1)
        ti.xcom_push.side_effect = lambda key, value: self.pushed.__setitem__((task.task_id, key), value)
        ti.xcom_pull.side_effect = lambda task_ids, key="return_value": self.pushed.get((task_ids, key))
        about = {"ti": ti, "task_instance": ti, "task": task, "run_id": self.run_id, "params": dict(self.conf)}
        return {**about, "dag": task.dag, "outlet_events": self.events[task.task_id]}

    def render(self, task: Any) -> dict[str, Any]:
        """As the task runner does before ``execute``."""
        context = self.context(task)
        task.render_template_fields(context, task.dag.get_template_env())
        return context

    def execute(self, task: Any) -> Any:
        """What the task returned; for a task that branched, the sorted ids of those skipped."""
        return self._skipped(task, task.execute, self.render(task))

    def complete(self, task: Any, event: Mapping[str, Any]) -> Any:
        return self._skipped(task, task.execute_complete, self.render(task), event)

    def asset_events(self, task_id: str) -> dict[str, Mapping[str, Any]]:
        """The URI of each asset that a task told of, with what its event says."""
        accessors = self.events[task_id]._dict.values()
        return {each.dest_asset_key.uri: each.extra for one in accessors for each in one.asset_alias_events}

    def _skipped(self, task: Any, step: Any, *arguments: Any) -> Any:
        from tests.support.airflow.operators.versions import (
            DownstreamTasksSkipped,  # the scripts of this module need no Airflow
        )

        try:
            returned = step(*arguments)
        except DownstreamTasksSkipped as skipped:
            return sorted(each if isinstance(each, str) else each[0] for each in skipped.tasks)
        if returned is not None:
            self.pushed[task.task_id, "return_value"] = returned  # as Airflow does
        return returned
