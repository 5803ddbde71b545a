"""### A gate before every redeploy of a Flink SQL job

Waits for a new version of the script, checks what it does to the state of the running job, and follows the verdict:
resume from a savepoint, ask a person, or restart without state and recompute history with Spark.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta

from airflow.sdk import DAG, Label

from airflow_flinkcompat.operators import (
    FlinkBackfillOperator,
    FlinkSqlApprovalOperator,
    FlinkSqlCompatibilityOperator,
    FlinkSqlDeployOperator,
)
from airflow_flinkcompat.sensors import FlinkSqlChangeSensor

BRANCHES = {"resume": "resume", "restart": "restart"}
JOINED = "none_failed_min_one_success"  # runs on one of two branches

with DAG(
    "flink_gated_deploy",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1),
    max_active_runs=1,
    doc_md=__doc__,
    default_args={
        "deployment": os.environ.get("FLINKCOMPAT_DEPLOYMENT", "orders"),
        "script": os.environ.get("FLINKCOMPAT_SCRIPT", "orders.sql"),
        "retries": 1,
        "retry_delay": timedelta(seconds=20),
    },
):
    changed = FlinkSqlChangeSensor(task_id="changed", poke_interval=5)
    check = FlinkSqlCompatibilityOperator(
        task_id="check", branches={"first": "deploy_first", "approve": "approve", **BRANCHES}
    )
    deploy_first = FlinkSqlDeployOperator(task_id="deploy_first", start_mode="stateless")
    approve = FlinkSqlApprovalOperator(task_id="approve", branches=BRANCHES)
    resume = FlinkSqlDeployOperator(task_id="resume", start_mode="savepoint", trigger_rule=JOINED)
    restart = FlinkSqlDeployOperator(task_id="restart", start_mode="stateless", trigger_rule=JOINED)
    # Where history lies, where its results go, and which span of it: {"tables": …, "sinks": …, "from_": …, "to": …}
    backfill = FlinkBackfillOperator(task_id="backfill", **json.loads(os.environ.get("FLINKCOMPAT_BACKFILL", "{}")))

    changed >> check >> Label("nothing deployed yet") >> deploy_first
    check >> Label("compatible") >> resume
    check >> Label("incompatible") >> restart >> backfill
    check >> Label("partial or unknown") >> approve
    approve >> Label("Resume from savepoint") >> resume
    approve >> Label("Restart with backfill") >> restart
