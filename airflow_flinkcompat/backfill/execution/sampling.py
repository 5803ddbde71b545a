"""The first rows of a source, read by Spark: whether slices have enough of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from airflow_flinkcompat.backfill.execution.aligned_windows import keys_and_times
from airflow_flinkcompat.backfill.execution.density import density
from airflow_flinkcompat.backfill.steps import Assign, Slices, Step

ROWS = 20_000
_BYTES = 8  # of a field as it is stored, about


def rows_per_slice(
    frame: Callable[[Step], DataFrame], read: Sequence[DataFrame], step: Assign, slices: Slices
) -> float:
    """Estimated rows per key and slice; 0 if the rows cannot be read, which the work itself will report."""
    try:
        rows = keys_and_times(frame(step.input), step, slices)
        total = sum(_total(raw) for raw in read)
        if total == 0:
            return 0.0
        return density([(row[0], row[1], row[2]) for row in rows.collect()], step.windows.slice, total)
    except (PySparkException, Py4JError):
        return 0.0


def _total(raw: DataFrame) -> float:
    """Approximate number of rows of a source, as Spark knows it without reading; infinite if unknown."""
    plan = raw._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    total = 0.0
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        statistics = leaf.stats()
        if statistics.rowCount().isDefined():
            total += float(str(statistics.rowCount().get()))
        else:
            size = float(str(statistics.sizeInBytes()))
            total += size / (_BYTES * max(leaf.output().size(), 1)) if size < 2**62 else math.inf
    return total
