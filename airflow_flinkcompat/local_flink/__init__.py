"""A private Flink on this machine: its jars and its processes.

The command ``python -m airflow_flinkcompat.local_flink --work-dir DIR`` runs a local Flink until you stop it.
"""

from airflow_flinkcompat.local_flink.cluster import LocalFlink, flink_home, local_cluster
from airflow_flinkcompat.local_flink.processes import LocalFlinkError

__all__ = ["LocalFlink", "LocalFlinkError", "flink_home", "local_cluster"]
