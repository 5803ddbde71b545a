"""### A redeploy whose backfill hands over to the live job at a boundary

Trigger it with the boundary: history up to there is Spark's, what follows the live job's, and no window is missing,
doubled or cut. Where state does not survive the change, the record of the hand-over is worked out first, the job starts
by it, and the backfill follows once history has passed the boundary. For sinks in which a range can be replaced (JDBC,
Delta, Iceberg, upsert-kafka).
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta

from airflow.sdk import DAG, Label, Param

from airflow_flinkcompat.operators import (
    FlinkBackfillOperator,
    FlinkSqlApprovalOperator,
    FlinkSqlCompatibilityOperator,
    FlinkSqlDeployOperator,
)

BRANCHES = {"resume": "resume", "restart": "hand_over"}
JOINED = "none_failed_min_one_success"  # runs on one of two branches
# Where history lies, from when on: {"tables": …, "from_": …}; plan and run are asked for the same.
HISTORY = {"boundary": "{{ params.boundary }}", **json.loads(os.environ.get("FLINKCOMPAT_HISTORY", "{}"))}

with DAG(
    "flink_hand_over",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    max_active_runs=1,
    doc_md=__doc__,
    params={"boundary": Param(type="string", format="date-time", description="Where the live job's windows begin.")},
    default_args={
        "deployment": os.environ.get("FLINKCOMPAT_DEPLOYMENT", "orders"),
        "script": os.environ.get("FLINKCOMPAT_SCRIPT", "orders.sql"),
    },
):
    check = FlinkSqlCompatibilityOperator(
        task_id="check", branches={"first": "hand_over", "approve": "approve", **BRANCHES}
    )
    approve = FlinkSqlApprovalOperator(task_id="approve", branches=BRANCHES)
    resume = FlinkSqlDeployOperator(task_id="resume", start_mode="savepoint", trigger_rule=JOINED)
    hand_over = FlinkBackfillOperator(task_id="hand_over", dry_run=True, trigger_rule=JOINED, **HISTORY)
    restart = FlinkSqlDeployOperator(
        task_id="restart", start_mode="stateless", hand_over="{{ ti.xcom_pull('hand_over')['hand_over'] | tojson }}"
    )
    # It refuses to run before its history has passed the boundary: so it asks again.
    backfill = FlinkBackfillOperator(task_id="backfill", retries=12, retry_delay=timedelta(minutes=10), **HISTORY)

    check >> Label("compatible") >> resume
    check >> Label("incompatible, or the first") >> hand_over
    check >> Label("partial or unknown") >> approve
    approve >> Label("Resume from savepoint") >> resume
    approve >> Label("Restart with backfill") >> hand_over
    hand_over >> restart >> backfill
