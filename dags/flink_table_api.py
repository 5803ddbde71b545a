"""### Check a PyFlink program before every redeploy

The gate reads the program without running it, and compares it with the version in the ledger. Targets run only SQL
scripts, so a task of this DAG starts the program with Flink's own client, and records it. If state is discarded,
Spark recomputes history up to the restart.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

NAME = "visits"  # not FLINKCOMPAT_DEPLOYMENT, which names the job of the SQL examples
PROGRAM = os.environ.get("FLINKCOMPAT_PROGRAM", "programs/visits.py")
MINUTES = os.environ.get("WINDOW_MINUTES", "10")
PASSWORD = "${conn.warehouse.password}"  # only the client's environment contains the value

# Needs flink, jq and flinkcompat on the worker, FLINKCOMPAT_LEDGER, and SAVEPOINTS (a folder of the cluster).
START = r"""
set -euo pipefail
cd "$DAGS"
shown=$(flinkcompat ledger show "$DEPLOYMENT" --format json 2>&1) || case "$shown" in
  *"no entry in"*) shown="{}" ;;
  *) echo "$shown"; exit 1 ;;
esac
job=$(jq -r '.entry.job_id // empty' <<<"$shown")
from=()
if [ -n "$job" ]; then
  echo "stopping job $job with a savepoint in $SAVEPOINTS"
  stopped=$(flink stop --savepointPath "$SAVEPOINTS" "$job") || { echo "$stopped"; exit 1; }
  savepoint=$(sed -n 's/^Savepoint completed. Path: //p' <<<"$stopped")
  [ -n "$savepoint" ] || { echo "job $job has not stopped with a savepoint: $stopped"; exit 1; }
  echo "the way back: $savepoint"
  if [ "$START_MODE" = savepoint ]; then from=(-s "$savepoint"); fi
elif [ "$START_MODE" = savepoint ]; then
  echo "nothing is deployed: there is no state to resume from"; exit 1
fi
echo "starting $PROGRAM ${from[*]:-without state}"
started=$(flink run -d "${from[@]}" -py "$PROGRAM") || { echo "$started"; exit 1; }
new=$(sed -n 's/.*JobID //p' <<<"$started")
[ -n "$new" ] || { echo "no job was started: $started"; exit 1; }
flinkcompat ledger adopt "$DEPLOYMENT" --job-id "$new" --script "$PROGRAM" --jobmanager "$JOBMANAGER" \
  --var "WINDOW_MINUTES=$WINDOW_MINUTES" --var "WAREHOUSE_PASSWORD=$PLACEHOLDER"
date -u +%Y-%m-%dT%H:%M:%SZ
"""


def start(task_id: str, start_mode: str, **arguments: Any) -> BashOperator:
    """Start the program, without retries: a second try would stop the job of the first try."""
    return BashOperator(
        task_id=task_id,
        bash_command=START,
        retries=0,
        append_env=True,
        env={
            "DAGS": os.path.dirname(__file__),  # noqa: PTH120 -- as Airflow has it
            "DEPLOYMENT": NAME,
            "PROGRAM": PROGRAM,
            "START_MODE": start_mode,
            "WINDOW_MINUTES": MINUTES,
            "WAREHOUSE_PASSWORD": "{{ conn.warehouse.password }}",
            "PLACEHOLDER": PASSWORD,
            "SAVEPOINTS": os.environ.get("FLINKCOMPAT_SAVEPOINTS", "/savepoints"),
            "JOBMANAGER": os.environ.get("FLINKCOMPAT_JOBMANAGER", "http://localhost:8081"),
        },
        **arguments,
    )


with DAG(
    "flink_table_api",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1),
    max_active_runs=1,
    max_consecutive_failed_dag_runs=5,
    description="Deploys a new version of programs/visits.py after a check",
    tags=["flink", "example"],
    doc_md=__doc__,
):
    gated_redeploy(
        Deployment(
            name=NAME,
            script=PROGRAM,
            variables={"WINDOW_MINUTES": MINUTES, "WAREHOUSE_PASSWORD": PASSWORD},
            check={"engine": "flink"},
            # Recompute history up to the time that the restart task returns.
            backfill=json.loads(os.environ.get("FLINKCOMPAT_HISTORY", "{}")) | {"to": "{{ ti.xcom_pull('restart') }}"},
        ),
        deploy=start,
    )
