"""The same statements in Flink and as a backfill."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill import BackfillResult, run_backfill
from airflow_flinkcompat.backfill.spark_sql.expressions import typed
from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.nodes import Project
from airflow_flinkcompat.sql import parse_script
from tests.support.backfill.scripts import lines, requested, script

if TYPE_CHECKING:
    from dev.services.flink_batch import FlinkBatch

Both = Callable[..., tuple[list[str], list[str]]]
"""Statements that write to ``OUT``, and settings: the lines of either engine."""
Compare = Callable[..., None]
"""Columns, rows and expressions over them that both engines have to agree on."""


def by_both(
    flink: FlinkBatch,
    folder: Path,
    statements: Sequence[str],
    settings: Mapping[str, str] | None = None,
    streaming: bool = True,
    **request: Any,
) -> tuple[list[str], list[str], BackfillResult]:
    """Runs statements that write to ``OUT``: the lines Flink writes, those of a backfill, and what it reports."""
    places = [folder / "by-flink", folder / "by-spark"]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    there = [[statement.replace("OUT", str(place)) for statement in statements] for place in places]
    flink.run(there[0], settings, streaming)
    result = run_backfill(requested(script(*there[1]), **{"source": "job.sql", "settings": settings or {}, **request}))
    return lines(places[0]), lines(places[1]), result


def result_types(source: str, expressions: Sequence[str], query: str) -> list[str]:
    """The types the plan gives expressions over a declared table."""
    program = build_program(parse_script(script(source, "SELECT " + query.format(", ".join(expressions)))))
    assert not program.problems, program.problems
    project = program.pipelines[0].sink.input
    assert isinstance(project, Project), project
    return [str(typed(expression).type) for expression in project.expressions]
