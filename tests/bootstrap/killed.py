"""``flinkcompat bootstrap`` in a process that kills itself: ``python -m tests.bootstrap.killed STEP PLAN ARGUMENT…``.

The plan stands for that of Flink's planner. A step that is not known lets the command come to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from airflow_flinkcompat.bootstrap.computing import HistoryComputer
from airflow_flinkcompat.cli import bootstrap, cli
from airflow_flinkcompat.migration import writing
from airflow_flinkcompat.migration.target_folder import TargetFolder
from airflow_flinkcompat.state.compiled import read_plan

BEHIND = {
    "the folder was begun": (TargetFolder, "begin"),
    "state was computed": (HistoryComputer, "regrouped"),
    "all was written": (writing._Writing, "write"),
    "all was read back": (writing, "verify"),
    "it was published": (TargetFolder, "publish"),
}
"""What has just been done when the process is killed."""


def main() -> None:
    step, plan, *arguments = sys.argv[1:]
    read = read_plan(Path(plan).read_text("utf-8"))
    bootstrap.compiled_plans = lambda *_: ((read,), (read,))  # type: ignore[assignment]
    if step in BEHIND:
        owner, name = BEHIND[step]
        former = getattr(owner, name)

        def killed(*given: Any, **named: Any) -> None:
            former(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, killed)
    cli(["bootstrap", *arguments])


if __name__ == "__main__":
    main()
