"""Where savepoints lie."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import StateFile
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from tests.support.savepoint.savepoints import FOLDER

IN_FILES = FOLDER / "2.3" / "group-in-files"


def _files(folder: Path) -> list[StateFile]:
    operators = read_metadata(str(folder)).operators
    keyed = [each.keyed for operator in operators for each in operator.subtasks or () if each.keyed is not None]
    return [groups.handle for groups in keyed if isinstance(groups.handle, StateFile)]


def test_content_in_a_file_is_read_and_its_size_compared(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(IN_FILES, tmp_path / "savepoint-1"))
    (handle,) = _files(copy)
    assert handle.relative
    assert len(read_handle(handle, f"file:{copy}")) == handle.size
    (copy / handle.path).write_bytes(b"shorter")
    with pytest.raises(SavepointUnreadable, match=f"has 7 bytes, not the {handle.size} bytes that its metadata states"):
        read_handle(handle, str(copy))
    (copy / handle.path).unlink()
    with pytest.raises(SavepointUnreadable, match=r"cannot be read from here \(FileNotFoundError\)"):
        read_handle(handle, str(copy))
