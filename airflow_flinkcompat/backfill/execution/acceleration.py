"""What may compute the first half of an aggregation in place of Spark's own operators; the runner may bring one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_flinkcompat.backfill.steps import Group, Read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class AcceleratedRead(Protocol):
    """The partial aggregates of one aggregation over one table."""

    @property
    def read(self) -> Read:
        """The rows that are aggregated."""


_Partials = TypeVar("_Partials", bound=AcceleratedRead)


class Accelerator(Protocol[_Partials]):
    """Decides for each aggregation, and computes the partial aggregates of its slices."""

    def __call__(self, group: Group, session: SparkSession | None = None) -> _Partials | None:
        """How an aggregation is computed; None where Spark's operators have to."""

    def pieces(self, session: SparkSession, partials: _Partials) -> DataFrame:
        """Keys, slice and partials as :class:`~airflow_flinkcompat.backfill.steps.Slices` names them.

        Beside them the number of ``rows`` read for each, and of those without a time (``nulls``). Rows without a slice
        are counted only.
        """

    def failed(self, partials: _Partials, error: Exception) -> None:
        """Leaves to Spark what could not be computed, and what else would be read of the same table."""
