"""### Redeploy many Flink SQL jobs, each with a gate

The file creates a DAG for each job in ``flink_deployments.toml``, or in the file that FLINKCOMPAT_DEPLOYMENTS names.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow_flinkcompat.airflow.operators import redeploy_dags

FILE = os.environ.get("FLINKCOMPAT_DEPLOYMENTS") or Path(__file__).with_suffix(".toml")
globals().update(redeploy_dags(FILE))
