"""Aggregations that DuckDB may compute: results are certainly equal, and slices contain many rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.connectors.delta import DeltaSource
from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.iceberg import IcebergSource
from airflow_flinkcompat.backfill.duckdb.data_files import (
    CsvFiles,
    DataFiles,
    NotEligible,
    ParquetFiles,
    filled_in,
    listed,
)
from airflow_flinkcompat.backfill.duckdb.partials import Partials, partials_of, pieces, reason, wanted_by, windows_of
from airflow_flinkcompat.backfill.execution.windows import density
from airflow_flinkcompat.backfill.formats.text import CsvFormat
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.steps import Group, Read, Slices, Step, Work, inputs_of, reads_of
from airflow_flinkcompat.model import install_command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DENSE = 4.0
"""Minimum number of rows per key and slice. With fewer rows, partials save too little work."""
ROWS = 1_000_000
"""Minimum number of rows in all files.

With fewer rows, starting Python in the tasks costs more than it saves.
"""
SAMPLE = 20_000


class DuckDbAccelerator:
    """Accelerator that decides for each aggregation if DuckDB computes it.

    Args:
        progress: Receives each reason as a line.
    """

    def __init__(self, progress: Callable[[str], None] = lambda line: None) -> None:
        self._progress = progress
        self._found: dict[Group, Partials | None] = {}
        self._held: dict[DataFiles, DataFiles] = {}
        self._failed: set[str] = set()

    def __call__(self, group: Group, session: SparkSession | None = None) -> Partials | None:
        """Plan an aggregation for DuckDB; None if DuckDB cannot compute it. The reason is printed."""
        if group.slices is None:
            return None
        if session is None and not all(isinstance(read.source, FileSource) for read in reads_of(group)):
            return None
        found = self._found.get(group)
        if group not in self._found or (session is not None and found is not None and _changed(found)):
            self._found[group] = self._decided(group, group.slices, session)
        return self._found[group]

    def covers(self, work: Work) -> bool:
        """True if DuckDB aggregates all rows that are read, so that Spark's operators have little work."""
        return all(self._covered(step) for write in work.writes for step in write.inputs)

    def pieces(self, session: SparkSession, partials: Partials) -> DataFrame:
        """Partial aggregates, which DuckDB computes in Spark's tasks."""
        return pieces(session, partials)

    def failed(self, partials: Partials, error: Exception) -> None:
        """Leave a failed aggregation, and all later reads of the same table, to Spark."""
        self._failed.add(partials.read.source.place)
        self._progress(
            f"DuckDB failed on table {partials.read.table} ({reason(error)}), so Spark's own operators "
            "aggregate all rows"
        )

    def _covered(self, step: Step) -> bool:
        if isinstance(step, Group) and self(step) is not None:
            return True
        if isinstance(step, Read):
            return False
        return all(self._covered(inner) for inner in inputs_of(step))

    def _decided(self, group: Group, slices: Slices, session: SparkSession | None) -> Partials | None:
        kind = "windows"
        try:
            assign = windows_of(group)
            kind = str(assign.windows.kind)
            wanted = wanted_by(assign, slices)
            _check_installed()
            if wanted.read.source.place in self._failed:
                raise NotEligible("DuckDB failed on the same files before")
            held = _held(wanted.read.source, session)
            held = self._held.setdefault(held, held)
            held.check(wanted.columns.values(), wanted.time)
            partials = partials_of(assign, slices, wanted, held, SAMPLE)
            found = _dense(partials, assign.windows.slice)
        except NotEligible as why:
            self._progress(f"{kind}: Spark's own operators aggregate all rows, because {why}")
            return None
        except BackfillError:  # Spark also fails on this error.
            raise
        except Exception as error:  # Spark's own operators may still succeed.
            what = next(iter(str(error).splitlines()), type(error).__name__)
            self._progress(f"{kind}: Spark's own operators aggregate all rows, because DuckDB failed: {what}")
            return None
        self._progress(
            f"{kind}: there are about {found:.1f} rows per key and slice, so DuckDB aggregates the files to slices"
        )
        return partials


def _check_installed() -> None:
    for name in ("duckdb", "pyarrow"):
        if find_spec(name) is None:
            raise NotEligible(f"{name} is not installed ({install_command('native')})")


def _dense(partials: Partials, slice_: int) -> float:
    """Approximate number of rows per key and slice. Raises :class:`NotEligible` if there are too few rows."""
    import duckdb

    held = partials.held
    if held.rows < ROWS:
        raise NotEligible(f"the files contain only {held.rows} rows")
    with duckdb.connect(config={"threads": 1}) as connection:
        sample = connection.sql(filled_in(partials.sample, held.files)).fetchall()
    found = density(sample, slice_, held.rows)
    if found < DENSE:
        raise NotEligible(f"there are only about {found:.1f} rows per key and slice")
    return found


def _held(source: BackfillSource, session: SparkSession | None) -> DataFiles:
    """Files of a source. Raises :class:`NotEligible` if DuckDB may not read the same rows as Spark."""
    match source:
        case FileSource(format=CsvFormat() as format):
            return CsvFiles.of(source, format)
        case FileSource():
            return ParquetFiles(listed(source.place))
        case DeltaSource() | IcebergSource() if session is not None:
            from airflow_flinkcompat.backfill.duckdb.data_files import data_files

            return data_files(session, source)
    raise NotEligible("the table is not read from files")


def _changed(partials: Partials) -> bool:
    source = partials.read.source
    try:
        return isinstance(source, FileSource) and listed(source.place) != partials.held.files
    except NotEligible:
        return True
