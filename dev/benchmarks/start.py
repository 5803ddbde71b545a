"""Time of a start: processor time of commands, and the imports that the operators add to a DAG file.

Everything runs in fresh processes with compiled bytecode, and the minimum of several runs is used. A command is
measured in processor time (user and system), which a busy machine affects less than elapsed time. An import is
measured in elapsed time, in a process that has loaded ``airflow.sdk`` with its ``BaseOperator``, like any DAG file.
Its second figure is the part of this package: the process has then also loaded the modules of Airflow and its
providers that the operators need.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dev.tools import benchmark_parser, cost_of, explanation, publish

ROUNDS = 7
_TABLES = """\
CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE totals (customer STRING, ends TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals SELECT customer, window_end, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY customer, window_start, window_end;
"""
SCRIPTS = {
    "old.sql": _TABLES,
    "compatible.sql": _TABLES.replace("total BIGINT", "totals BIGINT"),
    "incompatible.sql": _TABLES.replace("'1' MINUTE", "'5' MINUTE"),
}
COMMANDS = {
    "--version": 0.15,
    "--help": 0.15,
    "check old.sql compatible.sql": 0.6,
    "check old.sql incompatible.sql": 0.6,
    "lint old.sql": 0.6,
}
"""Each command with its goal in seconds."""
IMPORT_GOAL_MS = 30.0
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
"""Imports of a DAG file, from the smallest set to everything."""


def seconds(command: str, rounds: int = ROUNDS) -> float:
    """Processor seconds of a ``flinkcompat`` command, the minimum of all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SCRIPTS.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        words = [str(Path(folder, word)) if word in SCRIPTS else word for word in command.split()]
        costs = [cost_of([sys.executable, "-m", "airflow_flinkcompat.cli", *words], 120) for _ in range(rounds)]
    if any(cost.status > 1 for cost in costs):
        raise RuntimeError(f"flinkcompat {command} exited with {max(cost.status for cost in costs)}")
    return min(cost.cpu for cost in costs)


def added(code: str, before: str, rounds: int = ROUNDS) -> float:
    """Milliseconds of an import, the minimum of all rounds."""
    program = f"import time\n{before}\nat = time.perf_counter()\n{code}\nprint(time.perf_counter() - at)"
    command = [sys.executable, "-c", program]
    outputs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(rounds)]
    return min(float(output.splitlines()[-1]) for output in outputs) * 1000


def results() -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# Time of a start, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    versions = f"Python {platform.python_version()}, Airflow {version('apache-airflow')}"
    yield f"{versions}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; `make bench-start`, {ROUNDS} runs."
    yield ""
    yield explanation(__doc__)
    yield ""
    yield "| command | seconds of processor time | goal |"
    yield "|---|--:|--:|"
    for command, goal in COMMANDS.items():
        yield f"| `flinkcompat {command}` | {seconds(command):.2f} | {goal} |"
    yield ""
    yield f"| import (goal: its own part under {IMPORT_GOAL_MS:.0f} ms) | ms after `airflow.sdk` | ms of its own |"
    yield "|---|--:|--:|"
    all_loaded = f"{LOADED}\n{FOUNDATIONS}"
    for name, code in IMPORTS.items():
        yield f"| {name} | {added(code, LOADED):.1f} | {added(code, all_loaded):.1f} |"


if __name__ == "__main__":
    publish(results(), benchmark_parser(__doc__).parse_args().write)
