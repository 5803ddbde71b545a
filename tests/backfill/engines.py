"""The same statements in Flink and as a backfill."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_flinkcompat.backfill import BackfillRequest, BackfillResult, run_backfill
from tests.backfill.scripts import lines, script

if TYPE_CHECKING:
    from tests.backfill.flink_batch import FlinkBatch

Case = TypeVar("Case")


def turns(cases: Sequence[Case], few: int = 2) -> list[Case]:
    """A few of the cases, others every day; all of them in the thorough profile, which ``make test-full`` sets."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "thorough":
        return list(cases)
    first = date.today().toordinal() * few
    return [cases[(first + i) % len(cases)] for i in range(min(few, len(cases)))]


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
