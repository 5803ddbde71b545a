"""Processor time of a cold start of the command line.

Each command runs in fresh processes, byte code compiled beforehand. Counted is processor time, user and system, which
a busy machine changes less than the clock; the least of several runs counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from dev.benchmarks.processes import cost_of
from dev.tools import publish

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


def seconds(command: str, rounds: int = ROUNDS) -> float:
    """Measure the processor time of a command of ``flinkcompat``, the least of all rounds.

    Args:
        command: What follows ``flinkcompat`` on the command line.
        rounds: How many processes are started.

    Returns:
        Seconds.

    Raises:
        RuntimeError: The command ended as bad input.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SCRIPTS.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        words = [str(Path(folder, word)) if word in SCRIPTS else word for word in command.split()]
        costs = [cost_of([sys.executable, "-m", "airflow_flinkcompat.cli", *words], 120) for _ in range(rounds)]
    if any(cost.status > 1 for cost in costs):
        raise RuntimeError(f"flinkcompat {command} ended with {max(cost.status for cost in costs)}")
    return min(cost.cpu for cost in costs)


def results(rounds: int = ROUNDS) -> str:
    """Return the table of all commands, as Markdown."""
    lines = [
        f"# What a start of the command line costs, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Seconds of processor time, user and system, the least of {rounds} fresh processes, on Python "
        f"{platform.python_version()}, {os.cpu_count()} cores and a load of {os.getloadavg()[0]:.1f}. "
        "Made by `make bench-cli`.",
        "",
        "| command | seconds | goal |",
        "|---|--:|--:|",
    ]
    lines += [f"| `flinkcompat {each}` | {seconds(each, rounds):.2f} | {goal} |" for each, goal in COMMANDS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the table goes (default: standard output)")
    options = parser.parse_args()
    table = results()
    publish(table, options.write)
