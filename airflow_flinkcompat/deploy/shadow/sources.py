"""Source operators of two scripts, matched by the folders and topics that they read.

A savepoint stores the position of a source by operator id. Flink restores the position into the operator with the same
id, even if this operator reads a different table in the new script.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.target import JobDescription, SourceTable

_FILES = "filesystem"
_TOPIC = ("topic", "topic-pattern", "properties.bootstrap.servers")
_SCHEME = re.compile(r"file:(//)?(?=/)")


def source_operators(described: JobDescription | None, tables: Iterable[SourceTable]) -> dict[str, SourceTable]:
    """The tables that the sources of a running job read, by operator id.

    Args:
        described: The job.
        tables: The tables that its script reads.

    Returns:
        The sources. A lookup table has no operator of its own.

    Raises:
        CannotRehearse: The name of a source fits no table, or several tables.
    """
    known = tuple(tables)
    found = {}
    for vertex in described.vertices if described else ():
        head = vertex.name.partition(" -> ")[0]
        matching = [table for table in known if _is_source(head, table)]
        if len(matching) == 1:
            found[vertex.id] = matching[0]
        elif matching or head.startswith("Source: "):
            raise CannotRehearse(f"the table of {head} is unknown")
    return found


def _is_source(head: str, table: SourceTable) -> bool:
    """True if a vertex that begins with the operator ``head`` reads a table."""
    short = (re.escape(table.name), re.escape(f"KafkaSource-{'.'.join(table.path)}"))
    # without table.exec.simplify-operator-name-enabled, names contain descriptions
    whole = re.escape(f"TableSourceScan(table=[[{', '.join(table.path)}")
    return re.fullmatch(rf"Source: (({'|'.join(short)})(\[\d+\])?|{whole}[\],].*)", head) is not None


def moved_files(old: Mapping[str, SourceTable], new: Mapping[str, SourceTable]) -> dict[str, str | None]:
    """Sources of files that restore the position of a different folder.

    Args:
        old: The sources of the old script, by operator id.
        new: The sources of the new script, by operator id.

    Returns:
        For each such source of the new script, the source of the old script that reads the same folder. None if the
        old script does not read this folder.

    Raises:
        CannotRehearse: The folder of such a source contains the other folder, or the reverse.
    """
    files = {key: table for key, table in new.items() if key in old and _FILES in (table.connector, old[key].connector)}
    moved = {key: other for key, other in _counterparts(old, files).items() if other != key}
    for key, other in moved.items():
        folders = _folder(new[key]), _folder(old[key])
        if other is None and any(one.startswith(f"{each}/") for one, each in (folders, folders[::-1])):
            raise CannotRehearse(
                f"source {new[key].name} restores the position of {old[key].name}, and one of their folders contains "
                "the other one, so the files that a restart reads are unknown"
            )
    return moved


def source_ids(
    old: Mapping[str, SourceTable], new: Mapping[str, SourceTable], stored: Collection[str]
) -> dict[str, str]:
    """Match the sources of the new script with the sources in a savepoint of the old script.

    Args:
        old: The sources of the old script, by operator id.
        new: The sources of the new script, by operator id.
        stored: The operator ids of all sources in the savepoint.

    Returns:
        The id in the savepoint of each source, by its id in the new script.

    Raises:
        CannotRehearse: The table of a source is unknown, or the old script does not read it.
    """
    if unknown := sorted({*stored} - {*old}):
        raise CannotRehearse(f"the table of source {unknown[0]} in the savepoint is unknown")
    found = {}
    for key, other in _counterparts(old, new).items():
        if other is None:
            raise CannotRehearse(
                f"the old script does not read {new[key].name}, so the row of the first savepoint is unknown"
            )
        found[key] = other
    return found


def _counterparts(old: Mapping[str, SourceTable], new: Mapping[str, SourceTable]) -> dict[str, str | None]:
    """For each new source, an old source with the same folder or topic, with the same id if possible."""
    found: dict[str, str | None] = {}
    for key, table in new.items():
        same = [other for other, read in old.items() if _place(read) == _place(table)]
        found[key] = key if key in same else next(iter(same), None)
    return found


def _place(table: SourceTable) -> tuple[str | None, ...]:
    """Folder or topic of a table, which identifies its rows."""
    return (_folder(table), *(table.options.get(key) for key in _TOPIC))


def _folder(table: SourceTable) -> str:
    return _SCHEME.sub("", table.options.get("path", "")).rstrip("/")
