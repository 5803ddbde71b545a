"""First rows of a source, read by Spark, and the density of rows estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from airflow_flinkcompat.backfill.execution.aligned_windows import keys_and_times
from airflow_flinkcompat.backfill.steps import Assign, Slices, Step

DENSE = 1.5
"""Rows per key and slice from which on slices are worth their second aggregation."""


def density(sample: Sequence[tuple[int, int, int]], piece: int, total: float = math.inf) -> float:
    """Estimated rows per key and slice, from the first rows of the data: (hash of the key, slice, time).

    ``piece`` is the length of a slice, ``total`` how many rows there are, about. Rows in the order of time show how
    many there are of a slice; rows in any order do so only together with the total.
    """
    if not sample:
        return math.inf
    seen = len(sample) / len({(key, slice) for key, slice, _ in sample})
    if seen >= DENSE:
        return seen
    times = [time for _, _, time in sample]
    extent = max(max(times) - min(times), 1)
    half = len(times) // 2
    first, second = times[:half] or times, times[half:]
    common = min(max(first), max(second)) - max(min(first), min(second))
    rows = total if common > extent / 2 else len(sample)
    per_slice = rows * piece / max(extent, piece if rows == total else 1)
    return max(seen, per_slice / _distinct(per_slice, _population(len(sample), len({key for key, _, _ in sample}))))


def _distinct(draws: float, population: float) -> float:
    """Expected number of distinct values in so many draws from a population."""
    if math.isinf(draws):
        return population
    return max(population * -math.expm1(-draws / population), min(1.0, draws))


def _population(draws: int, distinct: int) -> float:
    """The size of the population that a sample was drawn from, estimated from the repeats in it."""
    low, high = float(distinct), float(draws) * draws
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _distinct(draws, middle) < distinct else (low, middle)
    return high


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
