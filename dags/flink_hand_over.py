"""### A redeploy whose backfill hands over to the live job at a boundary

Trigger it with the boundary: history up to there is Spark's, what follows the live job's, and no window is missing,
doubled or cut. Where state does not survive the change, the record of the hand-over is worked out first, the job starts
by it, and the backfill follows once history has passed the boundary. For sinks in which a range can be replaced (JDBC,
Delta, Iceberg, upsert-kafka).

Its job is `payments`, or the one that FLINKCOMPAT_DEPLOYMENT names: then it shares that job with `flink_gated_deploy`,
and the ledger lets one of them at a time.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from airflow.sdk import DAG, Param

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG(
    "flink_hand_over",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    max_active_runs=1,
    description="When triggered: a redeploy whose backfill hands over to the live job",
    tags=["flink", "example"],
    doc_md=__doc__,
    # Airflow takes what its annotation does not name.
    params={  # pyright: ignore[reportArgumentType]
        "boundary": Param(type="string", format="date-time", description="Where the live job's windows begin.")
    },
):
    gated_redeploy(
        Deployment(
            name=os.environ.get("FLINKCOMPAT_DEPLOYMENT", "payments"),
            script=os.environ.get("FLINKCOMPAT_SCRIPT", "scripts/payments.sql"),
            # Where history lies, from when on: {"tables": …, "from_": …}
            backfill=json.loads(os.environ.get("FLINKCOMPAT_HISTORY", "{}")) | {"boundary": "{{ params.boundary }}"},
        ),
        watch=False,
    )
