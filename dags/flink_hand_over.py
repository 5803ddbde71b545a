"""### Redeploy with a backfill that hands over to the live job at a boundary

Trigger the DAG with the boundary. Spark computes results up to the boundary, and the live job computes the later
results. No window is missing, doubled or cut. If the change discards state, the DAG first writes the record of the
hand-over, then starts the job with it. The backfill follows once history has passed the boundary.

The sinks must be able to replace a range (JDBC, Delta, Iceberg, upsert-kafka). The job is `payments`, or the job that
FLINKCOMPAT_DEPLOYMENT names. It can share that job with `flink_gated_deploy`; the ledger allows only one of the two
at a time.
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
    description="Redeploys with a backfill that hands over to the live job",
    tags=["flink", "example"],
    doc_md=__doc__,
    # Airflow accepts a Param, although its annotation does not.
    params={  # pyright: ignore[reportArgumentType]
        "boundary": Param(type="string", format="date-time", description="Time at which the live job's windows begin.")
    },
):
    gated_redeploy(
        Deployment(
            name=os.environ.get("FLINKCOMPAT_DEPLOYMENT", "payments"),
            script=os.environ.get("FLINKCOMPAT_SCRIPT", "scripts/payments.sql"),
            # Locations and start of history: {"tables": …, "from_": …}
            backfill=json.loads(os.environ.get("FLINKCOMPAT_HISTORY", "{}")) | {"boundary": "{{ params.boundary }}"},
        ),
        watch=False,
    )
