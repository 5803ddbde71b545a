"""Which files of a folder a job had read, by what its savepoint tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history import sources
from airflow_flinkcompat.history.sources import RowsRead
from airflow_flinkcompat.savepoint.source_positions import FileSplit, FilesRead

SCRIPT = """
CREATE TABLE orders (a STRING, b INT) WITH (
  'connector' = 'filesystem', 'path' = '/data', 'format' = 'csv', 'source.monitor-interval' = '1 s'
);
CREATE TABLE sink (a STRING, b INT) WITH ('connector' = 'print');
INSERT INTO sink SELECT * FROM orders;
"""
FOUND = frozenset({"file:/data/a"})
SPLIT = (FileSplit("file:/data/a", 0, 9, 9),)


def source(read: FilesRead, monkeypatch: pytest.MonkeyPatch) -> FileSource:
    (table,) = (each for each in Side(SCRIPT, engine="flink").program.tables if each.path[2] == "orders")
    monkeypatch.setattr(sources, "file_positions", lambda operator, path: read)
    readers = {"orders": cast(Any, SimpleNamespace())}
    found = RowsRead(savepoint="savepoint", readers=readers).source(table)
    assert isinstance(found, FileSource)
    return found


@pytest.mark.parametrize(
    "read", [FilesRead(FOUND, (), ()), FilesRead(FOUND, SPLIT, ()), FilesRead(frozenset(), (), ())]
)
def test_a_job_that_has_found_no_file_has_read_none(read: FilesRead, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that came later are for the job that goes on."""
    assert source(read, monkeypatch).read == read


@pytest.mark.parametrize("splits", [(SPLIT, ()), ((), SPLIT)])
def test_a_source_that_looked_once_tells_what_it_has_not_read_alone(
    splits: tuple[tuple[FileSplit, ...], tuple[FileSplit, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackfillError, match="from a bounded source"):
        source(FilesRead(frozenset(), *splits), monkeypatch)
