"""The file system of a place, by Hadoop's interface inside Spark's JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.errors import BackfillError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileSystem:
    """The file system of one place, by Hadoop's interface: local disk and all that Spark reaches."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self._path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        system = self._path(place).getFileSystem(session._jsc.hadoopConfiguration())
        # The local file system would keep a checksum file beside every file.
        self._system: Any = system.getRawFileSystem() if system.getScheme() == "file" else system

    def exists(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)))

    def is_bare(self, place: str) -> bool:
        """True if an existing place holds no file at any depth; stops at the first file."""
        return not self._system.listFiles(self._path(place), True).hasNext()

    def is_file(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)) and self._system.getFileStatus(self._path(place)).isFile())

    def entries(self, place: str) -> list[tuple[str, bool, int]]:
        """(name, is a folder, bytes) of the entries of a folder, by name."""
        found = self._system.listStatus(self._path(place))
        return sorted(
            (status.getPath().getName(), bool(status.isDirectory()), int(status.getLen())) for status in found
        )

    def files(self, place: str, depth: int) -> list[tuple[str, int]]:
        """(name, bytes) of files ``depth`` visible folders down, by name, which begins with those folders."""
        found = []
        for name, folder, size in self.entries(place):
            if folder and depth and not name.startswith((".", "_")):
                found += [(f"{name}/{inner}", bytes) for inner, bytes in self.files(f"{place}/{name}", depth - 1)]
            elif not folder and not depth:
                found.append((name, size))
        return found

    def read(self, place: str) -> bytes | None:
        """Content of a file, None if there is none."""
        if not self.exists(place):
            return None
        stream = self._system.open(self._path(place))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, place: str, content: bytes = b"") -> None:
        """Write a file, replacing an existing one."""
        stream = self._system.create(self._path(place), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def touch(self, place: str) -> None:
        """Write a file that is there only for its time, without making a folder."""
        self._system.createNonRecursive(self._path(place), True, 1024, 1, 1 << 20, None).close()

    def changed(self, place: str) -> int | None:
        """Modification time of a file from its file system; None if there is none."""
        from py4j.protocol import Py4JJavaError

        try:
            return int(self._system.getFileStatus(self._path(place)).getModificationTime())
        except Py4JJavaError:
            return None

    def make_folder(self, place: str) -> None:
        self._system.mkdirs(self._path(place))

    def move(self, place: str, target: str) -> None:
        if not self._system.rename(self._path(place), self._path(target)):
            raise BackfillError(f"{place} could not be moved to {target}; check that the place is writable")

    def delete(self, place: str) -> None:
        self._system.delete(self._path(place), True)
