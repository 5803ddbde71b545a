"""A command in a process that kills itself.

``python -m tests.scenarios.history.killed STEP FOLDER OLD NEW COMMAND ARGUMENT…`` runs it.

The plans OLD and NEW stand for those of Flink's planner, and FOLDER for the one in which the job of a savepoint had
read its files. A step that is not known lets the command come to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_flinkcompat.backfill.spark import FileSystem
from airflow_flinkcompat.cli import bootstrap, migrate
from airflow_flinkcompat.cli import main as flinkcompat
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.history import sources
from airflow_flinkcompat.history.computing import HistoryComputer
from airflow_flinkcompat.migration import writing
from airflow_flinkcompat.migration.target_folder import TargetFolder
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import FilesRead, file_positions

BEHIND = {
    "the folder was begun": (TargetFolder, "begin"),
    "state was computed": (HistoryComputer, "regroup"),
    "all was written": (writing._Writing, "write"),
    "all was read back": (writing, "verify"),
    "it was published": (TargetFolder, "publish"),
}
"""What has just been done when the process is killed."""
BEFORE = {"what was aggregated is told": (FileSystem, "write")}
"""What is about to be done when it is killed."""


def main() -> None:
    step, folder, old, new, *arguments = sys.argv[1:]
    plans = tuple((read_plan(Path(plan).read_text("utf-8")),) for plan in (old, new))
    for command in (bootstrap, migrate):
        command.compiled_plans = lambda *_: plans  # type: ignore[assignment]

    def moved(operator: OperatorState, path: str) -> FilesRead:
        found = file_positions(operator, path)
        names = (each.rpartition("/data/")[2].partition("/")[2] for each in found.seen)
        return replace(found, seen=frozenset((Path(folder) / name).as_uri() for name in names))

    sources.file_positions = moved  # type: ignore[attr-defined]
    if step in {**BEHIND, **BEFORE}:
        owner, name = {**BEHIND, **BEFORE}[step]
        former = getattr(owner, name)

        def killed(*given: Any, **named: Any) -> None:
            if step in BEHIND:
                former(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, killed)
    sys.argv = ["flinkcompat", *arguments]
    flinkcompat()


if __name__ == "__main__":
    main()
