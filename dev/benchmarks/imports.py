"""Time that importing the operators adds to a DAG file.

Each import runs in fresh processes that have loaded what any DAG file has, ``airflow.sdk`` with its ``BaseOperator``,
and is timed by the clock, byte code compiled beforehand; the best of several runs counts. The second figure is the same
where also those modules of Airflow and its providers are loaded that the operators stand on, so it is this package's
own part.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dev.tools import publish

GOAL_MS = 30.0
ROUNDS = 7
LOADED = "from airflow.sdk import DAG, BaseOperator, BaseSensorOperator, Label, TaskGroup, get_parsing_context"
FOUNDATIONS = (
    "import airflow.providers.common.compat.sdk, airflow.providers.standard.operators.hitl, airflow.triggers.base, "
    "airflow.sdk.bases.operatorlink, tomllib, pydantic"
)
IMPORTS = {
    "the package": "import airflow_flinkcompat.airflow.operators",
    "a policy": "from airflow_flinkcompat import Policy",
    "the gate": "from airflow_flinkcompat.airflow.operators import FlinkSqlCompatibilityOperator",
    "gate, deployment, approval and sensor": (
        "from airflow_flinkcompat.airflow.operators import "
        "FlinkSqlApprovalOperator, FlinkSqlCompatibilityOperator, FlinkSqlDeployOperator; "
        "from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor"
    ),
    "every name": (
        "from airflow_flinkcompat.airflow.operators import *; from airflow_flinkcompat.airflow.sensors import *"
    ),
}
"""What a DAG file may import, from the least to everything."""


def added(code: str, before: str, rounds: int = ROUNDS) -> float:
    """Times an import in processes of their own.

    Args:
        code: The statement that is timed.
        before: What each process has imported already.
        rounds: How many processes are timed.

    Returns:
        Milliseconds, the best of all rounds.

    Raises:
        subprocess.CalledProcessError: One of the statements cannot be run.
    """
    program = f"import time\n{before}\nat = time.perf_counter()\n{code}\nprint(time.perf_counter() - at)"
    command = [sys.executable, "-c", program]
    outputs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(rounds)]
    return min(float(output.splitlines()[-1]) for output in outputs) * 1000


def results(rounds: int = ROUNDS) -> str:
    """The table of all imports, as Markdown."""
    lines = [
        f"# What an import adds to a DAG file, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Milliseconds by the clock, the best of {rounds} fresh processes, on Python {platform.python_version()}, "
        f"Airflow {version('apache-airflow')} and {os.cpu_count()} cores. "
        f"Goal: the package adds under {GOAL_MS:.0f} ms. Made by `make bench-imports`.",
        "",
        "| import | after `airflow.sdk` | of it this package's own |",
        "|---|--:|--:|",
    ]
    for name, code in IMPORTS.items():
        whole, own = added(code, LOADED, rounds), added(code, f"{LOADED}\n{FOUNDATIONS}", rounds)
        lines.append(f"| {name} | {whole:.1f} | {own:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the table goes (default: standard output)")
    options = parser.parse_args()
    table = results()
    publish(table, options.write)
