"""### Check a Flink SQL job before every redeploy

The DAG waits for a new version of the script, checks how it affects the state of the running job, and follows the
verdict: resume from a savepoint, migrate the state, ask a person, or restart without state if Spark can recompute
history.

The job is `orders`, or the job that FLINKCOMPAT_DEPLOYMENT names. If you trigger `flink_hand_over`, it deploys the
same job; the ledger allows only one of the two at a time.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG(
    "flink_gated_deploy",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1),
    max_active_runs=1,
    max_consecutive_failed_dag_runs=5,
    description="Deploys a new version of orders.sql after a check",
    tags=["flink", "example"],
    doc_md=__doc__,
):
    gated_redeploy(
        Deployment(
            name=os.environ.get("FLINKCOMPAT_DEPLOYMENT", "orders"),
            script=os.environ.get("FLINKCOMPAT_SCRIPT", "scripts/orders.sql"),
            changed={"poke_interval": 5},
            deploy=json.loads(os.environ.get("FLINKCOMPAT_DEPLOY", "{}")),
            # After an incompatible change, rewrite the savepoint if possible. False, or arguments: {"plan_dir": …}
            migrate=json.loads(os.environ.get("FLINKCOMPAT_MIGRATE", "true")),
            # Locations of history and of its results, and the range: {"tables": …, "sinks": …, "from_": …, "to": …}
            backfill=json.loads(os.environ.get("FLINKCOMPAT_BACKFILL", "{}")),
        )
    )
