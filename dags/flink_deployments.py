"""### Many Flink SQL jobs, each behind its own gate

A DAG for each job of ``flink_deployments.toml``, or of the file that FLINKCOMPAT_DEPLOYMENTS names.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow_flinkcompat.airflow.operators import redeploy_dags

FILE = os.environ.get("FLINKCOMPAT_DEPLOYMENTS") or Path(__file__).with_suffix(".toml")
globals().update(redeploy_dags(FILE))
