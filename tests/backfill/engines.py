"""The same statements in Flink and as a backfill."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill import BackfillRequest, BackfillResult, run_backfill
from tests.backfill.scripts import lines, script

if TYPE_CHECKING:
    from tests.backfill.flink_batch import FlinkBatch


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
    result = run_backfill(BackfillRequest(script(*there[1]), "job.sql", settings=settings or {}, **request))
    return lines(places[0]), lines(places[1]), result
